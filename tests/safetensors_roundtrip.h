/* safetensors_roundtrip.h - what must hold for any bytes given to the reader: it refuses them
 * and says why, or what it read is consistent and survives writing and reading. Aborts if not;
 * the fuzz target and the unit test share it. */
#ifndef SAFETENSORS_ROUNDTRIP_H
#define SAFETENSORS_ROUNDTRIP_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fastweight/safetensors.h"

static void must(int holds)
{
    if (!holds)
        abort();
}

static void must_be_equal(const struct fw_tensor *a, const struct fw_tensor *b)
{
    uint64_t count;

    must(strcmp(a->name, b->name) == 0);
    must(a->dtype == b->dtype && a->ndim == b->ndim && a->bytes == b->bytes);
    must(memcmp(a->shape, b->shape, a->ndim * sizeof a->shape[0]) == 0);
    must(memcmp(a->data, b->data, a->bytes) == 0);
    must((uintptr_t)a->data % 64 == 0);
    must(fw_shape_count(a->shape, a->ndim, &count, NULL) == 0);
    must(count * fw_dtype_bytes(a->dtype) == a->bytes);
}

/* Returns whether the bytes were accepted. */
static int safetensors_roundtrip(const void *file, size_t len)
{
    struct fw_safetensors first, second;
    struct fw_err err = { 0 };
    struct fw_buf out;
    const struct fw_tensor *t;
    size_t i;

    if (fw_safetensors_read(&first, file, len, &err) < 0) {
        must(err.code == FW_EINVAL && err.msg[0] != 0);
        return 0;
    }
    fw_buf_init(&out, len + (1 << 22));
    if (fw_safetensors_write(&out, &first.tensors, first.meta, first.meta_count, &err) == 0) {
        must(fw_safetensors_read(&second, out.data, out.len, &err) == 0);
        must(second.tensors.count == first.tensors.count);
        must(second.meta_count == first.meta_count);
        for (i = 0; i < first.tensors.count; i++) {
            t = fw_tensors_find(&second.tensors, first.tensors.item[i].name);
            must(t != NULL);
            must_be_equal(&first.tensors.item[i], t);
        }
        for (i = 0; i < first.meta_count; i++)
            must(strcmp(fw_safetensors_meta(&second, first.meta[i].key), first.meta[i].value) ==
                 0);
        fw_safetensors_done(&second);
    } else {
        must(err.code == FW_EINVAL); /* escapes can push a header near 1 MiB over it */
    }
    fw_buf_done(&out);
    fw_safetensors_done(&first);
    return 1;
}

#endif
