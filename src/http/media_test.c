/* media_test.c - Content-Type and Accept. */
#include "config.h"

#include "media.h"

#include "test_main.h"

START_TEST(a_content_type_is_known_by_name_without_case_and_parameters)
{
    ck_assert_int_eq(media_parse("application/json"), FW_HTTP_JSON);
    ck_assert_int_eq(media_parse(" Application/JSON; charset=UTF-8"), FW_HTTP_JSON);
    ck_assert_int_eq(media_parse("text/plain;charset=us-ascii"), FW_HTTP_TEXT);
    ck_assert_int_eq(media_parse("application/vnd.safetensors"), FW_HTTP_SAFETENSORS);
    ck_assert_int_eq(media_parse("application/x-www-form-urlencoded"), FW_HTTP_JSON);
    ck_assert_int_eq(media_parse("application/jsonx"), 0);
    ck_assert_int_eq(media_parse(""), 0);
}
END_TEST

START_TEST(a_foreign_charset_is_not_taken)
{
    ck_assert_int_eq(media_parse("text/plain; charset=iso-8859-1"), 0);
    ck_assert_int_eq(media_parse("text/plain; charset=\"utf-8\""), FW_HTTP_TEXT);
}
END_TEST

START_TEST(accept_asks_for_a_form_only_by_its_own_name)
{
    ck_assert(media_accepts("text/html, image/png;q=0.5", FW_HTTP_PNG));
    ck_assert(media_accepts("application/vnd.safetensors", FW_HTTP_SAFETENSORS));
    ck_assert(!media_accepts("*/*", FW_HTTP_PNG));
    ck_assert(!media_accepts("image/*", FW_HTTP_PNG));
    ck_assert(!media_accepts(NULL, FW_HTTP_PNG));
    ck_assert(!media_accepts("", FW_HTTP_METRICS));
}
END_TEST

START_TEST(a_set_is_listed_by_name)
{
    char text[128];

    media_list(FW_HTTP_JSON | FW_HTTP_OCTETS, text, sizeof text);
    ck_assert_str_eq(text, "application/json, application/octet-stream");
    media_list(FW_HTTP_JSON | FW_HTTP_OCTETS, text, 20);
    ck_assert_uint_lt(strlen(text), 20);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("http/media");
    TCase *t = tcase_create("media");

    tcase_add_test(t, a_content_type_is_known_by_name_without_case_and_parameters);
    tcase_add_test(t, a_foreign_charset_is_not_taken);
    tcase_add_test(t, accept_asks_for_a_form_only_by_its_own_name);
    tcase_add_test(t, a_set_is_listed_by_name);
    suite_add_tcase(s, t);
    return run_suite(s);
}
