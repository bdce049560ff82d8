/* facts.c - a session's facts as JSON. */
#include "config.h"

#include "op.h"

void out_about(struct out *o, const struct fw_about *a)
{
    if (!a->architecture[0])
        return;
    out_string(o, "architecture", a->architecture);
    out_string(o, "memory", a->memory);
    out_bool(o, "off_distribution", a->off_distribution);
    out_u64(o, "d_model", a->d_model);
    out_u64(o, "layers", a->layers);
    out_u64(o, "heads", a->heads);
    out_u64(o, "d_k", a->d_k);
    out_u64(o, "d_v", a->d_v);
    out_u64(o, "parameters", a->parameters);
    out_u64(o, "weight_bytes", a->weight_bytes);
    if (a->tokenizer[0])
        out_string(o, "tokenizer", a->tokenizer);
    else
        out_null(o, "tokenizer");
    if (a->max_context == 0) {
        out_null(o, "max_context");
        return;
    }
    out_u64(o, "max_context", a->max_context);
    out_string(o, "when_full", "the context is emptied and positions start at 0 again");
}

void out_facts_fields(struct out *o, const struct fw_facts *f)
{
    out_string(o, "id", f->id);
    out_string(o, "model", f->model);
    out_string(o, "kind", f->kind);
    out_params(o, "config", &f->config);
    out_hash(o, "config_hash", f->config_hash);
    if (f->about.architecture[0])
        out_u64(o, "vocab", f->about.vocab);
    out_about(o, &f->about);
    out_u64(o, "state_bytes", f->state_bytes);
    out_u64(o, "version", f->version);
    out_u64(o, "durable_version", f->durable_version);
    out_u64(o, "tokens_seen", f->tokens_seen);
    out_time(o, "created_at", f->created_ms);
    out_raw(o, "labels", f->labels[0] ? f->labels : "{}");
    if (f->parent_id[0]) {
        out_key(o, "parent");
        out_open(o, '{');
        out_string(o, "id", f->parent_id);
        out_u64(o, "version", f->parent_version);
        out_hash(o, "hash", f->parent_hash);
        out_close(o, '}');
    } else {
        out_null(o, "parent");
    }
    out_bool(o, "resident", f->resident);
    if (f->has_hash)
        out_hash(o, "hash", f->hash);
}

void out_facts(struct out *o, const struct fw_facts *f)
{
    out_open(o, '{');
    out_facts_fields(o, f);
    out_close(o, '}');
}

int answer_facts(struct op *op, struct fw_err *err)
{
    struct out o;

    out_begin(&o, &op->out, err);
    out_facts(&o, &op->r.facts);
    op_etag(op, op->r.facts.uid, op->r.facts.version);
    return o.rc;
}
