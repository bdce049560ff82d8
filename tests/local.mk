# A unit test sits beside its module: src/num/num_test.c; its room's local.mk adds it to
# UNIT_TESTS. Tests of the whole daemon lie here.
TEST_EXTENSIONS = .sh .py
LOG_DRIVER = env AM_TAP_AWK='$(AWK)' $(SHELL) $(top_srcdir)/build-aux/tap-driver.sh
PY_LOG_DRIVER = $(LOG_DRIVER)
PY_LOG_COMPILER = $(PYTHON3)
AM_PY_LOG_DRIVER_FLAGS = --ignore-exit
AM_TESTS_ENVIRONMENT = top_srcdir='$(top_srcdir)' top_builddir='$(top_builddir)' OPENBLAS_NUM_THREADS=1 \
	CK_TAP_LOG_FILE_NAME=-; CK_TIMEOUT_MULTIPLIER=20; PYTHONDONTWRITEBYTECODE=1; \
	export top_srcdir top_builddir OPENBLAS_NUM_THREADS CK_TAP_LOG_FILE_NAME \
	CK_TIMEOUT_MULTIPLIER PYTHONDONTWRITEBYTECODE;

if HAVE_CHECK
check_PROGRAMS += $(UNIT_TESTS)
endif
noinst_HEADERS += tests/test_main.h tests/safetensors_roundtrip.h
dist_check_SCRIPTS += tests/check-layers.sh tests/check-style.sh tests/clients.sh
TESTS = $(UNIT_TESTS) $(dist_check_SCRIPTS)

# A SQLite VFS that loses un-synced writes at a kill; LD_PRELOADed into the daemon by tests, and
# linked into a test of its own. It never has sanitizers: it is loaded before their runtimes.
tests/vfs_lossy.so: tests/vfs_lossy.c config.h
	$(AM_V_CC)$(MKDIR_P) tests && $(CC) $(DEFAULT_INCLUDES) $(CPPFLAGS) $(SQLITE_CFLAGS) \
		$(WARN_CFLAGS) $(CFLAGS) -shared -fPIC -o $@ $(top_srcdir)/tests/vfs_lossy.c \
		$(SQLITE_LIBS)
check_DATA += tests/vfs_lossy.so
CLEANFILES += tests/vfs_lossy.so
UNIT_TESTS += tests/vfs_lossy_test
tests_vfs_lossy_test_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/src/store $(SQLITE_CFLAGS)
tests_vfs_lossy_test_SOURCES = tests/vfs_lossy_test.c tests/vfs_lossy.c
tests_vfs_lossy_test_LDADD = $(STORE_LIBS) $(CHECK_LIBS)

# CC=clang ./configure --enable-fuzz --enable-sanitizers=address,undefined
EXTRA_DIST += tests/fuzz.h tests/fuzz_safetensors.c
if FUZZ
FUZZ_TARGETS += tests/fuzz_safetensors
noinst_PROGRAMS += $(FUZZ_TARGETS)
tests_fuzz_safetensors_LDADD = $(TENSOR_LIBS)
tests_fuzz_safetensors_LDFLAGS = $(AM_LDFLAGS) -fsanitize=fuzzer
endif

# Through HTTP only; each can be run alone (tests/e2e/run, `fw.py` says how).
E2E_TESTS = tests/e2e/test_api.py tests/e2e/test_bad_disk.py tests/e2e/test_bad_input.py \
	tests/e2e/test_coder.py tests/e2e/test_edit.py tests/e2e/test_expert.py tests/e2e/test_generate.py tests/e2e/test_golden.py \
	tests/e2e/test_idempotency.py tests/e2e/test_lifetime.py tests/e2e/test_load.py tests/e2e/test_models.py \
	tests/e2e/test_nothing_lost.py tests/e2e/test_order.py tests/e2e/test_recall.py \
	tests/e2e/test_same_bytes.py tests/e2e/test_use.py
EXTRA_DIST += tests/README.md $(E2E_TESTS) tests/e2e/checkpoints.py tests/e2e/fw.py tests/e2e/streams.py tests/e2e/xxh3.py \
	tests/e2e/run
if HAVE_PYTHON3
TESTS += $(E2E_TESTS)
endif

# For scripts that run them in their own way (test.sh).
.PHONY: print-unit-tests print-fuzz-targets
print-unit-tests:
	@echo $(UNIT_TESTS)
print-fuzz-targets:
	@echo $(FUZZ_TARGETS)

# Numbers that others computed, through the archive a user links.
check_PROGRAMS += tests/golden_check
tests_golden_check_SOURCES = tests/golden_check.c tests/golden.h tests/golden_case.c \
	tests/golden_models.c tests/golden_state.c tests/golden_request.c tests/golden_rules.c tests/golden_rules.h
tests_golden_check_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/src/model $(JANSSON_CFLAGS)
tests_golden_check_LDADD = libfastweight.a $(BLAS_LIBS) $(JANSSON_LIBS) $(PCRE2_LIBS) $(XXHASH_LIBS)
dist_check_SCRIPTS += tests/golden.sh
# Cases of which the shapes a and b are here, one family a line.
GOLDEN_AB = 01a_linear_attn 01b_linear_attn_norm 01c_linear_attn_elu_norm 01d_linear_attn_elu \
	02a_retention 02b_simple_gla 03_gla 02c_mamba2_ssd 02d_mamba2_step \
	06a_gated_delta_product 06b_delta_product \
	07a_wkv7 07b_dplr 07c_iplr 08_kda 09a_comba 09b_longhorn \
	10a_mesa_exact 10b_mesa_cg 11a_ttt_linear_ln_fla 11b_ttt_linear_official \
	11c_ttt_mlp_official 11d_ttt_linear_noln 11e_ttt_mlp_noln 12a_titans_linear_seq \
	12b_titans_linear_chunk 12c_titans_mlp_seq 12d_titans_mlp_ln_chunk 13a_softmax_attn \
	13b_sliding_window_attn 13c_gqa_attn 14_log_linear_attn 19_omega 20_momentum 21_omega_momentum_muon 22_huber \
	23_poly 24_dpfp \
	16a_gated_deltanet_layer_hf 16b_fla_deltanet_layer 16c_fla_gated_deltanet_layer
GOLDEN_A = 15_rwkv7_model 17a_gpt2_mingpt 17b_gpt2_nanogpt
GOLDEN_ABC = 04_delta_rule 04b_delta_rule_unnorm 05_gated_delta_rule
GOLDEN = $(GOLDEN_A:%=%_a) $(GOLDEN_AB:%=%_a) $(GOLDEN_AB:%=%_b) $(GOLDEN_ABC:%=%_a) $(GOLDEN_ABC:%=%_b) \
	$(GOLDEN_ABC:%=%_c) 06b_delta_product_one_token
EXTRA_DIST += tests/golden/README.md $(GOLDEN:%=tests/golden/%.json) \
	$(GOLDEN:%=tests/golden/%.safetensors)
