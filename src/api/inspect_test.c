/* inspect_test.c - dotted paths become nested objects. */
#include "config.h"

#include "op.h"

#include "test_main.h"

START_TEST(dotted_paths_become_nested_objects)
{
    static const double list[] = { 1, 2.5, (double)__builtin_inff() };
    static const char *const names[] = { "x", "y\"" };
    struct fw_report r;
    struct fw_buf b;
    struct fw_err err;
    struct out o;
    int rc = 0;

    fw_report_init(&r);
    rc |= fw_report_integer(&r, "tokens", 3, &err);
    rc |= fw_report_number(&r, "bits.all", 0.5, &err);
    rc |= fw_report_number(&r, "bits.last.1k", 0.25, &err);
    rc |= fw_report_number(&r, "bits.last.2k", 1, &err);
    rc |= fw_report_numbers(&r, "heads.list", list, 3, &err);
    rc |= fw_report_strings(&r, "heads.name", names, 2, &err);
    rc |= fw_report_numbers(&r, "none", list, 0, &err);
    rc |= fw_report_string(&r, "word", "z", &err);
    ck_assert_int_eq(rc, 0);
    fw_buf_init(&b, 4096);
    out_begin(&o, &b, &err);
    out_open(&o, '{');
    out_report(&o, &r);
    out_close(&o, '}');
    ck_assert_int_eq(o.rc, 0);
    ck_assert_int_eq(fw_buf_append(&b, "", 1, &err), 0);
    ck_assert_str_eq((char *)b.data,
                     "{\"tokens\":3,\"bits\":{\"all\":0.5,\"last\":{\"1k\":0.25,\"2k\":1}},"
                     "\"heads\":{\"list\":[1,2.5,null],\"name\":[\"x\",\"y\\\"\"]},\"none\":[],"
                     "\"word\":\"z\"}");
    fw_report_done(&r);
    fw_buf_done(&b);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("api/inspect");
    TCase *t = tcase_create("inspect");

    tcase_add_test(t, dotted_paths_become_nested_objects);
    suite_add_tcase(s, t);
    return run_suite(s);
}
