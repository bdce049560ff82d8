/* predict.c - the next token's distribution, here or after a frozen prefix.
 *
 * Options come in the JSON body or, for a safetensors body (tensor `prefix` or `tokens`), in
 * the query. */
#include "config.h"

#include "op.h"

#include <stdlib.h>
#include <string.h>

#include "in.h"
#include "query.h"

enum { TOP_DEFAULT = 10, TOP_MAX = 1000 };

static int read_options(struct op *op, uint64_t *top, struct fw_err *err)
{
    static const char *const known[] = { "prefix", "top_logprobs", "full", NULL };
    const json_t *prefix;

    if (op_json(op, false, known, err) < 0 ||
        in_size(op->root, "top_logprobs", 1, TOP_MAX, top, err) < 0 ||
        in_bool(op->root, "full", &op->r.full, err) < 0)
        return -1;
    prefix = json_object_get(op->root, "prefix");
    return prefix ? batch_tokens(&op->batch, &op->intake, prefix, "prefix", err) : 0;
}

static int ask_predict(struct op *op, struct fw_err *err)
{
    static const char *const names[] = { "tokens", "prefix", NULL };
    const struct fw_buf *body = fw_http_body(op->call);
    uint64_t top = TOP_DEFAULT;

    if (op_facts(op, err) < 0 ||
        query_size(op->call, "top_logprobs", 1, TOP_MAX, &top, err) < 0 ||
        query_bool(op->call, "full", &op->r.full, err) < 0)
        return -1;
    if (fw_http_media(op->call) == FW_HTTP_SAFETENSORS) {
        if (batch_file(&op->batch, &op->intake, names, body->data, body->len, err) < 0)
            return -1;
        if (op->batch.count > 1)
            return fw_fail_param(err, FW_EINVAL, "bad_value", "prefix",
                                 "send prefix or tokens, not both");
    } else if (read_options(op, &top, err) < 0) {
        return -1;
    }
    op->r.top = top;
    op->r.in = batch_lend_one(&op->batch, "tokens");
    return 0;
}

static void out_choice(struct out *o, const struct op *op, uint32_t token, double logp)
{
    out_open(o, '{');
    out_u64(o, "token", token);
    if (out_token_text(o, &op->intake, &token, 1, NULL, o->err) < 0)
        o->rc = -1;
    out_double(o, "logprob", logp);
    out_close(o, '}');
}

/* The head of a full distribution, ties by lower id: best[] descending. */
static size_t pick_top(const double *logp, size_t vocab, size_t top, uint32_t *best)
{
    size_t i, at, n = 0;

    for (i = 0; i < vocab; i++) {
        if (n == top && !(logp[i] > logp[best[n - 1]]))
            continue;
        for (at = n < top ? n : n - 1; at > 0 && logp[i] > logp[best[at - 1]]; at--)
            best[at] = best[at - 1];
        best[at] = (uint32_t)i;
        n += n < top;
    }
    return n;
}

static void out_full(struct out *o, const struct op *op)
{
    uint32_t best[TOP_MAX];
    size_t i, n = pick_top(op->r.logp, op->r.count, op->r.top, best);

    out_key(o, "top");
    out_open(o, '[');
    for (i = 0; i < n; i++)
        out_choice(o, op, best[i], op->r.logp[best[i]]);
    out_close(o, ']');
    out_key(o, "logprobs");
    out_open(o, '[');
    for (i = 0; i < op->r.count; i++)
        out_double(o, NULL, op->r.logp[i]);
    out_close(o, ']');
}

static int answer_file(struct op *op, struct fw_err *err)
{
    struct fw_tensor item = { .name = "logprobs",
                              .dtype = FW_F64,
                              .ndim = 1,
                              .shape = { op->r.count },
                              .data = op->r.logp,
                              .bytes = op->r.count * sizeof(double) };
    struct fw_tensors ts = { 1, &item };
    struct fw_meta meta;

    meta_u64(&meta, "version", op->r.version);
    op->reply.media = FW_HTTP_SAFETENSORS;
    return fw_safetensors_write(&op->out, &ts, &meta, 1, err);
}

static int answer_predict(struct op *op, struct fw_err *err)
{
    struct out o;
    size_t i;

    op_etag(op, op->r.facts.uid, op->r.version);
    if (op->r.full && op->wants_file)
        return answer_file(op, err);
    out_begin(&o, &op->out, err);
    out_open(&o, '{');
    out_u64(&o, "version", op->r.version);
    if (op->r.full) {
        out_full(&o, op);
    } else {
        out_key(&o, "top");
        out_open(&o, '[');
        for (i = 0; i < op->r.count; i++)
            out_choice(&o, op, op->r.ids[i], op->r.logp[i]);
        out_close(&o, ']');
    }
    out_close(&o, '}');
    return o.rc;
}

static const char *const predict_query[] = { "top_logprobs", "full", NULL };

const struct endpoint api_predict = {
    .verb = FW_PREDICT, .query = predict_query, .ask = ask_predict, .answer = answer_predict
};
