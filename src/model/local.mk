noinst_LIBRARIES += src/libmodel.a
LIBFASTWEIGHT += src/libmodel.a
src_libmodel_a_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS) $(PCRE2_CFLAGS)
src_libmodel_a_SOURCES = src/model/blocks.c src/model/checkpoint.c src/model/deltanet.c \
	src/model/forward.c src/model/gpt2.c src/model/inside.h src/model/inspect.c \
	src/model/model.c src/model/models.c src/model/parts.c src/model/parts.h src/model/rwkv7.c \
	src/model/scratch.c src/model/settings.c src/model/settings.h src/model/shards.c \
	src/model/shards.h src/model/tokenizer.c src/model/tokenizer_bpe.c \
	src/model/tokenizer_chars.c src/model/tokenizer_json.c src/model/tokenizer_world.c \
	src/model/bpe.h src/model/lexicon.c src/model/lexicon.h src/model/literal.c \
	src/model/literal.h src/model/merges.c src/model/merges.h src/model/splitter.c \
	src/model/splitter.h src/model/tokens.h src/model/weights.c src/model/weights.h
if HAVE_V3
MODEL_V3 = src/libmodel_v3.a
noinst_LIBRARIES += $(MODEL_V3)
LIBFASTWEIGHT += $(MODEL_V3)
src_libmodel_v3_a_CPPFLAGS = $(V3_CPPFLAGS)
src_libmodel_v3_a_CFLAGS = $(V3_CFLAGS)
src_libmodel_v3_a_SOURCES = src/model/parts.c
endif
fwinclude_HEADERS += include/fastweight/model.h include/fastweight/models.h include/fastweight/tokenizer.h
MODEL_LIBS = src/libmodel.a $(MODEL_V3) $(MEMORY_LIBS) $(PCRE2_LIBS)

noinst_HEADERS += src/model/models_testing.h
UNIT_TESTS += src/model/checkpoint_test src/model/model_test src/model/parts_test \
	src/model/real_test
src_model_checkpoint_test_LDADD = $(MODEL_LIBS) $(CHECK_LIBS)
src_model_parts_test_LDADD = $(MODEL_LIBS) $(CHECK_LIBS)
src_model_model_test_LDADD = $(MODEL_LIBS) $(CHECK_LIBS)
src_model_real_test_LDADD = $(MODEL_LIBS) $(CHECK_LIBS)

EXTRA_DIST += tests/fuzz_model.c
if FUZZ
FUZZ_TARGETS += tests/fuzz_model
tests_fuzz_model_LDADD = $(MODEL_LIBS)
tests_fuzz_model_LDFLAGS = $(AM_LDFLAGS) -fsanitize=fuzzer
endif

UNIT_TESTS += src/model/models_test src/model/tokenizer_test
src_model_models_test_LDADD = $(MODEL_LIBS) $(CHECK_LIBS)
src_model_tokenizer_test_LDADD = $(MODEL_LIBS) $(CHECK_LIBS)

EXTRA_DIST += tests/fuzz_tokenizer.c
if FUZZ
FUZZ_TARGETS += tests/fuzz_tokenizer
tests_fuzz_tokenizer_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/src/model
tests_fuzz_tokenizer_LDADD = $(MODEL_LIBS)
tests_fuzz_tokenizer_LDFLAGS = $(AM_LDFLAGS) -fsanitize=fuzzer
endif
