/* weights.c - mapped safetensors files, and tensors taken out of them by name and shape.
 *
 * Matrices stay as they lie in the mapped file, in their stored type. Vectors are small: those
 * that are no F32 are widened into own copies; matrices that a checkpoint stores the other way
 * round are turned once, here. Every tensor that is taken must be of a shape the others imply
 * and finite; that is the one time all weights are read. Immutable after opening. */
#include "config.h"

#include "weights.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fastweight/num.h"
#include "shards.h"

#define BAD(err, ...) fw_fail(err, FW_EINVAL, "bad_model", __VA_ARGS__)

static int no_memory(struct fw_err *err)
{
    return fw_fail(err, FW_ENOMEM, "out_of_memory", "no memory for a checkpoint");
}

void fw_weights_close(struct fw_weights *w)
{
    for (size_t i = 0; i < w->copies; i++)
        free(w->copy[i]);
    free(w->copy);
    free(w->row);
    for (size_t i = 0; i < w->parts; i++)
        fw_part_close(&w->part[i]);
    free(w->part);
    *w = (struct fw_weights){ 0 };
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct fw_weight_row *)a)->tensor->name,
                  ((const struct fw_weight_row *)b)->tensor->name);
}

/* One sorted table over all files. */
static int index_parts(struct fw_weights *w, struct fw_err *err)
{
    size_t n = 0;

    for (size_t i = 0; i < w->parts; i++)
        n += w->part[i].file.tensors.count;
    w->row = calloc(n + 1, sizeof *w->row);
    if (!w->row)
        return no_memory(err);
    for (size_t i = 0; i < w->parts; i++)
        for (size_t j = 0; j < w->part[i].file.tensors.count; j++)
            w->row[w->rows++].tensor = &w->part[i].file.tensors.item[j];
    qsort(w->row, w->rows, sizeof *w->row, by_name);
    for (size_t i = 1; i < w->rows; i++)
        if (by_name(&w->row[i - 1], &w->row[i]) == 0)
            return BAD(err, "tensor '%s' is in two files", w->row[i].tensor->name);
    return 0;
}

int fw_weights_open(struct fw_weights *w, const char *dir, struct fw_err *err)
{
    *w = (struct fw_weights){ 0 };
    if (fw_parts_open(&w->part, &w->parts, dir, err) < 0)
        return -1;
    return index_parts(w, err);
}

static struct fw_weight_row *find_row(const struct fw_weights *w, const char *name)
{
    size_t from = 0, to = w->rows;

    while (from < to) {
        size_t mid = from + (to - from) / 2;
        int order = strcmp(w->row[mid].tensor->name, name);

        if (order == 0)
            return &w->row[mid];
        if (order < 0)
            from = mid + 1;
        else
            to = mid;
    }
    return NULL;
}

const struct fw_tensor *fw_weights_look(const struct fw_weights *w, const char *name)
{
    const struct fw_weight_row *r = find_row(w, name);

    return r ? r->tensor : NULL;
}

static size_t elements(const struct fw_tensor *t)
{
    return t->bytes / fw_dtype_bytes(t->dtype);
}

static int type_of(const struct fw_tensor *t, enum fw_weight *ret, struct fw_err *err)
{
    switch (t->dtype) {
    case FW_F32:
        *ret = FW_WEIGHT_F32;
        return 0;
    case FW_F16:
        *ret = FW_WEIGHT_F16;
        return 0;
    case FW_BF16:
        *ret = FW_WEIGHT_BF16;
        return 0;
    default:
        return BAD(err, "tensor '%s' is %s, not F32, F16 or BF16", t->name,
                   fw_dtype_name(t->dtype));
    }
}

/* Is no exponent all ones? */
static int check_finite(const struct fw_tensor *t, enum fw_weight type, struct fw_err *err)
{
    size_t n = elements(t), bad = 0;

    if (type == FW_WEIGHT_F32) {
        const uint32_t *x = t->data;

        for (size_t i = 0; i < n; i++)
            bad += (x[i] & 0x7f800000u) == 0x7f800000u;
    } else {
        const uint16_t *x = t->data, ones = type == FW_WEIGHT_F16 ? 0x7c00u : 0x7f80u;

        for (size_t i = 0; i < n; i++)
            bad += (x[i] & ones) == ones;
    }
    return bad ? BAD(err, "tensor '%s': %zu elements are not finite", t->name, bad) : 0;
}

static float element(const struct fw_tensor *t, size_t i)
{
    switch (t->dtype) {
    case FW_F16:
        return fw_from_f16(((const uint16_t *)t->data)[i]);
    case FW_BF16:
        return fw_from_bf16(((const uint16_t *)t->data)[i]);
    default:
        return ((const float *)t->data)[i];
    }
}

static void *own_copy(struct fw_weights *w, size_t bytes, struct fw_err *err)
{
    void **grown = realloc(w->copy, (w->copies + 1) * sizeof *grown), *copy;

    if (!grown) {
        no_memory(err);
        return NULL;
    }
    w->copy = grown;
    copy = aligned_alloc(64, (bytes + 63) / 64 * 64 + 64);
    if (!copy)
        no_memory(err);
    else
        w->copy[w->copies++] = copy;
    return copy;
}

static int take_vector(struct fw_weights *w, const struct fw_tensor *t, const float **ret,
                       struct fw_err *err)
{
    size_t n = elements(t);
    float *y;

    if (t->dtype == FW_F32) {
        *ret = t->data;
        return 0;
    }
    y = own_copy(w, n * sizeof *y, err);
    if (!y)
        return -1;
    for (size_t i = 0; i < n; i++)
        y[i] = element(t, i);
    *ret = y;
    return 0;
}

static int take_conv(struct fw_weights *w, const struct fw_tensor *t, size_t out, size_t in,
                     const float **ret, struct fw_err *err)
{
    float *y = own_copy(w, out * in * sizeof *y, err);

    if (!y)
        return -1;
    for (size_t i = 0; i < out; i++)
        for (size_t j = 0; j < in; j++)
            y[j * out + i] = element(t, i * in + j);
    *ret = y;
    return 0;
}

static int take_turned(struct fw_weights *w, const struct fw_tensor *t, struct fw_matrix *m,
                       struct fw_err *err)
{
    size_t each = fw_dtype_bytes(t->dtype);
    const char *from = t->data;
    char *to = own_copy(w, t->bytes, err);

    if (!to)
        return -1;
    for (size_t o = 0; o < m->out; o++)
        for (size_t i = 0; i < m->in; i++)
            memcpy(to + (o * m->in + i) * each, from + (i * m->out + o) * each, each);
    m->data = to;
    return 0;
}

/* A dimension of the want against that of the tensor, which is never 0; free ones are set. */
static int fits(size_t *dim, uint64_t have)
{
    if (*dim == 0 && have <= UINT32_MAX)
        *dim = (size_t)have;
    return have > 0 && *dim == have;
}

static int shape_fits(const struct fw_tensor *t, const struct fw_want *want, size_t *dims)
{
    switch (want->shape) {
    case FW_VECTOR:
        return fits(&dims[want->out], elements(t));
    case FW_MATRIX:
        return t->ndim == 2 && fits(&dims[want->out], t->shape[0]) &&
               fits(&dims[want->in], t->shape[1]);
    case FW_TURNED:
        return t->ndim == 2 && fits(&dims[want->in], t->shape[0]) &&
               fits(&dims[want->out], t->shape[1]);
    case FW_CONV:
        return (t->ndim == 2 || (t->ndim == 3 && t->shape[1] == 1)) &&
               fits(&dims[want->out], t->shape[0]) &&
               fits(&dims[want->in], t->shape[t->ndim - 1]);
    }
    return 0;
}

static int bad_shape(const struct fw_tensor *t, const struct fw_want *want, const size_t *dims,
                     struct fw_err *err)
{
    char have[80] = "";
    size_t len = 0, out = dims[want->out], in = dims[want->in];

    for (uint32_t i = 0; i < t->ndim; i++)
        len += (size_t)snprintf(have + len, sizeof have - len, "%s%llu", i ? ", " : "",
                                (unsigned long long)t->shape[i]);
    if (want->shape == FW_VECTOR)
        return BAD(err, "tensor '%s' has the shape (%s), %zu elements are needed", t->name,
                   have, out);
    if (want->shape == FW_TURNED)
        return BAD(err, "tensor '%s' has the shape (%s), (%zu, %zu) is needed", t->name, have,
                   in, out);
    return BAD(err, "tensor '%s' has the shape (%s), (%zu, %s%zu) is needed", t->name, have,
               out, want->shape == FW_CONV ? "1, " : "", in);
}

static int take(struct fw_weights *w, const struct fw_tensor *t, const struct fw_want *want,
                size_t *dims, void *into, struct fw_err *err)
{
    struct fw_matrix m = { .data = t->data };
    const float *vector = NULL;

    if (type_of(t, &m.type, err) < 0)
        return -1;
    if (!shape_fits(t, want, dims))
        return bad_shape(t, want, dims, err);
    if (check_finite(t, m.type, err) < 0)
        return -1;
    w->parameters += elements(t);
    w->bytes += t->bytes;
    if (want->shape == FW_VECTOR || want->shape == FW_CONV) {
        if ((want->shape == FW_VECTOR
                 ? take_vector(w, t, &vector, err)
                 : take_conv(w, t, dims[want->out], dims[want->in], &vector, err)) < 0)
            return -1;
        memcpy((char *)into + want->at, &vector, sizeof vector);
        return 0;
    }
    m.out = dims[want->out];
    m.in = dims[want->in];
    if (want->shape == FW_TURNED && take_turned(w, t, &m, err) < 0)
        return -1;
    memcpy((char *)into + want->at, &m, sizeof m);
    return 0;
}

int fw_weights_take(struct fw_weights *w, const char *prefix, const struct fw_want *wants,
                    size_t *dims, void *into, struct fw_err *err)
{
    char name[2 * FW_NAME_MAX];

    for (; wants->name; wants++) {
        struct fw_weight_row *r;

        snprintf(name, sizeof name, "%s%s", prefix, wants->name);
        r = find_row(w, name);
        if (!r && wants->optional)
            continue;
        if (!r)
            return BAD(err, "tensor '%.100s' is missing", name);
        r->taken = 1;
        if (take(w, r->tensor, wants, dims, into, err) < 0)
            return -1;
    }
    return 0;
}

static int ends_with(const char *name, const char *end)
{
    size_t n = strlen(name), m = strlen(end);

    return n >= m && strcmp(name + n - m, end) == 0;
}

int fw_weights_all_taken(const struct fw_weights *w, const char *const *ignored,
                         struct fw_err *err)
{
    for (size_t i = 0; i < w->rows; i++) {
        int known = w->row[i].taken;

        for (size_t j = 0; ignored && ignored[j] && !known; j++)
            known = ends_with(w->row[i].tensor->name, ignored[j]);
        if (!known)
            return BAD(err, "tensor '%s' is none of this architecture's",
                       w->row[i].tensor->name);
    }
    return 0;
}

struct fw_hash fw_weights_hash(const struct fw_weights *w)
{
    struct fw_hash sum = { 0, 0 };

    for (size_t i = 0; i < w->rows; i++) {
        const struct fw_tensor *t = w->row[i].tensor;
        const uint64_t type = t->dtype;
        struct fw_hash data = fw_hash128(t->data, t->bytes);
        const struct fw_hash_piece piece[] = { { &sum, sizeof sum },
                                               { t->name, strlen(t->name) + 1 },
                                               { &type, sizeof type },
                                               { t->shape, t->ndim * sizeof t->shape[0] },
                                               { &data, sizeof data } };

        if (w->row[i].taken)
            sum = fw_hash128_pieces(piece, sizeof piece / sizeof piece[0]);
    }
    return sum;
}
