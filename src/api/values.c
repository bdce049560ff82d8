/* values.c - arrays and scalars of a reply, as JSON and as safetensors. */
#include "config.h"

#include "op.h"

#include <stdio.h>

void out_tokens(struct out *o, const struct fw_request *r)
{
    size_t i;

    out_key(o, "tokens");
    out_open(o, '[');
    for (i = 0; i < r->count; i++)
        out_u64(o, NULL, r->ids[i]);
    out_close(o, ']');
}

int out_token_text(struct out *o, const struct intake *in, const uint32_t *ids, size_t n,
                   const struct fw_buf *tail, struct fw_err *err)
{
    struct fw_buf text;
    int rc = 0;

    if (!in->text)
        return 0;
    fw_buf_init(&text, OP_REPLY_MAX);
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = intake_text(in, ids[i], &text, err);
    if (rc == 0 && tail && tail->len > 0)
        rc = fw_buf_append(&text, tail->data, tail->len, err);
    if (rc == 0) {
        out_text(o, "text", text.data, text.len);
        out_base64(o, "bytes_base64", text.data, text.len);
    }
    fw_buf_done(&text);
    return rc;
}

void out_values(struct out *o, const struct fw_request *r)
{
    uint64_t n = r->values_shape[0], heads = r->values_shape[1], d = r->values_shape[2];
    const float *at = r->values;
    uint64_t i, h, j;

    out_key(o, "values");
    out_open(o, '[');
    for (i = 0; i < n; i++) {
        out_open(o, '[');
        for (h = 0; h < heads; h++) {
            out_open(o, '[');
            for (j = 0; j < d; j++)
                out_float(o, NULL, *at++);
            out_close(o, ']');
        }
        out_close(o, ']');
    }
    out_close(o, ']');
}

struct fw_tensor values_tensor(const struct fw_request *r)
{
    return (struct fw_tensor){
        .name = "values",
        .dtype = FW_F32,
        .ndim = 3,
        .shape = { r->values_shape[0], r->values_shape[1], r->values_shape[2] },
        .data = r->values,
        .bytes = r->values_count * sizeof(float),
    };
}

void meta_u64(struct fw_meta *m, const char *key, uint64_t v)
{
    snprintf(m->key, sizeof m->key, "%s", key);
    snprintf(m->value, sizeof m->value, "%llu", (unsigned long long)v);
}

void meta_double(struct fw_meta *m, const char *key, double v)
{
    snprintf(m->key, sizeof m->key, "%s", key);
    snprintf(m->value, sizeof m->value, "%.17g", v);
}

void meta_hash(struct fw_meta *m, const char *key, struct fw_hash h)
{
    snprintf(m->key, sizeof m->key, "%s", key);
    fw_hash_hex(h, m->value);
}
