#include "config.h"

#include "test_main.h"

#include <string.h>

#include "fastweight/num.h"

START_TEST(the_level_follows_the_cpu_and_can_be_lowered)
{
    unsetenv("FW_CPU_LEVEL");
    fw_num_init();
#if defined(HAVE_V3) && defined(__GNUC__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        ck_assert_str_eq(fw_num_cpu_level(), "x86-64-v3");
#endif
    setenv("FW_CPU_LEVEL", "base", 1);
    fw_num_init();
    ck_assert_int_eq(fw_num_level(), FW_LEVEL_BASE);
    ck_assert_str_eq(fw_num_cpu_level(), "baseline");
    setenv("FW_CPU_LEVEL", "", 1);
    fw_num_init();
}
END_TEST

START_TEST(thread_mode_flushes_subnormals_and_reads_them_as_zero)
{
    volatile float tiny = 0x1p-126f, sub = 0x1p-130f, y;

    fw_num_thread();
#if defined(__x86_64__)
    y = tiny * 0.5f;
    ck_assert(y == 0);
    y = sub * 0x1p20f;
    ck_assert(y == 0);
#else
    y = tiny * 0.5f;
    ck_assert(y <= sub * 16);
#endif
    y = 1.0f + 0x1.8p-24f; /* nearest, not down */
    ck_assert(y == 1.0f + 0x1p-23f);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("num/num");
    TCase *tc = tcase_create("num");

    tcase_add_test(tc, the_level_follows_the_cpu_and_can_be_lowered);
    tcase_add_test(tc, thread_mode_flushes_subnormals_and_reads_them_as_zero);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
