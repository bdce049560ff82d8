noinst_LIBRARIES += src/libdaemon.a
src_libdaemon_a_CPPFLAGS = $(AM_CPPFLAGS) $(INIH_CFLAGS) $(SYSTEMD_CFLAGS) \
	-DFW_STATE_DIR='"$(localstatedir)/lib/fastweightd"' \
	-DFW_MODELS_DIR='"$(pkgdatadir)/models"'
src_libdaemon_a_SOURCES = src/daemon/options.c src/daemon/wait.c src/daemon/options.h \
	src/daemon/wait.h
DAEMON_LIBS = src/libdaemon.a $(BASE_LIBS) $(INIH_LIBS) $(SYSTEMD_LIBS)

UNIT_TESTS += src/daemon/options_test
src_daemon_options_test_LDADD = $(DAEMON_LIBS) $(CHECK_LIBS)

sbin_PROGRAMS += src/fastweightd
src_fastweightd_CPPFLAGS = $(AM_CPPFLAGS) $(SYSTEMD_CFLAGS)
src_fastweightd_SOURCES = src/daemon/main.c
src_fastweightd_LDADD = src/libdaemon.a src/libapi.a src/libhttp.a $(ENGINE_LIBS) \
	$(MHD_LIBS) $(JANSSON_LIBS) $(PNG_LIBS) $(INIH_LIBS) $(SYSTEMD_LIBS)
