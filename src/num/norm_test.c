#include "config.h"

#include "test_main.h"

#include <math.h>

#include "fastweight/num.h"

START_TEST(sum_of_squares_is_right_for_every_length)
{
    float x[40];

    for (size_t n = 0; n <= 40; n++) {
        double want = 0;

        for (size_t i = 0; i < n; i++) {
            x[i] = (float)i - 7.25f;
            want += (double)x[i] * (double)x[i];
        }
        ck_assert_double_eq_tol(fw_sum_squares(x, n), want, 1e-9);
    }
}
END_TEST

START_TEST(sum_of_squares_adds_in_eight_lanes_to_the_bit)
{
    float x[100];

    for (size_t i = 0; i < 100; i++)
        x[i] = sinf((float)i) * expf(10 * sinf((float)(i * i)));
    for (size_t n = 0; n <= 100; n++) {
        double lane[8] = { 0 }, want = 0;

        for (size_t i = 0; i < n; i++)
            lane[i % 8] += (double)x[i] * (double)x[i];
        for (size_t l = 0; l < 8; l++)
            want += lane[l];
        ck_assert(fw_sum_squares(x, n) == want);
    }
}
END_TEST

START_TEST(sum_of_squares_of_the_largest_floats_is_finite)
{
    float x[9];

    for (size_t i = 0; i < 9; i++)
        x[i] = 0x1.fffffep+127f;
    ck_assert(isfinite(fw_sum_squares(x, 9)));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("num/norm");
    TCase *tc = tcase_create("norm");

    fw_num_init();
    tcase_add_test(tc, sum_of_squares_is_right_for_every_length);
    tcase_add_test(tc, sum_of_squares_adds_in_eight_lanes_to_the_bit);
    tcase_add_test(tc, sum_of_squares_of_the_largest_floats_is_finite);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
