noinst_LIBRARIES += src/libtensor.a
LIBFASTWEIGHT += src/libtensor.a
src_libtensor_a_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
src_libtensor_a_SOURCES = src/tensor/arena.c src/tensor/layout.c src/tensor/safetensors.c \
	src/tensor/safetensors_limits.h src/tensor/safetensors_write.c src/tensor/tensor.c
fwinclude_HEADERS += include/fastweight/arena.h include/fastweight/safetensors.h \
	include/fastweight/tensor.h

UNIT_TESTS += src/tensor/arena_test src/tensor/layout_test \
	src/tensor/safetensors_test src/tensor/safetensors_write_test src/tensor/tensor_test
src_tensor_arena_test_LDADD = $(TENSOR_LIBS) $(CHECK_LIBS)
src_tensor_layout_test_LDADD = $(TENSOR_LIBS) $(CHECK_LIBS)
src_tensor_safetensors_test_LDADD = $(TENSOR_LIBS) $(CHECK_LIBS)
src_tensor_safetensors_write_test_LDADD = $(TENSOR_LIBS) $(CHECK_LIBS)
src_tensor_tensor_test_LDADD = $(TENSOR_LIBS) $(CHECK_LIBS)
