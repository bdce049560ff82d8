#include "config.h"

#include "test_main.h"

#include <math.h>

#include "fastweight/num.h"
#include "models_testing.h"

#define MOST 70

static float *random_floats(float *x, size_t n, uint64_t seed)
{
    for (size_t i = 0; i < n; i++)
        x[i] = 3 * testing_random(&seed);
    return x;
}

START_TEST(norms_are_their_formulas)
{
    for (size_t n = 1; n < MOST; n += 3) {
        float x[MOST], w[MOST], b[MOST], y[MOST], z[MOST];
        double mean = 0, var = 0, square = 0;

        random_floats(x, n, n);
        random_floats(w, n, n + 100);
        random_floats(b, n, n + 200);
        for (size_t i = 0; i < n; i++)
            mean += (double)x[i] / (double)n;
        for (size_t i = 0; i < n; i++) {
            var += ((double)x[i] - mean) * ((double)x[i] - mean) / (double)n;
            square += (double)x[i] * (double)x[i];
        }
        fw_parts()->layer_norm(x, n, w, b, 1e-3, y);
        fw_parts()->rms_norm(x, n, w, 1e-3, z);
        for (size_t i = 0; i < n; i++) {
            double dx = (double)x[i], dw = (double)w[i];

            ck_assert_double_eq_tol((double)y[i],
                                    (dx - mean) / sqrt(var + 1e-3) * dw + (double)b[i], 2e-6);
            ck_assert_double_eq_tol((double)z[i], dx / sqrt(square / (double)n + 1e-3) * dw,
                                    2e-6);
        }
        fw_parts()->layer_norm(x, n, w, NULL, 1e-3, z);
        for (size_t i = 0; i < n; i++)
            ck_assert_double_eq_tol((double)z[i] + (double)b[i], (double)y[i], 2e-6);
        fw_parts()->unit(x, n, 0);
        ck_assert_double_eq_tol(fw_parts()->dot(x, x, n), 1, 1e-6);
    }
}
END_TEST

START_TEST(nothing_of_length_zero_is_divided_by_zero)
{
    float x[8] = { 0 };

    fw_parts()->unit(x, 8, 0);
    fw_parts()->unit(x, 8, 1e-6);
    for (size_t i = 0; i < 8; i++)
        ck_assert(x[i] == 0);
}
END_TEST

START_TEST(a_convolution_sees_the_rows_before)
{
    /* two channels, kernel 3: y[t] = 1 x[t-2] + 10 x[t-1] + 100 x[t] */
    const float x[] = { 1, 2, 3, 4, 5, 6, 7, 8 }, w[] = { 1, 1, 10, 10, 100, 100 };
    const float b[] = { 0.5f, 0 };
    float y[4];

    fw_parts()->conv(x, w, b, 3, 2, 2, y);
    ck_assert(y[0] == 1 + 30 + 500 + 0.5f && y[1] == 2 + 40 + 600);
    ck_assert(y[2] == 3 + 50 + 700 + 0.5f && y[3] == 4 + 60 + 800);
    fw_parts()->conv(x, w, NULL, 3, 1, 2, y);
    ck_assert(y[0] == 531);
}
END_TEST

START_TEST(bounds_hold_for_what_is_no_number)
{
    float x[] = { NAN, INFINITY, -INFINITY, 5, -5, 1, -0.5f };
    const float want[] = { 0, 2, -2, 2, -2, 1, -0.5f };

    fw_parts()->bound(x, 7, 2);
    for (size_t i = 0; i < 7; i++)
        ck_assert(x[i] == want[i]);
}
END_TEST

START_TEST(log_sum_exp_is_exact_for_large_and_equal_logits)
{
    float x[MOST];

    for (size_t n = 1; n < MOST; n++) {
        for (size_t i = 0; i < n; i++)
            x[i] = -1e30f;
        ck_assert_double_eq_tol(fw_parts()->log_sum_exp(x, n) + (double)1e30f, log((double)n),
                                1e15);
        for (size_t i = 0; i < n; i++)
            x[i] = 7;
        ck_assert_double_eq_tol(fw_parts()->log_sum_exp(x, n), 7 + log((double)n), 1e-14);
    }
}
END_TEST

#ifdef HAVE_V3
typedef void map_function(float *x, size_t n);

START_TEST(both_levels_give_the_same_bits)
{
    const struct fw_row_parts *a = &fw_parts_base, *b = &fw_parts_v3;
    map_function *const maps[][2] = {
        { a->tanh, b->tanh },
        { a->sigmoid, b->sigmoid },
        { a->silu, b->silu },
        { a->softplus, b->softplus },
        { a->gelu, b->gelu },
        { a->gelu_tanh, b->gelu_tanh },
        { a->relu_squared, b->relu_squared },
    };
    float x[MOST], w[MOST], v[MOST], y[2][4 * MOST];

    if (fw_num_level() != FW_LEVEL_X86_64_V3)
        return;
#define SAME(n) ck_assert_int_eq(memcmp(y[0], y[1], (n) * sizeof(float)), 0)
    for (size_t n = 1; n < MOST; n++) {
        random_floats(x, n, n);
        random_floats(w, n, n + 100);
        random_floats(v, n, n + 200);
        for (size_t i = 0; i < sizeof maps / sizeof maps[0]; i++) {
            for (size_t j = 0; j < 2; j++) {
                memcpy(y[j], x, n * sizeof *x);
                maps[i][j](y[j], n);
            }
            SAME(n);
        }
        for (size_t j = 0; j < 2; j++) {
            const struct fw_row_parts *p = j ? b : a;

            p->layer_norm(x, n, w, v, 1e-5, y[j]);
            p->rms_norm(x, n, w, 1e-5, y[j] + n);
            p->mix(x, w, v, n, y[j] + 2 * n);
            memcpy(y[j] + 3 * n, x, n * sizeof *x);
            p->unit(y[j] + 3 * n, n, 1e-6);
            p->fma(y[j] + 3 * n, w, v, n);
        }
        SAME(4 * n);
        ck_assert(a->dot(x, w, n) == b->dot(x, w, n));
        ck_assert(a->log_sum_exp(x, n) == b->log_sum_exp(x, n));
    }
}
END_TEST
#endif

int main(void)
{
    Suite *s = suite_create("model/parts");
    TCase *tc = tcase_create("parts");

    fw_num_init();
    fw_num_thread();
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, norms_are_their_formulas);
    tcase_add_test(tc, nothing_of_length_zero_is_divided_by_zero);
    tcase_add_test(tc, a_convolution_sees_the_rows_before);
    tcase_add_test(tc, bounds_hold_for_what_is_no_number);
    tcase_add_test(tc, log_sum_exp_is_exact_for_large_and_equal_logits);
#ifdef HAVE_V3
    tcase_add_test(tc, both_levels_give_the_same_bits);
#endif
    suite_add_tcase(s, tc);
    return run_suite(s);
}
