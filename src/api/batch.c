/* batch.c - the tensors of a request's body, in the types the engine takes.
 *
 * Tokens are checked here, for only here is known which of the body's numbers was wrong; pairs
 * are checked by the learner, which names pair and head. Any thread. */
#include "config.h"

#include "batch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "in.h"

enum { FLOAT_DIMS = 4, IDS_MAX = 1 << 30 };

struct intake intake_of(const struct fw_engine *engine, const struct fw_facts *f)
{
    const struct fw_about *a = &f->about;
    bool bytes = a->token_bytes == 1;
    struct intake in = { .pairs = strcmp(f->kind, "associative") == 0,
                         .bytes = bytes,
                         .text = bytes || a->tokenizer[0],
                         .raw = a->token_bytes < 4 || strcmp(a->tokenizer, "bytes") == 0,
                         .token_bytes = a->token_bytes,
                         .vocab = a->vocab,
                         .engine = engine };

    memcpy(in.model, f->model, sizeof in.model);
    return in;
}

int intake_text(const struct intake *in, uint32_t token, struct fw_buf *out, struct fw_err *err)
{
    const unsigned char *text;
    unsigned char byte = (unsigned char)token;
    size_t len;

    if (!in->text)
        return 0;
    if (in->bytes)
        return fw_buf_append(out, &byte, 1, err);
    text = fw_engine_token(in->engine, in->model, token, &len);
    return fw_buf_append(out, text, len, err);
}

void batch_done(struct batch *b)
{
    size_t i;

    for (i = 0; i < b->count; i++)
        free(b->owned[i]);
    fw_safetensors_done(&b->file);
    *b = (struct batch){ 0 };
}

struct fw_tensors batch_lend(struct batch *b)
{
    return (struct fw_tensors){ b->count, b->item };
}

struct fw_tensors batch_lend_one(struct batch *b, const char *name)
{
    size_t i;

    for (i = 0; i < b->count; i++) {
        if (strcmp(b->item[i].name, name) == 0)
            return (struct fw_tensors){ 1, &b->item[i] };
    }
    return (struct fw_tensors){ 0, NULL };
}

static int no_memory(struct fw_err *err)
{
    return fw_fail(err, FW_ENOMEM, "out_of_memory", "no memory for a body");
}

/* Adds a tensor whose bytes are owned (or, with `data`, borrowed). */
static struct fw_tensor *add(struct batch *b, const char *name, enum fw_dtype dtype,
                             uint64_t rows, const void *data, struct fw_err *err)
{
    struct fw_tensor *t = &b->item[b->count];
    size_t bytes = (size_t)rows * fw_dtype_bytes(dtype); /* a body's, so it cannot overflow */

    if (b->count == BATCH_TENSORS) {
        fw_fail(err, FW_EINVAL, "too_many_tensors", "more than %d tensors", BATCH_TENSORS);
        return NULL;
    }
    b->owned[b->count] = data ? NULL : malloc(bytes ? bytes : 1);
    if (!data && !b->owned[b->count]) {
        no_memory(err);
        return NULL;
    }
    *t = (struct fw_tensor){ .dtype = dtype,
                             .ndim = 1,
                             .shape = { rows },
                             .data = data ? data : b->owned[b->count],
                             .bytes = bytes };
    memcpy(t->name, name, strlen(name) + 1);
    b->count++;
    return t;
}

static int not_for_pairs(const struct intake *in, const char *param, struct fw_err *err)
{
    if (!in->pairs)
        return 0;
    return fw_fail_param(err, FW_EINVAL, "wrong_kind", param,
                         "an associative session takes keys and values, not tokens");
}

/* Stores token i, whose value came as a signed 64-bit number. */
static int put_token(const struct intake *in, void *out, size_t i, int64_t id,
                     const char *param, struct fw_err *err)
{
    if (id < 0 || id >= (int64_t)in->vocab)
        return fw_fail_param(err, FW_EINVAL, "token_out_of_range", param,
                             "%s[%zu] is %lld; tokens here lie in [0, %u)", param, i,
                             (long long)id, (unsigned)in->vocab);
    if (in->token_bytes == 1)
        ((uint8_t *)out)[i] = (uint8_t)id;
    else if (in->token_bytes == 2)
        ((uint16_t *)out)[i] = (uint16_t)id;
    else
        ((uint32_t *)out)[i] = (uint32_t)id;
    return 0;
}

static enum fw_dtype token_type(const struct intake *in)
{
    return in->token_bytes == 1 ? FW_U8 : in->token_bytes == 2 ? FW_U16 : FW_U32;
}

/* A text's tokens, as the model's tokenizer has them. */
static int encode(struct batch *b, const struct intake *in, const void *text, size_t len,
                  const char *param, struct fw_err *err)
{
    struct fw_buf ids;
    size_t bytes;

    fw_buf_init(&ids, IDS_MAX);
    if (fw_engine_encode(in->engine, in->model, text, len, &ids, err) < 0) {
        snprintf(err->param, sizeof err->param, "%s", param);
        fw_buf_done(&ids);
        return -1;
    }
    bytes = ids.len;
    if (!add(b, "tokens", FW_U32, bytes / sizeof(uint32_t), NULL, err)) {
        fw_buf_done(&ids);
        return -1;
    }
    if (bytes > 0)
        memcpy(b->owned[b->count - 1], ids.data, bytes);
    fw_buf_done(&ids);
    return 0;
}

static int token_text(struct batch *b, const struct intake *in, const json_t *v,
                      const char *param, struct fw_err *err)
{
    struct fw_tensor *t;
    size_t len = json_string_length(v);

    if (!in->text)
        return fw_fail_param(err, FW_EINVAL, "wrong_kind", param,
                             "this model takes no text; send token ids");
    if (!in->bytes)
        return encode(b, in, json_string_value(v), len, param, err);
    t = add(b, "tokens", FW_U8, len, NULL, err);
    if (!t)
        return -1;
    memcpy(b->owned[b->count - 1], json_string_value(v), len);
    return 0;
}

int batch_tokens(struct batch *b, const struct intake *in, const json_t *v, const char *param,
                 struct fw_err *err)
{
    struct fw_tensor *t;
    const json_t *item;
    size_t i, n = json_array_size(v);

    if (not_for_pairs(in, param, err) < 0)
        return -1;
    if (json_is_string(v))
        return token_text(b, in, v, param, err);
    if (!json_is_array(v))
        return fw_fail_param(err, FW_EINVAL, "bad_value", param,
                             "%s must be an array of integers", param);
    t = add(b, "tokens", token_type(in), n, NULL, err);
    if (!t)
        return -1;
    for (i = 0; i < n; i++) {
        item = json_array_get(v, i);
        if (!json_is_integer(item))
            return fw_fail_param(err, FW_EINVAL, "bad_value", param,
                                 "%s[%zu] is not an integer", param, i);
        if (put_token(in, b->owned[b->count - 1], i, json_integer_value(item), param, err) < 0)
            return -1;
    }
    return 0;
}

int batch_raw(struct batch *b, const struct intake *in, const void *data, size_t len,
              struct fw_err *err)
{
    const uint16_t *id = data;
    size_t i;

    if (not_for_pairs(in, "body", err) < 0)
        return -1;
    if (in->bytes)
        return add(b, "tokens", FW_U8, len, data, err) ? 0 : -1;
    if (in->text)
        return encode(b, in, data, len, "body", err);
    if (len % 2)
        return fw_fail_param(err, FW_EINVAL, "odd_length", "body",
                             "events are 2 bytes each, little-endian; the body has %zu bytes",
                             len);
    for (i = 0; i < len / 2; i++) {
        if (id[i] >= in->vocab)
            return fw_fail_param(err, FW_EINVAL, "token_out_of_range", "tokens",
                                 "tokens[%zu] is %u; tokens here lie in [0, %u)", i,
                                 (unsigned)id[i], (unsigned)in->vocab);
    }
    return add(b, "tokens", FW_U16, len / 2, data, err) ? 0 : -1;
}

/* One row of a nested array, its shape known; at: the next element to fill. */
static int fill_row(const json_t *v, const struct fw_tensor *t, uint32_t dim, float **at,
                    struct fw_err *err)
{
    const json_t *item;
    size_t i;

    if (json_array_size(v) != t->shape[dim])
        return fw_fail_param(err, FW_EINVAL, "ragged_array", t->name,
                             "%s: the arrays of level %u differ in length", t->name,
                             (unsigned)dim + 1);
    for (i = 0; i < t->shape[dim]; i++) {
        item = json_array_get(v, i);
        if (dim + 1 < t->ndim) {
            if (!json_is_array(item))
                goto mixed;
            if (fill_row(item, t, dim + 1, at, err) < 0)
                return -1;
        } else {
            if (!json_is_number(item))
                goto mixed;
            *(*at)++ = (float)json_number_value(item); /* too large: inf, refused below us */
        }
    }
    return 0;
mixed:
    return fw_fail_param(err, FW_EINVAL, "bad_value", t->name,
                         "%s must be arrays of numbers, all nested equally", t->name);
}

int batch_floats(struct batch *b, const char *name, const json_t *v, struct fw_err *err)
{
    uint64_t shape[FLOAT_DIMS] = { 0 }, count = 1;
    struct fw_tensor *t;
    uint32_t ndim = 0;
    const json_t *at = v;
    float *out;

    for (; json_is_array(at) && ndim < FLOAT_DIMS; at = json_array_get(at, 0)) {
        shape[ndim] = json_array_size(at);
        count *= shape[ndim++];
        if (count == 0 || count > IN_MAX_VALUES)
            break; /* empty, or ragged: no body holds that many */
    }
    if (ndim == 0 || count == 0 || count > IN_MAX_VALUES || json_is_array(at))
        return fw_fail_param(err, FW_EINVAL, "bad_shape", name,
                             "%s must be nested arrays of numbers, none empty, at most 4 deep",
                             name);
    t = add(b, name, FW_F32, count, NULL, err);
    if (!t)
        return -1;
    t->ndim = ndim;
    memcpy(t->shape, shape, sizeof shape);
    out = b->owned[b->count - 1];
    return fill_row(v, t, 0, &out, err);
}

void batch_fields(const struct intake *in, bool queries, const char *names[BATCH_NAMES])
{
    size_t n = 0;

    if (!in->pairs) {
        names[n++] = "text";
        names[n++] = "tokens";
    } else {
        n = fw_engine_inputs(names, BATCH_NAMES - 1);
    }
    names[n] = NULL;
    for (size_t i = 0; in->pairs && !queries && names[i]; i++)
        if (strcmp(names[i], "queries") == 0) {
            memmove(names + i, names + i + 1, (n - i) * sizeof names[0]);
            break;
        }
}

static int json_stream(struct batch *b, const struct intake *in, const json_t *root,
                       struct fw_err *err)
{
    const json_t *text = json_object_get(root, "text");
    const json_t *tokens = json_object_get(root, "tokens");

    if (!text == !tokens)
        return fw_fail_param(err, FW_EINVAL, "missing_field", in->text ? "text" : "tokens",
                             "the body needs either text or tokens");
    if (text && !json_is_string(text))
        return fw_fail_param(err, FW_EINVAL, "bad_value", "text", "text must be a string");
    if (tokens && json_is_string(tokens))
        return fw_fail_param(err, FW_EINVAL, "bad_value", "tokens",
                             "tokens must be an array of integers");
    return batch_tokens(b, in, text ? text : tokens, text ? "text" : "tokens", err);
}

int batch_json(struct batch *b, const struct intake *in, const json_t *root, struct fw_err *err)
{
    const char *names[BATCH_NAMES];

    if (!in->pairs)
        return json_stream(b, in, root, err);
    batch_fields(in, true, names);
    for (size_t i = 0; names[i]; i++) {
        const json_t *v = json_object_get(root, names[i]);

        if (v && batch_floats(b, names[i], v, err) < 0)
            return -1;
    }
    return 0;
}

static int64_t integer_at(const struct fw_tensor *t, size_t i)
{
    switch (t->dtype) {
    case FW_U8:
        return ((const uint8_t *)t->data)[i];
    case FW_U16:
        return ((const uint16_t *)t->data)[i];
    case FW_U32:
        return ((const uint32_t *)t->data)[i];
    case FW_I32:
        return ((const int32_t *)t->data)[i];
    case FW_I64:
        return ((const int64_t *)t->data)[i];
    default:
        return -1;
    }
}

static int file_tokens(struct batch *b, const struct intake *in, const struct fw_tensor *t,
                       struct fw_err *err)
{
    size_t i;
    bool integer = t->dtype == FW_U8 || t->dtype == FW_U16 || t->dtype == FW_U32 ||
                   t->dtype == FW_I32 || t->dtype == FW_I64;

    if (not_for_pairs(in, t->name, err) < 0)
        return -1;
    if (!integer || t->ndim != 1)
        return fw_fail_param(err, FW_EINVAL, "bad_shape", t->name,
                             "%s must be one axis of U8, U16, U32, I32 or I64", t->name);
    if (!add(b, "tokens", token_type(in), t->shape[0], NULL, err))
        return -1;
    for (i = 0; i < t->shape[0]; i++) {
        if (put_token(in, b->owned[b->count - 1], i, integer_at(t, i), t->name, err) < 0)
            return -1;
    }
    return 0;
}

static int file_floats(struct batch *b, const struct fw_tensor *t, struct fw_err *err)
{
    struct fw_tensor *copy;
    const double *from = t->data;
    size_t i, n = t->bytes / fw_dtype_bytes(t->dtype);
    float *out;

    if (t->dtype != FW_F32 && t->dtype != FW_F64)
        return fw_fail_param(err, FW_EINVAL, "bad_dtype", t->name, "%s must be F32 or F64",
                             t->name);
    copy = add(b, t->name, FW_F32, n, t->dtype == FW_F32 ? t->data : NULL, err);
    if (!copy)
        return -1;
    copy->ndim = t->ndim;
    memcpy(copy->shape, t->shape, sizeof copy->shape);
    if (t->dtype == FW_F32)
        return 0;
    out = b->owned[b->count - 1];
    for (i = 0; i < n; i++)
        out[i] = (float)from[i];
    return 0;
}

int batch_file(struct batch *b, const struct intake *in, const char *const *known,
               const void *data, size_t len, struct fw_err *err)
{
    const struct fw_tensor *t;
    const char *const *k;
    size_t i;

    if (fw_safetensors_read(&b->file, data, len, err) < 0) {
        b->file = (struct fw_safetensors){ 0 };
        return -1;
    }
    for (i = 0; i < b->file.tensors.count; i++) {
        t = &b->file.tensors.item[i];
        for (k = known; *k && strcmp(*k, t->name) != 0; k++)
            ;
        if (!*k)
            return fw_fail_param(err, FW_EINVAL, "unknown_field", t->name,
                                 "'%s' is not a tensor of this request", t->name);
        if (strcmp(t->name, "tokens") == 0 || strcmp(t->name, "prefix") == 0) {
            if (file_tokens(b, in, t, err) < 0)
                return -1;
        } else if (file_floats(b, t, err) < 0) {
            return -1;
        }
    }
    return 0;
}
