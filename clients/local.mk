bin_PROGRAMS += clients/fwctl/fwctl
clients_fwctl_fwctl_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS) $(CURL_CFLAGS)
clients_fwctl_fwctl_LDADD = src/libbase.a $(CURL_LIBS) $(JANSSON_LIBS) -lm
clients_fwctl_fwctl_SOURCES = \
	clients/fwctl/fwctl.h \
	clients/fwctl/main.c \
	clients/fwctl/call.c \
	clients/fwctl/words.c \
	clients/fwctl/create.c \
	clients/fwctl/ls.c \
	clients/fwctl/feed.c \
	clients/fwctl/worst.c \
	clients/fwctl/learn.c \
	clients/fwctl/score.c \
	clients/fwctl/predict.c \
	clients/fwctl/recall.c \
	clients/fwctl/edit.c \
	clients/fwctl/forget.c \
	clients/fwctl/generate.c \
	clients/fwctl/inspect.c \
	clients/fwctl/snapshot.c \
	clients/fwctl/restore.c \
	clients/fwctl/patch.c \
	clients/fwctl/export.c \
	clients/fwctl/import.c \
	clients/fwctl/fork.c \
	clients/fwctl/rm.c

EXTRA_DIST += \
	clients/shell/common.sh \
	clients/shell/checkpoint.sh \
	clients/shell/create.sh \
	clients/shell/delete.sh \
	clients/shell/export.sh \
	clients/shell/facts.sh \
	clients/shell/fork.sh \
	clients/shell/generate.sh \
	clients/shell/stream.sh \
	clients/shell/healthz.sh \
	clients/shell/import.sh \
	clients/shell/inspect.sh \
	clients/shell/label.sh \
	clients/shell/learn-pairs.sh \
	clients/shell/learn-text.sh \
	clients/shell/learn.sh \
	clients/shell/list.sh \
	clients/shell/metrics.sh \
	clients/shell/models.sh \
	clients/shell/predict.sh \
	clients/shell/readyz.sh \
	clients/shell/edit.sh \
	clients/shell/forget.sh \
	clients/shell/recall.sh \
	clients/shell/restore.sh \
	clients/shell/score.sh \
	clients/shell/snapshot-get.sh \
	clients/shell/snapshot-patch.sh \
	clients/shell/snapshot-rm.sh \
	clients/shell/snapshot.sh \
	clients/shell/snapshots.sh \
	clients/shell/tensor.sh \
	clients/shell/tensors.sh \
	clients/shell/version.sh
