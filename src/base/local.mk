noinst_LIBRARIES += src/libbase.a
src_libbase_a_CPPFLAGS = $(AM_CPPFLAGS) $(XXHASH_CFLAGS)
src_libbase_a_SOURCES = src/base/err.c \
	include/fastweight/err.h

UNIT_TESTS += src/base/err_test
src_base_err_test_LDADD = $(BASE_LIBS) $(CHECK_LIBS)
