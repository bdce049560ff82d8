/* safetensors_write.c - writing the safetensors format (byte layout: safetensors.c).
 *
 * The order is the reference writer's: by its dtype ranking, downward, so the widest come
 * first and every tensor is aligned to its own width, then by name. One set of tensors thus
 * has one file. The whole size is reserved before a byte is appended: tensors are copied once,
 * and a failed write leaves the buffer as it was. Any thread, no state. */
#include "config.h"

#include "fastweight/safetensors.h"

#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "safetensors_limits.h"

#define BAD(err, ...) fw_fail(err, FW_EINVAL, "bad_safetensors", __VA_ARGS__)

/* Higher is earlier: the order of the types in huggingface/safetensors, tensor.rs. */
static const int dtype_rank[] = {
    [FW_U8] = 0,  [FW_I8] = 1,  [FW_I16] = 2, [FW_U16] = 3, [FW_F16] = 4,  [FW_BF16] = 5,
    [FW_I32] = 6, [FW_U32] = 7, [FW_F32] = 8, [FW_F64] = 9, [FW_I64] = 10, [FW_U64] = 11,
};

static int by_rank_and_name(const void *pa, const void *pb)
{
    const struct fw_tensor *a = *(const struct fw_tensor *const *)pa;
    const struct fw_tensor *b = *(const struct fw_tensor *const *)pb;

    if (a->dtype != b->dtype)
        return dtype_rank[b->dtype] - dtype_rank[a->dtype];
    return strcmp(a->name, b->name);
}

static int check_tensor(const struct fw_tensor *t, struct fw_err *err)
{
    uint64_t count, bytes;
    uint32_t i;

    if (strcmp(t->name, METADATA) == 0)
        return BAD(err, "no tensor can be named '%s'", t->name);
    if (t->ndim > FW_MAX_DIMS)
        return BAD(err, "'%s' has more than %d dimensions", t->name, FW_MAX_DIMS);
    for (i = 0; i < t->ndim; i++) {
        if (t->shape[i] > INT64_MAX) /* beyond a JSON integer; only an empty tensor has it */
            return BAD(err, "'%s' has a dimension over 2^63", t->name);
    }
    if (fw_shape_count(t->shape, t->ndim, &count, err) < 0)
        return -1;
    if (__builtin_mul_overflow(count, fw_dtype_bytes(t->dtype), &bytes) || bytes != t->bytes)
        return BAD(err, "'%s' has %zu bytes, which is not what its shape needs", t->name,
                   t->bytes);
    return 0;
}

/* Adds name: value, which it takes; -1 on a repeated name, no memory or bad UTF-8. */
static int put(json_t *object, const char *name, json_t *value, struct fw_err *err)
{
    if (json_object_get(object, name)) {
        json_decref(value);
        return BAD(err, "two entries are named '%s'", name);
    }
    if (json_object_set_new(object, name, value) < 0)
        return BAD(err, "an entry is no UTF-8, or there is no memory for it");
    return 0;
}

static int put_meta(json_t *header, const struct fw_meta *meta, size_t count,
                    struct fw_err *err)
{
    json_t *object;
    size_t i;

    if (count == 0)
        return 0;
    object = json_object();
    if (put(header, METADATA, object, err) < 0) /* from here on the header owns it */
        return -1;
    for (i = 0; i < count; i++) {
        if (put(object, meta[i].key, json_string(meta[i].value), err) < 0)
            return -1;
    }
    return 0;
}

static int put_tensor(json_t *header, const struct fw_tensor *t, uint64_t *at,
                      struct fw_err *err)
{
    json_t *shape = json_array();
    uint64_t begin = *at;
    uint32_t i;

    for (i = 0; i < t->ndim; i++)
        json_array_append_new(shape, json_integer((json_int_t)t->shape[i]));
    if (json_array_size(shape) != t->ndim) {
        json_decref(shape);
        return fw_fail(err, FW_ENOMEM, "out_of_memory", "no memory for a header");
    }
    if (__builtin_add_overflow(*at, t->bytes, at) || *at > INT64_MAX) {
        json_decref(shape);
        return BAD(err, "the tensors are larger than memory");
    }
    return put(header, t->name,
               json_pack("{s:s, s:o, s:[I, I]}", "dtype", fw_dtype_name(t->dtype), "shape",
                         shape, "data_offsets", (json_int_t)begin, (json_int_t)*at),
               err);
}

/* The header's text, owned by the caller, and the length of the body. */
static char *header_text(const struct fw_tensor *const *sorted, size_t count,
                         const struct fw_meta *meta, size_t meta_count, uint64_t *ret_body,
                         struct fw_err *err)
{
    json_t *header = json_object();
    char *text = NULL;
    uint64_t body = 0;
    size_t i;

    if (put_meta(header, meta, meta_count, err) < 0)
        goto out;
    for (i = 0; i < count; i++) {
        if (check_tensor(sorted[i], err) < 0 || put_tensor(header, sorted[i], &body, err) < 0)
            goto out;
    }
    text = json_dumps(header, JSON_COMPACT);
    if (!text)
        fw_fail(err, FW_ENOMEM, "out_of_memory", "no memory for a header");
    *ret_body = body;
out:
    json_decref(header);
    return text;
}

static int append_file(struct fw_buf *out, const char *text, uint64_t body,
                       const struct fw_tensor *const *sorted, size_t count, struct fw_err *err)
{
    static const char spaces[] = "        ";
    size_t len = strlen(text), i;
    size_t pad = (8 - len % 8) % 8;
    uint64_t n = len + pad;

    if (n > MAX_HEADER)
        return BAD(err, "a header of %zu bytes is over the limit of %d", len, MAX_HEADER);
    if (fw_buf_reserve(out, sizeof n + n + body, err) < 0)
        return -1;
    /* within what is reserved, so none of these can fail */
    fw_buf_append(out, &n, sizeof n, NULL);
    fw_buf_append(out, text, len, NULL);
    fw_buf_append(out, spaces, pad, NULL);
    for (i = 0; i < count; i++)
        fw_buf_append(out, sorted[i]->data, sorted[i]->bytes, NULL);
    return 0;
}

int fw_safetensors_write(struct fw_buf *out, const struct fw_tensors *ts,
                         const struct fw_meta *meta, size_t meta_count, struct fw_err *err)
{
    const struct fw_tensor **sorted;
    char *text;
    uint64_t body;
    size_t i;
    int rc = -1;

    if (ts->count > MAX_TENSORS || meta_count > MAX_META)
        return BAD(err, "more than %d tensors or %d metadata entries", MAX_TENSORS, MAX_META);
    sorted = calloc(ts->count + 1, sizeof *sorted);
    if (!sorted)
        return fw_fail(err, FW_ENOMEM, "out_of_memory", "no memory for a tensor table");
    for (i = 0; i < ts->count; i++)
        sorted[i] = &ts->item[i];
    qsort(sorted, ts->count, sizeof *sorted, by_rank_and_name);
    text = header_text(sorted, ts->count, meta, meta_count, &body, err);
    if (text)
        rc = append_file(out, text, body, sorted, ts->count, err);
    free(text);
    free(sorted);
    return rc;
}
