#include "config.h"

#include "test_main.h"

#include <math.h>

#include "memory_testing.h"

#include "muon.h"

static const struct {
    size_t rows, cols;
} shapes[] = { { 1, 1 }, { 3, 9 }, { 9, 3 }, { 8, 8 }, { 64, 65 }, { 256, 20 } };
#define SHAPES ((int)(sizeof shapes / sizeof shapes[0]))

static float *random_matrix(size_t n, float scale, uint64_t seed)
{
    float *x = malloc(n * sizeof *x);

    for (size_t i = 0; i < n; i++)
        x[i] = scale * next_float(&seed);
    return x;
}

START_TEST(singular_values_end_near_one_whatever_the_scale)
{
    size_t rows = shapes[_i].rows, cols = shapes[_i].cols, n = rows * cols;
    size_t small = rows < cols ? rows : cols;
    double *A = malloc(n * sizeof *A), sigma[256];
    float *X = malloc(n * sizeof *X);

    for (int scale = -15; scale <= 19; scale += 17) {
        float *Z = random_matrix(n, powf(10, (float)scale), 4);

        fw_muon(Z, rows, cols, X);
        for (size_t i = 0; i < n; i++)
            A[i] = (double)X[i];
        ck_assert_int_eq(fw_singular_values(A, rows, cols, sigma, NULL), 0);
        ck_assert_double_lt(sigma[0], 1.25);
        if (scale > 0 && rows != cols) /* square ones may start too near to zero */
            ck_assert_double_gt(sigma[small - 1], 0.6);
        free(Z);
    }
    free(A);
    free(X);
}
END_TEST

START_TEST(a_turned_matrix_gives_the_turned_result)
{
    size_t rows = shapes[_i].rows, cols = shapes[_i].cols, n = rows * cols;
    float *Z = random_matrix(n, 1, 9), *T = malloc(3 * n * sizeof *T), *X = T + n, *Y = X + n;
    double worst = 0;

    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < cols; j++)
            T[j * rows + i] = Z[i * cols + j];
    fw_muon(Z, rows, cols, X);
    fw_muon(T, cols, rows, Y);
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < cols; j++)
            worst = fmax(worst, fabs((double)(X[i * cols + j] - Y[j * rows + i])));
    ck_assert_double_lt(worst, 1e-4);
    free(Z);
    free(T);
}
END_TEST

START_TEST(nothing_stays_nothing)
{
    const float Z[6] = { 0 };
    float X[6];

    fw_muon(Z, 2, 3, X);
    for (int i = 0; i < 6; i++)
        ck_assert(X[i] == 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("memory/muon");
    TCase *tc = tcase_create("muon");

    fw_num_init();
    fw_num_thread();
    tcase_add_loop_test(tc, singular_values_end_near_one_whatever_the_scale, 0, SHAPES);
    tcase_add_loop_test(tc, a_turned_matrix_gives_the_turned_result, 0, SHAPES);
    tcase_add_test(tc, nothing_stays_nothing);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
