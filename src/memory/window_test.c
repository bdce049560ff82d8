#include "config.h"

#include "test_main.h"

#include <math.h>

#include "rules_testing.h"

#include "window.h"

#define D 8

struct pairs {
    float k[FW_WINDOW_MAX][D];
    struct fw_window w;
};

static void make_window(struct pairs *p, size_t n, float common, uint64_t seed)
{
    static const float v[D];

    p->w.n = 0;
    fw_window_start(&p->w);
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < D; j++)
            p->k[i][j] = common + next_float(&seed);
        fw_window_add(&p->w, p->k[i], v, 0.5f + 0.5f * next_float(&seed));
    }
}

/* The largest eigenvalue of sum u k k', by many power iterations in double. */
static double largest(const struct fw_window *w)
{
    double x[D], y[D], norm = 1;

    for (size_t j = 0; j < D; j++)
        x[j] = 1 + 0.1 * (double)j;
    for (int round = 0; round < 2000; round++) {
        double sum = 0;

        memset(y, 0, sizeof y);
        for (size_t i = 0; i < w->n; i++) {
            double p = 0;

            for (size_t j = 0; j < D; j++)
                p += (double)w->k[i][j] * x[j];
            for (size_t j = 0; j < D; j++)
                y[j] += (double)w->u[i] * p * (double)w->k[i][j];
        }
        for (size_t j = 0; j < D; j++)
            sum += y[j] * y[j];
        norm = sqrt(sum);
        for (size_t j = 0; j < D && norm > 0; j++)
            x[j] = y[j] / norm;
    }
    return norm;
}

START_TEST(a_safe_step_is_never_beyond_one_over_the_largest_eigenvalue)
{
    static const size_t sizes[] = { 1, 2, 3, 8, 17, 64, 128 };
    struct pairs *p = malloc(sizeof *p);

    for (uint64_t seed = 1; seed < 30; seed++)
        for (size_t i = 0; i < 7; i++)
            for (int common = 0; common < 3; common++) {
                double product;

                make_window(p, sizes[i], (float)common, seed);
                product = (double)fw_window_safe_step(&p->w, D, 1e6f) * largest(&p->w);
                ck_assert_double_le(product, 1 + 1e-5);
                ck_assert_double_ge(product, common == 2 ? 0.98 : 0.3); /* nor far below */
            }
    free(p);
}
END_TEST

START_TEST(the_cap_holds_and_a_window_of_nothing_takes_it)
{
    struct pairs *p = malloc(sizeof *p);

    make_window(p, 4, 1, 3);
    ck_assert(fw_window_safe_step(&p->w, D, 1e-3f) == 1e-3f);
    memset(p->k, 0, sizeof p->k);
    fw_window_start(&p->w);
    ck_assert(fw_window_safe_step(&p->w, D, 7) == 7);
    make_window(p, 4, 1, 3);
    memset(p->w.u, 0, sizeof p->w.u);
    ck_assert(fw_window_safe_step(&p->w, D, 7) == 7);
    free(p);
}
END_TEST

static void without_eta(struct many *b)
{
    for (size_t i = 0; i < b->in.count; i++)
        if (strcmp(b->item[i].name, "eta") == 0) {
            free(b->data[i]);
            b->item[i] = b->item[--b->in.count];
            b->data[i] = b->data[b->in.count];
        }
}

/* The 1000-fold keys would blow any fixed step up. */
START_TEST(a_pair_without_eta_takes_the_safe_step_wherever_the_stream_is_cut)
{
    const struct setup s = { "omega", 2, 5, 70, { { "window", NULL, 6 } } };
    struct fw_memory *m;
    struct many b;
    void *whole, *ones, *base;
    size_t n, bytes;
    double worst[2] = { 0 }, residual[300];

    ck_assert_int_eq(new_memory(&m, &s, s.rule, NULL), 0);
    bytes = fw_memory_layout(m)->block_bytes;
    make_many(&b, m, 150, true, 8);
    without_eta(&b);
    for (size_t i = 0; i < many_count(&b, 0); i++)
        b.data[0][i] *= 1000;
    ck_assert_int_eq(fw_memory_check(m, &b.in, &n, NULL), 0);
    whole = new_block(m);
    ones = new_block(m);
    base = new_block(m);
    fw_memory_learn(m, whole, &b.in, 0, n, residual, NULL);
    for (size_t t = 0; t < n; t++)
        fw_memory_learn(m, ones, &b.in, t, 1, NULL, NULL);
    ck_assert_mem_eq(whole, ones, bytes);
    setenv("FW_CPU_LEVEL", "base", 1);
    fw_num_init();
    fw_memory_learn(m, base, &b.in, 0, n, NULL, NULL);
    unsetenv("FW_CPU_LEVEL");
    fw_num_init();
    ck_assert_mem_eq(whole, base, bytes);
    for (size_t i = 0; i < 300; i++)
        worst[i / 150] = fmax(worst[i / 150], residual[i]);
    ck_assert_double_lt(worst[1], 3 * worst[0]);
    free_many(&b);
    free(whole);
    free(ones);
    free(base);
    fw_memory_free(m);
}
END_TEST

START_TEST(a_weight_of_a_foreign_window_must_be_one)
{
    const struct setup s = { "omega", 1, 3, 3, { { "window", NULL, 4 } } };
    struct fw_memory *m;
    struct fw_err err;
    void *block;

    ck_assert_int_eq(new_memory(&m, &s, s.rule, NULL), 0);
    block = new_block(m);
    ck_assert_int_eq(fw_memory_validate(m, block, &err), 0);
    ((float *)field(m, block, "window_u"))[1] = 1.5f;
    ck_assert_int_eq(fw_memory_validate(m, block, &err), -1);
    ck_assert_str_eq(err.param, "window_u");
    ((float *)field(m, block, "window_u"))[1] = 0;
    ((float *)field(m, block, "window_v"))[2] = 2e6f;
    ck_assert_int_eq(fw_memory_validate(m, block, &err), -1);
    ck_assert_str_eq(err.param, "window_v");
    free(block);
    fw_memory_free(m);
}
END_TEST

START_TEST(a_given_step_beyond_any_limit_is_refused)
{
    const struct setup s = { "omega", 1, 5, 3, { { "window", NULL, 4 } } };
    struct fw_memory *m;
    struct many b;
    struct fw_err err;
    size_t n;

    ck_assert_int_eq(new_memory(&m, &s, s.rule, NULL), 0);
    make_many(&b, m, 3, true, 8);
    for (size_t i = 0; i < many_count(&b, 0); i++)
        b.data[0][i] = 100;
    ck_assert_int_eq(fw_memory_check(m, &b.in, &n, &err), -1);
    ck_assert_str_eq(err.reason, "unstable_step");
    ck_assert_str_eq(err.param, "eta");
    without_eta(&b);
    ck_assert_int_eq(fw_memory_check(m, &b.in, &n, &err), 0);
    free_many(&b);
    fw_memory_free(m);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("memory/window");
    TCase *tc = tcase_create("window");

    fw_num_init();
    fw_num_thread();
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, a_safe_step_is_never_beyond_one_over_the_largest_eigenvalue);
    tcase_add_test(tc, the_cap_holds_and_a_window_of_nothing_takes_it);
    tcase_add_test(tc, a_pair_without_eta_takes_the_safe_step_wherever_the_stream_is_cut);
    tcase_add_test(tc, a_weight_of_a_foreign_window_must_be_one);
    tcase_add_test(tc, a_given_step_beyond_any_limit_is_refused);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
