#include "config.h"

#include "test_main.h"

#include <math.h>

#include "covariance.h"
#include "rules_testing.h"

static struct fw_memory *open_plan(const char *rule, size_t d_k, bool kept)
{
    struct setup s = { NULL, 1, d_k, 3, { { kept ? "covariance" : NULL, "true", 0 } } };
    struct fw_err err = { .msg = "" };
    struct fw_memory *m;

    ck_assert_msg(new_memory(&m, &s, rule, &err) == 0, "%s", err.msg);
    return m;
}

/* n keys of `spread` directions; the others are 0.1 as long. */
static void make_keys(struct many *b, const struct fw_memory *m, size_t n, size_t spread)
{
    make_many(b, m, n, false, 4);
    for (size_t t = 0; t < n; t++)
        for (size_t i = 0; i < m->rows; i++)
            b->data[0][t * m->rows + i] *= i < spread ? 1 : 0.1f;
}

START_TEST(it_is_the_decayed_sum_of_the_outer_products_of_keys)
{
    enum { D = 13, N = 500 };
    struct fw_memory *m = open_plan("delta", D, true);
    void *block = new_block(m);
    struct many b;
    double want[D * D] = { 0 };
    const float *C = field(m, block, "covariance");

    make_keys(&b, m, N, D);
    fw_memory_learn(m, block, &b.in, 0, N, NULL, NULL);
    for (size_t t = 0; t < N; t++)
        for (size_t i = 0; i < (size_t)D * D; i++)
            want[i] = want[i] * (1 - 0x1p-16) +
                      (double)b.data[0][t * D + i / D] * (double)b.data[0][t * D + i % D];
    for (size_t i = 0; i < (size_t)D * D; i++)
        ck_assert_double_eq_tol((double)C[i], want[i], 1e-5 * want[0]);
    free_many(&b);
    free(block);
    fw_memory_free(m);
}
END_TEST

START_TEST(keys_of_the_largest_elements_keep_it_in_bounds)
{
    enum { N = 1000 };
    struct fw_memory *m = open_plan("linear", 2, true);
    void *block = new_block(m);
    struct many b;
    float *C = field(m, block, "covariance");

    make_many(&b, m, N, false, 4);
    for (size_t i = 0; i < (size_t)N * 2; i++)
        b.data[0][i] = i % 2 ? 0 : 1e6f;
    for (size_t i = 0; i < 400; i++)
        fw_memory_learn(m, block, &b.in, 0, N, NULL, NULL);
    ck_assert_float_gt(C[0], 6e16f);
    ck_assert_float_lt(C[0], 6.6e16f);
    ck_assert_int_eq(fw_memory_validate(m, block, NULL), 0);
    C[1] = 1;
    ck_assert_int_eq(fw_memory_validate(m, block, NULL), -1);
    C[1] = 0;
    C[3] = -1;
    ck_assert_int_eq(fw_memory_validate(m, block, NULL), -1);
    C[3] = 2e17f;
    ck_assert_int_eq(fw_memory_validate(m, block, NULL), -1);
    free_many(&b);
    free(block);
    fw_memory_free(m);
}
END_TEST

static double condition(const struct fw_memory *m, const void *block)
{
    double x;

    ck_assert_int_eq(fw_covariance_condition(m, block, 0, &x, NULL), 0);
    return x;
}

START_TEST(the_condition_is_that_of_the_keys)
{
    static const char *const rules[] = { "delta", "softmax", "mesa" };
    enum { D = 4, N = 400 };
    struct fw_memory *m = open_plan(rules[_i], D, _i < 2);
    void *block = new_block(m);
    struct many b;
    double first = condition(m, block);

    ck_assert(_i < 2 ? isnan(first) : fabs(first - 1) < 1e-6); /* of mesa, lambda alone */
    make_many(&b, m, N, false, 4);
    for (size_t t = 0; t < N; t++) /* one direction at a time, the first 0.3 as long */
        for (size_t i = 0; i < D; i++)
            b.data[0][t * D + i] = i != t % D ? 0 : i == 0 ? 0.3f : 1;
    fw_memory_learn(m, block, &b.in, 0, N, NULL, NULL);
    ck_assert_double_eq_tol(condition(m, block), _i < 2 ? 1 / 0.09 : 100.01 / 9.01, 0.02);
    fw_memory_init(m, block);
    fw_memory_learn(m, block, &b.in, 0, 2, NULL, NULL);
    ck_assert_double_eq_tol(condition(m, block), _i < 2 ? 1e7 : 1.01 / 0.01, 1e-3);
    free_many(&b);
    free(block);
    fw_memory_free(m);
}
END_TEST

START_TEST(without_a_covariance_nothing_is_told_and_mesa_refuses_a_second_one)
{
    struct fw_memory *m = open_plan("delta", 4, false);
    void *block = new_block(m);
    struct setup s = { NULL, 1, 4, 4, { { "covariance", "true", 0 } } };
    struct fw_err err = { .msg = "" };

    ck_assert(isnan(condition(m, block)));
    free(block);
    fw_memory_free(m);
    ck_assert_int_eq(new_memory(&m, &s, "mesa", &err), -1);
    ck_assert_str_eq(err.param, "config.covariance");
}
END_TEST

/* f (C + ridge) x against k, over |k|, for the f that suits best. */
static double solve_error(const struct fw_memory *m, void *block, const float *k,
                          const double *x)
{
    const float *C = field(m, block, "covariance");
    double ridge = 0, kk = 0, yk = 0, yy = 0;
    size_t n = m->rows;

    for (size_t i = 0; i < n; i++)
        ridge += 0.01 * (double)C[i * n + i] / (double)n;
    for (size_t i = 0; i < n; i++) {
        double y = ridge * x[i];

        for (size_t j = 0; j < n; j++)
            y += (double)C[i * n + j] * x[j];
        yy += y * y;
        yk += y * (double)k[i];
        kk += (double)k[i] * (double)k[i];
    }
    return sqrt(fmax(0, 1 - yk * yk / (yy * kk)));
}

START_TEST(it_is_solved_and_is_the_identity_before_the_first_key)
{
    static const size_t sizes[] = { 1, 30, 256, 300 }; /* the last by conjugate gradients */
    size_t n = sizes[_i];
    struct fw_memory *m = open_plan("delta", n, true);
    void *block = new_block(m);
    struct many b;
    float *k;
    double *x = calloc(n, sizeof *x), a, kx = 0;

    make_keys(&b, m, 400, n / 2);
    k = b.data[0];
    a = fw_covariance_solve(m, block, 0, k, x);
    for (size_t i = 0; i < n; i++) {
        ck_assert(x[i] == (double)k[i]);
        kx += x[i] * x[i];
    }
    ck_assert_double_eq_tol(a, kx, 1e-9);
    fw_memory_learn(m, block, &b.in, 0, 400, NULL, NULL);
    a = fw_covariance_solve(m, block, 0, k, x);
    kx = 0;
    for (size_t i = 0; i < n; i++)
        kx += x[i] * (double)k[i];
    ck_assert_double_eq_tol(a, kx, 1e-12 * kx);
    ck_assert_double_lt(solve_error(m, block, k, x), 1e-3);
    free(x);
    free_many(&b);
    free(block);
    fw_memory_free(m);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("memory/covariance");
    TCase *tc = tcase_create("covariance");

    fw_num_init();
    fw_num_thread();
    tcase_add_test(tc, it_is_the_decayed_sum_of_the_outer_products_of_keys);
    tcase_add_test(tc, keys_of_the_largest_elements_keep_it_in_bounds);
    tcase_add_loop_test(tc, the_condition_is_that_of_the_keys, 0, 3);
    tcase_add_test(tc, without_a_covariance_nothing_is_told_and_mesa_refuses_a_second_one);
    tcase_add_loop_test(tc, it_is_solved_and_is_the_identity_before_the_first_key, 0, 4);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
