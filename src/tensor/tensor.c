/* tensor.c - named tensors as views of bytes: element types, shapes, look-up.
 *
 * A tensor is row-major and little-endian; this program runs on little-endian machines only, so
 * a view needs no conversion. Values without state; any thread. */
#include "config.h"

#include "fastweight/tensor.h"

#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "tensors are little-endian in memory");

static const struct {
    const char *name; /* as in safetensors */
    size_t bytes;
} dtypes[] = {
    [FW_U8] = { "U8", 1 },     [FW_I8] = { "I8", 1 },   [FW_U16] = { "U16", 2 },
    [FW_I16] = { "I16", 2 },   [FW_U32] = { "U32", 4 }, [FW_I32] = { "I32", 4 },
    [FW_U64] = { "U64", 8 },   [FW_I64] = { "I64", 8 }, [FW_F16] = { "F16", 2 },
    [FW_BF16] = { "BF16", 2 }, [FW_F32] = { "F32", 4 }, [FW_F64] = { "F64", 8 },
};

size_t fw_dtype_bytes(enum fw_dtype t)
{
    return dtypes[t].bytes;
}

const char *fw_dtype_name(enum fw_dtype t)
{
    return dtypes[t].name;
}

int fw_dtype_parse(const char *name, enum fw_dtype *ret)
{
    size_t i;

    for (i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++) {
        if (strcmp(dtypes[i].name, name) == 0) {
            *ret = (enum fw_dtype)i;
            return 0;
        }
    }
    return -1;
}

const struct fw_tensor *fw_tensors_find(const struct fw_tensors *ts, const char *name)
{
    size_t i;

    for (i = 0; i < ts->count; i++) {
        if (strcmp(ts->item[i].name, name) == 0)
            return &ts->item[i];
    }
    return NULL;
}

int fw_shape_count(const uint64_t *shape, uint32_t ndim, uint64_t *ret, struct fw_err *err)
{
    uint64_t count = 1;
    uint32_t i;

    for (i = 0; i < ndim; i++) {
        if (__builtin_mul_overflow(count, shape[i], &count))
            return fw_fail(err, FW_EINVAL, "bad_shape", "a shape has more than 2^64 elements");
    }
    *ret = count;
    return 0;
}
