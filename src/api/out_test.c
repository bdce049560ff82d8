/* out_test.c - written JSON, checked by reading it back. */
#include "config.h"

#include "out.h"

#include <math.h>
#include <string.h>

#include <jansson.h>

#include "test_main.h"

static struct fw_buf buf;
static struct fw_err err;
static struct out o;

static void begin(void)
{
    fw_buf_done(&buf);
    fw_buf_init(&buf, 1 << 20);
    out_begin(&o, &buf, &err);
}

static const char *text(void)
{
    ck_assert_int_eq(o.rc, 0);
    ck_assert_int_eq(fw_buf_append(&buf, "", 1, &err), 0);
    return (const char *)buf.data;
}

START_TEST(commas_are_put_by_themselves)
{
    begin();
    out_open(&o, '{');
    out_u64(&o, "a", 0);
    out_key(&o, "b");
    out_open(&o, '[');
    out_close(&o, ']');
    out_key(&o, "c");
    out_open(&o, '[');
    out_u64(&o, NULL, 18446744073709551615u);
    out_open(&o, '{');
    out_bool(&o, "x", true);
    out_null(&o, "y");
    out_close(&o, '}');
    out_string(&o, NULL, "z");
    out_close(&o, ']');
    out_close(&o, '}');
    ck_assert_str_eq(text(), "{\"a\":0,\"b\":[],\"c\":[18446744073709551615,"
                             "{\"x\":true,\"y\":null},\"z\"]}");
}
END_TEST

START_TEST(numbers_read_back_as_the_same_double_and_non_finite_is_null)
{
    static const double v[] = { 0.1, 1.0 / 3, 5e-324, 1.7976931348623157e308, 3, -0.25 };
    json_t *array;
    size_t i;

    begin();
    out_open(&o, '[');
    for (i = 0; i < 6; i++)
        out_double(&o, NULL, v[i]);
    out_double(&o, NULL, (double)INFINITY);
    out_double(&o, NULL, (double)NAN);
    out_float(&o, NULL, 0.1f);
    out_close(&o, ']');
    array = json_loads(text(), 0, NULL);
    ck_assert_ptr_nonnull(array);
    for (i = 0; i < 6; i++)
        ck_assert(json_number_value(json_array_get(array, i)) == v[i]);
    ck_assert(json_is_null(json_array_get(array, 6)));
    ck_assert(json_is_null(json_array_get(array, 7)));
    ck_assert((float)json_real_value(json_array_get(array, 8)) == 0.1f);
    json_decref(array);
}
END_TEST

static void writes(const char *bytes, size_t len, const char *json)
{
    begin();
    out_text(&o, NULL, bytes, len);
    ck_assert_str_eq(text(), json);
}

START_TEST(text_is_escaped_and_broken_utf8_becomes_a_replacement_character)
{
    writes("a\"\\\n\x01\x7f", 6, "\"a\\\"\\\\\\n\\u0001\\u007f\"");
    writes("a\0b", 3, "\"a\\u0000b\"");
    writes("\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", 9,
           "\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\"");
    writes("\xff", 1, "\"\xef\xbf\xbd\"");
    writes("\xc0\xaf", 2, "\"\xef\xbf\xbd\xef\xbf\xbd\"");                 /* overlong */
    writes("\xed\xa0\x80", 3, "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""); /* surrogate */
    writes("\xe2\x82", 2, "\"\xef\xbf\xbd\"");                             /* cut short */
    writes("\xf0\x9f\x98z", 4, "\"\xef\xbf\xbdz\"");
    writes("\xf4\x90\x80\x80", 4, "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
}
END_TEST

START_TEST(base64_pads)
{
    begin();
    out_open(&o, '[');
    out_base64(&o, NULL, "", 0);
    out_base64(&o, NULL, "f", 1);
    out_base64(&o, NULL, "fo", 2);
    out_base64(&o, NULL, "foobar", 6);
    out_base64(&o, NULL, "\xff\xfe\xfd", 3);
    out_close(&o, ']');
    ck_assert_str_eq(text(), "[\"\",\"Zg==\",\"Zm8=\",\"Zm9vYmFy\",\"//79\"]");
}
END_TEST

START_TEST(times_are_rfc_3339)
{
    begin();
    out_time(&o, NULL, 1700000000042);
    ck_assert_str_eq(text(), "\"2023-11-14T22:13:20.042Z\"");
}
END_TEST

START_TEST(a_full_buffer_fails_once_and_for_all)
{
    begin();
    buf.max = 4;
    out_string(&o, NULL, "longer than that");
    out_u64(&o, NULL, 1);
    ck_assert_int_eq(o.rc, -1);
    ck_assert_int_eq(err.code, FW_ETOOBIG);
    ck_assert_uint_le(buf.len, 4);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("api/out");
    TCase *t = tcase_create("out");

    tcase_add_test(t, commas_are_put_by_themselves);
    tcase_add_test(t, numbers_read_back_as_the_same_double_and_non_finite_is_null);
    tcase_add_test(t, text_is_escaped_and_broken_utf8_becomes_a_replacement_character);
    tcase_add_test(t, base64_pads);
    tcase_add_test(t, times_are_rfc_3339);
    tcase_add_test(t, a_full_buffer_fails_once_and_for_all);
    suite_add_tcase(s, t);
    return run_suite(s);
}
