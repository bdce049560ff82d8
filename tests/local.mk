# A unit test sits beside its module: src/num/num_test.c; its room's local.mk adds it to
# UNIT_TESTS. Tests of the whole daemon lie here.
TEST_EXTENSIONS = .sh
LOG_DRIVER = env AM_TAP_AWK='$(AWK)' $(SHELL) $(top_srcdir)/build-aux/tap-driver.sh
AM_TESTS_ENVIRONMENT = top_srcdir='$(top_srcdir)' top_builddir='$(top_builddir)' OPENBLAS_NUM_THREADS=1 \
	CK_TAP_LOG_FILE_NAME=-; export top_srcdir top_builddir OPENBLAS_NUM_THREADS CK_TAP_LOG_FILE_NAME;

if HAVE_CHECK
check_PROGRAMS += $(UNIT_TESTS)
endif
noinst_HEADERS += tests/test_main.h
dist_check_SCRIPTS += tests/check-layers.sh
TESTS = $(UNIT_TESTS) $(dist_check_SCRIPTS)
