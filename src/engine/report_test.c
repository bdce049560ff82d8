#include "config.h"

#include "test_main.h"

#include <string.h>

#include "fastweight/report.h"

START_TEST(items_keep_their_order_paths_types_and_values)
{
    const char *const names[] = { "order1", "word" };
    const double rows[] = { 1, 2, 3 };
    struct fw_report r;

    fw_report_init(&r);
    ck_assert_int_eq(fw_report_number(&r, "bits.all", 1.5, NULL), 0);
    ck_assert_int_eq(fw_report_integers(&r, "heads.rows", rows, 3, NULL), 0);
    ck_assert_int_eq(fw_report_strings(&r, "heads.name", names, 2, NULL), 0);
    ck_assert_uint_eq(r.count, 3);
    ck_assert_str_eq(r.item[0].path, "bits.all");
    ck_assert_int_eq(r.item[0].type, FW_REPORT_NUMBER);
    ck_assert_int_eq(r.item[0].is_array, 0);
    ck_assert_double_eq(r.item[0].number[0], 1.5);
    ck_assert_int_eq(r.item[1].type, FW_REPORT_INTEGER);
    ck_assert_int_eq(r.item[1].is_array, 1);
    ck_assert_uint_eq(r.item[1].count, 3);
    ck_assert_double_eq(r.item[1].number[2], 3);
    ck_assert_str_eq(r.item[2].string[1], "word");
    fw_report_done(&r);
    ck_assert_uint_eq(r.count, 0);
}
END_TEST

START_TEST(many_items_and_empty_arrays_are_kept)
{
    struct fw_report r;
    int i;

    fw_report_init(&r);
    for (i = 0; i < 1000; i++)
        ck_assert_int_eq(fw_report_integer(&r, "x", i, NULL), 0);
    ck_assert_int_eq(fw_report_numbers(&r, "none", NULL, 0, NULL), 0);
    ck_assert_uint_eq(r.count, 1001);
    ck_assert_double_eq(r.item[999].number[0], 999);
    ck_assert_uint_eq(r.item[1000].count, 0);
    fw_report_done(&r);
}
END_TEST

START_TEST(a_string_longer_than_its_place_is_cut)
{
    char text[101];
    struct fw_report r;

    memset(text, 'a', 100);
    text[100] = 0;
    fw_report_init(&r);
    ck_assert_int_eq(fw_report_string(&r, "s", text, NULL), 0);
    ck_assert_uint_eq(strlen(r.item[0].string[0]), 63);
    fw_report_done(&r);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("report");
    TCase *tc = tcase_create("all");

    tcase_add_test(tc, items_keep_their_order_paths_types_and_values);
    tcase_add_test(tc, many_items_and_empty_arrays_are_kept);
    tcase_add_test(tc, a_string_longer_than_its_place_is_cut);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
