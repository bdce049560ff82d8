/* generate.c - sampled tokens; the seed is the request's, so the same request on the same state
 * writes the same tokens. */
#include "config.h"

#include "op.h"

#include <stdlib.h>

#include "events.h"
#include "in.h"
#include "sampling.h"

enum { TOKENS_MAX = 65536 };

int generate_read(struct op *op, const char *prefix, uint64_t max_tokens, struct fw_err *err)
{
    const json_t *tokens = json_object_get(op->root, prefix);

    if (in_size(op->root, "max_tokens", 1, TOKENS_MAX, &max_tokens, err) < 0 ||
        in_bool(op->root, "learn", &op->r.learn, err) < 0)
        return -1;
    if (max_tokens == 0)
        return fw_fail_param(err, FW_EINVAL, "missing_field", "max_tokens",
                             "max_tokens is missing");
    op->sampling = malloc(sizeof *op->sampling);
    if (!op->sampling)
        return fw_fail(err, FW_ENOMEM, "out_of_memory", "no memory for a request");
    if (sampling_read(&op->r.sampling, op->sampling, op->root, err) < 0)
        return -1;
    if (tokens && batch_tokens(&op->batch, &op->intake, tokens, prefix, err) < 0)
        return -1;
    op->r.max_tokens = max_tokens;
    op->r.in = batch_lend_one(&op->batch, "tokens");
    return 0;
}

static int ask_generate(struct op *op, struct fw_err *err)
{
    static const char *const known[] = { "max_tokens", "prefix",        "learn",
                                         "stream",     SAMPLING_FIELDS, NULL };
    bool stream = false;

    if (op_facts(op, err) < 0 || op_json(op, false, known, err) < 0 ||
        in_bool(op->root, "stream", &stream, err) < 0 ||
        generate_read(op, "prefix", 0, err) < 0)
        return -1;
    return stream ? events_new(op, err) : 0;
}

static int answer_generate(struct op *op, struct fw_err *err)
{
    const struct fw_request *r = &op->r;
    struct out o;

    op_etag(op, r->facts.uid, r->version);
    out_begin(&o, &op->out, err);
    out_open(&o, '{');
    out_u64(&o, "version", r->version);
    if (r->learn) {
        out_u64(&o, "durable_version", r->facts.durable_version);
        out_u64(&o, "tokens_seen", r->facts.tokens_seen);
    }
    out_tokens(&o, r);
    if (out_token_text(&o, &op->intake, r->ids, r->count, &r->bytes, err) < 0)
        return -1;
    out_string(&o, "finish_reason", r->finish == FW_FINISH_STOP ? "stop" : "length");
    out_key(&o, "surprise");
    out_open(&o, '{');
    out_double(&o, "mean", r->mean);
    out_double(&o, "total", r->total);
    out_close(&o, '}');
    out_close(&o, '}');
    return o.rc;
}

static int tell_generate(struct op *op, struct out *o, size_t from, size_t to,
                         const struct fw_http_text *text)
{
    out_open(o, '{');
    out_key(o, "tokens");
    out_open(o, '[');
    for (; from < to; from++)
        out_u64(o, NULL, op->r.ids[from]);
    out_close(o, ']');
    if (op->intake.text)
        out_text(o, "text", text->data, text->len);
    out_close(o, '}');
    return o->rc;
}

const struct endpoint api_generate = {
    .verb = FW_GENERATE, .ask = ask_generate, .answer = answer_generate, .tell = tell_generate
};
