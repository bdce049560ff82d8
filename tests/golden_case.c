/* golden_case.c - a case's files, read into a configuration and a body.
 *
 * The JSON's `rule`, `q_scale`, `layout` and `role` fields say what the tensors are; shapes
 * come from q, k and v. What is not understood is refused by name, never guessed: a case that
 * nobody here knows is UNKNOWN, one that contradicts itself FAILs. */
#include "config.h"

#include "golden.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fastweight/buf.h"

#define MAX_FILE ((size_t)256 << 20)

static const struct golden_name common[] = {
    { "q", "queries" }, { "k", "keys" },  { "v", "values" },
    { "beta", "beta" }, { "g", "log_g" }, { NULL, NULL },
};

enum verdict golden_fail(struct golden_test *t, enum verdict v, const char *why,
                         const char *what)
{
    snprintf(t->why, sizeof t->why, "%s%s%s", why, what ? ": " : "", what ? what : "");
    return v;
}

static int read_file(struct fw_buf *b, const char *path)
{
    unsigned char part[65536];
    FILE *f = fopen(path, "rb");
    size_t n;
    int ret = 0;

    if (!f)
        return -1;
    while (ret == 0 && (n = fread(part, 1, sizeof part, f)) > 0)
        ret = fw_buf_append(b, part, n, NULL);
    if (ferror(f))
        ret = -1;
    fclose(f);
    return ret;
}

enum verdict golden_load(struct golden_test *t, const char *dir)
{
    struct fw_buf b;
    struct fw_err err = { .msg = "cannot be read" };
    const json_t *tolerance;
    char path[4096];
    int ret;

    snprintf(path, sizeof path, "%s/%s.json", dir, t->name);
    t->json = json_load_file(path, JSON_REJECT_DUPLICATES, NULL);
    if (!t->json)
        return golden_fail(t, FAIL, "no JSON", path);
    snprintf(path, sizeof path, "%s/%s.safetensors", dir, t->name);
    fw_buf_init(&b, MAX_FILE);
    ret = read_file(&b, path);
    if (ret == 0)
        ret = fw_safetensors_read(&t->file, b.data, b.len, &err);
    fw_buf_done(&b);
    if (ret < 0)
        return golden_fail(t, FAIL, "no tensors", err.msg);
    tolerance = json_object_get(json_object_get(t->json, "tolerance"), "float32_abs");
    t->tolerance = json_number_value(tolerance);
    return json_is_number(tolerance) ? OK
                                     : golden_fail(t, FAIL, "no tolerance.float32_abs", NULL);
}

/* Has the JSON this field with this value, as text? */
static bool fits(const struct golden_test *t, const struct golden_name *when)
{
    json_t *x = when->json ? json_object_get(t->json, when->json) : NULL;
    char text[64];

    if (!when->json)
        return true;
    if (json_is_string(x))
        return strcmp(json_string_value(x), when->ours) == 0;
    if (json_is_boolean(x))
        return strcmp(json_is_true(x) ? "true" : "false", when->ours) == 0;
    snprintf(text, sizeof text, "%g", json_number_value(x));
    return strcmp(json_is_number(x) ? text : "null", when->ours) == 0;
}

enum verdict golden_find_rule(struct golden_test *t)
{
    const char *name = json_string_value(json_object_get(t->json, "rule"));

    for (const struct golden_rule *r = golden_rules; name && r->json && !t->rule; r++)
        if (strcmp(r->json, name) == 0 && fits(t, &r->when))
            t->rule = r;
    return t->rule ? OK : golden_fail(t, UNKNOWN, "no such rule here", name);
}

/* A number, "none", "1.0" or "dk^-0.5" (whatever the dimension is called); words may follow. */
static int query_scale(const json_t *v, double d_k, double *ret)
{
    const char *s = json_string_value(v), *power = s ? strchr(s, '^') : NULL;
    char *end;

    if (json_is_number(v)) {
        *ret = json_number_value(v);
        return 0;
    }
    if (!s || strncmp(s, "none", 4) == 0) {
        *ret = 1;
        return 0;
    }
    *ret = power ? pow(d_k, strtod(power + 1, &end)) : strtod(s, &end);
    return end == (power ? power + 1 : s) ? -1 : 0;
}

const char *golden_find_name(const struct golden_name *names, const char *json)
{
    for (; names->json; names++)
        if (strcmp(names->json, json) == 0)
            return names->ours;
    return NULL;
}

const json_t *golden_facts(const struct golden_test *t, const char *tensor)
{
    return json_object_get(json_object_get(t->json, "tensors"), tensor);
}

/* The body's name of a tensor; NULL when it is no input. A tensor that the rule's row does not
 * name is one when the case says so; *unknown is set when nobody here knows it. */
static const char *body_name(const struct golden_test *t, const char *json, bool *unknown)
{
    const char *role = json_string_value(json_object_get(golden_facts(t, json), "role"));
    const char *ours = golden_find_name(t->rule->inputs, json);

    if (ours || !role || strcmp(role, "input") != 0 || t->rule->only_named ||
        golden_find_name(t->rule->initial, json))
        return ours;
    ours = golden_find_name(common, json);
    *unknown |= !ours;
    return ours;
}

/* Which axes a tensor has, from its layout: "T,H,dk", "T*n,H", "H", "T,N", ... "T'" are the
 * first tokens only, "chunks" the chunks of `chunk` tokens; what has no layout starts with the
 * heads. */
struct axes {
    size_t each, heads, inner; /* 1 where there is none; each: rows per token */
    size_t there, shared;      /* rows in time; tokens that share one */
    bool has_tokens, has_inner;
};

static struct axes axes_of(const struct golden_test *t, const struct fw_tensor *from)
{
    const char *layout =
        json_string_value(json_object_get(golden_facts(t, from->name), "layout"));
    struct axes a = { 1, 1, 1, 1, 1, false, false };

    layout = layout && !*layout ? "H,d" : layout;
    for (uint32_t i = 0; i < from->ndim && layout; i++) {
        size_t n = (size_t)from->shape[i];

        if (*layout == 'T' || strncmp(layout, "chunks", 6) == 0) {
            a.has_tokens = true;
            a.there = n;
            if (*layout == 'c')
                a.shared = (size_t)json_integer_value(json_object_get(t->json, "chunk"));
            else if (layout[1] != '\'')
                a.each = n / t->tokens;
        } else if (*layout == 'H') {
            a.heads = n;
        } else {
            a.inner *= n;
            a.has_inner = true;
        }
        layout = strchr(layout, ',');
        layout = layout ? layout + 1 : NULL;
    }
    return a;
}

/* The i-th element of F32 or F64, rounded once. */
float golden_element(const struct fw_tensor *t, size_t i)
{
    return t->dtype == FW_F32 ? ((const float *)t->data)[i]
                              : (float)((const double *)t->data)[i];
}

/* (tokens, [each,] heads, [inner]): what has no tokens axis is the same for every token, tokens
 * that are not there are 0, and fewer heads are shared by neighbours (head h reads head h / (H
 * / its heads)). */
static enum verdict lay_out(struct golden_test *t, const struct fw_tensor *from, float **own,
                            struct fw_tensor *to)
{
    struct axes a = axes_of(t, from);
    size_t rows = t->tokens * a.each * t->heads, group = t->heads / a.heads;
    float *y;

    if ((from->dtype != FW_F32 && from->dtype != FW_F64) || t->heads % a.heads || a.each == 0 ||
        a.shared == 0)
        return golden_fail(t, FAIL, "layout not understood", from->name);
    y = calloc(rows * a.inner, sizeof *y);
    if (!y)
        return golden_fail(t, FAIL, "out of memory", NULL);
    for (size_t row = 0; row < rows; row++) {
        size_t time = a.has_tokens ? row / t->heads / a.shared : 0;
        size_t head = row % t->heads / group;

        for (size_t i = 0; i < a.inner && time < a.there; i++)
            y[row * a.inner + i] = golden_element(from, (time * a.heads + head) * a.inner + i);
    }
    to->ndim = 0;
    to->shape[to->ndim++] = t->tokens;
    if (a.each > 1)
        to->shape[to->ndim++] = a.each;
    to->shape[to->ndim++] = t->heads;
    if (a.has_inner)
        to->shape[to->ndim++] = a.inner;
    to->data = *own = y;
    to->bytes = rows * a.inner * sizeof *y;
    return OK;
}

static const struct fw_tensor *find_input(const struct golden_test *t, const char *ours)
{
    bool unknown = false;

    for (size_t i = 0; i < t->file.tensors.count; i++) {
        const char *name = body_name(t, t->file.tensors.item[i].name, &unknown);

        if (name && strcmp(name, ours) == 0)
            return &t->file.tensors.item[i];
    }
    return NULL;
}

/* Tokens, heads, d_k and d_v, from queries, keys and values. Query heads that share a memory
 * are memories of their own here, which are shown the same pairs. */
enum verdict golden_shapes(struct golden_test *t)
{
    const struct fw_tensor *q = find_input(t, "queries"), *k = find_input(t, "keys");
    const struct fw_tensor *v = find_input(t, "values");

    if (!q || !k || !v || q->ndim < 2 || q->shape[0] == 0)
        return golden_fail(t, FAIL, "no q, k and v", NULL);
    t->tokens = (size_t)q->shape[0];
    t->d_k = axes_of(t, k).inner;
    t->pairs = axes_of(t, k).each;
    t->d_v = axes_of(t, v).inner;
    t->heads = axes_of(t, v).heads;
    t->heads = axes_of(t, q).heads > t->heads ? axes_of(t, q).heads : t->heads;
    return OK;
}

/* The inputs, under the body's names. */
enum verdict golden_body(struct golden_test *t, struct fw_tensors *body)
{
    bool unknown = false;
    enum verdict v = OK;

    for (size_t i = 0; i < t->file.tensors.count && v == OK; i++) {
        const struct fw_tensor *from = &t->file.tensors.item[i];
        const char *ours = body_name(t, from->name, &unknown);
        struct fw_tensor *to = &body->item[body->count];

        if (unknown || (ours && body->count == MAX_IN))
            return golden_fail(t, UNKNOWN, "no such input here", from->name);
        if (!ours)
            continue;
        snprintf(to->name, FW_NAME_MAX, "%s", ours);
        to->dtype = FW_F32;
        v = lay_out(t, from, &t->owned[body->count], to);
        body->count++;
    }
    return v;
}

static int set_fixed(struct fw_params *p, const struct golden_name *f, struct fw_err *err)
{
    char *end;
    double x = strtod(f->ours, &end);

    if (strcmp(f->ours, "true") == 0 || strcmp(f->ours, "false") == 0)
        return fw_params_set_bool(p, f->json, *f->ours == 't', err);
    return *end ? fw_params_set_string(p, f->json, f->ours, err)
                : fw_params_set_number(p, f->json, x, err);
}

static int set_field(struct fw_params *p, const char *key, const json_t *x, struct fw_err *err)
{
    if (json_is_string(x))
        return fw_params_set_string(p, key, json_string_value(x), err);
    if (json_is_boolean(x))
        return fw_params_set_bool(p, key, json_is_true(x), err);
    if (json_is_number(x))
        return fw_params_set_number(p, key, json_number_value(x), err);
    return 0; /* absent or null: the default */
}

static int make_config(const struct golden_test *t, double scale, struct fw_params *p,
                       struct fw_err *err)
{
    if (fw_params_set_string(p, "rule", t->rule->config, err) < 0 ||
        fw_params_set_number(p, "heads", (double)t->heads, err) < 0 ||
        fw_params_set_number(p, "d_k", (double)t->d_k, err) < 0 ||
        fw_params_set_number(p, "d_v", (double)t->d_v, err) < 0 ||
        fw_params_set_number(p, "query_scale", scale, err) < 0 ||
        (t->pairs > 1 && fw_params_set_number(p, "pairs_per_token", (double)t->pairs, err) < 0))
        return -1;
    for (const struct golden_name *f = t->rule->fixed; f->json; f++)
        if (set_fixed(p, f, err) < 0)
            return -1;
    for (const struct golden_name *f = t->rule->fields; f->json; f++)
        if (set_field(p, f->ours, json_object_get(t->json, f->json), err) < 0)
            return -1;
    return 0;
}

enum verdict golden_session(struct golden_test *t)
{
    struct fw_params p = { 0 };
    struct fw_err err;
    double scale;

    if (query_scale(json_object_get(t->json, "q_scale"), (double)t->d_k, &scale) < 0)
        return golden_fail(t, UNKNOWN, "q_scale not understood", NULL);
    if (make_config(t, scale, &p, &err) < 0 ||
        fw_memory_new(&t->memory, &p, &t->config, &err) < 0)
        return golden_fail(t, FAIL, "config refused", err.msg);
    t->block = aligned_alloc(64, fw_memory_layout(t->memory)->block_bytes);
    if (!t->block)
        return golden_fail(t, FAIL, "out of memory", NULL);
    fw_memory_init(t->memory, t->block);
    return OK;
}
