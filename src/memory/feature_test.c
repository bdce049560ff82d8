#include "config.h"

#include "test_main.h"

#include <math.h>

#include "rules_testing.h"

static struct fw_memory *memory_with(const char *map, size_t d_k, const char *key, double value)
{
    const struct setup s = {
        "linear", 1, d_k, 2, { { "feature_map", map, 0 }, { key, NULL, value } }
    };
    struct fw_memory *m = NULL;
    struct fw_err err = { .msg = "" };

    ck_assert_msg(new_memory(&m, &s, s.rule, &err) == 0, "%s", err.msg);
    return m;
}

static void ck_near(const float *got, const double *want, size_t n, double tolerance)
{
    for (size_t i = 0; i < n; i++)
        ck_assert_double_eq_tol((double)got[i], want[i], tolerance);
}

START_TEST(elementwise_maps_are_what_they_are_called)
{
    static const struct {
        const char *map;
        double want[3];
    } cases[] = {
        { "identity", { -1, 0, 2 } },
        { "elu+1", { 0.36787944117, 1, 3 } },
        { "relu", { 0, 0, 2 } },
        { "relu^2", { 0, 0, 4 } },
        { "l2", { -0.4472135955, 0, 0.894427191 } },
    };
    struct fw_memory *m = memory_with(cases[_i].map, 3, NULL, 0);
    const float x[3] = { -1, 0, 2 };
    float phi[3];

    ck_assert_uint_eq(m->rows, 3);
    fw_map_apply(m, x, phi);
    ck_near(phi, cases[_i].want, 3, 1e-6);
    fw_memory_free(m);
}
END_TEST

START_TEST(dpfp_multiplies_neighbours_and_divides_by_their_sum)
{
    struct fw_memory *m = memory_with("dpfp", 2, "nu", 2);
    const float x[2] = { 3, -2 }, zero[2] = { 0, 0 };
    /* x2 = 3 0 0 2; roll 1: 2 3 0 0; roll 2: 0 2 3 0 */
    const double want[8] = { 1, 0, 0, 0, 0, 0, 0, 0 };
    float phi[8];

    ck_assert_uint_eq(m->rows, 8);
    fw_map_apply(m, x, phi);
    ck_near(phi, want, 8, 1e-6);
    fw_map_apply(m, zero, phi);
    for (size_t i = 0; i < 8; i++)
        ck_assert(phi[i] == 0);
    fw_memory_free(m);
}
END_TEST

START_TEST(poly2_has_the_quadratic_kernel)
{
    struct fw_memory *m = memory_with("poly2", 4, NULL, 0);
    const float x[4] = { 0.5f, -1, 2, 0.25f }, y[4] = { 1, 0.75f, -0.5f, 3 };
    double xx = 5.3125, yy = 10.8125, xy = -0.5, dot = 0, length = 0;
    float a[15], b[15];

    ck_assert_uint_eq(m->rows, 15);
    fw_map_apply(m, x, a);
    fw_map_apply(m, y, b);
    for (size_t i = 0; i < 15; i++) {
        dot += (double)a[i] * (double)b[i];
        length += (double)a[i] * (double)a[i];
    }
    ck_assert_double_eq_tol(length, 1, 1e-6);
    ck_assert_double_eq_tol(
        dot, (1 + xy + xy * xy) / sqrt((1 + xx + xx * xx) * (1 + yy + yy * yy)), 1e-6);
    fw_memory_free(m);
}
END_TEST

START_TEST(random_fourier_features_come_near_the_gaussian_kernel)
{
    struct fw_memory *m = memory_with("rff", 6, "features", 4096);
    struct fw_memory *again = memory_with("rff", 6, "features", 4096);
    float a[4096], b[4096];
    uint64_t seed = 3;
    double worst = 0;

    ck_assert_mem_eq(m->frequency, again->frequency, 2048 * 6 * sizeof(float));
    for (int round = 0; round < 50; round++) {
        float x[6], y[6];
        double dot = 0, length = 0, far = 0;

        for (size_t i = 0; i < 6; i++) {
            x[i] = 3 * next_float(&seed);
            y[i] = x[i] + 0.7f * next_float(&seed);
            far += ((double)x[i] - (double)y[i]) * ((double)x[i] - (double)y[i]);
        }
        fw_map_apply(m, x, a);
        fw_map_apply(m, y, b);
        for (size_t i = 0; i < 4096; i++) {
            dot += (double)a[i] * (double)b[i];
            length += (double)a[i] * (double)a[i];
        }
        ck_assert_double_eq_tol(length, 1, 1e-5);
        worst = fmax(worst, fabs(dot - exp(-far / 2)));
    }
    ck_assert_double_le(worst, 0.06); /* 1 / sqrt(2048) = .022 */
    fw_memory_free(m);
    fw_memory_free(again);
}
END_TEST

START_TEST(maps_that_make_no_sense_are_refused_by_key)
{
    static const struct {
        struct setup s;
        const char *param;
    } cases[] = {
        { { "delta", 1, 90, 2, { { "feature_map", "poly2", 0 } } }, "config.feature_map" },
        { { "delta", 1, 8, 2, { { "feature_map", "cosine", 0 } } }, "config.feature_map" },
        { { "delta", 1, 8, 2, { { "nu", NULL, 2 } } }, "config.nu" },
        { { "delta", 1, 8, 2, { { "feature_map", "relu", 0 }, { "features", NULL, 4 } } },
          "config.features" },
        { { "delta", 1, 8, 2, { { "feature_map", "rff", 0 }, { "features", NULL, 5 } } },
          "config.features" },
        { { "delta", 1, 8, 2, { { "feature_map", "l2", 0 }, { "key_norm", "l2", 0 } } },
          "config.feature_map" },
        { { "delta", 1, 8, 2, { { "feature_map", "poly2", 0 }, { "beta", NULL, 2 } } },
          "config.beta" },
        { { "linear", 1, 8, 2, { { "beta", NULL, 0.5 } } }, "config.beta" },
        { { "delta", 1, 8, 2, { { "pairs_per_token", NULL, 2 } } }, "config.pairs_per_token" },
        { { "delta_product", 1, 4096, 2, { { "pairs_per_token", NULL, 3 } } },
          "config.pairs_per_token" },
        { { "mamba2", 1, 8, 2, { { "form", "conv", 0 } } }, "config.form" },
    };
    struct fw_err err = { .code = FW_OK };
    struct fw_memory *m;

    ck_assert_int_eq(new_memory(&m, &cases[_i].s, cases[_i].s.rule, &err), -1);
    ck_assert_int_eq(err.code, FW_EINVAL);
    ck_assert_str_eq(err.param, cases[_i].param);
}
END_TEST

START_TEST(keys_too_large_for_a_map_are_refused)
{
    struct fw_memory *m = memory_with("relu^2", 3, NULL, 0);
    struct fw_err err = { .code = FW_OK };
    struct many b;
    size_t n;

    make_many(&b, m, 4, true, 1);
    b.data[0][3] = 1001;
    ck_assert_int_eq(fw_memory_check(m, &b.in, &n, &err), -1);
    ck_assert_str_eq(err.reason, "too_large");
    ck_assert_str_eq(err.param, "keys");
    free_many(&b);
    fw_memory_free(m);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("memory/feature");
    TCase *tc = tcase_create("feature");

    fw_num_init();
    fw_num_thread();
    tcase_add_loop_test(tc, elementwise_maps_are_what_they_are_called, 0, 5);
    tcase_add_test(tc, dpfp_multiplies_neighbours_and_divides_by_their_sum);
    tcase_add_test(tc, poly2_has_the_quadratic_kernel);
    tcase_add_test(tc, random_fourier_features_come_near_the_gaussian_kernel);
    tcase_add_loop_test(tc, maps_that_make_no_sense_are_refused_by_key, 0, 11);
    tcase_add_test(tc, keys_too_large_for_a_map_are_refused);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
