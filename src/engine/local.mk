noinst_LIBRARIES += src/libengine.a
src_libengine_a_SOURCES = src/engine/body.c src/engine/checkpoint.c src/engine/create.c \
	src/engine/directory.c src/engine/engine.c src/engine/exchange.c src/engine/fork.c \
	src/engine/generate.c src/engine/inspect_memory.c src/engine/inspect_memory.h src/engine/journal.c src/engine/keys.c src/engine/learn.c \
	src/engine/learner_associative.c src/engine/learner_stream.c src/engine/stream_expert.c \
	src/engine/stream_expert.h src/engine/learner_transformer.c src/engine/load.c \
	src/engine/pass.c src/engine/passing.c src/engine/read.c src/engine/recipe.c src/engine/replace.c \
	src/engine/report.c src/engine/request.c src/engine/room.c src/engine/run.c \
	src/engine/sampler.c src/engine/share.c src/engine/share.h src/engine/snapshot.c src/engine/stops.c src/engine/submit.c \
	src/engine/engine_int.h src/engine/parts.h src/engine/sampler.h src/engine/steps.h \
	src/engine/stops.h src/engine/work.h \
	include/fastweight/engine.h include/fastweight/learner.h include/fastweight/report.h \
	include/fastweight/request.h include/fastweight/sampling.h

ENGINE_LIBS = src/libengine.a $(STORE_LIBS) $(STREAM_LIBS) $(MODEL_LIBS) $(TENSOR_LIBS)

UNIT_TESTS += src/engine/report_test
src_engine_report_test_LDADD = src/libengine.a $(BASE_LIBS) $(CHECK_LIBS)
noinst_HEADERS += src/engine/engine_testing.h
UNIT_TESTS += src/engine/engine_test
src_engine_engine_test_LDADD = $(ENGINE_LIBS) $(CHECK_LIBS)
UNIT_TESTS += src/engine/copies_test
src_engine_copies_test_LDADD = $(ENGINE_LIBS) $(CHECK_LIBS)
UNIT_TESTS += src/engine/generate_test
src_engine_generate_test_LDADD = $(ENGINE_LIBS) $(CHECK_LIBS)
UNIT_TESTS += src/engine/keys_test src/engine/room_test
src_engine_keys_test_LDADD = $(ENGINE_LIBS) $(CHECK_LIBS)
src_engine_room_test_LDADD = $(ENGINE_LIBS) $(CHECK_LIBS)
UNIT_TESTS += src/engine/journal_test
src_engine_journal_test_CPPFLAGS = $(AM_CPPFLAGS) $(SQLITE_CFLAGS)
src_engine_journal_test_LDADD = $(ENGINE_LIBS) $(CHECK_LIBS)
UNIT_TESTS += src/engine/share_test
src_engine_share_test_LDADD = $(ENGINE_LIBS) $(CHECK_LIBS)
UNIT_TESTS += src/engine/stress_test
src_engine_stress_test_LDADD = $(ENGINE_LIBS) $(CHECK_LIBS)
UNIT_TESTS += src/engine/sampler_test src/engine/stops_test
src_engine_sampler_test_LDADD = src/libengine.a $(NUM_LIBS) $(CHECK_LIBS)
src_engine_stops_test_LDADD = src/libengine.a $(NUM_LIBS) $(CHECK_LIBS)
UNIT_TESTS += src/engine/body_test
src_engine_body_test_LDADD = $(ENGINE_LIBS) $(CHECK_LIBS)
