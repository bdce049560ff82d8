noinst_LIBRARIES += src/libnum.a
LIBFASTWEIGHT += src/libnum.a
src_libnum_a_CPPFLAGS = $(AM_CPPFLAGS) $(BLAS_CFLAGS)
src_libnum_a_SOURCES = src/num/num.c src/num/half.c src/num/kernel_base.c \
	src/num/norm.c src/num/norm.h src/num/project.c src/num/project.h src/num/svd.c src/num/token.h
fwinclude_HEADERS += include/fastweight/num.h include/fastweight/level.h \
	include/fastweight/activation.h include/fastweight/fmath.h include/fastweight/kernel.h \
	include/fastweight/project.h
if HAVE_V3
NUM_V3 = src/libnum_v3.a
noinst_LIBRARIES += $(NUM_V3)
LIBFASTWEIGHT += $(NUM_V3)
src_libnum_v3_a_CPPFLAGS = $(V3_CPPFLAGS)
src_libnum_v3_a_CFLAGS = $(V3_CFLAGS)
src_libnum_v3_a_SOURCES = src/num/kernel_v3.c src/num/norm_v3.c src/num/panel.h \
	src/num/project_v3.c src/num/squares.h src/num/token_v3.c
endif

# fmath.h as loops, both levels, for its test
check_LIBRARIES += src/num/libfmath_base.a
src_num_libfmath_base_a_CPPFLAGS = $(AM_CPPFLAGS)
src_num_libfmath_base_a_SOURCES = src/num/fmath_copy.c src/num/fmath_copy.h
FMATH_COPIES = src/num/libfmath_base.a
if HAVE_V3
check_LIBRARIES += src/num/libfmath_v3.a
src_num_libfmath_v3_a_CPPFLAGS = $(V3_CPPFLAGS)
src_num_libfmath_v3_a_CFLAGS = $(V3_CFLAGS)
src_num_libfmath_v3_a_SOURCES = src/num/fmath_copy.c src/num/fmath_copy.h
FMATH_COPIES += src/num/libfmath_v3.a
endif

UNIT_TESTS += src/num/num_test src/num/half_test src/num/activation_test src/num/fmath_test src/num/kernel_test \
	src/num/norm_test src/num/project_test src/num/svd_test
src_num_num_test_LDADD = $(NUM_LIBS) $(CHECK_LIBS)
src_num_half_test_LDADD = $(NUM_LIBS) $(CHECK_LIBS)
src_num_activation_test_LDADD = $(NUM_LIBS) $(CHECK_LIBS)
src_num_fmath_test_LDADD = $(FMATH_COPIES) $(NUM_LIBS) $(CHECK_LIBS)
src_num_kernel_test_LDADD = $(NUM_LIBS) $(CHECK_LIBS)
src_num_norm_test_LDADD = $(NUM_LIBS) $(CHECK_LIBS)
src_num_project_test_LDADD = $(NUM_LIBS) $(CHECK_LIBS)
src_num_svd_test_LDADD = $(NUM_LIBS) $(CHECK_LIBS)
