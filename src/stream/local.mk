noinst_LIBRARIES += src/libstream.a
LIBFASTWEIGHT += src/libstream.a
src_libstream_a_SOURCES = src/stream/stream.c src/stream/view.c src/stream/stats.c \
	src/stream/tables.c src/stream/core.c src/stream/node.c src/stream/context.c \
	src/stream/tally.c src/stream/bytes.c src/stream/expert.c src/stream/dense.c \
	src/stream/events.c \
	src/stream/events_gather.c src/stream/events_read.c src/stream/events_learn.c \
	src/stream/events_row.c src/stream/events_top.c src/stream/events_check.c \
	src/stream/stream_int.h src/stream/tables.h src/stream/core.h src/stream/rows.h \
	src/stream/context.h \
	src/stream/tally.h src/stream/events.h src/stream/dense.h src/stream/expert.h
fwinclude_HEADERS += include/fastweight/stream.h
STREAM_LIBS = src/libstream.a
if HAVE_V3
noinst_LIBRARIES += src/libstream_v3.a
LIBFASTWEIGHT += src/libstream_v3.a
src_libstream_v3_a_CPPFLAGS = $(V3_CPPFLAGS)
src_libstream_v3_a_CFLAGS = $(V3_CFLAGS)
src_libstream_v3_a_SOURCES = src/stream/node.c src/stream/dense.c
STREAM_LIBS += src/libstream_v3.a
endif
STREAM_LIBS += $(TENSOR_LIBS) $(NUM_LIBS)

noinst_HEADERS += src/stream/stream_testing.h
EXTRA_DIST += tests/data/text.txt tests/data/log.txt tests/data/json.txt \
	tests/data/events.u16
UNIT_TESTS += src/stream/stream_test src/stream/view_test src/stream/tables_test \
	src/stream/core_test src/stream/context_test src/stream/bytes_test src/stream/expert_test \
	src/stream/events_test
src_stream_stream_test_LDADD = $(STREAM_LIBS) $(CHECK_LIBS)
src_stream_view_test_LDADD = $(STREAM_LIBS) $(CHECK_LIBS)
src_stream_tables_test_LDADD = $(STREAM_LIBS) $(CHECK_LIBS)
src_stream_core_test_LDADD = $(STREAM_LIBS) $(CHECK_LIBS)
src_stream_bytes_test_LDADD = $(STREAM_LIBS) $(CHECK_LIBS)
src_stream_expert_test_LDADD = $(STREAM_LIBS) $(CHECK_LIBS)
src_stream_events_test_LDADD = $(STREAM_LIBS) $(CHECK_LIBS)
src_stream_context_test_LDADD = $(STREAM_LIBS) $(CHECK_LIBS)
