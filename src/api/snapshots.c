/* snapshots.c - kept copies, and the whole state as a file.
 *
 * Files pass through untouched: the engine writes and checks them. An import may be larger than
 * max_body_bytes, as large as its session's block and a header, so its limit is asked for
 * before the body is read. */
#include "config.h"

#include "op.h"

#include <string.h>

#include "in.h"
#include "query.h"

enum { LIST_MAX = 1000, LIST_DEFAULT = 100, IMPORT_HEADER = 1 << 20 };

static void out_snapshot(struct out *o, const struct fw_store_snapshot *s)
{
    out_open(o, '{');
    out_string(o, "name", s->name);
    out_u64(o, "version", s->version);
    out_u64(o, "tokens_seen", s->tokens_seen);
    out_hash(o, "hash", s->hash);
    out_u64(o, "bytes", s->block_bytes);
    out_time(o, "created_at", s->created_ms);
    out_close(o, '}');
}

static int ask_snapshot(struct op *op, struct fw_err *err)
{
    static const char *const known[] = { "name", NULL };

    if (op_json(op, false, known, err) < 0 ||
        in_id_field(op->root, "name", op->r.name, err) < 0)
        return -1;
    if (!op->r.name[0])
        return fw_fail_param(err, FW_EINVAL, "missing_field", "name", "name is missing");
    return 0;
}

static int answer_snapshot(struct op *op, struct fw_err *err)
{
    struct out o;

    op_etag(op, op->r.facts.uid, op->r.version);
    op->reply.status = 201;
    out_begin(&o, &op->out, err);
    out_snapshot(&o, op->r.snapshot);
    return o.rc;
}

const struct endpoint api_snapshot = { .verb = FW_SNAPSHOT,
                                       .ask = ask_snapshot,
                                       .answer = answer_snapshot };

static int ask_snapshots(struct op *op, struct fw_err *err)
{
    const char *after = query_find(op->call, "after");
    uint64_t limit = LIST_DEFAULT;

    if (query_size(op->call, "limit", 1, LIST_MAX, &limit, err) < 0)
        return -1;
    op->r.top = limit + 1; /* one more tells whether there are more */
    if (!after || !*after)
        return 0;
    return in_id(after, strlen(after), "after", op->r.name, err);
}

static int answer_snapshots(struct op *op, struct fw_err *err)
{
    size_t i, n = op->r.count < op->r.top ? op->r.count : op->r.top - 1;
    struct out o;

    out_begin(&o, &op->out, err);
    out_open(&o, '{');
    out_key(&o, "data");
    out_open(&o, '[');
    for (i = 0; i < n; i++)
        out_snapshot(&o, &op->r.snapshot[i]);
    out_close(&o, ']');
    out_bool(&o, "has_more", op->r.count > n);
    if (n)
        out_string(&o, "last_id", op->r.snapshot[n - 1].name);
    else
        out_null(&o, "last_id");
    out_close(&o, '}');
    return o.rc;
}

static const char *const list_query[] = { "limit", "after", NULL };

const struct endpoint api_snapshots = { .verb = FW_SNAPSHOT_LIST,
                                        .query = list_query,
                                        .ask = ask_snapshots,
                                        .answer = answer_snapshots };

static int answer_file(struct op *op, struct fw_err *err)
{
    (void)err;
    return op_file(op);
}

static int ask_patch(struct op *op, struct fw_err *err)
{
    const char *base = query_find(op->call, "base");

    if (!base)
        return fw_fail_param(err, FW_EINVAL, "missing_field", "base",
                             "base names the snapshot that the patch starts from");
    return in_id(base, strlen(base), "base", op->r.from, err);
}

static const char *const patch_query[] = { "base", NULL };

const struct endpoint api_patch = {
    .verb = FW_SNAPSHOT_GET, .query = patch_query, .ask = ask_patch, .answer = answer_file
};
const struct endpoint api_snapshot_get = { .verb = FW_SNAPSHOT_GET, .answer = answer_file };
const struct endpoint api_export = { .verb = FW_EXPORT, .answer = answer_file };

static int ask_hash(struct op *op, struct fw_err *err)
{
    (void)err;
    op->r.want_hash = true;
    return 0;
}

const struct endpoint api_restore = { .verb = FW_RESTORE,
                                      .ask = ask_hash,
                                      .answer = answer_facts };

int api_import_limit(struct fw_http_call *call, size_t *ret, struct fw_err *err)
{
    const struct fw_api *api = fw_http_arg(call);
    struct fw_http_text id = fw_http_segment(call, 0);
    char text[FW_ID_MAX];
    struct fw_facts facts;

    if (in_id(id.data, id.len, "id", text, err) < 0 ||
        fw_engine_facts(api->engine, text, &facts, err) < 0)
        return -1;
    *ret = (size_t)facts.state_bytes + IMPORT_HEADER;
    return 0;
}

static int ask_import(struct op *op, struct fw_err *err)
{
    const struct fw_buf *body = fw_http_body(op->call);

    if (body->len == 0)
        return fw_fail_param(err, FW_EINVAL, "empty_body", "body", "the body is empty");
    op->r.file = body->data;
    op->r.file_len = body->len;
    return ask_hash(op, err);
}

/* The facts, and the file's cpu_level where it is another machine's. */
static int answer_import(struct op *op, struct fw_err *err)
{
    const struct fw_report *report = &op->r.report;
    struct out o;
    size_t i;

    op_etag(op, op->r.facts.uid, op->r.facts.version);
    out_begin(&o, &op->out, err);
    out_open(&o, '{');
    out_facts_fields(&o, &op->r.facts);
    for (i = 0; i < report->count; i++) {
        if (strcmp(report->item[i].path, "imported_cpu_level") == 0)
            out_string(&o, "cpu_level", report->item[i].string[0]);
    }
    out_close(&o, '}');
    return o.rc;
}

const struct endpoint api_import = { .verb = FW_IMPORT,
                                     .ask = ask_import,
                                     .answer = answer_import };
