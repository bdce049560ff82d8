/* inspect.c - a report's dotted paths as nested JSON objects.
 *
 * "a.b" and "a.c" become {"a": {"b": .., "c": ..}}. The items of one object stand together in
 * the list (report.h): one way through it, as a report of many heads has thousands. */
#include "config.h"

#include "op.h"

#include <string.h>

static void out_item(struct out *o, const char *key, const struct fw_report_item *item)
{
    size_t i;

    if (item->is_array) {
        out_key(o, key);
        out_open(o, '[');
        key = NULL;
    }
    for (i = 0; i < item->count; i++) {
        if (item->type == FW_REPORT_STRING)
            out_string(o, key, item->string[i]);
        else
            out_double(o, key, item->number[i]); /* an integer prints as one below 2^53 */
    }
    if (item->is_array)
        out_close(o, ']');
}

/* The items from i on that share the first `depth` bytes of its path; returns the one behind
 * them. Paths hold at most 63 bytes, so does the nesting. */
static size_t out_below(struct out *o, const struct fw_report *r, size_t i, size_t depth)
{
    const char *prefix = r->item[i].path;
    char key[sizeof r->item[i].path];

    while (i < r->count && strncmp(r->item[i].path, prefix, depth) == 0) {
        const char *name = r->item[i].path + depth;
        size_t len = strcspn(name, ".");

        if (!name[len]) {
            out_item(o, name, &r->item[i++]);
            continue;
        }
        memcpy(key, name, len);
        key[len] = 0;
        out_key(o, key);
        out_open(o, '{');
        i = out_below(o, r, i, depth + len + 1);
        out_close(o, '}');
    }
    return i;
}

/* As fields of the object that is open. */
void out_report(struct out *o, const struct fw_report *r)
{
    if (r->count)
        out_below(o, r, 0, 0);
}

static int answer_inspect(struct op *op, struct fw_err *err)
{
    struct out o;

    op_etag(op, op->r.facts.uid, op->r.version);
    out_begin(&o, &op->out, err);
    out_open(&o, '{');
    out_u64(&o, "version", op->r.version);
    out_report(&o, &op->r.report);
    out_close(&o, '}');
    return o.rc;
}

const struct endpoint api_inspect = { .verb = FW_INSPECT, .answer = answer_inspect };
