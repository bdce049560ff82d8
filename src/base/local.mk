noinst_LIBRARIES += src/libbase.a
LIBFASTWEIGHT += src/libbase.a
src_libbase_a_CPPFLAGS = $(AM_CPPFLAGS) $(XXHASH_CFLAGS)
src_libbase_a_SOURCES = src/base/buf.c src/base/clock.c src/base/err.c src/base/hash.c \
	src/base/log.c src/base/params.c src/base/pool.c src/base/utf8.c
fwinclude_HEADERS += include/fastweight/buf.h include/fastweight/clock.h \
	include/fastweight/err.h include/fastweight/hash.h include/fastweight/log.h \
	include/fastweight/params.h include/fastweight/pool.h include/fastweight/utf8.h

UNIT_TESTS += src/base/buf_test src/base/clock_test src/base/err_test src/base/hash_test \
	src/base/log_test src/base/params_test src/base/pool_test src/base/utf8_test
src_base_buf_test_LDADD = $(BASE_LIBS) $(CHECK_LIBS)
src_base_clock_test_LDADD = $(BASE_LIBS) $(CHECK_LIBS)
src_base_err_test_LDADD = $(BASE_LIBS) $(CHECK_LIBS)
src_base_hash_test_LDADD = $(BASE_LIBS) $(CHECK_LIBS)
src_base_log_test_LDADD = $(BASE_LIBS) $(CHECK_LIBS)
src_base_params_test_LDADD = $(BASE_LIBS) $(CHECK_LIBS)
src_base_pool_test_LDADD = $(BASE_LIBS) $(CHECK_LIBS)
src_base_utf8_test_LDADD = $(BASE_LIBS) $(CHECK_LIBS)
