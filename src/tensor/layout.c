/* layout.c - the table of named tensors inside one flat state block.
 *
 * Invariant: fields lie in the order they were added, each on a multiple of 64, none overlaps
 * another; block_bytes is a multiple of 64 and covers them all. What lies between a field's end
 * and the next field, or the block's end, is padding and stays zero, so that equal states are
 * equal bytes. One thread at a time. */
#include "config.h"

#include "fastweight/tensor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGN = 64, MAX_FIELDS = 4096 };

void fw_layout_init(struct fw_layout *l)
{
    *l = (struct fw_layout){ 0 };
}

void fw_layout_done(struct fw_layout *l)
{
    free(l->field);
    fw_layout_init(l);
}

/* Room for one more field; the array's size is the power of two that holds `count`. */
static int grow(struct fw_layout *l, struct fw_err *err)
{
    struct fw_field *grown;

    if (l->count == MAX_FIELDS)
        return fw_fail(err, FW_EINVAL, "bad_layout", "more than %d fields", MAX_FIELDS);
    if ((l->count & (l->count - 1)) != 0)
        return 0;
    grown = realloc(l->field, (l->count ? 2 * l->count : 1) * sizeof *grown);
    if (!grown)
        return fw_fail(err, FW_ENOMEM, "out_of_memory", "no memory for a layout");
    l->field = grown;
    return 0;
}

/* Bytes of a tensor and the block's size with it at the end, a multiple of 64. */
static int measure(const struct fw_layout *l, enum fw_dtype dtype, uint32_t ndim,
                   const uint64_t *shape, size_t *ret_bytes, size_t *ret_block,
                   struct fw_err *err)
{
    uint64_t count;
    size_t bytes, end;

    if (fw_shape_count(shape, ndim, &count, err) < 0)
        return -1;
    if (__builtin_mul_overflow(count, fw_dtype_bytes(dtype), &bytes) ||
        __builtin_add_overflow(l->block_bytes, bytes, &end) || end > SIZE_MAX - (ALIGN - 1))
        return fw_fail(err, FW_EINVAL, "bad_layout", "the block is larger than memory");
    *ret_bytes = bytes;
    *ret_block = (end + ALIGN - 1) / ALIGN * ALIGN;
    return 0;
}

int fw_layout_add(struct fw_layout *l, const char *name, enum fw_dtype dtype, uint32_t ndim,
                  const uint64_t *shape, size_t *ret_offset, struct fw_err *err)
{
    struct fw_field *f;
    size_t bytes, block;
    uint32_t i;

    if (strlen(name) == 0 || strlen(name) >= FW_NAME_MAX)
        return fw_fail(err, FW_EINVAL, "bad_layout", "a name must have 1 to %d bytes",
                       FW_NAME_MAX - 1);
    if (ndim > FW_MAX_DIMS)
        return fw_fail(err, FW_EINVAL, "bad_layout", "'%s' has more than %d dimensions", name,
                       FW_MAX_DIMS);
    if (fw_layout_find(l, name))
        return fw_fail(err, FW_EINVAL, "bad_layout", "two fields are named '%s'", name);
    if (measure(l, dtype, ndim, shape, &bytes, &block, err) < 0 || grow(l, err) < 0)
        return -1;
    f = &l->field[l->count++];
    *f = (struct fw_field){ .dtype = dtype, .ndim = ndim, .bytes = bytes };
    snprintf(f->name, sizeof f->name, "%s", name);
    for (i = 0; i < ndim; i++)
        f->shape[i] = shape[i];
    f->offset = l->block_bytes;
    l->block_bytes = block;
    if (ret_offset)
        *ret_offset = f->offset;
    return 0;
}

int fw_layout_seal(struct fw_layout *l, size_t bytes, struct fw_err *err)
{
    if (bytes == 0)
        return 0;
    if (bytes % ALIGN != 0)
        return fw_fail(err, FW_EINVAL, "bad_layout", "%zu bytes are no multiple of %d", bytes,
                       ALIGN);
    if (bytes < l->block_bytes)
        return fw_fail(err, FW_EINVAL, "bad_layout", "the fields need %zu bytes, not %zu",
                       l->block_bytes, bytes);
    l->block_bytes = bytes;
    return 0;
}

const struct fw_field *fw_layout_find(const struct fw_layout *l, const char *name)
{
    size_t i;

    for (i = 0; i < l->count; i++) {
        if (strcmp(l->field[i].name, name) == 0)
            return &l->field[i];
    }
    return NULL;
}

static int check_zero(const unsigned char *block, size_t from, size_t to, struct fw_err *err)
{
    uint64_t word;

    while (from < to) {
        if (to - from >= sizeof word) {
            memcpy(&word, block + from, sizeof word);
            if (word == 0) {
                from += sizeof word;
                continue;
            }
        }
        if (block[from] != 0)
            return fw_fail(err, FW_EINVAL, "bad_padding",
                           "byte %zu of the block lies in no tensor and is not zero", from);
        from++;
    }
    return 0;
}

int fw_layout_check_padding(const struct fw_layout *l, const void *block, struct fw_err *err)
{
    size_t i, end = 0;

    for (i = 0; i < l->count; i++) {
        if (check_zero(block, end, l->field[i].offset, err) < 0)
            return -1;
        end = l->field[i].offset + l->field[i].bytes;
    }
    return check_zero(block, end, l->block_bytes, err);
}

struct fw_tensor fw_layout_view(const struct fw_field *f, const void *block)
{
    struct fw_tensor t = { .dtype = f->dtype, .ndim = f->ndim, .bytes = f->bytes };

    memcpy(t.name, f->name, sizeof t.name);
    memcpy(t.shape, f->shape, sizeof t.shape);
    t.data = (const unsigned char *)block + f->offset;
    return t;
}
