/* body.c - the bytes of a journal row: the named tensors of one learn.
 *
 *   "FWr1", u8 count, then for each tensor, in order of name: u8 dtype, u8 ndim, u8 length of
 *   the name, the name, ndim x u64 shape; zeros up to a multiple of 64; then each tensor's
 *   data in the same order, each from a multiple of 64 on (zeros between). Little-endian.
 *
 * dtype is enum fw_dtype's number, which is therefore never renumbered. One body has one text:
 * its XXH3-128 is the digest that an Idempotency-Key is compared by. Decoding checks all of it,
 * since the bytes come from a file. Any thread. */
#include "config.h"

#include "parts.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_TENSORS = 16, HEAD_BYTES = 5 };

_Static_assert(FW_U8 == 0 && FW_F64 == 11, "dtype numbers are on disk");

static size_t up64(size_t n)
{
    return (n + 63) & ~(size_t)63;
}

/* Pointers to the tensors, sorted by name. */
static void sort(const struct fw_tensors *in, const struct fw_tensor *ret[MAX_TENSORS])
{
    const struct fw_tensor *t;
    size_t i, j;

    for (i = 0; i < in->count; i++) {
        t = &in->item[i];
        for (j = i; j > 0 && strcmp(ret[j - 1]->name, t->name) > 0; j--)
            ret[j] = ret[j - 1];
        ret[j] = t;
    }
}

static unsigned char *put_tensor(unsigned char *at, const struct fw_tensor *t)
{
    size_t name_len = strlen(t->name);

    *at++ = (unsigned char)t->dtype;
    *at++ = (unsigned char)t->ndim;
    *at++ = (unsigned char)name_len;
    memcpy(at, t->name, name_len);
    at += name_len;
    memcpy(at, t->shape, t->ndim * sizeof t->shape[0]);
    return at + t->ndim * sizeof t->shape[0];
}

int body_encode(const struct fw_tensors *in, void **ret, size_t *ret_len, struct fw_err *err)
{
    const struct fw_tensor *t[MAX_TENSORS];
    size_t i, len = HEAD_BYTES, head;
    unsigned char *body, *at;

    if (in->count > MAX_TENSORS)
        return fw_fail(err, FW_EINVAL, "too_many_tensors", "a body has at most %d tensors",
                       MAX_TENSORS);
    sort(in, t);
    for (i = 0; i < in->count; i++)
        len += 3 + strlen(t[i]->name) + t[i]->ndim * sizeof t[i]->shape[0];
    head = len;
    for (i = 0; i < in->count; i++)
        len = up64(len) + t[i]->bytes;
    body = aligned_alloc(64, up64(len));
    if (!body)
        return out_of_memory(err);
    memcpy(body, "FWr1", 4);
    body[4] = (unsigned char)in->count;
    for (i = 0, at = body + HEAD_BYTES; i < in->count; i++)
        at = put_tensor(at, t[i]);
    for (i = 0, len = head; i < in->count; i++) {
        memset(body + len, 0, up64(len) - len);
        if (t[i]->bytes)
            memcpy(body + up64(len), t[i]->data, t[i]->bytes);
        len = up64(len) + t[i]->bytes;
    }
    *ret = body;
    *ret_len = len;
    return 0;
}

static int damaged(struct fw_err *err)
{
    return fw_fail(err, FW_ECORRUPT, "state_corrupt", "a journal row cannot be read");
}

/* Reads one tensor's head at *at; -1 when it does not fit. */
static int get_tensor(const unsigned char *body, size_t len, size_t *at, struct fw_tensor *ret)
{
    size_t name_len, shape_len;
    uint64_t count;

    if (len - *at < 3)
        return -1;
    memset(ret, 0, sizeof *ret);
    ret->dtype = (enum fw_dtype)body[*at];
    ret->ndim = body[*at + 1];
    name_len = body[*at + 2];
    *at += 3;
    shape_len = ret->ndim * sizeof ret->shape[0];
    if (body[*at - 3] > FW_F64 || ret->ndim > FW_MAX_DIMS || name_len >= FW_NAME_MAX ||
        len - *at < name_len + shape_len)
        return -1;
    memcpy(ret->name, body + *at, name_len);
    memcpy(ret->shape, body + *at + name_len, shape_len);
    *at += name_len + shape_len;
    if (fw_shape_count(ret->shape, ret->ndim, &count, NULL) < 0 || count > len)
        return -1;
    ret->bytes = (size_t)count * fw_dtype_bytes(ret->dtype);
    return 0;
}

int body_decode(const void *body, size_t len, struct fw_tensor *item, size_t max,
                struct fw_tensors *ret, struct fw_err *err)
{
    const unsigned char *b = body;
    size_t i, count, at = HEAD_BYTES;

    if (len < HEAD_BYTES || memcmp(b, "FWr1", 4) != 0 || b[4] > max)
        return damaged(err);
    count = b[4];
    for (i = 0; i < count; i++) {
        if (get_tensor(b, len, &at, &item[i]) < 0)
            return damaged(err);
    }
    for (i = 0; i < count; i++) {
        at = up64(at);
        if (at > len || len - at < item[i].bytes)
            return damaged(err);
        item[i].data = b + at;
        at += item[i].bytes;
    }
    if (at != len)
        return damaged(err);
    ret->item = item;
    ret->count = count;
    return 0;
}
