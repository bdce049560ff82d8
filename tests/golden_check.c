/* golden_check - compares the rules with numbers that other people's code computed.
 *
 *     golden_check DIR
 *     golden_check --requests DIR     the same as requests to a daemon
 *
 * A case is NAME.json and NAME.safetensors in DIR (tests/golden/README.md has the format). The
 * JSON's `rule` alone decides what runs; shapes and q_scale become a configuration, the input
 * tensors a body, and fw_memory_new, check, learn and state do the rest, as in the daemon: no
 * formula stands here. One line a case: NAME rule max_abs_err tolerance ok|FAIL|UNKNOWN. The
 * exit status is 0 only when there was a case and all were ok. */
#include "config.h"

#include <dirent.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "fastweight/buf.h"
#include "fastweight/memory.h"
#include "fastweight/num.h"
#include "fastweight/safetensors.h"
#include "golden_rules.h"

#define MAX_FILE ((size_t)256 << 20)
#define MAX_IN   16

enum verdict { OK, FAIL, UNKNOWN };

static const struct golden_name common[] = {
    { "q", "queries" }, { "k", "keys" },  { "v", "values" },
    { "beta", "beta" }, { "g", "log_g" }, { NULL, NULL },
};

struct test {
    const char *name;
    char why[4352]; /* not ok because */
    json_t *json;
    struct fw_safetensors file;
    const struct golden_rule *rule;
    struct fw_memory *memory;
    void *block;
    size_t tokens, heads, d_k, d_v, pairs;
    float *owned[MAX_IN]; /* the body's tensors, laid out anew */
    double error, tolerance;
    struct fw_params config;
    bool started; /* from a state of the case's */
    bool print;   /* as a request */
};

static enum verdict fail(struct test *t, enum verdict v, const char *why, const char *what)
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

static enum verdict load(struct test *t, const char *dir)
{
    struct fw_buf b;
    struct fw_err err = { .msg = "cannot be read" };
    char path[4096];
    int ret;

    snprintf(path, sizeof path, "%s/%s.json", dir, t->name);
    t->json = json_load_file(path, JSON_REJECT_DUPLICATES, NULL);
    if (!t->json)
        return fail(t, FAIL, "no JSON", path);
    snprintf(path, sizeof path, "%s/%s.safetensors", dir, t->name);
    fw_buf_init(&b, MAX_FILE);
    ret = read_file(&b, path);
    if (ret == 0)
        ret = fw_safetensors_read(&t->file, b.data, b.len, &err);
    fw_buf_done(&b);
    return ret == 0 ? OK : fail(t, FAIL, "no tensors", err.msg);
}

/* Has the JSON this field with this value, as text? */
static bool fits(const struct test *t, const struct golden_name *when)
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

static enum verdict find_rule(struct test *t)
{
    const char *name = json_string_value(json_object_get(t->json, "rule"));

    for (const struct golden_rule *r = golden_rules; name && r->json && !t->rule; r++)
        if (strcmp(r->json, name) == 0 && fits(t, &r->when))
            t->rule = r;
    return t->rule ? OK : fail(t, UNKNOWN, "no such rule here", name);
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

static const char *find_name(const struct golden_name *names, const char *json)
{
    for (; names->json; names++)
        if (strcmp(names->json, json) == 0)
            return names->ours;
    return NULL;
}

static const json_t *facts_of(const struct test *t, const char *tensor)
{
    return json_object_get(json_object_get(t->json, "tensors"), tensor);
}

/* The body's name of a tensor; NULL when it is no input. A tensor that the rule's row does not
 * name is one when the case says so; *unknown is set when nobody here knows it. */
static const char *body_name(const struct test *t, const char *json, bool *unknown)
{
    const char *role = json_string_value(json_object_get(facts_of(t, json), "role"));
    const char *ours = find_name(t->rule->inputs, json);

    if (ours || !role || strcmp(role, "input") != 0 || t->rule->only_named ||
        find_name(t->rule->initial, json))
        return ours;
    ours = find_name(common, json);
    *unknown |= !ours;
    return ours;
}

/* Which axes a tensor has, from its layout: "T,H,dk", "T*n,H", "H", "T,N", ... "T'" are the
 * first tokens only, "chunks" the chunks of `chunk` tokens; what has no layout starts with the
 * heads. */
struct axes {
    size_t tokens, each, heads, inner; /* 1 where there is none; each: rows per token */
    size_t there, shared;              /* rows in time; tokens that share one */
    bool has_inner;
};

static struct axes axes_of(const struct test *t, const struct fw_tensor *from)
{
    const char *layout = json_string_value(json_object_get(facts_of(t, from->name), "layout"));
    struct axes a = { 1, 1, 1, 1, 1, 1, false };

    layout = layout && !*layout ? "H,d" : layout;
    for (uint32_t i = 0; i < from->ndim && layout; i++) {
        size_t n = (size_t)from->shape[i];

        if (*layout == 'T' || strncmp(layout, "chunks", 6) == 0) {
            a.tokens = t->tokens;
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
static float element(const struct fw_tensor *t, size_t i)
{
    return t->dtype == FW_F32 ? ((const float *)t->data)[i]
                              : (float)((const double *)t->data)[i];
}

/* (tokens, [each,] heads, [inner]): what has no tokens axis is the same for every token, tokens
 * that are not there are 0, and fewer heads are shared by neighbours (head h reads head h / (H
 * / its heads)). */
static enum verdict lay_out(struct test *t, const struct fw_tensor *from, float **own,
                            struct fw_tensor *to)
{
    struct axes a = axes_of(t, from);
    size_t rows = t->tokens * a.each * t->heads, group = t->heads / a.heads;
    float *y;

    if ((from->dtype != FW_F32 && from->dtype != FW_F64) || t->heads % a.heads || a.each == 0 ||
        a.shared == 0)
        return fail(t, FAIL, "layout not understood", from->name);
    y = calloc(rows * a.inner, sizeof *y);
    if (!y)
        return fail(t, FAIL, "out of memory", NULL);
    for (size_t row = 0; row < rows; row++) {
        size_t time = a.tokens == 1 ? 0 : row / t->heads / a.shared;
        size_t head = row % t->heads / group;

        for (size_t i = 0; i < a.inner && time < a.there; i++)
            y[row * a.inner + i] = element(from, (time * a.heads + head) * a.inner + i);
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

static const struct fw_tensor *find_input(const struct test *t, const char *ours)
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
static enum verdict read_shapes(struct test *t)
{
    const struct fw_tensor *q = find_input(t, "queries"), *k = find_input(t, "keys");
    const struct fw_tensor *v = find_input(t, "values");

    if (!q || !k || !v || q->ndim < 2 || q->shape[0] == 0)
        return fail(t, FAIL, "no q, k and v", NULL);
    t->tokens = (size_t)q->shape[0];
    t->d_k = axes_of(t, k).inner;
    t->pairs = axes_of(t, k).each;
    t->d_v = axes_of(t, v).inner;
    t->heads = axes_of(t, v).heads;
    t->heads = axes_of(t, q).heads > t->heads ? axes_of(t, q).heads : t->heads;
    return OK;
}

/* The inputs, under the body's names. */
static enum verdict make_body(struct test *t, struct fw_tensors *body)
{
    bool unknown = false;
    enum verdict v = OK;

    for (size_t i = 0; i < t->file.tensors.count && v == OK; i++) {
        const struct fw_tensor *from = &t->file.tensors.item[i];
        const char *ours = body_name(t, from->name, &unknown);
        struct fw_tensor *to = &body->item[body->count];

        if (unknown || (ours && body->count == MAX_IN))
            return fail(t, UNKNOWN, "no such input here", from->name);
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

static int make_config(const struct test *t, double scale, struct fw_params *p,
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

static enum verdict make_session(struct test *t)
{
    struct fw_params p = { 0 };
    struct fw_err err;
    double scale;

    if (query_scale(json_object_get(t->json, "q_scale"), (double)t->d_k, &scale) < 0)
        return fail(t, UNKNOWN, "q_scale not understood", NULL);
    if (make_config(t, scale, &p, &err) < 0 ||
        fw_memory_new(&t->memory, &p, &t->config, &err) < 0)
        return fail(t, FAIL, "config refused", err.msg);
    t->block = aligned_alloc(64, fw_memory_layout(t->memory)->block_bytes);
    if (!t->block)
        return fail(t, FAIL, "out of memory", NULL);
    fw_memory_init(t->memory, t->block);
    return OK;
}

/* Is this state stored as (H, value index, key index)? */
static bool is_transposed(const struct test *t, const char *tensor)
{
    const char *layout = json_string_value(json_object_get(facts_of(t, tensor), "layout"));

    return layout && (strstr(layout, "P,N") || strstr(layout, "S[value index][key index]"));
}

static void transpose(float *x, size_t heads, size_t rows, size_t cols, const float *from)
{
    for (size_t h = 0; h < heads; h++, x += rows * cols, from += rows * cols)
        for (size_t i = 0; i < rows; i++)
            for (size_t j = 0; j < cols; j++)
                x[i * cols + j] = from[j * rows + i];
}

static enum verdict set_initial_states(struct test *t)
{
    for (const struct golden_name *n = t->rule->initial; n->json; n++) {
        const struct fw_tensor *s = fw_tensors_find(&t->file.tensors, n->json);
        const struct fw_field *f = fw_layout_find(fw_memory_layout(t->memory), n->ours);
        float *at;

        if (!s)
            continue;
        if (!f || (s->dtype != FW_F32 && s->dtype != FW_F64) ||
            s->bytes / fw_dtype_bytes(s->dtype) != f->bytes / sizeof(float))
            return fail(t, FAIL, "no such state here", s->name);
        t->started = true;
        at = (float *)(void *)((char *)t->block + f->offset);
        if (is_transposed(t, s->name) && s->dtype == FW_F32)
            transpose(at, t->heads, fw_memory_rows(t->memory), t->d_v, s->data);
        else
            for (size_t i = 0; i < f->bytes / sizeof *at; i++)
                at[i] = element(s, i);
    }
    return OK;
}

/* Is it stored as (rows, H, ...), where a block has (H, rows, ...)? */
static bool has_heads_second(const struct test *t, const char *tensor)
{
    const char *layout = json_string_value(json_object_get(facts_of(t, tensor), "layout"));
    const char *comma = layout ? strchr(layout, ',') : NULL;

    return comma && comma[1] == 'H' && (comma[2] == 0 || strchr(", (", comma[2]));
}

/* Raises t->error to the largest difference. */
static enum verdict compare(struct test *t, const struct fw_tensor *want, const float *got,
                            size_t count)
{
    const double *w = want->data;

    if (want->dtype != FW_F64 || want->bytes != count * sizeof *w)
        return fail(t, FAIL, "another shape", want->name);
    for (size_t i = 0; i < count; i++) {
        double d = fabs((double)got[i] - w[i]);

        if (!(d <= t->error))
            t->error = d;
    }
    return OK;
}

/* A field (H, rows, inner) of the block with a tensor (rows, H, inner). */
static enum verdict compare_turned(struct test *t, const struct fw_tensor *want,
                                   const struct fw_field *f)
{
    const float *x = (const float *)(const void *)((const char *)t->block + f->offset);
    size_t count = f->bytes / sizeof(float), rows = (size_t)want->shape[0], inner;
    float *turned;
    enum verdict v;

    if (count == 0 || want->bytes != count * sizeof(double))
        return fail(t, FAIL, "another shape", want->name);
    inner = count / rows / t->heads;
    turned = malloc(count * sizeof *turned);
    if (!turned)
        return fail(t, FAIL, "out of memory", NULL);
    for (size_t row = 0; row < rows; row++)
        for (size_t h = 0; h < t->heads; h++)
            memcpy(turned + (row * t->heads + h) * inner, x + (h * rows + row) * inner,
                   inner * sizeof *x);
    v = compare(t, want, turned, count);
    free(turned);
    return v;
}

/* One field of the block, S with the pending pair folded in, as the daemon shows it. */
static enum verdict compare_state(struct test *t, const struct fw_tensor *want,
                                  const char *name)
{
    const struct fw_field *f = fw_layout_find(fw_memory_layout(t->memory), name);
    size_t rows = fw_memory_rows(t->memory), count = t->heads * rows * t->d_v;
    float *state, *turned;
    enum verdict v;

    if (!f && want->bytes == 0) /* a window of one pair keeps nothing */
        return OK;
    if (f && has_heads_second(t, want->name))
        return compare_turned(t, want, f);
    if (strcmp(name, "S") != 0)
        return f ? compare(t, want, (const float *)(void *)((char *)t->block + f->offset),
                           f->bytes / sizeof(float))
                 : fail(t, UNKNOWN, "no such state here", want->name);
    state = malloc(2 * count * sizeof *state + 1);
    if (!state)
        return fail(t, FAIL, "out of memory", NULL);
    turned = state + count;
    fw_memory_state(t->memory, t->block, state);
    if (is_transposed(t, want->name))
        transpose(turned, t->heads, t->d_v, rows, state);
    v = compare(t, want, is_transposed(t, want->name) ? turned : state, count);
    free(state);
    return v;
}

static enum verdict compare_outputs(struct test *t, const float *out)
{
    const char *name = t->rule->out ? t->rule->out : "out";
    const struct fw_tensor *want = fw_tensors_find(&t->file.tensors, name);
    enum verdict v = want ? compare(t, want, out, t->tokens * t->heads * t->d_v)
                          : fail(t, FAIL, "the case lacks", name);

    for (size_t i = 0; i < t->file.tensors.count && v == OK; i++) {
        const char *field;

        want = &t->file.tensors.item[i];
        field = find_name(t->rule->final, want->name);
        if (field)
            v = compare_state(t, want, field);
        else if (strncmp(want->name, "final_", 6) == 0)
            v = fail(t, UNKNOWN, "no such state here", want->name);
    }
    return v;
}

/* The tensor's elements from *at on, as nested arrays from axis `dim` on. */
static json_t *nested(const struct fw_tensor *t, uint32_t dim, size_t *at)
{
    json_t *array = json_array();

    if (dim == t->ndim) {
        json_decref(array);
        return json_real(t->dtype == FW_F32 ? (double)((const float *)t->data)[(*at)++]
                                            : ((const double *)t->data)[(*at)++]);
    }
    for (uint64_t i = 0; i < t->shape[dim]; i++)
        json_array_append_new(array, nested(t, dim + 1, at));
    return array;
}

static json_t *nested_floats(const struct fw_tensor *t)
{
    size_t at = 0;

    return nested(t, 0, &at);
}

/* {"name", "config", "body", "out", "tolerance", "started"} on a line: learning the body in a
 * session of this config must reply out, unless the case started from a state of its own. */
static void print_request(const struct test *t, const struct fw_tensors *body)
{
    const char *name = t->rule->out ? t->rule->out : "out";
    const struct fw_tensor *out = fw_tensors_find(&t->file.tensors, name);
    json_t *config = json_object(), *tensors = json_object(), *line;

    for (size_t i = 0; i < t->config.count; i++) {
        const struct fw_param *p = &t->config.item[i];

        json_object_set_new(config, p->key,
                            p->type == FW_PARAM_STRING ? json_string(p->string)
                            : p->type == FW_PARAM_BOOL ? json_boolean(p->number != 0)
                                                       : json_real(p->number));
    }
    for (size_t i = 0; i < body->count; i++)
        json_object_set_new(tensors, body->item[i].name, nested_floats(&body->item[i]));
    line = json_pack("{s:s, s:b, s:o, s:o, s:o, s:f}", "name", t->name, "started", t->started,
                     "config", config, "body", tensors, "out", nested_floats(out), "tolerance",
                     t->tolerance);
    json_dumpf(line, stdout, JSON_REAL_PRECISION(17));
    putchar('\n');
    json_decref(line);
}

static enum verdict learn_and_compare(struct test *t, const struct fw_tensors *body)
{
    size_t n;
    struct fw_err err;
    float *out;
    enum verdict v;

    if (fw_memory_check(t->memory, body, &n, &err) < 0)
        return fail(t, FAIL, "body refused", err.msg);
    out = malloc(n * t->heads * t->d_v * sizeof *out);
    if (!out)
        return fail(t, FAIL, "out of memory", NULL);
    fw_memory_learn(t->memory, t->block, body, 0, n, NULL, out);
    v = compare_outputs(t, out);
    free(out);
    if (v == OK && fw_memory_validate(t->memory, t->block, &err) < 0)
        return fail(t, FAIL, "the block is not valid", err.msg);
    if (v == OK && !(t->error <= t->tolerance))
        return fail(t, FAIL, "beyond the tolerance", NULL);
    return v;
}

static enum verdict run(struct test *t, const char *dir)
{
    struct fw_tensor item[MAX_IN];
    struct fw_tensors body = { 0, item };
    enum verdict v = load(t, dir);

    if (v == OK)
        v = find_rule(t);
    if (v != OK)
        return v;
    t->tolerance = json_number_value(
        json_object_get(json_object_get(t->json, "tolerance"), "float32_abs"));
    v = read_shapes(t);
    if (v == OK)
        v = make_body(t, &body);
    if (v == OK)
        v = make_session(t);
    if (v == OK)
        v = set_initial_states(t);
    if (v == OK)
        v = learn_and_compare(t, &body);
    if (v == OK && t->print)
        print_request(t, &body);
    return v;
}

static int run_and_print(const char *dir, const char *name, bool requests)
{
    static const char *const words[] = { "ok", "FAIL", "UNKNOWN" };
    struct test t = { .name = name, .print = requests };
    enum verdict v = run(&t, dir);
    const char *rule = json_string_value(json_object_get(t.json, "rule"));

    if (!requests)
        printf("%s %s %.3e %.3e %s\n", name, rule ? rule : "-", t.error, t.tolerance, words[v]);
    if (v != OK)
        fprintf(stderr, "golden_check: %s: %s\n", name, t.why);
    for (size_t i = 0; i < MAX_IN; i++)
        free(t.owned[i]);
    free(t.block);
    fw_memory_free(t.memory);
    fw_safetensors_done(&t.file);
    json_decref(t.json);
    return v == OK;
}

static int is_json(const struct dirent *d)
{
    size_t len = strlen(d->d_name);

    return len > 5 && strcmp(d->d_name + len - 5, ".json") == 0;
}

int main(int argc, char **argv)
{
    struct dirent **list = NULL;
    bool requests = argc == 3 && strcmp(argv[1], "--requests") == 0;
    const char *dir = argv[argc - 1];
    int n, good = 0;

    if (argc != 2 && !requests) {
        fprintf(stderr, "usage: golden_check [--requests] DIR\n");
        return 2;
    }
    fw_num_init();
    fw_num_thread();
    n = scandir(dir, &list, is_json, alphasort);
    for (int i = 0; i < n; i++) {
        list[i]->d_name[strlen(list[i]->d_name) - 5] = 0;
        good += run_and_print(dir, list[i]->d_name, requests);
        free(list[i]);
    }
    free(list);
    if (n <= 0)
        fprintf(stderr, "golden_check: no case in %s\n", dir);
    return n > 0 && good == n ? EXIT_SUCCESS : EXIT_FAILURE;
}
