noinst_LIBRARIES += src/libmemory.a
LIBFASTWEIGHT += src/libmemory.a
src_libmemory_a_SOURCES = src/memory/attend.c src/memory/attention.c src/memory/attend.h src/memory/cache.c src/memory/cache.h src/memory/check.c src/memory/core.c src/memory/delta.c src/memory/erase.c \
	src/memory/feature.c src/memory/linear.c src/memory/longhorn.c src/memory/mamba2.c \
	src/memory/log_linear.c src/memory/inspect.c src/memory/keys.c src/memory/loops.c src/memory/memory.c \
	src/memory/plan.c src/memory/rule.c src/memory/state.c \
	src/memory/huber.c src/memory/mesa.c src/memory/momentum.c src/memory/muon.c \
	src/memory/omega.c src/memory/omega_muon.c src/memory/solve.c src/memory/steps.c \
	src/memory/gelu.c src/memory/net.c src/memory/titans.c src/memory/ttt.c src/memory/net.h \
	src/memory/window.c src/memory/momentum.h src/memory/muon.h src/memory/solve.h \
	src/memory/lanes.h src/memory/lanes_double.h \
	src/memory/steps.h src/memory/window.h \
	src/memory/core.h src/memory/families.h src/memory/inside.h src/memory/loops.h src/memory/rule.h \
	src/memory/span.h
if HAVE_V3
MEMORY_V3 = src/libmemory_v3.a
noinst_LIBRARIES += $(MEMORY_V3)
LIBFASTWEIGHT += $(MEMORY_V3)
src_libmemory_v3_a_CPPFLAGS = $(V3_CPPFLAGS)
src_libmemory_v3_a_CFLAGS = $(V3_CFLAGS)
src_libmemory_v3_a_SOURCES = src/memory/gelu.c src/memory/loops.c src/memory/solve.c \
	src/memory/steps.c
endif
fwinclude_HEADERS += include/fastweight/memory.h
MEMORY_LIBS = src/libmemory.a $(MEMORY_V3) $(TENSOR_LIBS) $(NUM_LIBS)

noinst_HEADERS += src/memory/memory_testing.h src/memory/rules_testing.h
UNIT_TESTS += src/memory/attention_test src/memory/cache_test src/memory/check_test src/memory/feature_test src/memory/gradient_test \
	src/memory/inspect_test src/memory/log_linear_test src/memory/loops_test src/memory/memory_test \
	src/memory/plan_test src/memory/rules_hostile_test \
	src/memory/rules_test src/memory/state_test \
	src/memory/correlated_test src/memory/descent_test src/memory/muon_test \
	src/memory/net_test src/memory/solve_test src/memory/ttt_test \
	src/memory/window_test
src_memory_attention_test_LDADD = $(MEMORY_LIBS) $(CHECK_LIBS)
src_memory_log_linear_test_LDADD = $(MEMORY_LIBS) $(CHECK_LIBS)
src_memory_cache_test_LDADD = $(MEMORY_LIBS) $(CHECK_LIBS)
src_memory_check_test_LDADD = $(MEMORY_LIBS) $(CHECK_LIBS)
src_memory_inspect_test_LDADD = $(MEMORY_LIBS) $(CHECK_LIBS)
src_memory_memory_test_LDADD = $(MEMORY_LIBS) $(CHECK_LIBS)
src_memory_plan_test_LDADD = $(MEMORY_LIBS) $(CHECK_LIBS)
src_memory_state_test_LDADD = $(MEMORY_LIBS) $(CHECK_LIBS)
src_memory_rules_test_LDADD = $(MEMORY_LIBS) $(CHECK_LIBS)
src_memory_rules_hostile_test_LDADD = $(MEMORY_LIBS) $(CHECK_LIBS)
src_memory_feature_test_LDADD = $(MEMORY_LIBS) $(CHECK_LIBS)
src_memory_gradient_test_LDADD = $(MEMORY_LIBS) $(CHECK_LIBS)
src_memory_loops_test_LDADD = $(MEMORY_LIBS) $(CHECK_LIBS)
src_memory_correlated_test_LDADD = $(MEMORY_LIBS) $(CHECK_LIBS)
src_memory_descent_test_LDADD = $(MEMORY_LIBS) $(CHECK_LIBS)
src_memory_muon_test_LDADD = $(MEMORY_LIBS) $(CHECK_LIBS)
src_memory_solve_test_LDADD = $(MEMORY_LIBS) $(CHECK_LIBS)
src_memory_window_test_LDADD = $(MEMORY_LIBS) $(CHECK_LIBS)
src_memory_net_test_LDADD = $(MEMORY_LIBS) $(CHECK_LIBS)
src_memory_ttt_test_LDADD = $(MEMORY_LIBS) $(CHECK_LIBS)

src_libmemory_a_SOURCES += src/memory/edit.c src/memory/edit.h src/memory/patch.c \
	src/memory/covariance.c src/memory/covariance.h src/memory/probe.c src/memory/probe.h
UNIT_TESTS += src/memory/edit_test src/memory/patch_test src/memory/covariance_test \
	src/memory/probe_test
src_memory_covariance_test_LDADD = $(MEMORY_LIBS) $(CHECK_LIBS)
src_memory_probe_test_LDADD = $(MEMORY_LIBS) $(CHECK_LIBS)
src_libmemory_a_SOURCES += src/memory/spread.c
UNIT_TESTS += src/memory/spread_test
src_memory_spread_test_LDADD = $(MEMORY_LIBS) $(CHECK_LIBS)
src_memory_patch_test_LDADD = $(MEMORY_LIBS) $(CHECK_LIBS)
src_memory_edit_test_LDADD = $(MEMORY_LIBS) $(CHECK_LIBS)
