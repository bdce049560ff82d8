# experiments/memory/run.sh makes all tables and figures; `make check` the numbers that must hold.
check_PROGRAMS += experiments/memory/lab
experiments_memory_lab_SOURCES = experiments/memory/main.c experiments/memory/lab.c \
	experiments/memory/lab.h experiments/memory/recall.c experiments/memory/evict.c \
	experiments/memory/four.c experiments/memory/heads.c experiments/memory/mqar.c \
	experiments/memory/schlag.c experiments/memory/self.c experiments/memory/words.c
experiments_memory_lab_LDADD = libfastweight.a $(BLAS_LIBS) $(JANSSON_LIBS) $(PCRE2_LIBS) $(XXHASH_LIBS)
EXTRA_DIST += experiments/memory/run.sh experiments/memory/bars.gp experiments/memory/drift.gp \
	experiments/memory/heads.gp experiments/memory/lines.gp
dist_check_SCRIPTS += tests/experiments.sh
# What docs/choosing-a-rule.md shows, as run.sh made it.
EXTRA_DIST += docs/choosing-a-rule/capacity.svg docs/choosing-a-rule/drift.svg \
	docs/choosing-a-rule/evict.svg docs/choosing-a-rule/heads.svg
RULE_TABLES = age capacity drift evict four hard heads mqar mqar_forgetting named \
	schlag_capacity schlag_update self words
EXTRA_DIST += $(RULE_TABLES:%=docs/choosing-a-rule/%.tsv)
