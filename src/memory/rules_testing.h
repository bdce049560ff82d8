/* rules_testing.h - sessions and bodies of any rule, made from its row in the table. */
#ifndef RULES_TESTING_H
#define RULES_TESTING_H

#include <math.h>

#include "memory_testing.h"

#include "inside.h"

#define MANY (FW_IN_OWN + FW_MAX_INPUTS)

struct many { /* a body with every tensor that a plan takes; data owned */
    size_t n;
    struct fw_tensors in;
    struct fw_tensor item[MANY];
    float *data[MANY];
    const struct fw_input *input[MANY]; /* NULL: keys, values or queries */
};

static inline void add_many(struct many *b, const char *name, const struct fw_memory *m,
                            size_t each, size_t inner, bool vector)
{
    struct fw_tensor *t = &b->item[b->in.count];
    size_t count = b->n * each * m->heads * inner;
    float *x = calloc(count, sizeof *x);

    *t = (struct fw_tensor){ .dtype = FW_F32, .data = x, .bytes = count * sizeof *x };
    snprintf(t->name, sizeof t->name, "%s", name);
    t->shape[t->ndim++] = b->n;
    if (each > 1)
        t->shape[t->ndim++] = each;
    t->shape[t->ndim++] = m->heads;
    if (vector)
        t->shape[t->ndim++] = inner;
    b->data[b->in.count++] = x;
    b->in.item = b->item;
}

static inline size_t many_count(const struct many *b, size_t i)
{
    return b->item[i].bytes / sizeof(float);
}

static inline size_t many_inner(const struct fw_memory *m, const struct fw_input *in)
{
    switch (in->inner) {
    case FW_D_K:
        return m->d_k;
    case FW_ROWS:
        return m->rows;
    case FW_D_V:
        return m->d_v;
    case FW_OWN:
        return m->own_dim;
    case FW_SCALAR:
        break;
    }
    return 1;
}

/* Where an element of an input may lie in a sane body. */
static inline float many_value(const struct fw_input *in, uint64_t *seed)
{
    float lo = in->min > -1 ? in->min : -1, hi = in->max < 1 ? in->max : 1;

    return lo + (hi - lo) * (0.5f + 0.5f * next_float(seed));
}

/* The input whose product with |k|^2 must stay below 2, or NULL. */
static inline const char *many_step(const struct fw_rule *r)
{
    if (r->traits & FW_DELTA_STEP)
        return "beta";
    if (strcmp(r->name, "momentum") == 0)
        return "theta";
    return strcmp(r->name, "omega") == 0 || strcmp(r->name, "huber") == 0 ? "eta" : "";
}

/* n random admissible tokens: |k| < 1, all else in [-1, 1] and in its range. keys come first,
 * then values, then queries, then the rule's own; `all`: with those that are not required. */
static inline void make_many(struct many *b, const struct fw_memory *m, size_t n, bool all,
                             uint64_t seed)
{
    const struct fw_rule *r = m->rule;

    *b = (struct many){ .n = n };
    add_many(b, "keys", m, m->pairs, m->d_k, true);
    add_many(b, "values", m, m->pairs, m->d_v, true);
    add_many(b, "queries", m, 1, m->d_k, true);
    for (size_t i = 0; i < r->input_count; i++) {
        const struct fw_input *in = &r->inputs[i];

        if (!(m->takes >> i & 1) || !(all || in->flags & FW_REQUIRED))
            continue;
        b->input[b->in.count] = in;
        add_many(b, in->name, m, in->flags & FW_EACH ? m->pairs : 1, many_inner(m, in),
                 in->inner != FW_SCALAR);
    }
    for (size_t i = 0; i < b->in.count; i++)
        for (size_t j = 0; j < many_count(b, i); j++)
            b->data[i][j] = b->input[i] ? many_value(b->input[i], &seed)
                            : i == 0    ? next_float(&seed) / (float)m->d_k
                                        : next_float(&seed);
    for (size_t i = FW_IN_OWN; i < b->in.count; i++) /* mapped keys are longer */
        for (size_t j = 0; !fw_map_is_identity(m) &&
                           strcmp(b->item[i].name, many_step(r)) == 0 && j < many_count(b, i);
             j++)
            b->data[i][j] *= 0.5f / (float)m->rows;
}

static inline void free_many(struct many *b)
{
    for (size_t i = 0; i < b->in.count; i++)
        free(b->data[i]);
}

#define TOKENS     150
#define SETUP_KEYS 4

/* A rule's other forms are listed here, as config keys. */
static const struct setup { /* a session; rule NULL: every row */
    const char *rule;
    size_t heads, d_k, d_v;
    struct {
        const char *key, *word;
        double number;
    } config[SETUP_KEYS];
} setups[] = {
    { NULL, 2, 6, 6, { { NULL, NULL, 0 } } },
    { NULL, 1, 8, 8, { { "key_norm", "l2", 0 } } },
    { NULL, 2, 5, 9, { { "query_scale", NULL, 0.5 } } },
    { NULL, 1, 4, 4, { { "feature_map", "elu+1", 0 } } },
    { NULL, 1, 4, 4, { { "feature_map", "rff", 0 }, { "features", NULL, 10 } } },
    { NULL, 2, 4, 4, { { "pairs_per_token", NULL, 3 } } },
    { NULL, 2, 6, 6, { { "cache", NULL, 7 } } },
    { NULL, 2, 6, 6, { { "probes", NULL, 1 } } },
    { NULL, 2, 6, 6, { { "probes", NULL, 3 }, { "covariance", "true", 0 } } },
    { NULL,
      2,
      4,
      4,
      { { "probes", NULL, 2 },
        { "covariance", "true", 0 },
        { "pairs_per_token", NULL, 3 },
        { "feature_map", "relu", 0 } } },
    { NULL,
      1,
      5,
      5,
      { { "probes", NULL, 1 },
        { "cache", NULL, 9 },
        { "key_norm", "l2", 0 },
        { "cache_bandwidth", NULL, 1e-6 } } },
    { NULL,
      1,
      6,
      6,
      { { "cache", NULL, 100 }, { "key_norm", "l2", 0 }, { "cache_bandwidth", NULL, 1e-6 } } },
    { "gated_delta_product",
      2,
      4,
      4,
      { { "pairs_per_token", NULL, 3 }, { "cache", NULL, 5 } } },
    { "mamba2", 2, 4, 6, { { "form", "step", 0 } } },
    { "omega", 2, 5, 70, { { "window", NULL, 1 } } },
    { "omega", 1, 9, 4, { { "window", NULL, 128 }, { "feature_map", "dpfp", 0 } } },
    { "omega_muon", 2, 7, 5, { { "window", NULL, 1 } } },
    { "log_linear", 2, 5, 7, { { "levels", NULL, 4 } } },
    { "softmax", 2, 5, 7, { { "max_pairs", NULL, 40 }, { "bandwidth", NULL, 0.125 } } },
    { "window", 2, 5, 70, { { "window", NULL, 1 } } },
    { "sinks", 2, 5, 7, { { "window", NULL, 3 }, { "sinks", NULL, 100 } } },
    { "heavy_hitter", 2, 5, 7, { { "max_pairs", NULL, 90 }, { "recent", NULL, 5 } } },
    { "heavy_hitter", 1, 5, 7, { { "max_pairs", NULL, 9 }, { "recent", NULL, 9 } } },
    { "mesa", 2, 9, 5, { { "solver", "cg", 0 }, { "cg_iterations", NULL, 7 } } },
    { "ttt_linear", 2, 7, 7, { { "variant", "fla", 0 }, { "mini_batch", NULL, 5 } } },
    { "ttt_mlp", 2, 5, 5, { { "mini_batch", NULL, 7 }, { "hidden", NULL, 9 } } },
    { "titans", 2, 5, 7, { { "depth", NULL, 2 }, { "batch", NULL, 3 } } },
    { "titans", 1, 5, 3, { { "chunk", NULL, 7 }, { "batch", NULL, 14 } } },
    { "titans",
      2,
      6,
      6,
      { { "depth", NULL, 2 },
        { "layer_norm", "true", 0 },
        { "chunk", NULL, 3 },
        { "batch", NULL, 9 } } },
};
#define SETUPS        (sizeof setups / sizeof setups[0])
#define SHARED_SETUPS 8 /* those of every row come first */

static inline const struct fw_rule *rule_at(int i)
{
    return fw_rules[(size_t)i / SETUPS];
}

static inline int rule_count(void)
{
    int n = 0;

    while (fw_rules[n])
        n++;
    return n;
}

static inline int new_memory(struct fw_memory **ret, const struct setup *s, const char *rule,
                             struct fw_err *err)
{
    struct fw_params p = { 0 }, full;

    fw_params_set_string(&p, "rule", rule, NULL);
    fw_params_set_number(&p, "heads", (double)s->heads, NULL);
    fw_params_set_number(&p, "d_k", (double)s->d_k, NULL);
    fw_params_set_number(&p, "d_v", (double)s->d_v, NULL);
    for (size_t i = 0; i < SETUP_KEYS && s->config[i].key; i++)
        if (s->config[i].word && strcmp(s->config[i].word, "true") == 0)
            fw_params_set_bool(&p, s->config[i].key, true, NULL);
        else if (s->config[i].word)
            fw_params_set_string(&p, s->config[i].key, s->config[i].word, NULL);
        else
            fw_params_set_number(&p, s->config[i].key, s->config[i].number, NULL);
    return fw_memory_new(ret, &p, &full, err);
}

/* Is setup i one of its row's? What is not is no test: each test is a process. Short: the first
 * of each row, one of the others for all, and its own. */
static inline bool applies(int i)
{
    const size_t at = (size_t)i % SETUPS, row = (size_t)i / SETUPS;
    const struct setup *s = &setups[at];

    if (s->rule)
        return strcmp(s->rule, rule_at(i)->name) == 0;
    return rounds_of(2, 2) == 2 || at == 0 || at == 1 + row % (SHARED_SETUPS - 1);
}

/* Adds a test of every row in every setup. */
static inline void add_all(TCase *tc, const TTest *test)
{
    for (int i = 0; i < rule_count() * (int)SETUPS; i++)
        if (applies(i))
            tcase_add_loop_test(tc, test, i, i + 1);
}

/* The plan of row and setup i, or NULL where they make no sense together: then the refusal must
 * name a key of the configuration. The first setup is every rule's. */
static inline struct fw_memory *open_memory(int i)
{
    const struct setup *s = &setups[(size_t)i % SETUPS];
    const struct fw_rule *r = rule_at(i);
    struct fw_memory *m = NULL;
    struct fw_err err = { .code = FW_OK };

    if (s->rule && strcmp(s->rule, r->name) != 0)
        return NULL;
    if (new_memory(&m, s, r->name, &err) == 0)
        return m;
    ck_assert_int_eq(err.code, FW_EINVAL);
    ck_assert_int_eq(strncmp(err.param, "config.", 7), 0);
    ck_assert_msg(s != setups && s->rule == NULL, "%s: %s", r->name, err.msg);
    return NULL;
}

struct run { /* one stream through one session */
    struct fw_memory *m;
    void *block;
    size_t bytes;
    struct many b;
    double *residual; /* (TOKENS, heads) */
    float *values;    /* (TOKENS, heads, d_v) */
};

static inline void *new_block(const struct fw_memory *m)
{
    void *block = aligned_alloc(64, fw_memory_layout(m)->block_bytes);

    fw_memory_init(m, block);
    return block;
}

static inline bool start(struct run *r, int i, bool all)
{
    *r = (struct run){ .m = open_memory(i) };
    if (!r->m)
        return false;
    r->block = new_block(r->m);
    r->bytes = fw_memory_layout(r->m)->block_bytes;
    make_many(&r->b, r->m, TOKENS, all, 42);
    r->residual = calloc(TOKENS * r->m->heads, sizeof *r->residual);
    r->values = calloc(TOKENS * r->m->heads * r->m->d_v, sizeof *r->values);
    return true;
}

static inline void learn(struct run *r, size_t from, size_t n)
{
    fw_memory_learn(r->m, r->block, &r->b.in, from, n, r->residual + from * r->m->heads,
                    r->values + from * r->m->heads * r->m->d_v);
}

static inline void stop(struct run *r)
{
    free(r->residual);
    free(r->values);
    free_many(&r->b);
    free(r->block);
    fw_memory_free(r->m);
}

static inline void ck_honest(const struct run *r, const float *values, size_t n)
{
    struct fw_err err = { .msg = "" };
    size_t bad = 0;

    ck_assert_msg(fw_memory_validate(r->m, r->block, &err) == 0, "%s: %s", r->m->rule->name,
                  err.msg);
    ck_assert_int_eq(fw_layout_check_padding(fw_memory_layout(r->m), r->block, NULL), 0);
    for (size_t i = 0; i < n; i++)
        bad += !isfinite(values[i]);
    ck_assert_uint_eq(bad, 0);
}

#endif
