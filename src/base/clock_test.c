#include "config.h"

#include "test_main.h"

#include "fastweight/clock.h"

START_TEST(the_monotonic_clock_never_goes_back)
{
    uint64_t last = fw_clock_mono_ns(), now;
    int i;

    for (i = 0; i < 10000; i++) {
        now = fw_clock_mono_ns();
        ck_assert(now >= last);
        last = now;
    }
    ck_assert(last > 0);
}
END_TEST

START_TEST(the_wall_clock_counts_milliseconds_since_1970)
{
    int64_t now = fw_clock_wall_ms();

    ck_assert(now > INT64_C(1700000000000));  /* 2023 */
    ck_assert(now < INT64_C(32503680000000)); /* 3000 */
}
END_TEST

int main(void)
{
    Suite *s = suite_create("base/clock");
    TCase *tc = tcase_create("clock");

    tcase_add_test(tc, the_monotonic_clock_never_goes_back);
    tcase_add_test(tc, the_wall_clock_counts_milliseconds_since_1970);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
