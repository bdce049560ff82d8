/* op.c - one call on its way through the engine and back.
 *
 * An op owns all that was parsed from the body and lends it to the engine's request; it is
 * freed after its reply was handed over, and the call is not touched after that. */
#include "config.h"

#include "op.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "events.h"
#include "in.h"
#include "query.h"
#include "status.h"

void reply_error(struct fw_http_call *call, const struct fw_err *e)
{
    const struct status *s = status_of(e->code);
    struct fw_http_reply reply = { .status = s->status, .media = FW_HTTP_JSON };
    struct fw_buf b;

    fw_buf_init(&b, 8192);
    status_print(e, &b);
    reply.body = &b;
    if (s->retry_after)
        reply.header[reply.headers++] =
            (struct fw_http_header){ "Retry-After", s->retry_after };
    fw_http_reply(call, &reply);
}

void fw_api_refuse(struct fw_http_call *call, const struct fw_err *err)
{
    reply_error(call, err);
}

void reply_json(struct fw_http_call *call, struct fw_buf *json, int rc, struct fw_err *e)
{
    if (rc < 0) {
        fw_buf_done(json);
        reply_error(call, e);
        return;
    }
    fw_http_reply(
        call, &(struct fw_http_reply){ .status = 200, .media = FW_HTTP_JSON, .body = json });
}

void op_free(struct op *op)
{
    fw_request_done(&op->r);
    json_decref(op->root);
    batch_done(&op->batch);
    free(op->labels);
    free(op->sampling);
    ranking_free(op->ranking);
    events_free(op->events);
    free(op->completion);
    fw_buf_done(&op->out);
    free(op);
}

static void op_fail(struct op *op, const struct fw_err *e)
{
    reply_error(op->call, e);
    op_free(op);
}

static void finish(struct op *op)
{
    struct fw_err err = { 0 };

    op->reply = (struct fw_http_reply){ .status = 200, .media = FW_HTTP_JSON };
    if (op->endpoint->answer(op, &err) < 0) {
        op_fail(op, &err);
        return;
    }
    op->reply.body = &op->out;
    fw_http_reply(op->call, &op->reply);
    op_free(op);
}

static void run_slice(struct fw_task *task)
{
    struct op *op = (struct op *)((char *)task - offsetof(struct op, task));

    if (op->endpoint->slice(op))
        fw_pool_submit(op->api->pool, &op->task);
    else
        finish(op);
}

static void on_done(struct fw_request *r)
{
    struct op *op = (struct op *)r;

    if (r->failed) {
        op_fail(op, &r->err);
    } else if (op->endpoint->slice) {
        op->task.run = run_slice;
        fw_pool_submit(op->api->pool, &op->task);
    } else {
        finish(op);
    }
}

/* If-Match: "<uid>-<version>"; what has another form is no current ETag either. */
static void read_match(struct op *op)
{
    const char *text = fw_http_header(op->call, "If-Match");
    int64_t uid;
    uint64_t version;
    int end = 0;

    if (!text || strcmp(text, "*") == 0)
        return;
    op->r.has_match = true;
    op->r.match_uid = -1;
    if (sscanf(text, "\"%" SCNd64 "-%" SCNu64 "\"%n", &uid, &version, &end) == 2 && end > 0 &&
        text[end] == 0) {
        op->r.match_uid = uid;
        op->r.match_version = version;
    }
}

static int read_call(struct op *op, struct fw_err *err)
{
    static const char *const none[] = { NULL };
    struct fw_http_text id = fw_http_segment(op->call, 0), name = fw_http_segment(op->call, 1);

    if (query_only(op->call, op->endpoint->query ? op->endpoint->query : none, err) < 0)
        return -1;
    if (id.len > 0 && in_id(id.data, id.len, "id", op->r.id, err) < 0)
        return -1;
    if (name.len > 0 && in_id(name.data, name.len, "name", op->r.name, err) < 0)
        return -1;
    read_match(op);
    op->wants_file = fw_http_accepts(op->call, FW_HTTP_SAFETENSORS);
    return op->endpoint->ask ? op->endpoint->ask(op, err) : 0;
}

void op_run(struct fw_http_call *call)
{
    struct op *op = calloc(1, sizeof *op);
    struct fw_err err = { 0 };

    if (!op) {
        fw_fail(&err, FW_ENOMEM, "out_of_memory", "no memory for a request");
        reply_error(call, &err);
        return;
    }
    op->call = call;
    op->api = fw_http_arg(call);
    op->endpoint = fw_http_route(call)->arg;
    fw_buf_init(&op->out, OP_REPLY_MAX);
    op->r.verb = op->endpoint->verb;
    op->r.done = on_done;
    if (read_call(op, &err) < 0)
        op_fail(op, &err);
    else if (op->events)
        events_submit(op);
    else
        fw_engine_submit(op->api->engine, &op->r);
}

int op_facts(struct op *op, struct fw_err *err)
{
    if (fw_engine_facts(op->api->engine, op->r.id, &op->facts, err) < 0)
        return -1;
    if (!op->facts.kind[0])
        return fw_fail_param(err, FW_ECORRUPT, "state_corrupt", "model",
                             "the session's model '%.128s' cannot be opened", op->facts.model);
    op->intake = intake_of(op->api->engine, &op->facts);
    return 0;
}

int op_json(struct op *op, bool optional, const char *const *known, struct fw_err *err)
{
    const struct fw_buf *body = fw_http_body(op->call);

    if (in_parse(body->data, body->len, optional, &op->root, err) < 0)
        return -1;
    return in_only(op->root, known, err);
}

int op_key(struct op *op, struct fw_err *err)
{
    const char *key = fw_http_header(op->call, "Idempotency-Key");
    size_t i, len = key ? strlen(key) : 0;

    if (!key)
        return 0;
    for (i = 0; i < len && key[i] >= 0x20 && key[i] < 0x7f; i++)
        ;
    if (len == 0 || len >= FW_KEY_MAX || i < len)
        return fw_fail_param(err, FW_EINVAL, "bad_key", "Idempotency-Key",
                             "Idempotency-Key must be 1 to %d printable characters",
                             FW_KEY_MAX - 1);
    memcpy(op->r.key, key, len + 1);
    return 0;
}

void op_header(struct op *op, const char *name, const char *value)
{
    op->reply.header[op->reply.headers++] = (struct fw_http_header){ name, value };
}

void op_etag(struct op *op, int64_t uid, uint64_t version)
{
    snprintf(op->etag, sizeof op->etag, "\"%" PRId64 "-%" PRIu64 "\"", uid, version);
    op_header(op, "ETag", op->etag);
}

void op_created(struct op *op)
{
    op->reply.status = 201;
    snprintf(op->location, sizeof op->location, "/v1/sessions/%s", op->r.facts.id);
    op_header(op, "Location", op->location);
}

int op_file(struct op *op)
{
    fw_buf_done(&op->out);
    op->out = op->r.bytes;
    op->r.bytes = (struct fw_buf){ 0 };
    op->reply.media = FW_HTTP_SAFETENSORS;
    op_etag(op, op->r.facts.uid, op->r.version);
    return 0;
}
