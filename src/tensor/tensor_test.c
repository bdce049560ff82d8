#include "config.h"

#include "test_main.h"

#include <string.h>

#include "fastweight/tensor.h"

START_TEST(every_dtype_has_a_name_that_parses_back)
{
    static const size_t bytes[] = { 1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8 };
    enum fw_dtype back;
    int t;

    for (t = FW_U8; t <= FW_F64; t++) {
        ck_assert_uint_eq(fw_dtype_bytes((enum fw_dtype)t), bytes[t]);
        ck_assert_int_eq(fw_dtype_parse(fw_dtype_name((enum fw_dtype)t), &back), 0);
        ck_assert_int_eq((int)back, t);
    }
    ck_assert_str_eq(fw_dtype_name(FW_BF16), "BF16");
}
END_TEST

START_TEST(unknown_dtypes_are_refused)
{
    static const char *const bad[] = { "", "F", "f32", "F32 ", "BOOL", "F8_E4M3", "C64" };
    enum fw_dtype t;
    size_t i;

    for (i = 0; i < sizeof bad / sizeof bad[0]; i++)
        ck_assert_int_eq(fw_dtype_parse(bad[i], &t), -1);
}
END_TEST

START_TEST(a_shape_counts_its_elements)
{
    uint64_t n;

    ck_assert_int_eq(fw_shape_count(NULL, 0, &n, NULL), 0);
    ck_assert(n == 1); /* a scalar */
    ck_assert_int_eq(fw_shape_count((uint64_t[]){ 3, 5, 7, 1 }, 4, &n, NULL), 0);
    ck_assert(n == 105);
    ck_assert_int_eq(fw_shape_count((uint64_t[]){ 0, UINT64_MAX }, 2, &n, NULL), 0);
    ck_assert(n == 0);
    ck_assert_int_eq(fw_shape_count((uint64_t[]){ UINT64_MAX, 1 }, 2, &n, NULL), 0);
    ck_assert(n == UINT64_MAX);
}
END_TEST

START_TEST(an_overflowing_shape_is_refused_and_leaves_ret_alone)
{
    struct fw_err e = { 0 };
    uint64_t n = 42;
    uint64_t half = UINT64_C(1) << 32;

    ck_assert_int_eq(fw_shape_count((uint64_t[]){ half, half }, 2, &n, &e), -1);
    ck_assert_int_eq(e.code, FW_EINVAL);
    ck_assert_int_eq(fw_shape_count((uint64_t[]){ 3, UINT64_MAX / 2 }, 2, &n, &e), -1);
    ck_assert(n == 42);
}
END_TEST

START_TEST(find_lends_the_tensor_of_that_name)
{
    struct fw_tensor item[2] = { { .name = "keys" }, { .name = "values" } };
    struct fw_tensors ts = { 2, item }, none = { 0 };

    ck_assert_ptr_eq(fw_tensors_find(&ts, "values"), &item[1]);
    ck_assert_ptr_null(fw_tensors_find(&ts, "value"));
    ck_assert_ptr_null(fw_tensors_find(&none, "keys"));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("tensor/tensor");
    TCase *tc = tcase_create("tensor");

    tcase_add_test(tc, every_dtype_has_a_name_that_parses_back);
    tcase_add_test(tc, unknown_dtypes_are_refused);
    tcase_add_test(tc, a_shape_counts_its_elements);
    tcase_add_test(tc, an_overflowing_shape_is_refused_and_leaves_ret_alone);
    tcase_add_test(tc, find_lends_the_tensor_of_that_name);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
