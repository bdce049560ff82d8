#include "config.h"

#include "test_main.h"

#include <math.h>

#include "memory_testing.h"

#define BATCH 1000

/* One assertion for many floats: libcheck writes each to a file. */
static void ck_finite(const float *x, size_t n)
{
    size_t bad = 0;

    for (size_t i = 0; i < n; i++)
        bad += !isfinite(x[i]);
    ck_assert_uint_eq(bad, 0);
}

/* A pair as hostile as check allows, chosen by `kind`. */
static void hostile(struct body *b, const struct shape *s, int kind, uint64_t *seed)
{
    static const float gates[] = { 0, -1e-30f, -87.3f, -88.8f, -1e4f, -1e6f };
    float *k = b->data[0], *v = b->data[1];

    for (size_t row = 0; row < b->n; row++, k += s->d_k, v += s->d_v) {
        float r = next_float(seed), len, kk = 0, beta;
        int tiny = kind == 1 || (kind == 3 && row % 2);

        len = tiny ? 1e-3f : kind == 2 ? 1e6f / sqrtf((float)s->d_k) : 1;
        for (size_t i = 0; i < s->d_k; i++) {
            k[i] = kind == 4 ? (i == 0 ? len : 0) : len * next_float(seed);
            kk += k[i] * k[i];
        }
        for (size_t j = 0; j < s->d_v; j++)
            v[j] = r > 0 ? 1.5e5f : -1.5e5f;
        beta = kk > 0 ? 1.99999f / kk : 1e6f;
        if (kind == 5 && row % 3 == 0) { /* no key at all */
            memset(k, 0, s->d_k * sizeof *k);
            beta = 1e6f;
        }
        b->data[3][row] = beta < 1e6f ? beta : 1e6f;
        if (b->data[4])
            b->data[4][row] = gates[row % (kind == 4 ? 2 : 6)];
    }
}

START_TEST(a_hundred_thousand_extreme_pairs_stay_finite)
{
    const struct shape s = { _i & 1 ? "gated_delta" : "delta", "none", 1, 8, 40, 1e6 };
    struct fw_memory *m = make_memory(&s);
    void *block = make_block(m);
    struct body b;
    uint64_t seed = 5;
    size_t n;
    float *values = malloc(BATCH * s.d_v * sizeof *values);

    make_body(&b, &s, BATCH, 1);
    for (size_t i = 0; i < BATCH * s.d_k; i++)
        b.data[2][i] = i & 1 ? 3.5e5f : -3.5e5f;
    for (size_t round = 0; round < rounds_of(100, 20); round++) {
        struct fw_err err = { .msg = "" };

        hostile(&b, &s, _i / 2, &seed);
        ck_assert_msg(fw_memory_check(m, &b.in, &n, &err) == 0, "%s", err.msg);
        fw_memory_learn(m, block, &b.in, 0, BATCH, NULL, values);
        ck_assert_msg(fw_memory_validate(m, block, &err) == 0, "%s", err.msg);
        ck_finite(values, BATCH * s.d_v);
    }
    free(values);
    free_body(&b);
    free(block);
    fw_memory_free(m);
}
END_TEST

/* A foreign block at the edge of what validate takes. */
START_TEST(a_state_at_its_bounds_learns_on_finite)
{
    const struct shape s = { "delta", "none", 1, 64, 32, 1e6 };
    struct fw_memory *m = make_memory(&s);
    void *block = make_block(m);
    float *S = field(m, block, "S"), *k = field(m, block, "pending_k");
    float *e = field(m, block, "pending_e"), *values = malloc(BATCH * s.d_v * sizeof *values);
    struct body b;
    uint64_t seed = 6;

    for (size_t i = 0; i < s.d_k * s.d_v; i++)
        S[i] = 1e21f;
    k[0] = 1e6f;
    e[0] = 9.9e14f;
    *(unsigned char *)field(m, block, "pending_valid") = 1;
    ((uint64_t *)field(m, block, "counters"))[0] = 1;
    ck_assert_int_eq(fw_memory_validate(m, block, NULL), 0);
    make_body(&b, &s, BATCH, 1);
    for (int round = 0; round < 10; round++) {
        hostile(&b, &s, round % 6, &seed);
        for (size_t i = 0; i < BATCH * s.d_k; i++)
            b.data[2][i] = 1e6f;
        fw_memory_learn(m, block, &b.in, 0, BATCH, NULL, values);
        ck_finite(values, BATCH * s.d_v);
    }
    ck_assert_int_eq(fw_memory_validate(m, block, NULL), 0);
    ck_assert_uint_gt(((uint64_t *)field(m, block, "counters"))[1], 0);
    free(values);
    free_body(&b);
    free(block);
    fw_memory_free(m);
}
END_TEST

START_TEST(cuts_around_the_saturating_pair_change_no_bit)
{
    const struct shape s = { "gated_delta", "none", 2, 3, 5, 1 };
    struct fw_memory *m = make_memory(&s);
    size_t bytes = fw_memory_layout(m)->block_bytes;
    void *whole = make_block(m), *cut = make_block(m);
    struct body b;

    make_body(&b, &s, 8200, 11);
    fw_memory_learn(m, whole, &b.in, 0, 8200, NULL, NULL);
    for (size_t at = 4094; at < 4094 + rounds_of(6, 2); at++) {
        fw_memory_init(m, cut);
        fw_memory_learn(m, cut, &b.in, 0, at, NULL, NULL);
        fw_memory_learn(m, cut, &b.in, at, 1, NULL, NULL);
        fw_memory_learn(m, cut, &b.in, at + 1, 8200 - at - 1, NULL, NULL);
        ck_assert_mem_eq(whole, cut, bytes);
    }
    ck_assert_uint_eq(((uint64_t *)field(m, whole, "counters"))[0], 8200);
    ck_assert_uint_eq(((uint64_t *)field(m, whole, "counters"))[1], 0);
    free_body(&b);
    free(whole);
    free(cut);
    fw_memory_free(m);
}
END_TEST

START_TEST(an_invalid_pending_pair_is_skipped)
{
    const struct shape s = { "delta", "none", 1, 2, 2, 1 };
    struct fw_memory *m = make_memory(&s);
    void *block = make_block(m);
    float *S = field(m, block, "S"), state[4], out[4];

    for (size_t i = 0; i < 4; i++)
        S[i] = -0.0f; /* adding +0 would turn it into +0 */
    fw_memory_state(m, block, state);
    for (size_t i = 0; i < 4; i++)
        ck_assert(signbit(state[i]));
    memcpy(out, S, sizeof out);
    ck_assert_mem_eq(out, state, sizeof out);
    free(block);
    fw_memory_free(m);
}
END_TEST

START_TEST(foreign_blocks_out_of_bounds_are_refused_by_tensor)
{
    static const struct {
        const char *tensor, *param;
        size_t at;
        float value;
    } cases[] = {
        { "S", "S", 5, NAN },
        { "S", "S", 11, INFINITY },
        { "S", "S", 0, -2e21f },
        { "pending_k", "pending_k", 3, NAN },
        { "pending_k", "pending_k", 0, 2e6f },
        { "pending_e", "pending_e", 1, INFINITY },
        { "pending_e", "pending_e", 2, 2e25f },
        { "pending_e", "pending_e", 2, 5e24f }, /* times |k| */
    };
    const struct shape s = { "delta", "none", 2, 2, 3, 1 };
    struct fw_memory *m = make_memory(&s);
    void *block = make_block(m);
    struct body b;
    struct fw_err err = { .param = "" };

    make_body(&b, &s, 3, 9);
    fw_memory_learn(m, block, &b.in, 0, 3, NULL, NULL);
    ck_assert_int_eq(fw_memory_validate(m, block, &err), 0);
    ((float *)field(m, block, cases[_i].tensor))[cases[_i].at] = cases[_i].value;
    ck_assert_int_eq(fw_memory_validate(m, block, &err), -1);
    ck_assert_int_eq(err.code, FW_EINVAL);
    ck_assert_str_eq(err.param, cases[_i].param);
    free_body(&b);
    free(block);
    fw_memory_free(m);
}
END_TEST

START_TEST(foreign_flags_and_sums_are_checked)
{
    const struct shape s = { "gated_delta", "none", 2, 2, 3, 1 };
    struct fw_memory *m = make_memory(&s);
    void *block = make_block(m);
    unsigned char *valid = field(m, block, "pending_valid");
    double *log_g = field(m, block, "log_g_sum"), *last = field(m, block, "last_residual");
    float *k = field(m, block, "pending_k");

    valid[0] = valid[1] = 2;
    ck_assert_int_eq(fw_memory_validate(m, block, NULL), -1);
    valid[0] = 1;
    valid[1] = 0;
    ck_assert_int_eq(fw_memory_validate(m, block, NULL), -1);
    valid[0] = 0;
    k[1] = 1; /* a pair that no flag owns */
    ck_assert_int_eq(fw_memory_validate(m, block, NULL), -1);
    k[1] = 0;
    ck_assert_int_eq(fw_memory_validate(m, block, NULL), 0);
    log_g[1] = NAN;
    ck_assert_int_eq(fw_memory_validate(m, block, NULL), -1);
    log_g[1] = 1;
    ck_assert_int_eq(fw_memory_validate(m, block, NULL), -1);
    log_g[1] = -5;
    ck_assert_int_eq(fw_memory_validate(m, block, NULL), 0);
    last[0] = INFINITY;
    ck_assert_int_eq(fw_memory_validate(m, block, NULL), -1);
    free(block);
    fw_memory_free(m);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("memory/state");
    TCase *tc = tcase_create("state");

    fw_num_init();
    fw_num_thread();
    tcase_set_timeout(tc, 300);
    tcase_add_loop_test(tc, a_hundred_thousand_extreme_pairs_stay_finite, 0, 12);
    tcase_add_test(tc, a_state_at_its_bounds_learns_on_finite);
    tcase_add_test(tc, cuts_around_the_saturating_pair_change_no_bit);
    tcase_add_test(tc, an_invalid_pending_pair_is_skipped);
    tcase_add_loop_test(tc, foreign_blocks_out_of_bounds_are_refused_by_tensor, 0, 8);
    tcase_add_test(tc, foreign_flags_and_sums_are_checked);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
