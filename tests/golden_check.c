/* golden_check - compares the rules with numbers that other people's code computed.
 *
 *     golden_check DIR
 *
 * A case is NAME.json and NAME.safetensors in DIR (tests/golden/README.md has the format). The
 * JSON's `rule` alone decides what runs; shapes and q_scale become a configuration, the input
 * tensors a body, and fw_memory_new, check, learn and state do the rest, as in the daemon: no
 * formula stands here. One line a case: NAME rule max_abs_err tolerance ok|FAIL|UNKNOWN. The
 * exit status is 0 only when there was a case and all were ok. */
#include "config.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "fastweight/buf.h"
#include "fastweight/memory.h"
#include "fastweight/num.h"
#include "fastweight/safetensors.h"

#define MAX_FILE ((size_t)256 << 20)
#define MAX_IN   16

enum verdict { OK, FAIL, UNKNOWN };

static const struct rule { /* the JSON's name of a rule, and ours */
    const char *json, *config;
} rules[] = {
    { "delta_rule", "delta" },
    { "gated_delta_rule", "gated_delta" },
};

static const struct input { /* the case's name of an input, and the body's */
    const char *json, *body;
} inputs[] = {
    { "q", "queries" }, { "k", "keys" },  { "v", "values" },
    { "beta", "beta" }, { "g", "log_g" },
};

struct test {
    const char *name;
    char why[4352]; /* not ok because */
    json_t *json;
    struct fw_safetensors file;
    const struct rule *rule;
    struct fw_memory *memory;
    void *block;
    double error, tolerance;
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

static enum verdict find_rule(struct test *t)
{
    const char *name = json_string_value(json_object_get(t->json, "rule"));

    for (size_t i = 0; name && i < sizeof rules / sizeof rules[0]; i++)
        if (strcmp(rules[i].json, name) == 0)
            t->rule = &rules[i];
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

/* The tensors of this role, under the body's names. */
static enum verdict make_body(struct test *t, struct fw_tensors *body)
{
    for (size_t i = 0; i < t->file.tensors.count; i++) {
        const struct fw_tensor *from = &t->file.tensors.item[i];
        const json_t *facts = json_object_get(json_object_get(t->json, "tensors"), from->name);
        const char *role = json_string_value(json_object_get(facts, "role"));
        const struct input *in = NULL;

        if (!role || strcmp(role, "input") != 0 || strcmp(from->name, "initial_state") == 0)
            continue;
        for (size_t j = 0; j < sizeof inputs / sizeof inputs[0]; j++)
            if (strcmp(inputs[j].json, from->name) == 0)
                in = &inputs[j];
        if (!in || body->count == MAX_IN)
            return fail(t, UNKNOWN, "no such input here", from->name);
        body->item[body->count] = *from;
        snprintf(body->item[body->count++].name, FW_NAME_MAX, "%s", in->body);
    }
    return OK;
}

static enum verdict make_session(struct test *t, const struct fw_tensors *body)
{
    const struct fw_tensor *k = fw_tensors_find(body, "keys");
    const struct fw_tensor *v = fw_tensors_find(body, "values");
    struct fw_params p = { 0 }, full;
    struct fw_err err;
    double scale;

    if (!k || !v || k->ndim != 3 || v->ndim != 3)
        return fail(t, FAIL, "k and v must have three axes", NULL);
    if (query_scale(json_object_get(t->json, "q_scale"), (double)k->shape[2], &scale) < 0)
        return fail(t, UNKNOWN, "q_scale not understood", NULL);
    if (fw_params_set_string(&p, "rule", t->rule->config, &err) < 0 ||
        fw_params_set_number(&p, "heads", (double)k->shape[1], &err) < 0 ||
        fw_params_set_number(&p, "d_k", (double)k->shape[2], &err) < 0 ||
        fw_params_set_number(&p, "d_v", (double)v->shape[2], &err) < 0 ||
        fw_params_set_number(&p, "query_scale", scale, &err) < 0 ||
        fw_memory_new(&t->memory, &p, &full, &err) < 0)
        return fail(t, FAIL, "config refused", err.msg);
    t->block = aligned_alloc(64, fw_memory_layout(t->memory)->block_bytes);
    if (!t->block)
        return fail(t, FAIL, "out of memory", NULL);
    fw_memory_init(t->memory, t->block);
    return OK;
}

static enum verdict set_initial_state(struct test *t)
{
    const struct fw_tensor *s = fw_tensors_find(&t->file.tensors, "initial_state");
    const struct fw_field *f = fw_layout_find(fw_memory_layout(t->memory), "S");

    if (!s)
        return OK;
    if (s->dtype != FW_F32 || s->bytes != f->bytes)
        return fail(t, FAIL, "initial_state does not fit S", NULL);
    memcpy((char *)t->block + f->offset, s->data, f->bytes);
    return OK;
}

/* Raises t->error to the largest difference. */
static enum verdict compare(struct test *t, const char *name, const float *got, size_t count)
{
    const struct fw_tensor *want = fw_tensors_find(&t->file.tensors, name);
    const double *w;

    if (!want)
        return fail(t, FAIL, "the case lacks", name);
    if (want->dtype != FW_F64 || want->bytes != count * sizeof *w)
        return fail(t, FAIL, "another shape", name);
    w = want->data;
    for (size_t i = 0; i < count; i++) {
        double d = fabs((double)got[i] - w[i]);

        if (!(d <= t->error))
            t->error = d;
    }
    return OK;
}

/* The body through the session: every output of the case is compared. */
static enum verdict learn_and_compare(struct test *t, const struct fw_tensors *body)
{
    const struct fw_memory *m = t->memory;
    size_t n, width = (size_t)fw_memory_heads(m) * fw_memory_d_v(m);
    struct fw_err err;
    float *out, *state = malloc(width * fw_memory_d_k(m) * sizeof *state);
    enum verdict v = OK;

    if (fw_memory_check(m, body, &n, &err) < 0) {
        free(state);
        return fail(t, FAIL, "body refused", err.msg);
    }
    out = malloc(n * width * sizeof *out);
    if (out && state) {
        fw_memory_learn(m, t->block, body, 0, n, NULL, out);
        fw_memory_state(m, t->block, state);
        v = compare(t, "out", out, n * width);
        if (v == OK)
            v = compare(t, "final_state", state, width * fw_memory_d_k(m));
    } else {
        v = fail(t, FAIL, "out of memory", NULL);
    }
    free(out);
    free(state);
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
    if (v == OK) {
        json_t *tolerance = json_object_get(t->json, "tolerance");

        t->tolerance = json_number_value(json_object_get(tolerance, "float32_abs"));
        v = make_body(t, &body);
    }
    if (v == OK)
        v = make_session(t, &body);
    if (v == OK)
        v = set_initial_state(t);
    return v == OK ? learn_and_compare(t, &body) : v;
}

static int run_and_print(const char *dir, const char *name)
{
    static const char *const words[] = { "ok", "FAIL", "UNKNOWN" };
    struct test t = { .name = name };
    enum verdict v = run(&t, dir);
    const char *rule = json_string_value(json_object_get(t.json, "rule"));

    printf("%s %s %.3e %.3e %s\n", name, rule ? rule : "-", t.error, t.tolerance, words[v]);
    if (v != OK)
        fprintf(stderr, "golden_check: %s: %s\n", name, t.why);
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
    int n, good = 0;

    if (argc != 2) {
        fprintf(stderr, "usage: golden_check DIR\n");
        return 2;
    }
    fw_num_init();
    fw_num_thread();
    n = scandir(argv[1], &list, is_json, alphasort);
    for (int i = 0; i < n; i++) {
        list[i]->d_name[strlen(list[i]->d_name) - 5] = 0;
        good += run_and_print(argv[1], list[i]->d_name);
        free(list[i]);
    }
    free(list);
    if (n <= 0)
        fprintf(stderr, "golden_check: no case in %s\n", argv[1]);
    return n > 0 && good == n ? EXIT_SUCCESS : EXIT_FAILURE;
}
