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
	clients/fwctl/generate.c \
	clients/fwctl/inspect.c \
	clients/fwctl/snapshot.c \
	clients/fwctl/restore.c \
	clients/fwctl/export.c \
	clients/fwctl/import.c \
	clients/fwctl/fork.c \
	clients/fwctl/rm.c
