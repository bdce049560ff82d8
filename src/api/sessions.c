/* sessions.c - making, finding, naming, copying and deleting sessions.
 *
 * Labels go to the engine as canonical JSON text (compact, keys sorted), which knows nothing of
 * what they say. GET of one session without query and If-Match is answered at once, in the
 * server's thread; all else that names a session takes its place in the session's queue. */
#include "config.h"

#include "op.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "in.h"
#include "query.h"

enum { LABELS = 32, LIST_MAX = 1000, LIST_DEFAULT = 100 };

/* The labels as canonical JSON text into op->labels. */
static int read_labels(struct op *op, struct fw_err *err)
{
    const json_t *v = json_object_get(op->root, "labels");
    void *iter;

    if (!v)
        return 0;
    if (!json_is_object(v) || json_object_size(v) > LABELS)
        return fw_fail_param(err, FW_EINVAL, "bad_value", "labels",
                             "labels must be an object of at most %d strings", LABELS);
    for (iter = json_object_iter((json_t *)(uintptr_t)v); iter;
         iter = json_object_iter_next((json_t *)(uintptr_t)v, iter)) {
        if (!json_is_string(json_object_iter_value(iter)))
            return fw_fail_param(err, FW_EINVAL, "bad_value", "labels",
                                 "label '%.60s' is not a string", json_object_iter_key(iter));
    }
    op->labels = json_dumps(v, JSON_COMPACT | JSON_SORT_KEYS);
    if (!op->labels)
        return fw_fail(err, FW_ENOMEM, "out_of_memory", "no memory for labels");
    if (strlen(op->labels) >= FW_LABELS_MAX)
        return fw_fail_param(err, FW_EINVAL, "labels_too_long", "labels",
                             "labels have %zu bytes as JSON, the limit is %d",
                             strlen(op->labels), FW_LABELS_MAX - 1);
    op->r.labels = op->labels;
    return 0;
}

static int read_from(struct op *op, struct fw_err *err)
{
    static const char *const known[] = { "session", "snapshot", NULL };
    const json_t *from = json_object_get(op->root, "from");

    if (!from)
        return 0;
    if (!json_is_object(from))
        return fw_fail_param(err, FW_EINVAL, "bad_value", "from",
                             "from must be {\"session\": ..., \"snapshot\": ...}");
    if (in_only(from, known, err) < 0 || in_id_field(from, "session", op->r.from, err) < 0 ||
        in_id_field(from, "snapshot", op->r.name, err) < 0)
        return -1;
    if (!op->r.from[0])
        return fw_fail_param(err, FW_EINVAL, "missing_field", "from.session",
                             "from.session is missing");
    if (json_object_get(op->root, "config"))
        return fw_fail_param(err, FW_EINVAL, "bad_value", "config",
                             "config comes from the session that is copied");
    return 0;
}

static int ask_create(struct op *op, struct fw_err *err)
{
    static const char *const known[] = { "id", "model", "config", "labels", "from", NULL };

    if (op_json(op, false, known, err) < 0 || in_id_field(op->root, "id", op->r.id, err) < 0 ||
        in_id_field(op->root, "model", op->r.model, err) < 0 ||
        in_params(op->root, "config", &op->r.config, err) < 0 || read_labels(op, err) < 0 ||
        read_from(op, err) < 0)
        return -1;
    if (!op->r.model[0] && !op->r.from[0])
        return fw_fail_param(err, FW_EINVAL, "missing_field", "model", "model is missing");
    return 0; /* without an id the engine makes one */
}

static int answer_created(struct op *op, struct fw_err *err)
{
    op_created(op);
    return answer_facts(op, err);
}

const struct endpoint api_create = { .verb = FW_CREATE,
                                     .ask = ask_create,
                                     .answer = answer_created };

static int ask_fork(struct op *op, struct fw_err *err)
{
    static const char *const known[] = { "id", NULL };

    return op_json(op, true, known, err) < 0 ? -1
                                             : in_id_field(op->root, "id", op->r.new_id, err);
}

const struct endpoint api_fork = { .verb = FW_FORK, .ask = ask_fork, .answer = answer_created };

static int ask_label(struct op *op, struct fw_err *err)
{
    static const char *const known[] = { "labels", NULL };

    if (op_json(op, false, known, err) < 0 || read_labels(op, err) < 0)
        return -1;
    if (!op->labels)
        return fw_fail_param(err, FW_EINVAL, "missing_field", "labels", "labels are missing");
    return 0;
}

const struct endpoint api_label = { .verb = FW_LABEL,
                                    .ask = ask_label,
                                    .answer = answer_facts };

static int answer_nothing(struct op *op, struct fw_err *err)
{
    (void)err;
    op->reply.status = 204;
    op->reply.media = 0;
    return 0;
}

const struct endpoint api_delete = { .verb = FW_DELETE, .answer = answer_nothing };
const struct endpoint api_snapshot_drop = { .verb = FW_SNAPSHOT_DROP,
                                            .answer = answer_nothing };

static int answer_checkpoint(struct op *op, struct fw_err *err)
{
    struct out o;

    out_begin(&o, &op->out, err);
    out_open(&o, '{');
    out_u64(&o, "version", op->r.version);
    out_u64(&o, "durable_version", op->r.facts.durable_version);
    out_close(&o, '}');
    op_etag(op, op->r.facts.uid, op->r.version);
    return o.rc;
}

const struct endpoint api_checkpoint = { .verb = FW_CHECKPOINT, .answer = answer_checkpoint };

static const char *const facts_query[] = { "hash", NULL };

static int ask_facts(struct op *op, struct fw_err *err)
{
    return query_bool(op->call, "hash", &op->r.want_hash, err);
}

const struct endpoint api_facts = {
    .verb = FW_FACTS, .query = facts_query, .ask = ask_facts, .answer = answer_facts
};

static void reply_facts(struct fw_http_call *call, const struct fw_facts *f)
{
    struct fw_err err = { 0 };
    struct fw_buf b;
    struct out o;
    char etag[64];

    fw_buf_init(&b, OP_REPLY_MAX);
    out_begin(&o, &b, &err);
    out_facts(&o, f);
    if (o.rc < 0) {
        reply_json(call, &b, o.rc, &err);
        return;
    }
    snprintf(etag, sizeof etag, "\"%lld-%llu\"", (long long)f->uid,
             (unsigned long long)f->version);
    fw_http_reply(call, &(struct fw_http_reply){ .status = 200,
                                                 .media = FW_HTTP_JSON,
                                                 .body = &b,
                                                 .header = { { "ETag", etag } },
                                                 .headers = 1 });
}

bool api_facts_now(struct fw_http_call *call)
{
    const struct fw_api *api = fw_http_arg(call);
    struct fw_http_text id = fw_http_segment(call, 0);
    struct fw_facts facts;
    struct fw_err err = { 0 };
    char text[FW_ID_MAX];
    size_t n;

    fw_http_query(call, &n);
    if (n > 0 || fw_http_header(call, "If-Match")) /* with the hash it waits its turn */
        return false;
    if (in_id(id.data, id.len, "id", text, &err) < 0 ||
        fw_engine_facts(api->engine, text, &facts, &err) < 0)
        reply_error(call, &err);
    else
        reply_facts(call, &facts);
    return true;
}

struct list {
    const char *prefix, *after;
    uint64_t limit;
    struct fw_facts *facts; /* owned; (limit) */
    size_t count;
    bool more;
};

static int read_list(struct fw_http_call *call, struct list *l, struct fw_err *err)
{
    static const char *const known[] = { "prefix", "limit", "after", NULL };
    const struct fw_api *api = fw_http_arg(call);
    const char *prefix, *after;
    char text[FW_ID_MAX];

    if (query_only(call, known, err) < 0 ||
        query_size(call, "limit", 1, LIST_MAX, &l->limit, err) < 0)
        return -1;
    prefix = query_find(call, "prefix");
    after = query_find(call, "after");
    if ((prefix && *prefix && in_id(prefix, strlen(prefix), "prefix", text, err) < 0) ||
        (after && *after && in_id(after, strlen(after), "after", text, err) < 0))
        return -1;
    l->facts = calloc(l->limit, sizeof l->facts[0]);
    if (!l->facts)
        return fw_fail(err, FW_ENOMEM, "out_of_memory", "no memory for a list");
    l->count = fw_engine_list(api->engine, prefix ? prefix : "", after ? after : "", l->limit,
                              l->facts, &l->more);
    return 0;
}

void api_list(struct fw_http_call *call)
{
    struct list l = { .limit = LIST_DEFAULT };
    struct fw_err err = { 0 };
    struct fw_buf b;
    struct out o;
    size_t i;

    fw_buf_init(&b, OP_REPLY_MAX);
    out_begin(&o, &b, &err);
    o.rc = read_list(call, &l, &err);
    out_open(&o, '{');
    out_key(&o, "data");
    out_open(&o, '[');
    for (i = 0; i < l.count; i++)
        out_facts(&o, &l.facts[i]);
    out_close(&o, ']');
    out_bool(&o, "has_more", l.more);
    if (l.count)
        out_string(&o, "last_id", l.facts[l.count - 1].id);
    else
        out_null(&o, "last_id");
    out_close(&o, '}');
    free(l.facts);
    reply_json(call, &b, o.rc, &err);
}
