/* in_test.c - strict JSON objects and ids. */
#include "config.h"

#include "in.h"

#include <stdlib.h>
#include <string.h>

#include "test_main.h"

static struct fw_err err;

static json_t *parse(const char *text)
{
    json_t *root = NULL;

    ck_assert_int_eq(in_parse(text, strlen(text), false, &root, &err), 0);
    return root;
}

static void refuses(const char *text, enum fw_code code, const char *reason)
{
    json_t *root = NULL;

    ck_assert_int_eq(in_parse(text, strlen(text), false, &root, &err), -1);
    ck_assert_int_eq(err.code, code);
    ck_assert_str_eq(err.reason, reason);
}

START_TEST(what_is_no_json_is_400_and_what_makes_no_sense_is_422)
{
    json_t *root;

    refuses("{", FW_ESYNTAX, "bad_json");
    refuses("{\"a\": NaN}", FW_ESYNTAX, "bad_json");
    refuses("{\"a\": 1} x", FW_ESYNTAX, "bad_json");
    refuses("{\"a\": 1, \"a\": 2}", FW_ESYNTAX, "bad_json");
    refuses("{\"a\": \"\xff\"}", FW_ESYNTAX, "bad_json");
    refuses("{\"a\": \"\\ud800\"}", FW_ESYNTAX, "bad_json");
    refuses("{\"a\": 1e999}", FW_EINVAL, "number_out_of_range");
    refuses("{\"a\": 99999999999999999999}", FW_EINVAL, "number_out_of_range");
    refuses("[1]", FW_EINVAL, "not_an_object");
    refuses(" \n", FW_EINVAL, "empty_body");
    ck_assert_int_eq(in_parse(" ", 1, true, &root, &err), 0);
    ck_assert_uint_eq(json_object_size(root), 0);
    json_decref(root);
}
END_TEST

START_TEST(a_body_holds_a_bounded_number_of_values)
{
    size_t len = 2u * (IN_MAX_VALUES + 2) + 10;
    char *text = malloc(len);
    size_t at = 6, i;
    json_t *root;

    memcpy(text, "{\"a\":[", 6);
    for (i = 0; i < IN_MAX_VALUES + 1; i++) {
        text[at++] = '1';
        text[at++] = ',';
    }
    memcpy(text + at - 1, "]}", 2);
    ck_assert_int_eq(in_parse(text, at + 1, false, &root, &err), -1);
    ck_assert_int_eq(err.code, FW_ETOOBIG);
    memset(text, ',', len); /* commas inside a string do not count */
    memcpy(text, "{\"a\":\"", 6);
    memcpy(text + len - 2, "\"}", 2);
    ck_assert_int_eq(in_parse(text, len, false, &root, &err), 0);
    json_decref(root);
    free(text);
}
END_TEST

START_TEST(fields_are_checked_by_name_and_type)
{
    static const char *const known[] = { "n", "s", "b", "x", NULL };
    json_t *root = parse("{\"n\": 3, \"s\": \"t\", \"b\": true, \"x\": 0.5}");
    const char *s = NULL;
    uint64_t n = 0;
    bool b = false;
    double x = 0;

    ck_assert_int_eq(in_only(root, known, &err), 0);
    ck_assert_int_eq(in_only(root, known + 1, &err), -1);
    ck_assert_str_eq(err.param, "n");
    ck_assert_int_eq(in_size(root, "n", 1, 3, &n, &err), 0);
    ck_assert_uint_eq(n, 3);
    ck_assert_int_eq(in_size(root, "n", 4, 5, &n, &err), -1);
    ck_assert_int_eq(in_size(root, "x", 0, 5, &n, &err), -1);
    ck_assert_int_eq(in_string(root, "s", &s, &err), 0);
    ck_assert_str_eq(s, "t");
    ck_assert_int_eq(in_string(root, "n", &s, &err), -1);
    ck_assert_int_eq(in_bool(root, "b", &b, &err), 0);
    ck_assert(b);
    ck_assert_int_eq(in_bool(root, "n", &b, &err), -1);
    ck_assert_int_eq(in_number(root, "x", 0, 1, &x, &err), 0);
    ck_assert(x == 0.5);
    ck_assert_int_eq(in_number(root, "x", 1, 2, &x, &err), -1);
    ck_assert_int_eq(in_number(root, "absent", 1, 2, &x, &err), 0);
    json_decref(root);
    root = parse("{\"s\": \"a\\u0000b\"}");
    ck_assert_int_eq(in_string(root, "s", &s, &err), -1);
    json_decref(root);
}
END_TEST

START_TEST(a_config_takes_scalars_only)
{
    struct fw_params p = { 0 };
    json_t *root = parse("{\"config\": {\"a\": 1, \"b\": \"t\", \"c\": false}}");

    ck_assert_int_eq(in_params(root, "config", &p, &err), 0);
    ck_assert_uint_eq(p.count, 3);
    json_decref(root);
    root = parse("{\"config\": {\"a\": []}}");
    ck_assert_int_eq(in_params(root, "config", &p, &err), -1);
    json_decref(root);
    root = parse("{\"config\": 3}");
    ck_assert_int_eq(in_params(root, "config", &p, &err), -1);
    json_decref(root);
}
END_TEST

START_TEST(ids_follow_their_grammar)
{
    char id[129], text[130];

    memset(text, 'a', sizeof text);
    ck_assert_int_eq(in_id(text, 128, "id", id, &err), 0);
    ck_assert_uint_eq(strlen(id), 128);
    ck_assert_int_eq(in_id(text, 129, "id", id, &err), -1);
    ck_assert_int_eq(in_id("0.b_C-", 6, "id", id, &err), 0);
    ck_assert_int_eq(in_id("", 0, "id", id, &err), -1);
    ck_assert_int_eq(in_id("..", 2, "id", id, &err), -1);
    ck_assert_int_eq(in_id("a/b", 3, "id", id, &err), -1);
    ck_assert_int_eq(in_id("a\0b", 3, "id", id, &err), -1);
    ck_assert_int_eq(in_id("a b", 3, "id", id, &err), -1);
    ck_assert_int_eq(in_id("\xc3\xa4", 2, "id", id, &err), -1);
    ck_assert_str_eq(err.reason, "bad_id");
}
END_TEST

int main(void)
{
    Suite *s = suite_create("api/in");
    TCase *t = tcase_create("in");

    tcase_set_timeout(t, 60);
    tcase_add_test(t, what_is_no_json_is_400_and_what_makes_no_sense_is_422);
    tcase_add_test(t, a_body_holds_a_bounded_number_of_values);
    tcase_add_test(t, fields_are_checked_by_name_and_type);
    tcase_add_test(t, a_config_takes_scalars_only);
    tcase_add_test(t, ids_follow_their_grammar);
    suite_add_tcase(s, t);
    return run_suite(s);
}
