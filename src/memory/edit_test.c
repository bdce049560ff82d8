#include "config.h"

#include "test_main.h"

#include <math.h>

#include "rules_testing.h"

enum { PROBES = 20 };

struct edit { /* a body, and room for what it did */
    struct fw_tensors in;
    struct fw_tensor item[2];
    struct fw_memory_edited did;
    float *key, *value;
};

static void make_edit(struct edit *e, const struct fw_memory *m, const char *verb, bool value,
                      uint64_t seed)
{
    size_t d[2] = { m->d_k, m->d_v };
    const char *name[2] = { "key", "value" };
    float *x[2];

    *e = (struct edit){ .in = { 1u + value, NULL } };
    for (size_t i = 0; i < 2; i++) {
        x[i] = calloc(m->heads * d[i], sizeof *x[i]);
        for (size_t j = 0; j < m->heads * d[i]; j++)
            x[i][j] = next_float(&seed);
        e->item[i] = (struct fw_tensor){ .dtype = FW_F32,
                                         .ndim = 2,
                                         .shape = { m->heads, d[i] },
                                         .data = x[i],
                                         .bytes = m->heads * d[i] * sizeof(float) };
        snprintf(e->item[i].name, FW_NAME_MAX, "%s.%s", verb, name[i]);
    }
    e->key = x[0];
    e->value = x[1];
    e->did.before = calloc(m->heads * m->d_v, sizeof(float));
    e->did.after = calloc(m->heads * m->d_v, sizeof(float));
}

static const struct fw_tensors *body(struct edit *e)
{
    e->in.item = e->item;
    return &e->in;
}

static void free_edit(struct edit *e)
{
    free(e->key);
    free(e->value);
    free(e->did.before);
    free(e->did.after);
}

/* The rules whose memory is no matrix that a key reads. */
static bool is_refused(const char *rule)
{
    static const char *const names[] = { "linear_norm", "ttt_linear", "ttt_mlp",
                                         "titans",      "log_linear", "softmax",
                                         "window",      "sinks",      "heavy_hitter" };

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(rule, names[i]) == 0)
            return true;
    return false;
}

/* |S_ij| at most: iplr and its kin may let S grow, and the float with it. */
static float largest(const struct run *r)
{
    size_t n = r->m->heads * r->m->rows * r->m->d_v;
    float *S = calloc(n, sizeof *S), max;

    fw_memory_state(r->m, r->block, S);
    max = fw_largest(S, n);
    free(S);
    return max;
}

START_TEST(an_edited_key_reads_its_value_or_the_rule_is_named)
{
    struct run r;
    struct edit e;
    struct fw_err err = { .msg = "" };

    if (!start(&r, _i, true))
        return;
    make_edit(&e, r.m, "edit", true, 5);
    if (is_refused(r.m->rule->name)) {
        ck_assert_int_eq(fw_memory_check_edit(r.m, body(&e), &err), -1);
        ck_assert_str_eq(err.reason, "not_supported");
        ck_assert_ptr_nonnull(strstr(err.msg, r.m->rule->name));
    } else {
        ck_assert_msg(fw_memory_check_edit(r.m, body(&e), &err) == 0, "%s", err.msg);
        for (size_t t = 0; t < TOKENS; t += 50) {
            learn(&r, t, 50);
            fw_memory_edit(r.m, r.block, body(&e), NULL, &e.did);
            for (size_t j = 0; j < r.m->heads * r.m->d_v; j++)
                ck_assert_float_eq_tol(e.did.after[j], e.value[j], 1e-5f * (1 + largest(&r)));
            ck_honest(&r, NULL, 0);
            ck_assert(e.did.change_norm > 0 && e.did.disturbed >= 0);
        }
    }
    free_edit(&e);
    stop(&r);
}
END_TEST

START_TEST(an_edit_has_the_same_bytes_at_both_levels_moved_and_unasked)
{
    struct run a, b;
    struct edit e;

    if (is_refused(rule_at(_i)->name) || !start(&a, _i, true) || !start(&b, _i, true))
        return;
    make_edit(&e, a.m, _i % 2 ? "edit" : "forget", _i % 2 || a.m->rule->take_out, 5);
    ck_assert_int_eq(fw_memory_check_edit(a.m, body(&e), NULL), 0);
    learn(&a, 0, 70);
    fw_memory_edit(a.m, a.block, body(&e), NULL, &e.did);
    learn(&a, 70, TOKENS - 70);
    setenv("FW_CPU_LEVEL", "base", 1);
    fw_num_init();
    for (size_t t = 0; t < TOKENS; t++) {
        void *moved = new_block(b.m);

        if (t == 70)
            fw_memory_edit(b.m, b.block, body(&e), NULL, NULL);
        learn(&b, t, 1);
        memcpy(moved, b.block, b.bytes);
        free(b.block);
        b.block = moved;
    }
    unsetenv("FW_CPU_LEVEL");
    fw_num_init();
    ck_assert_mem_eq(a.block, b.block, a.bytes);
    free_edit(&e);
    stop(&a);
    stop(&b);
}
END_TEST

/* What keys read, (PROBES, heads, d_v), by edits that are thrown away. */
static void read_keys(const struct run *r, const float *keys, float *out)
{
    size_t d_k = r->m->heads * r->m->d_k, d_v = r->m->heads * r->m->d_v;
    void *copy = new_block(r->m);
    struct edit e;

    make_edit(&e, r->m, "edit", true, 1);
    for (size_t t = 0; t < PROBES; t++) {
        memcpy(copy, r->block, r->bytes);
        memcpy(e.key, keys + t * d_k, d_k * sizeof *keys);
        fw_memory_edit(r->m, copy, body(&e), NULL, &e.did);
        memcpy(out + t * d_v, e.did.before, d_v * sizeof *out);
    }
    free_edit(&e);
    free(copy);
}

/* The RMS of b - a. */
static double rms(const float *a, const float *b, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += pow((double)b[i] - (double)a[i], 2);
    return sqrt(sum / (double)n);
}

START_TEST(an_edit_says_what_it_changed_and_what_its_probes_read)
{
    struct run r;
    struct edit e;
    size_t n, S;
    float *now, *then, *before, *after;
    struct fw_tensor probes;

    if (is_refused(rule_at(_i)->name) || !start(&r, _i, true))
        return;
    n = PROBES * r.m->heads * r.m->d_v;
    S = r.m->heads * r.m->rows * r.m->d_v;
    now = calloc(2 * (n + S), sizeof *now);
    then = now + n;
    before = then + n;
    after = before + S;
    probes = r.b.item[FW_IN_QUERIES];
    probes.shape[0] = PROBES;
    make_edit(&e, r.m, "edit", true, 77);
    learn(&r, 0, TOKENS);
    read_keys(&r, probes.data, now);
    fw_memory_state(r.m, r.block, before);
    fw_memory_edit(r.m, r.block, body(&e), &probes, &e.did);
    read_keys(&r, probes.data, then);
    fw_memory_state(r.m, r.block, after);
    ck_assert_double_eq_tol(rms(now, then, n), e.did.disturbed, 1e-3 * (1 + e.did.disturbed));
    ck_assert_double_eq_tol(rms(before, after, S) * sqrt((double)S), e.did.change_norm,
                            1e-3 * (1 + e.did.change_norm));
    free(now);
    free_edit(&e);
    stop(&r);
}
END_TEST

static struct fw_memory *plan(const char *rule, double lambda, bool covariance)
{
    struct fw_params p = { 0 }, full;
    struct fw_memory *m = NULL;

    fw_params_set_string(&p, "rule", rule, NULL);
    fw_params_set_number(&p, "heads", 1, NULL);
    fw_params_set_number(&p, "d_k", 8, NULL);
    fw_params_set_number(&p, "d_v", 4, NULL);
    if (lambda > 0)
        fw_params_set_number(&p, "lambda", lambda, NULL);
    if (covariance)
        fw_params_set_bool(&p, "covariance", true, NULL);
    ck_assert_int_eq(fw_memory_new(&m, &p, &full, NULL), 0);
    return m;
}

START_TEST(the_covariance_spares_the_keys_of_the_past)
{
    struct fw_memory *m[] = { plan("linear", 0, false), plan("mesa", 0.01, false),
                              plan("linear", 0, true), plan("delta", 0, true) };
    double disturbed[4];

    for (size_t i = 0; i < 4; i++) {
        struct run r = { .m = m[i] };
        struct edit e;
        struct fw_tensor past;

        make_many(&r.b, m[i], TOKENS, false, 3);
        for (size_t t = 0; t < TOKENS; t++)
            for (size_t j = 3; j < 8; j++)
                r.b.data[FW_IN_KEYS][t * 8 + j] *=
                    0.01f; /* the past lies in three directions */
        r.block = new_block(m[i]);
        fw_memory_learn(m[i], r.block, &r.b.in, 0, TOKENS, NULL, NULL);
        make_edit(&e, m[i], "edit", true, 9);
        past = r.b.item[FW_IN_KEYS];
        fw_memory_edit(m[i], r.block, body(&e), &past, &e.did);
        disturbed[i] = e.did.disturbed / rms(e.did.before, e.did.after, 4);
        free_edit(&e);
        free_many(&r.b);
        free(r.block);
        fw_memory_free(m[i]);
    }
    for (size_t i = 1; i < 4; i++)
        ck_assert_double_lt(disturbed[i], 0.2 * disturbed[0]);
}
END_TEST

/* A pair learned among others and taken out again leaves what the others alone leave. */
START_TEST(a_pair_that_is_taken_out_was_never_learned)
{
    static const char *const rules[] = { "linear", "mesa" };
    struct fw_memory *m = plan(rules[_i], _i ? 0.01 : 0, false);
    void *with = new_block(m), *without = new_block(m);
    float a[32], b[32];
    struct many body_;
    struct edit e;

    make_many(&body_, m, 40, false, 3);
    make_edit(&e, m, "forget", true, 0);
    memcpy(e.key, body_.data[FW_IN_KEYS] + 20 * 8, 8 * sizeof *e.key);
    memcpy(e.value, body_.data[FW_IN_VALUES] + 20 * 4, 4 * sizeof *e.value);
    ck_assert_int_eq(fw_memory_check_edit(m, body(&e), NULL), 0);
    fw_memory_learn(m, with, &body_.in, 0, 40, NULL, NULL);
    fw_memory_learn(m, without, &body_.in, 0, 20, NULL, NULL);
    fw_memory_learn(m, without, &body_.in, 21, 19, NULL, NULL);
    fw_memory_edit(m, with, body(&e), NULL, &e.did);
    ck_assert_int_eq(fw_memory_validate(m, with, NULL), 0);
    fw_memory_state(m, with, a);
    fw_memory_state(m, without, b);
    for (size_t i = 0; i < 32; i++)
        ck_assert_float_eq_tol(a[i], b[i], 1e-4f);
    free_edit(&e);
    free_many(&body_);
    free(with);
    free(without);
    fw_memory_free(m);
}
END_TEST

START_TEST(a_pair_that_is_not_there_cannot_be_taken_out)
{
    struct fw_memory *m = plan("mesa", 0.01, false);
    void *block = new_block(m), *before = new_block(m);
    struct edit e;

    make_edit(&e, m, "forget", true, 4);
    fw_memory_edit(m, block, body(&e), NULL, &e.did);
    ck_assert_mem_eq(block, before, fw_memory_layout(m)->block_bytes);
    ck_assert(e.did.change_norm == 0 && e.did.disturbed == 0);
    free_edit(&e);
    free(block);
    free(before);
    fw_memory_free(m);
}
END_TEST

static void ck_refused(const struct fw_memory *m, struct edit *e, const char *reason,
                       const char *param)
{
    struct fw_err err = { .msg = "" };

    ck_assert_int_eq(fw_memory_check_edit(m, body(e), &err), -1);
    ck_assert_str_eq(err.reason, reason);
    ck_assert_str_eq(err.param, param);
}

START_TEST(what_is_wrong_with_an_edit_is_named)
{
    struct fw_memory *m = plan("gated_delta", 0, false);
    struct fw_err err = { 0 };
    struct edit e;

    make_edit(&e, m, "edit", true, 4);
    e.item[1].shape[1] = 3;
    ck_refused(m, &e, "bad_shape", "value");
    e.item[1].shape[1] = 4;
    e.value[2] = NAN;
    ck_refused(m, &e, "non_finite", "value");
    e.value[2] = 0;
    e.key[0] = 2e6f;
    ck_refused(m, &e, "too_large", "key");
    ck_assert_str_eq(fw_memory_check_edit(m, body(&e), &err) < 0 ? err.msg : "",
                     "key of head 0: element 0 is beyond 1e6 (2e+06)");
    memset(e.key, 0, 8 * sizeof *e.key);
    e.key[3] = 0.9e-3f;
    ck_refused(m, &e, "key_too_short", "key");
    e.key[3] = 1.1e-3f;
    ck_assert_int_eq(fw_memory_check_edit(m, body(&e), NULL), 0);
    e.in.count = 1;
    ck_refused(m, &e, "missing_tensor", "value");
    e.in.count = 2;
    snprintf(e.item[0].name, FW_NAME_MAX, "forget.key");
    ck_refused(m, &e, "unknown_tensor", "body");
    snprintf(e.item[1].name, FW_NAME_MAX, "forget.value");
    ck_refused(m, &e, "not_supported", "value");
    e.in.count = 1;
    ck_assert_int_eq(fw_memory_check_edit(m, body(&e), NULL), 0);
    free_edit(&e);
    fw_memory_free(m);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("memory/edit");
    TCase *tc = tcase_create("edit");
    int all = rule_count() * (int)SETUPS;

    fw_num_init();
    fw_num_thread();
    tcase_set_timeout(tc, 300);
    tcase_add_loop_test(tc, an_edited_key_reads_its_value_or_the_rule_is_named, 0, all);
    tcase_add_loop_test(tc, an_edit_has_the_same_bytes_at_both_levels_moved_and_unasked, 0,
                        all);
    tcase_add_loop_test(tc, an_edit_says_what_it_changed_and_what_its_probes_read, 0, all);
    tcase_add_test(tc, the_covariance_spares_the_keys_of_the_past);
    tcase_add_loop_test(tc, a_pair_that_is_taken_out_was_never_learned, 0, 2);
    tcase_add_test(tc, a_pair_that_is_not_there_cannot_be_taken_out);
    tcase_add_test(tc, what_is_wrong_with_an_edit_is_named);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
