noinst_LIBRARIES += src/libengine.a
src_libengine_a_SOURCES = src/engine/report.c src/engine/request.c \
	include/fastweight/learner.h include/fastweight/report.h include/fastweight/request.h

ENGINE_LIBS = src/libengine.a $(BASE_LIBS)

UNIT_TESTS += src/engine/report_test
src_engine_report_test_LDADD = $(ENGINE_LIBS) $(CHECK_LIBS)
