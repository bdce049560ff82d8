STORE_LIBS = src/libstore.a $(BASE_LIBS) $(SQLITE_LIBS)

noinst_LIBRARIES += src/libstore.a
src_libstore_a_CPPFLAGS = $(AM_CPPFLAGS) $(SQLITE_CFLAGS)
src_libstore_a_SOURCES = src/store/dir.c src/store/keys.c src/store/ops.c src/store/readers.c \
	src/store/reads.c src/store/schema.c src/store/sql.c src/store/sql.h \
	src/store/store.c src/store/store_int.h src/store/writer.c \
	include/fastweight/store.h

noinst_HEADERS += src/store/store_testing.h
UNIT_TESTS += src/store/dir_test src/store/keys_test src/store/reads_test \
	src/store/schema_test src/store/store_test src/store/writer_test
src_store_dir_test_CPPFLAGS = $(AM_CPPFLAGS) $(SQLITE_CFLAGS)
src_store_dir_test_LDADD = $(STORE_LIBS) $(CHECK_LIBS)
src_store_reads_test_CPPFLAGS = $(AM_CPPFLAGS) $(SQLITE_CFLAGS)
src_store_reads_test_LDADD = $(STORE_LIBS) $(CHECK_LIBS)
src_store_schema_test_CPPFLAGS = $(AM_CPPFLAGS) $(SQLITE_CFLAGS)
src_store_schema_test_LDADD = $(STORE_LIBS) $(CHECK_LIBS)
src_store_store_test_CPPFLAGS = $(AM_CPPFLAGS) $(SQLITE_CFLAGS)
src_store_store_test_LDADD = $(STORE_LIBS) $(CHECK_LIBS)
src_store_writer_test_CPPFLAGS = $(AM_CPPFLAGS) $(SQLITE_CFLAGS)
src_store_writer_test_LDADD = $(STORE_LIBS) $(CHECK_LIBS)
src_store_keys_test_CPPFLAGS = $(AM_CPPFLAGS) $(SQLITE_CFLAGS)
src_store_keys_test_LDADD = $(STORE_LIBS) $(CHECK_LIBS)
