/* learn.c - learn and score: the same body, the same reply.
 *
 * What the reply cannot carry is refused before anything is learned: per-token surprise in JSON
 * and the lines of a body are bounded by 65,536 entries; a safetensors reply has no bound but
 * the body's. */
#include "config.h"

#include "op.h"

#include <stdio.h>
#include <string.h>

#include "in.h"
#include "query.h"

enum { DETAIL_MAX = 65536 };

static int read_body(struct op *op, struct fw_err *err)
{
    const struct fw_buf *body = fw_http_body(op->call);
    const char *fields[BATCH_NAMES];

    batch_fields(&op->intake, op->r.verb == FW_LEARN, fields);
    switch (fw_http_media(op->call)) {
    case FW_HTTP_TEXT:
        if (!op->intake.text)
            return fw_fail_param(err, FW_EMEDIA, "unsupported_media_type", "Content-Type",
                                 "this model takes no text/plain");
        return batch_raw(&op->batch, &op->intake, body->data, body->len, err);
    case FW_HTTP_OCTETS:
        if (op->intake.pairs)
            return fw_fail_param(err, FW_EMEDIA, "unsupported_media_type", "Content-Type",
                                 "associative sessions take JSON or safetensors");
        if (!op->intake.raw)
            return fw_fail_param(err, FW_EMEDIA, "unsupported_media_type", "Content-Type",
                                 "this model's tokens are no bytes");
        return batch_raw(&op->batch, &op->intake, body->data, body->len, err);
    case FW_HTTP_SAFETENSORS:
        return batch_file(&op->batch, &op->intake, op->intake.pairs ? fields : fields + 1,
                          body->data, body->len, err);
    default:
        if (op_json(op, false, fields, err) < 0)
            return -1;
        return batch_json(&op->batch, &op->intake, op->root, err);
    }
}

static uint64_t count_lines(const struct fw_tensor *t)
{
    const unsigned char *p = t->data, *end = p + t->bytes;
    uint64_t n = 0;

    while (p < end) {
        p = memchr(p, '\n', (size_t)(end - p));
        p = p ? p + 1 : end;
        n++;
    }
    return n;
}

static int check_detail(struct op *op, struct fw_err *err)
{
    const char *name = op->intake.pairs ? "keys" : "tokens";
    struct fw_tensors t = batch_lend_one(&op->batch, name);

    if (t.count == 0)
        return fw_fail_param(err, FW_EINVAL, "missing_field", name, "%s are missing", name);
    if (t.item->ndim > 0 && t.item->shape[0] == 0)
        return fw_fail_param(err, FW_EINVAL, "empty_body", name, "there is nothing to learn");
    if (op->r.detail == FW_DETAIL_LINES && !op->intake.bytes)
        return fw_fail_param(err, FW_EINVAL, "wrong_kind", "surprise",
                             "surprise=lines is for bytes models");
    if (op->r.detail == FW_DETAIL_LINES && count_lines(t.item) > DETAIL_MAX)
        return fw_fail_param(err, FW_EINVAL, "too_many_lines", "surprise",
                             "surprise=lines takes at most %d lines", DETAIL_MAX);
    if (op->r.detail == FW_DETAIL_TOKENS && !op->wants_file && t.item->shape[0] > DETAIL_MAX)
        return fw_fail_param(err, FW_EINVAL, "too_many_tokens", "surprise",
                             "surprise=tokens takes at most %d tokens in JSON; accept "
                             "application/vnd.safetensors for more",
                             DETAIL_MAX);
    return 0;
}

static int ask_common(struct op *op, struct fw_err *err)
{
    static const char *const details[] = { "none", "mean", "lines", "tokens", NULL };
    size_t detail = FW_DETAIL_MEAN;

    if (query_word(op->call, "surprise", details, &detail, err) < 0 ||
        query_bool(op->call, "hash", &op->r.want_hash, err) < 0 || op_facts(op, err) < 0)
        return -1;
    op->r.detail = (enum fw_detail)detail;
    if (read_body(op, err) < 0 || check_detail(op, err) < 0)
        return -1;
    op->r.in = batch_lend(&op->batch);
    return 0;
}

static int ask_learn(struct op *op, struct fw_err *err)
{
    static const char *const durabilities[] = { "commit", "async", NULL };
    size_t durability = 0;

    if (query_word(op->call, "durability", durabilities, &durability, err) < 0 ||
        op_key(op, err) < 0)
        return -1;
    op->r.async = durability == 1;
    return ask_common(op, err);
}

static int ask_score(struct op *op, struct fw_err *err)
{
    return query_bool(op->call, "adapt", &op->r.adapt, err) < 0 ? -1 : ask_common(op, err);
}

static void out_surprise(struct out *o, const struct fw_request *r)
{
    size_t i;

    out_key(o, "surprise");
    out_open(o, '{');
    out_double(o, "mean", r->mean);
    if (!r->replayed)
        out_double(o, "total", r->total);
    if (r->detail == FW_DETAIL_LINES && !r->replayed) {
        out_key(o, "lines");
        out_open(o, '[');
        for (i = 0; i < r->lines; i++) {
            out_open(o, '{');
            out_u64(o, "start", r->line[i].start);
            out_u64(o, "tokens", r->line[i].tokens);
            out_double(o, "bits", r->line[i].bits);
            out_close(o, '}');
        }
        out_close(o, ']');
    }
    if (r->detail_value) {
        out_key(o, "tokens");
        out_open(o, '[');
        for (i = 0; i < r->tokens; i++)
            out_double(o, NULL, r->detail_value[i]);
        out_close(o, ']');
    }
    out_close(o, '}');
}

static void out_residual(struct out *o, const struct fw_request *r)
{
    size_t i, h;

    out_key(o, "residual");
    out_open(o, '{');
    out_double(o, "mean", r->mean);
    if (r->detail_value) {
        out_key(o, "pairs");
        out_open(o, '[');
        for (i = 0; i < r->tokens; i++) {
            out_open(o, '[');
            for (h = 0; h < r->detail_width; h++)
                out_double(o, NULL, r->detail_value[i * r->detail_width + h]);
            out_close(o, ']');
        }
        out_close(o, ']');
    }
    out_close(o, '}');
}

static void out_learned(struct out *o, const struct op *op)
{
    const struct fw_request *r = &op->r;

    out_open(o, '{');
    out_u64(o, "version", r->version);
    if (!r->replayed) {
        out_u64(o, "durable_version", r->facts.durable_version);
        out_u64(o, "tokens_seen", r->facts.tokens_seen);
        out_u64(o, "tokens", r->tokens);
        if (r->want_hash)
            out_hash(o, "hash", r->facts.hash);
    }
    if (r->detail != FW_DETAIL_NONE) {
        if (op->intake.pairs)
            out_residual(o, r);
        else
            out_surprise(o, r);
    }
    if (r->values)
        out_values(o, r);
    out_close(o, '}');
}

static int answer_file(struct op *op, struct fw_err *err)
{
    const struct fw_request *r = &op->r;
    struct fw_tensor item[2] = { { .dtype = FW_F64 }, { .dtype = FW_F32 } };
    struct fw_tensors ts = { 0, item };
    struct fw_meta meta[7];
    size_t n = 0;

    if (r->detail_value) {
        snprintf(item[0].name, FW_NAME_MAX, "%s", op->intake.pairs ? "residual" : "surprise");
        item[0].ndim = op->intake.pairs ? 2 : 1;
        item[0].shape[0] = r->tokens;
        item[0].shape[1] = op->intake.pairs ? r->detail_width : 0;
        item[0].data = r->detail_value;
        item[0].bytes = r->tokens * r->detail_width * sizeof(double);
        ts.count++;
    }
    if (r->values)
        item[ts.count++] = values_tensor(r);
    meta_u64(&meta[n++], "version", r->version);
    meta_u64(&meta[n++], "durable_version", r->facts.durable_version);
    meta_u64(&meta[n++], "tokens_seen", r->facts.tokens_seen);
    meta_u64(&meta[n++], "tokens", r->tokens);
    meta_double(&meta[n++], "mean", r->mean);
    if (!op->intake.pairs)
        meta_double(&meta[n++], "total", r->total);
    if (r->want_hash)
        meta_hash(&meta[n++], "hash", r->facts.hash);
    op->reply.media = FW_HTTP_SAFETENSORS;
    return fw_safetensors_write(&op->out, &ts, meta, n, err);
}

static int answer_learn(struct op *op, struct fw_err *err)
{
    struct out o;

    op_etag(op, op->r.facts.uid, op->r.version);
    if (op->r.replayed)
        op_header(op, "Idempotent-Replayed", "true");
    else if (op->wants_file)
        return answer_file(op, err);
    out_begin(&o, &op->out, err);
    out_learned(&o, op);
    return o.rc;
}

static const char *const learn_query[] = { "durability", "surprise", "hash", NULL };
static const char *const score_query[] = { "adapt", "surprise", "hash", NULL };

const struct endpoint api_learn = {
    .verb = FW_LEARN, .query = learn_query, .ask = ask_learn, .answer = answer_learn
};
const struct endpoint api_score = {
    .verb = FW_SCORE, .query = score_query, .ask = ask_score, .answer = answer_learn
};
