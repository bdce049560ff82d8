/* inspect.c - a report's dotted paths as nested JSON objects.
 *
 * "a.b" and "a.c" become {"a": {"b": .., "c": ..}}: items of one object are gathered wherever
 * they stand in the list, in the order of their first one. Quadratic in the few items of a
 * report. */
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

/* Is item i the first with this prefix (of len bytes, its dot included)? */
static bool is_first(const struct fw_report *r, size_t i, size_t len)
{
    size_t j;

    for (j = 0; j < i; j++) {
        if (strncmp(r->item[j].path, r->item[i].path, len) == 0)
            return false;
    }
    return true;
}

/* All items below the first `depth` bytes of prefix; paths hold at most 63 bytes, so does the
 * nesting. */
static void out_below(struct out *o, const struct fw_report *r, const char *prefix,
                      size_t depth)
{
    const struct fw_report_item *item;
    const char *name, *dot;
    char key[sizeof item->path];
    size_t i;

    for (i = 0; i < r->count; i++) {
        item = &r->item[i];
        if (strncmp(item->path, prefix, depth) != 0)
            continue;
        name = item->path + depth;
        dot = strchr(name, '.');
        if (!dot) {
            out_item(o, name, item);
        } else if (is_first(r, i, (size_t)(dot + 1 - item->path))) {
            memcpy(key, name, (size_t)(dot - name));
            key[dot - name] = 0;
            out_key(o, key);
            out_open(o, '{');
            out_below(o, r, item->path, (size_t)(dot + 1 - item->path));
            out_close(o, '}');
        }
    }
}

/* As fields of the object that is open. */
void out_report(struct out *o, const struct fw_report *r)
{
    out_below(o, r, "", 0);
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
