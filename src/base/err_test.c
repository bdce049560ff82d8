#include "config.h"

#include "test_main.h"

#include <string.h>

#include "fastweight/err.h"

START_TEST(fail_fills_code_reason_and_message_and_returns_minus_one)
{
    struct fw_err e = { .param = "stale" };

    ck_assert_int_eq(fw_fail(&e, FW_ENOENT, "session_not_found", "session '%s'", "x"), -1);
    ck_assert_int_eq(e.code, FW_ENOENT);
    ck_assert_str_eq(e.reason, "session_not_found");
    ck_assert_str_eq(e.param, "");
    ck_assert_str_eq(e.msg, "session 'x'");
}
END_TEST

START_TEST(fail_param_names_the_field)
{
    struct fw_err e = { 0 };

    ck_assert_int_eq(fw_fail_param(&e, FW_EINVAL, "bad_value", "config.heads", "no"), -1);
    ck_assert_str_eq(e.param, "config.heads");
}
END_TEST

START_TEST(fail_cuts_what_does_not_fit)
{
    struct fw_err e;
    char text[1000];

    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = 0;
    fw_fail(&e, FW_EIO, text, "%s", text);
    ck_assert_uint_eq(strlen(e.msg), sizeof e.msg - 1);
    ck_assert_uint_eq(strlen(e.reason), sizeof e.reason - 1);
}
END_TEST

START_TEST(fail_accepts_null)
{
    ck_assert_int_eq(fw_fail(NULL, FW_EIO, "x", "x"), -1);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("base/err");
    TCase *tc = tcase_create("err");

    tcase_add_test(tc, fail_fills_code_reason_and_message_and_returns_minus_one);
    tcase_add_test(tc, fail_param_names_the_field);
    tcase_add_test(tc, fail_cuts_what_does_not_fit);
    tcase_add_test(tc, fail_accepts_null);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
