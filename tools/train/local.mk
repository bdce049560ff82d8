# How the models in data/models were made (docs/models.md); no part of the build.
EXTRA_DIST += tools/train/byte_lm.py tools/train/check.py tools/train/data.py \
	tools/train/evaluate.py tools/train/gdn.py tools/train/kernels.c \
	tools/train/loss.gp tools/train/reverse.py
EXTRA_DIST += docs/models/byte-lm-loss.svg docs/models/byte-lm-loss.tsv docs/models/reverse-loss.tsv
