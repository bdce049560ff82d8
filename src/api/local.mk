noinst_LIBRARIES += src/libapi.a
src_libapi_a_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS) $(PNG_CFLAGS)
src_libapi_a_SOURCES = src/api/batch.c src/api/completions.c src/api/edit.c src/api/events.c src/api/facts.c src/api/generate.c src/api/heat.c \
	src/api/in.c src/api/inspect.c src/api/learn.c src/api/metrics.c src/api/op.c src/api/out.c \
	src/api/predict.c src/api/query.c src/api/recall.c src/api/routes.c src/api/server.c \
	src/api/sampling.c src/api/sessions.c src/api/snapshots.c src/api/status.c src/api/tensors.c src/api/base64.c \
	src/api/values.c src/api/batch.h src/api/events.h src/api/heat.h src/api/in.h src/api/op.h src/api/out.h \
	src/api/query.h src/api/sampling.h src/api/status.h src/api/base64.h include/fastweight/api.h
# what parses and prints, without the engine
API_LIBS = src/libapi.a $(TENSOR_LIBS) $(JANSSON_LIBS) $(PNG_LIBS)

UNIT_TESTS += src/api/batch_test src/api/heat_test src/api/in_test src/api/inspect_test \
	src/api/out_test src/api/status_test
src_api_batch_test_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
src_api_batch_test_LDADD = $(API_LIBS) $(ENGINE_LIBS) $(CHECK_LIBS)
src_api_heat_test_CPPFLAGS = $(AM_CPPFLAGS) $(PNG_CFLAGS)
src_api_heat_test_LDADD = $(API_LIBS) $(CHECK_LIBS)
src_api_in_test_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
src_api_in_test_LDADD = $(API_LIBS) $(CHECK_LIBS)
src_api_inspect_test_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
src_api_inspect_test_LDADD = src/libapi.a src/libhttp.a $(ENGINE_LIBS) $(MHD_LIBS) \
	$(JANSSON_LIBS) $(PNG_LIBS) $(CHECK_LIBS)
src_api_out_test_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
src_api_out_test_LDADD = $(API_LIBS) $(CHECK_LIBS)
src_api_status_test_LDADD = $(API_LIBS) $(CHECK_LIBS)

EXTRA_DIST += tests/fuzz_api.c tests/fuzz_config.c
if FUZZ
FUZZ_TARGETS += tests/fuzz_api tests/fuzz_config
tests_fuzz_api_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS) -I$(top_srcdir) \
	-I$(top_srcdir)/src/api -I$(top_srcdir)/src/http
tests_fuzz_api_LDADD = $(API_LIBS) src/libhttp.a $(ENGINE_LIBS) $(MHD_LIBS)
tests_fuzz_api_LDFLAGS = $(AM_LDFLAGS) -fsanitize=fuzzer
tests_fuzz_config_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS) -I$(top_srcdir)
tests_fuzz_config_LDADD = $(API_LIBS) $(ENGINE_LIBS)
tests_fuzz_config_LDFLAGS = $(AM_LDFLAGS) -fsanitize=fuzzer
endif
