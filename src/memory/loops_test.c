#include "config.h"

#include "test_main.h"

#include <math.h>

#include "loops.h"
#include "memory_testing.h"

#define MAX 40

static const size_t sizes[][3] = { { 0, 0, 0 },  { 1, 1, 1 },    { 3, 5, 2 },   { 8, 8, 8 },
                                   { 7, 33, 9 }, { 16, 31, 40 }, { 40, 17, 24 } };
#define SIZES ((int)(sizeof sizes / sizeof sizes[0]))

struct data { /* random, the same every time */
    float A[MAX * MAX], B[MAX * MAX], C[MAX * MAX], x[MAX], y[MAX], z[MAX], k[MAX], e[MAX];
};

static void fill(struct data *d)
{
    uint64_t seed = 9;

    for (size_t i = 0; i < sizeof *d / sizeof(float); i++)
        ((float *)d)[i] = next_float(&seed);
}

/* Every loop once, each on what the ones before left behind. */
static void run(const struct fw_loops *l, struct data *d, size_t n, size_t m, size_t p)
{
    struct fw_head h = { n, m, d->A, d->k, d->e, true };
    struct fw_erase e = { n, m, d->x, d->k, d->z, d->e, d->y, 1.5f };

    l->apply(d->A, n, m, d->x, d->y);
    l->apply_rows(d->A, n, m, d->y, d->z);
    l->outer(d->A, n, m, d->x, d->y);
    l->scale_rows(d->A, n, m, d->z);
    l->product(d->A, d->B, d->C, n, m, p);
    l->axpy(0.3f, d->x, d->z, n);
    l->scale(0.7f, d->z, n);
    d->k[0] = l->dot(d->x, d->z, n);
    l->clamp(d->A, n * m, 2);
    l->sweep(&h, d->x, d->z, d->y);
    h.valid = false;
    l->sweep(&h, NULL, d->z, d->e);
    l->erase_write(d->A, &e);
    e.d = NULL;
    l->erase_write(d->A, &e);
    l->diagonal(d->A, n, m, d->x, d->y, d->e);
    l->exp(d->e, d->e, m);
}

START_TEST(both_levels_agree_to_the_bit)
{
#ifdef HAVE_V3
    struct data a, b;

    if (fw_num_level() != FW_LEVEL_X86_64_V3)
        return;
    fill(&a);
    fill(&b);
    run(&fw_loops_base, &a, sizes[_i][0], sizes[_i][1], sizes[_i][2]);
    run(&fw_loops_v3, &b, sizes[_i][0], sizes[_i][1], sizes[_i][2]);
    ck_assert_mem_eq(&a, &b, sizeof a);
#endif
}
END_TEST

START_TEST(loops_do_what_they_are_called)
{
    size_t n = sizes[_i][0], m = sizes[_i][1], p = sizes[_i][2];
    const struct fw_loops *l = fw_loops();
    double worst = 0;
    struct data d;

    fill(&d);
    l->product(d.A, d.B, d.C, n, m, p);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < p; j++) {
            double sum = 0;

            for (size_t r = 0; r < m; r++)
                sum += (double)d.A[i * m + r] * (double)d.B[r * p + j];
            worst = fmax(worst, fabs(sum - (double)d.C[i * p + j]));
        }
    l->apply(d.A, n, m, d.x, d.y);
    for (size_t j = 0; j < m; j++) {
        double sum = 0;

        for (size_t i = 0; i < n; i++)
            sum += (double)d.x[i] * (double)d.A[i * m + j];
        worst = fmax(worst, fabs(sum - (double)d.y[j]));
    }
    l->apply_rows(d.A, n, m, d.e, d.z);
    for (size_t i = 0; i < n; i++) {
        double sum = 0;

        for (size_t j = 0; j < m; j++)
            sum += (double)d.A[i * m + j] * (double)d.e[j];
        worst = fmax(worst, fabs(sum - (double)d.z[i]));
    }
    ck_assert_double_le(worst, 2e-5);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("memory/loops");
    TCase *tc = tcase_create("loops");

    fw_num_init();
    fw_num_thread();
    tcase_add_loop_test(tc, both_levels_agree_to_the_bit, 0, SIZES);
    tcase_add_loop_test(tc, loops_do_what_they_are_called, 0, SIZES);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
