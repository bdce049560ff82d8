#include "config.h"

#include "test_main.h"

#include <math.h>

#include "fastweight/fmath.h"
#include "fastweight/num.h"

/* The reference searches: the nearest representable value, ties to the even pattern. */
static uint16_t nearest(float x, float (*from)(uint16_t), uint16_t inf)
{
    uint16_t lo = 0, hi = inf;
    double a = fabs((double)x), below, above;
    double top = ldexp((double)from((uint16_t)(inf - 1)), 0);

    while (hi - lo > 1) {
        uint16_t mid = (uint16_t)((lo + hi) / 2);

        if ((double)from(mid) <= a)
            lo = mid;
        else
            hi = mid;
    }
    below = (double)from(lo);
    /* what inf stands for when rounding: one step above the largest finite */
    above = hi == inf ? 2 * top - (double)from((uint16_t)(inf - 2)) : (double)from(hi);
    if (a - below > above - a || (a - below == above - a && (lo & 1)))
        lo = hi;
    return (uint16_t)(lo | (signbit(x) ? 0x8000 : 0));
}

START_TEST(every_half_survives_the_way_to_float_and_back)
{
    uint32_t wrong = 0;

    for (uint32_t h = 0; h < 65536; h++) {
        float x = fw_from_f16((uint16_t)h), b = fw_from_bf16((uint16_t)h);

        wrong += fw_to_f16(x) != (isnan(x) ? h | 0x200 : h);
        wrong += fw_to_bf16(b) != (isnan(b) ? h | 0x40 : h);
    }
    ck_assert_uint_eq(wrong, 0);
}
END_TEST

START_TEST(known_values_are_right)
{
    ck_assert(fw_from_f16(0x3c00) == 1 && fw_from_f16(0x7bff) == 65504);
    ck_assert(fw_from_f16(1) == 0x1p-24f && fw_from_f16(0xfc00) == -INFINITY);
    ck_assert_uint_eq(fw_to_f16(65519.0f), 0x7bff);
    ck_assert_uint_eq(fw_to_f16(65520.0f), 0x7c00);
    ck_assert_uint_eq(fw_to_f16(0x1p-25f), 0); /* tie to even */
    ck_assert_uint_eq(fw_to_f16(0x1.000002p-25f), 1);
    ck_assert_uint_eq(fw_to_f16(0x1.ff8p-15f), 0x3ff);
    ck_assert_uint_eq(fw_to_bf16(0x1.fffffep+127f), 0x7f80);
    ck_assert_uint_eq(fw_to_bf16(1.0f + 0x1p-8f), 0x3f80);
    ck_assert_uint_eq(fw_to_bf16(1.0f + 0x1.8p-7f), 0x3f82);
}
END_TEST

START_TEST(rounding_is_to_the_nearest_even)
{
    uint32_t u = 1, wrong = 0; /* one assertion: libcheck writes each to a file */

    for (int i = 0; i < 300000; i++) {
        float x;

        u = u * 1664525u + 1013904223u;
        x = fw_unbitsf(i % 3 ? (u & 0x8fffffffu) | 0x30000000u : u);
        if (!isfinite(x) || fabsf(x) < 0x1p-126f)
            continue;
        wrong += fw_to_f16(x) != nearest(x, fw_from_f16, 0x7c00);
        wrong += fw_to_bf16(x) != nearest(x, fw_from_bf16, 0x7f80);
    }
    ck_assert_uint_eq(wrong, 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("num/half");
    TCase *tc = tcase_create("half");

    tcase_add_test(tc, every_half_survives_the_way_to_float_and_back);
    tcase_add_test(tc, known_values_are_right);
    tcase_add_test(tc, rounding_is_to_the_nearest_even);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
