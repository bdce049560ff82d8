#include "config.h"

#include "test_main.h"

#include <math.h>

#include "memory_testing.h"

#include "solve.h"

#define MAX FW_FACTOR_MAX

static const size_t sizes[] = { 1, 2, 7, 8, 33, 64, 256 };
#define SIZES ((int)(sizeof sizes / sizeof sizes[0]))

struct problem {
    float H[MAX * MAX], lambda[MAX], q[MAX];
    struct fw_system s;
    struct fw_factor f, g;
};

/* H = sum of `rank` k k'. */
static struct problem *make_problem(size_t n, size_t rank, uint64_t seed)
{
    struct problem *p = calloc(1, sizeof *p);
    float k[MAX];

    p->s = (struct fw_system){ p->H, p->lambda, n };
    for (size_t r = 0; r < rank; r++) {
        for (size_t i = 0; i < n; i++)
            k[i] = next_float(&seed);
        for (size_t i = 0; i < n * n; i++)
            p->H[i] += k[i / n] * k[i % n];
    }
    for (size_t i = 0; i < n; i++) {
        p->lambda[i] = 0.6f + 0.5f * next_float(&seed);
        p->q[i] = next_float(&seed);
    }
    return p;
}

static void exact(struct problem *p, double *x)
{
    fw_solvers()->factor(&p->s, &p->f);
    for (size_t i = 0; i < p->s.n; i++)
        x[i] = (double)p->q[i];
    fw_solvers()->solve(&p->f, x);
}

/* The largest |((H + Lambda) x - q)_i|. */
static double residual(const struct problem *p, const double *x)
{
    double worst = 0;

    for (size_t i = 0; i < p->s.n; i++) {
        double r = (double)p->lambda[i] * x[i] - (double)p->q[i];

        for (size_t j = 0; j < p->s.n; j++)
            r += (double)p->H[i * p->s.n + j] * x[j];
        worst = fmax(worst, fabs(r));
    }
    return worst;
}

START_TEST(the_factorisation_solves)
{
    double x[MAX];

    for (size_t rank = 0; rank < 400; rank += 133) {
        struct problem *p = make_problem(sizes[_i], rank, rank + 1);

        exact(p, x);
        ck_assert_double_lt(residual(p, x), 1e-10);
        free(p);
    }
}
END_TEST

START_TEST(enough_conjugate_steps_arrive_where_the_factorisation_is)
{
    struct problem *p = make_problem(sizes[_i], 5, 3);
    double x[MAX], y[MAX], worst = 0;

    exact(p, x);
    fw_solvers()->cg(&p->s, p->q, 40, y);
    for (size_t i = 0; i < p->s.n; i++)
        worst = fmax(worst, fabs(x[i] - y[i]));
    ck_assert_double_lt(worst, 2e-2); /* the guards of 1e-5 stop it short */
    free(p);
}
END_TEST

START_TEST(both_levels_solve_to_the_same_bit)
{
    struct problem *p = make_problem(sizes[_i], 90, 5);
    size_t bytes = sizes[_i] * sizeof(double);
    double x[2][MAX], y[2][MAX];
    float o[2][MAX];

    for (int base = 0; base < 2; base++) {
        if (base)
            setenv("FW_CPU_LEVEL", "base", 1);
        fw_num_init();
        exact(p, x[base]);
        fw_solvers()->cg(&p->s, p->q, 7, y[base]);
        fw_solvers()->values(p->H, sizes[_i], sizes[_i], x[base], o[base]);
    }
    unsetenv("FW_CPU_LEVEL");
    fw_num_init();
    ck_assert_mem_eq(x[0], x[1], bytes);
    ck_assert_mem_eq(y[0], y[1], bytes);
    ck_assert_mem_eq(o[0], o[1], bytes / 2);
    free(p);
}
END_TEST

/* 10^5 times the same key: rounding leaves H somewhat short of semidefinite. */
START_TEST(what_rounding_took_from_h_does_no_harm)
{
    struct problem *p = make_problem(33, 0, 5);
    double x[MAX], y[MAX], size = 0;
    float k[33], o[33];
    uint64_t seed = 2;

    for (size_t i = 0; i < 33; i++) {
        k[i] = next_float(&seed);
        p->lambda[i] = 1e-6f;
    }
    for (int t = 0; t < 100000; t++)
        for (size_t i = 0; i < 33 * 33; i++)
            p->H[i] = fmaf(1, k[i / 33] * k[i % 33], p->H[i]);
    p->s.n = 33;
    memcpy(p->q, k, sizeof k);
    exact(p, x);
    fw_solvers()->cg(&p->s, p->q, 30, y);
    fw_solvers()->values(p->H, 33, 33, x, o);
    for (size_t i = 0; i < 33; i++) {
        ck_assert(isfinite(x[i]) && isfinite(y[i]) && isfinite(o[i]));
        size = fmax(size, fabs((double)(o[i] - k[i])));
    }
    ck_assert_double_lt(size, 1); /* H x is about q still */
    free(p);
}
END_TEST

START_TEST(a_matrix_that_is_no_covariance_is_solved_all_the_same)
{
    struct problem *p = make_problem(sizes[_i], 0, 5);
    double x[MAX];
    uint64_t seed = 8;

    for (size_t i = 0; i < sizes[_i]; i++)
        for (size_t j = 0; j <= i; j++)
            p->H[i * sizes[_i] + j] = p->H[j * sizes[_i] + i] = 1e20f * next_float(&seed);
    exact(p, x);
    for (size_t i = 0; i < sizes[_i]; i++)
        ck_assert(fabs(x[i]) < 1);
    free(p);
}
END_TEST

START_TEST(values_are_finite_whatever_x_is)
{
    const float G[3] = { 1, -1, 1 };
    const double x[4] = { 1e300, -1e300, NAN, INFINITY };
    float o[3];

    for (int i = 0; i < 4; i++) {
        fw_solvers()->values(G, 1, 3, &x[i], o);
        ck_assert(fabsf(o[0]) <= 1e30f && fabsf(o[1]) <= 1e30f && o[0] == o[2]);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("memory/solve");
    TCase *tc = tcase_create("solve");

    fw_num_init();
    fw_num_thread();
    tcase_add_loop_test(tc, the_factorisation_solves, 0, SIZES);
    tcase_add_loop_test(tc, enough_conjugate_steps_arrive_where_the_factorisation_is, 0, SIZES);
    tcase_add_loop_test(tc, both_levels_solve_to_the_same_bit, 0, SIZES);
    tcase_add_test(tc, what_rounding_took_from_h_does_no_harm);
    tcase_add_loop_test(tc, a_matrix_that_is_no_covariance_is_solved_all_the_same, 0, SIZES);
    tcase_add_test(tc, values_are_finite_whatever_x_is);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
