/* edit.c - edit and forget: one association written exactly, or taken away.
 *
 * The body's key and value become the tensors under which an edit is journaled (edit.key, ...,
 * forget.value); probes are only read, so they stay outside. */
#include "config.h"

#include "op.h"

#include <stdio.h>
#include <string.h>

#include "query.h"

static int read_body(struct op *op, struct fw_err *err)
{
    static const char *const names[] = { "key", "value", "probes", NULL };
    const struct fw_buf *body = fw_http_body(op->call);
    const json_t *v;
    size_t i;

    if (fw_http_media(op->call) == FW_HTTP_SAFETENSORS)
        return batch_file(&op->batch, &op->intake, names, body->data, body->len, err);
    if (op_json(op, false, names, err) < 0)
        return -1;
    for (i = 0; names[i]; i++) {
        v = json_object_get(op->root, names[i]);
        if (v && batch_floats(&op->batch, names[i], v, err) < 0)
            return -1;
    }
    return 0;
}

static void swap(struct fw_tensor *a, struct fw_tensor *b)
{
    struct fw_tensor t = *a;

    *a = *b;
    *b = t;
}

/* Names the body's tensors as the engine wants them, and takes the probes out of it. */
static void lend_body(struct op *op, const char *verb)
{
    struct batch *b = &op->batch;
    struct fw_tensor *t, *last = b->count ? &b->item[b->count - 1] : b->item;

    for (t = b->item; t < last; t++) {
        if (strcmp(t->name, "probes") == 0)
            swap(t, last); /* who owns the bytes may stay where it is */
    }
    op->r.in = batch_lend(b);
    if (b->count && strcmp(last->name, "probes") == 0) {
        snprintf(last->name, FW_NAME_MAX, "queries");
        op->r.probes = (struct fw_tensors){ 1, last };
        op->r.in.count--;
    }
    for (t = b->item; t < b->item + op->r.in.count; t++) {
        const char *part = strcmp(t->name, "key") == 0 ? "key" : "value";

        snprintf(t->name, FW_NAME_MAX, "%s.%s", verb, part);
    }
}

static int ask(struct op *op, const char *verb, struct fw_err *err)
{
    static const char *const durabilities[] = { "commit", "async", NULL };
    size_t durability = 0;

    if (query_word(op->call, "durability", durabilities, &durability, err) < 0 ||
        query_bool(op->call, "hash", &op->r.want_hash, err) < 0 || op_key(op, err) < 0 ||
        op_facts(op, err) < 0)
        return -1;
    op->r.async = durability == 1;
    if (!op->intake.pairs)
        return fw_fail(err, FW_EINVAL, "wrong_kind",
                       "only associative sessions are edited; others learn");
    if (read_body(op, err) < 0)
        return -1;
    lend_body(op, verb);
    return 0;
}

static int ask_edit(struct op *op, struct fw_err *err)
{
    return ask(op, "edit", err);
}

static int ask_forget(struct op *op, struct fw_err *err)
{
    return ask(op, "forget", err);
}

/* [heads][d_v] */
static void out_read(struct out *o, const char *key, const struct fw_request *r, size_t which)
{
    size_t heads = r->values_shape[1], d_v = r->values_shape[2], h, j;
    const float *x = r->values + which * heads * d_v;

    out_key(o, key);
    out_open(o, '[');
    for (h = 0; h < heads; h++) {
        out_open(o, '[');
        for (j = 0; j < d_v; j++)
            out_float(o, NULL, *x++);
        out_close(o, ']');
    }
    out_close(o, ']');
}

static int answer(struct op *op, struct fw_err *err)
{
    const struct fw_request *r = &op->r;
    struct out o;

    op_etag(op, r->facts.uid, r->version);
    if (r->replayed)
        op_header(op, "Idempotent-Replayed", "true");
    out_begin(&o, &op->out, err);
    out_open(&o, '{');
    out_u64(&o, "version", r->version);
    if (!r->replayed) {
        out_u64(&o, "durable_version", r->facts.durable_version);
        if (r->want_hash)
            out_hash(&o, "hash", r->facts.hash);
        out_read(&o, "before", r, 0);
        out_read(&o, "after", r, 1);
        out_double(&o, "change_norm", r->change_norm);
        out_double(&o, "disturbed", r->disturbed);
    }
    out_close(&o, '}');
    return o.rc;
}

static const char *const query[] = { "durability", "hash", NULL };

const struct endpoint api_edit = {
    .verb = FW_EDIT, .query = query, .ask = ask_edit, .answer = answer
};
const struct endpoint api_forget = {
    .verb = FW_EDIT, .query = query, .ask = ask_forget, .answer = answer
};
