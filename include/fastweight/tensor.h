/* fastweight/tensor.h - named tensors: views of bytes, and the layout of a flat state block.
 *
 * A tensor is row-major, little-endian, without strides. A layout is the table of named tensors
 * inside one pointer-free, 64-byte aligned block whose size never changes (README, promise 1);
 * it follows from a model's configuration alone. Values; one thread at a time. */
#ifndef FW_TENSOR_H
#define FW_TENSOR_H

#include <stddef.h>
#include <stdint.h>

#include "fastweight/err.h"

#define FW_MAX_DIMS 4
#define FW_NAME_MAX 64 /* with the NUL */

enum fw_dtype {
    FW_U8,
    FW_I8,
    FW_U16,
    FW_I16,
    FW_U32,
    FW_I32,
    FW_U64,
    FW_I64,
    FW_F16,
    FW_BF16,
    FW_F32,
    FW_F64
};

size_t fw_dtype_bytes(enum fw_dtype t);
const char *fw_dtype_name(enum fw_dtype t);               /* "F32", as in safetensors */
int fw_dtype_parse(const char *name, enum fw_dtype *ret); /* -1 when unknown */

struct fw_tensor { /* a view: borrows name's bytes not at all, data always */
    char name[FW_NAME_MAX];
    enum fw_dtype dtype;
    uint32_t ndim; /* 0 = scalar */
    uint64_t shape[FW_MAX_DIMS];
    const void *data; /* aligned at least to the dtype */
    size_t bytes;
};

struct fw_tensors { /* the body of a request: its named tensors */
    size_t count;
    struct fw_tensor *item; /* borrowed */
};

/* Lends the tensor of that name, or NULL. */
const struct fw_tensor *fw_tensors_find(const struct fw_tensors *ts, const char *name);
/* Elements, or FW_EINVAL on overflow. */
int fw_shape_count(const uint64_t *shape, uint32_t ndim, uint64_t *ret, struct fw_err *err);

struct fw_field {
    char name[FW_NAME_MAX];
    enum fw_dtype dtype;
    uint32_t ndim;
    uint64_t shape[FW_MAX_DIMS];
    size_t offset, bytes; /* in the block; offset is a multiple of 64 */
};

struct fw_layout {
    struct fw_field *field; /* owned; in offset order */
    size_t count;
    size_t block_bytes; /* a multiple of 64; bytes outside all fields are zero */
};

void fw_layout_init(struct fw_layout *l);
void fw_layout_done(struct fw_layout *l);
/* Appends a field at the next multiple of 64 and writes its offset. FW_EINVAL on overflow. */
int fw_layout_add(struct fw_layout *l, const char *name, enum fw_dtype dtype, uint32_t ndim,
                  const uint64_t *shape, size_t *ret_offset, struct fw_err *err);
/* Rounds block_bytes up to `bytes` (0: leave it exact), a multiple of 64. FW_EINVAL when it is
 * none or the fields need more. */
int fw_layout_seal(struct fw_layout *l, size_t bytes, struct fw_err *err);
const struct fw_field *fw_layout_find(const struct fw_layout *l, const char *name);
/* FW_EINVAL naming the offset when a byte of the block outside all fields is not zero. */
int fw_layout_check_padding(const struct fw_layout *l, const void *block, struct fw_err *err);
/* A view of one field of a block. */
struct fw_tensor fw_layout_view(const struct fw_field *f, const void *block);

#endif
