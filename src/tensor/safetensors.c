/* safetensors.c - reading the safetensors format: bytes from outside, so all is checked.
 *
 *     u64   N, little-endian                                      2 <= N <= 1 MiB here
 *     N     JSON: {"NAME": {"dtype": "F32", "shape": [..], "data_offsets": [begin, end]}, ..,
 *           "__metadata__": {"key": "value", ..}}, '{' first, spaces after it allowed
 *     body  the tensors, row-major, little-endian; offsets count from its begin
 *
 * Sorted by offsets the tensors must tile the body: the first begins at 0, each begins where
 * the one before ended, the last ends with the file (source: huggingface/safetensors,
 * tensor.rs). What that reader skips, unknown keys in an entry, is refused as well. Every
 * message says what is off. Any thread, no state. */
#include "config.h"

#include "fastweight/safetensors.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "safetensors_limits.h"

#define BAD(err, ...) fw_fail(err, FW_EINVAL, "bad_safetensors", __VA_ARGS__)

struct body {
    const unsigned char *data;
    size_t len;
};

static int read_header(const unsigned char *file, size_t len, json_t **ret, struct body *body,
                       struct fw_err *err)
{
    uint64_t n;
    json_error_t at;

    if (len < sizeof n)
        return BAD(err, "%zu bytes hold no header length", len);
    memcpy(&n, file, sizeof n);
    if (n < 2 || n > MAX_HEADER)
        return BAD(err, "header length %llu is not between 2 and %d", (unsigned long long)n,
                   MAX_HEADER);
    if (n > len - sizeof n)
        return BAD(err, "header length %llu goes beyond the file of %zu bytes",
                   (unsigned long long)n, len);
    if (file[sizeof n] != '{')
        return BAD(err, "the header does not begin with '{'");
    *ret = json_loadb((const char *)file + sizeof n, n, JSON_REJECT_DUPLICATES, &at);
    if (!*ret) /* the library's text quotes the input, perhaps half a character of it */
        return BAD(err, "the header is no JSON without repeated keys, see its byte %d",
                   at.position);
    body->data = file + sizeof n + n;
    body->len = len - sizeof n - n;
    return 0;
}

static int read_meta(struct fw_safetensors *st, json_t *object, struct fw_err *err)
{
    const char *key;
    json_t *value;

    if (!json_is_object(object))
        return BAD(err, METADATA " is no object");
    if (json_object_size(object) > MAX_META)
        return BAD(err, "more than %d metadata entries", MAX_META);
    st->meta = calloc(json_object_size(object) + 1, sizeof *st->meta);
    if (!st->meta)
        return fw_fail(err, FW_ENOMEM, "out_of_memory", "no memory for metadata");
    json_object_foreach (object, key, value) {
        struct fw_meta *m = &st->meta[st->meta_count++];
        if (strlen(key) >= sizeof m->key)
            return BAD(err, "a metadata key is longer than %zu bytes", sizeof m->key - 1);
        if (!json_is_string(value))
            return BAD(err, "metadata '%s' is no string", key);
        if (json_string_length(value) >= sizeof m->value)
            return BAD(err, "metadata '%s' is longer than %zu bytes", key, sizeof m->value - 1);
        snprintf(m->key, sizeof m->key, "%s", key);
        snprintf(m->value, sizeof m->value, "%s", json_string_value(value));
    }
    return 0;
}

/* An array of integers >= 0 of at least `min`, at most `max` items. */
static int read_integers(json_t *array, size_t min, size_t max, uint64_t *ret, const char *name,
                         const char *what, struct fw_err *err)
{
    size_t i, count = json_array_size(array); /* 0 when it is none */
    json_t *item;

    if (!json_is_array(array) || count < min || count > max)
        return BAD(err, "'%s': %s is no array of %zu to %zu numbers", name, what, min, max);
    for (i = 0; i < count; i++) {
        item = json_array_get(array, i);
        if (!json_is_integer(item) || json_integer_value(item) < 0)
            return BAD(err, "'%s': %s holds something else than integers from 0", name, what);
        ret[i] = (uint64_t)json_integer_value(item);
    }
    return 0;
}

static int read_tensor(struct fw_tensor *t, const char *name, json_t *entry,
                       const struct body *body, struct fw_err *err)
{
    const char *dtype = json_string_value(json_object_get(entry, "dtype"));
    json_t *shape = json_object_get(entry, "shape");
    uint64_t offset[2], count, bytes;

    if (strlen(name) >= sizeof t->name)
        return BAD(err, "a tensor name is longer than %zu bytes", sizeof t->name - 1);
    snprintf(t->name, sizeof t->name, "%s", name);
    if (json_object_size(entry) != 3 || !dtype || !shape)
        return BAD(err, "'%s' has not exactly dtype, shape and data_offsets", name);
    if (fw_dtype_parse(dtype, &t->dtype) < 0)
        return BAD(err, "'%s' has an unsupported dtype", name);
    if (read_integers(shape, 0, FW_MAX_DIMS, t->shape, name, "shape", err) < 0 ||
        read_integers(json_object_get(entry, "data_offsets"), 2, 2, offset, name,
                      "data_offsets", err) < 0)
        return -1;
    t->ndim = (uint32_t)json_array_size(shape);
    if (fw_shape_count(t->shape, t->ndim, &count, NULL) < 0 ||
        __builtin_mul_overflow(count, fw_dtype_bytes(t->dtype), &bytes))
        return BAD(err, "'%s': its shape overflows", name);
    if (offset[0] > offset[1] || offset[1] - offset[0] != bytes)
        return BAD(err, "'%s': its shape needs %llu bytes, its data_offsets are %llu to %llu",
                   name, (unsigned long long)bytes, (unsigned long long)offset[0],
                   (unsigned long long)offset[1]);
    if (offset[1] > body->len)
        return BAD(err, "'%s' ends at %llu, beyond the %zu bytes of data", name,
                   (unsigned long long)offset[1], body->len);
    t->data = body->data + offset[0];
    t->bytes = bytes;
    return 0;
}

static int by_place(const void *pa, const void *pb)
{
    const struct fw_tensor *a = pa, *b = pb;
    const unsigned char *from_a = a->data, *from_b = b->data;

    if (from_a != from_b)
        return from_a < from_b ? -1 : 1;
    if (a->bytes != b->bytes) /* empty ones come before the one that fills the place */
        return a->bytes < b->bytes ? -1 : 1;
    return strcmp(a->name, b->name);
}

static int check_tiling(const struct fw_tensors *ts, const struct body *body,
                        struct fw_err *err)
{
    const unsigned char *end = body->data, *from;
    size_t i;

    for (i = 0; i < ts->count; i++) {
        from = ts->item[i].data;
        if (from != end)
            return BAD(err, "'%s' begins at %zu, the data before it ends at %zu: %s",
                       ts->item[i].name, (size_t)(from - body->data),
                       (size_t)(end - body->data), from > end ? "a hole" : "an overlap");
        end = from + ts->item[i].bytes;
    }
    if (end != body->data + body->len)
        return BAD(err, "%zu bytes follow the last tensor",
                   body->len - (size_t)(end - body->data));
    return 0;
}

static int read_tensors(struct fw_safetensors *st, json_t *header, const struct body *body,
                        struct fw_err *err)
{
    const char *name;
    json_t *entry;

    if (json_object_size(header) > MAX_TENSORS + 1)
        return BAD(err, "more than %d tensors", MAX_TENSORS);
    st->tensors.item = calloc(json_object_size(header) + 1, sizeof *st->tensors.item);
    if (!st->tensors.item)
        return fw_fail(err, FW_ENOMEM, "out_of_memory", "no memory for a tensor table");
    json_object_foreach (header, name, entry) {
        if (strcmp(name, METADATA) == 0) {
            if (read_meta(st, entry, err) < 0)
                return -1;
        } else {
            if (st->tensors.count == MAX_TENSORS)
                return BAD(err, "more than %d tensors", MAX_TENSORS);
            if (read_tensor(&st->tensors.item[st->tensors.count++], name, entry, body, err) < 0)
                return -1;
        }
    }
    qsort(st->tensors.item, st->tensors.count, sizeof *st->tensors.item, by_place);
    return check_tiling(&st->tensors, body, err);
}

static size_t aligned(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

/* Moves the bytes to where each tensor begins on a multiple of 64. */
static int copy_tensors(struct fw_safetensors *st, struct fw_err *err)
{
    size_t i, total = 64; /* so that an empty tensor points somewhere, too */
    unsigned char *to;

    for (i = 0; i < st->tensors.count; i++)
        total += aligned(st->tensors.item[i].bytes);
    st->copy = to = aligned_alloc(64, total);
    if (!to)
        return fw_fail(err, FW_ENOMEM, "out_of_memory", "no memory for %zu bytes", total);
    for (i = 0; i < st->tensors.count; i++) {
        struct fw_tensor *t = &st->tensors.item[i];
        if (t->bytes > 0)
            memcpy(to, t->data, t->bytes);
        t->data = to;
        to += aligned(t->bytes);
    }
    return 0;
}

/* Is every tensor aligned to its elements? */
static bool is_aligned(const struct fw_tensors *ts)
{
    for (size_t i = 0; i < ts->count; i++)
        if ((uintptr_t)ts->item[i].data % fw_dtype_bytes(ts->item[i].dtype) != 0)
            return false;
    return true;
}

static int read_file(struct fw_safetensors *ret, const void *file, size_t len, bool lend,
                     struct fw_err *err)
{
    struct fw_safetensors st = { 0 };
    struct body body;
    json_t *header;
    int rc;

    if (read_header(file, len, &header, &body, err) < 0)
        return -1;
    rc = read_tensors(&st, header, &body, err);
    json_decref(header);
    if (rc == 0 && !(lend && is_aligned(&st.tensors)))
        rc = copy_tensors(&st, err);
    if (rc < 0)
        fw_safetensors_done(&st);
    else
        *ret = st;
    return rc;
}

int fw_safetensors_read(struct fw_safetensors *ret, const void *file, size_t len,
                        struct fw_err *err)
{
    return read_file(ret, file, len, false, err);
}

int fw_safetensors_lend(struct fw_safetensors *ret, const void *file, size_t len,
                        struct fw_err *err)
{
    return read_file(ret, file, len, true, err);
}

void fw_safetensors_done(struct fw_safetensors *st)
{
    free(st->tensors.item);
    free(st->meta);
    free(st->copy);
    *st = (struct fw_safetensors){ 0 };
}

const char *fw_safetensors_meta(const struct fw_safetensors *st, const char *key)
{
    size_t i;

    for (i = 0; i < st->meta_count; i++) {
        if (strcmp(st->meta[i].key, key) == 0)
            return st->meta[i].value;
    }
    return NULL;
}
