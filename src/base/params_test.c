#include "config.h"

#include "test_main.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "fastweight/params.h"

static uint64_t next_random(uint64_t *x)
{
    *x ^= *x << 13;
    *x ^= *x >> 7;
    *x ^= *x << 17;
    return *x;
}

static void set_random(struct fw_params *p, uint64_t *x)
{
    char key[32], text[64];
    size_t i, len = next_random(x) % 64;
    double number;
    uint64_t bits;

    snprintf(key, sizeof key, "k%d_%0*d", (int)(next_random(x) % 40), (int)(1 + *x % 20), 7);
    for (i = 0; i < len; i++) {
        text[i] = (char)(next_random(x) % 256);
        if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
            text[i] = '=';
    }
    text[len] = 0;
    bits = next_random(x);
    memcpy(&number, &bits, sizeof number);
    switch (next_random(x) % 3) {
    case 0:
        ck_assert_int_eq(fw_params_set_number(p, key, number, NULL), isfinite(number) ? 0 : -1);
        break;
    case 1:
        ck_assert_int_eq(fw_params_set_string(p, key, text, NULL), 0);
        break;
    default:
        ck_assert_int_eq(fw_params_set_bool(p, key, (int)(bits & 1), NULL), 0);
    }
}

START_TEST(print_and_parse_are_inverse_for_random_sets)
{
    uint64_t x = 88172645463325252u;
    char text[FW_PARAMS_TEXT], again[FW_PARAMS_TEXT];
    struct fw_err e = { 0 };
    int round, i, n;

    for (round = 0; round < 2000; round++) {
        struct fw_params p = { 0 }, back;
        n = (int)(next_random(&x) % (FW_MAX_PARAMS + 1));
        for (i = 0; i < n; i++)
            set_random(&p, &x);
        ck_assert_int_eq(fw_params_print(&p, text, sizeof text, &e), 0);
        ck_assert_msg(fw_params_parse(&back, text, &e) == 0, "%s: %s", e.msg, text);
        ck_assert_uint_eq(back.count, p.count);
        ck_assert_int_eq(memcmp(back.item, p.item, p.count * sizeof p.item[0]), 0);
        ck_assert_int_eq(fw_params_print(&back, again, sizeof again, &e), 0);
        ck_assert_str_eq(again, text);
    }
}
END_TEST

START_TEST(the_text_is_sorted_and_canonical)
{
    struct fw_params p = { 0 };
    char text[FW_PARAMS_TEXT];

    ck_assert_int_eq(fw_params_print(&p, text, sizeof text, NULL), 0);
    ck_assert_str_eq(text, "");
    fw_params_set_string(&p, "preset", "auto", NULL);
    fw_params_set_number(&p, "beta", 0.1, NULL);
    fw_params_set_bool(&p, "on", 5, NULL);
    fw_params_set_number(&p, "alpha", -0.0, NULL);
    fw_params_set_number(&p, "beta", 1.5, NULL);
    ck_assert_int_eq(fw_params_print(&p, text, sizeof text, NULL), 0);
    ck_assert_str_eq(text, "alpha=n:0\nbeta=n:1.5\non=b:1\npreset=s:auto\n");
    ck_assert_int_eq(fw_params_print(&p, text, 10, NULL), -1);
}
END_TEST

START_TEST(the_largest_set_fits_the_text)
{
    struct fw_params p = { 0 }, back;
    char text[FW_PARAMS_TEXT], key[32], value[64];
    int i;

    memset(value, 'v', sizeof value - 1);
    value[sizeof value - 1] = 0;
    for (i = 0; i < FW_MAX_PARAMS; i++) {
        snprintf(key, sizeof key, "k%030d", i);
        ck_assert_int_eq(fw_params_set_string(&p, key, value, NULL), 0);
    }
    ck_assert_int_eq(fw_params_print(&p, text, sizeof text, NULL), 0);
    ck_assert_int_eq(fw_params_parse(&back, text, NULL), 0);
    ck_assert_int_eq(memcmp(&p, &back, sizeof p), 0);
}
END_TEST

START_TEST(a_full_set_refuses_a_new_key_but_replaces_an_old_one)
{
    struct fw_params p = { 0 };
    struct fw_err e = { 0 };
    char key[32];
    int i;

    for (i = 0; i < FW_MAX_PARAMS; i++) {
        snprintf(key, sizeof key, "k%d", i);
        ck_assert_int_eq(fw_params_set_number(&p, key, i, &e), 0);
    }
    ck_assert_int_eq(fw_params_set_number(&p, "new", 1, &e), -1);
    ck_assert_int_eq(e.code, FW_EINVAL);
    ck_assert_int_eq(fw_params_set_bool(&p, "k31", 1, &e), 0);
    ck_assert_int_eq(fw_params_find(&p, "k31")->type, FW_PARAM_BOOL);
    ck_assert_uint_eq(p.count, FW_MAX_PARAMS);
}
END_TEST

START_TEST(bad_keys_and_values_are_refused_and_change_nothing)
{
    static const char *const key[] = {
        "", "a b", "a=b", "a\n", "a.b", "\xc3\xa4", "k1234567890123456789012345678901"
    };
    struct fw_params p = { 0 };
    struct fw_err e = { 0 };
    char text[65];
    size_t i;

    for (i = 0; i < sizeof key / sizeof key[0]; i++)
        ck_assert_int_eq(fw_params_set_number(&p, key[i], 1, &e), -1);
    memset(text, 'x', 64);
    text[64] = 0;
    ck_assert_int_eq(fw_params_set_string(&p, "s", text, &e), -1);
    ck_assert_str_eq(e.param, "config.s");
    ck_assert_int_eq(fw_params_set_string(&p, "s", "a\nb=n:1", &e), -1);
    ck_assert_int_eq(fw_params_set_string(&p, "s", "\x7f", &e), -1);
    ck_assert_int_eq(fw_params_set_number(&p, "n", (double)NAN, &e), -1);
    ck_assert_int_eq(fw_params_set_number(&p, "n", (double)INFINITY, &e), -1);
    ck_assert_str_eq(e.param, "config.n");
    ck_assert_uint_eq(p.count, 0);
}
END_TEST

START_TEST(an_absent_key_leaves_the_default)
{
    struct fw_params p = { 0 };
    double number = 0.25;
    size_t size = 7;
    const char *string = "auto";

    ck_assert_int_eq(fw_params_get_number(&p, "x", 1, 2, &number, NULL), 0);
    ck_assert_int_eq(fw_params_get_size(&p, "x", 1, 2, &size, NULL), 0);
    ck_assert_int_eq(fw_params_get_string(&p, "x", &string, NULL), 0);
    ck_assert(number == 0.25 && size == 7);
    ck_assert_str_eq(string, "auto");
    ck_assert_ptr_null(fw_params_find(&p, "x"));
}
END_TEST

START_TEST(a_wrong_type_is_refused_by_name)
{
    struct fw_params p = { 0 };
    struct fw_err e = { 0 };
    double number;
    size_t size;
    const char *string;

    fw_params_set_string(&p, "s", "1", NULL);
    fw_params_set_bool(&p, "b", 1, NULL);
    ck_assert_int_eq(fw_params_get_number(&p, "s", 0, 9, &number, &e), -1);
    ck_assert_str_eq(e.param, "config.s");
    ck_assert_int_eq(e.code, FW_EINVAL);
    ck_assert_int_eq(fw_params_get_size(&p, "b", 0, 9, &size, &e), -1);
    ck_assert_str_eq(e.param, "config.b");
    ck_assert_int_eq(fw_params_get_string(&p, "b", &string, &e), -1);
}
END_TEST

START_TEST(sizes_are_integers_within_their_bounds)
{
    static const double bad[] = { -1, 0.5, 2, 11, 1e300, 18446744073709551616.0, -1e300 };
    struct fw_params p = { 0 };
    struct fw_err e = { 0 };
    size_t i, size = 0;

    for (i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        fw_params_set_number(&p, "heads", bad[i], NULL);
        ck_assert_int_eq(fw_params_get_size(&p, "heads", 3, 10, &size, &e), -1);
        ck_assert_str_eq(e.param, "config.heads");
    }
    ck_assert_uint_eq(size, 0);
    fw_params_set_number(&p, "heads", 10, NULL);
    ck_assert_int_eq(fw_params_get_size(&p, "heads", 3, 10, &size, &e), 0);
    ck_assert_uint_eq(size, 10);
    fw_params_set_number(&p, "heads", 0, NULL);
    ck_assert_int_eq(fw_params_get_size(&p, "heads", 0, SIZE_MAX, &size, &e), 0);
    ck_assert_uint_eq(size, 0);
    fw_params_set_number(&p, "heads", 9007199254740992.0, NULL);
    ck_assert_int_eq(fw_params_get_size(&p, "heads", 0, SIZE_MAX, &size, &e), 0);
    ck_assert_uint_eq(size, 9007199254740992u);
}
END_TEST

START_TEST(numbers_lie_within_their_bounds)
{
    struct fw_params p = { 0 };
    struct fw_err e = { 0 };
    double number = 0;

    fw_params_set_number(&p, "beta", 1, NULL);
    ck_assert_int_eq(fw_params_get_number(&p, "beta", 0, 1, &number, &e), 0);
    ck_assert(number == 1);
    ck_assert_int_eq(fw_params_get_number(&p, "beta", 0, 0.5, &number, &e), -1);
    ck_assert_str_eq(e.param, "config.beta");
}
END_TEST

START_TEST(only_names_the_first_unknown_key)
{
    static const char *const known[] = { "a", "c", NULL };
    struct fw_params p = { 0 };
    struct fw_err e = { 0 };

    ck_assert_int_eq(fw_params_only(&p, known, &e), 0);
    fw_params_set_number(&p, "c", 1, NULL);
    fw_params_set_number(&p, "a", 1, NULL);
    ck_assert_int_eq(fw_params_only(&p, known, &e), 0);
    fw_params_set_number(&p, "z", 1, NULL);
    fw_params_set_number(&p, "b", 1, NULL);
    ck_assert_int_eq(fw_params_only(&p, known, &e), -1);
    ck_assert_str_eq(e.param, "config.b");
}
END_TEST

START_TEST(parse_refuses_all_but_the_canonical_text)
{
    static const char *const bad[] = {
        "a",         "a=n:1",          "=n:1\n",         "a=n:\n",    "a=n:1x\n", "a=n:1.0\n",
        "a=n: 1\n",  "a=n:0x1\n",      "a=n:nan\n",      "a=n:inf\n", "a=n:-0\n", "a=b:2\n",
        "a=b:\n",    "a=b:01\n",       "a=q:1\n",        "a=\n",      "a\n",      "\n",
        "a=n:1\n\n", "b=n:1\na=n:1\n", "a=n:1\na=n:1\n", "a=n:1\r\n", "a n:1\n",  "a=s:\x01\n",
    };
    struct fw_params p = { .count = 77 };
    struct fw_err e;
    size_t i;

    for (i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        e = (struct fw_err){ 0 };
        ck_assert_msg(fw_params_parse(&p, bad[i], &e) == -1, "accepted: %s", bad[i]);
        ck_assert_int_eq(e.code, FW_EINVAL);
    }
    ck_assert_uint_eq(p.count, 77);
}
END_TEST

START_TEST(parse_refuses_overlong_and_overmany_lines)
{
    static char text[3 * FW_PARAMS_TEXT];
    struct fw_params p;
    int i, at = 0;

    memset(text, 'x', sizeof text - 2);
    memcpy(text, "a=s:", 4);
    text[sizeof text - 2] = '\n';
    ck_assert_int_eq(fw_params_parse(&p, text, NULL), -1);
    for (i = 0; i <= FW_MAX_PARAMS; i++)
        at += snprintf(text + at, 32, "k%02d=n:1\n", i);
    ck_assert_int_eq(fw_params_parse(&p, text, NULL), -1);
    text[at - 8] = 0; /* one line less is the maximum */
    ck_assert_int_eq(fw_params_parse(&p, text, NULL), 0);
    ck_assert_uint_eq(p.count, FW_MAX_PARAMS);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("base/params");
    TCase *tc = tcase_create("params");

    tcase_add_test(tc, print_and_parse_are_inverse_for_random_sets);
    tcase_add_test(tc, the_text_is_sorted_and_canonical);
    tcase_add_test(tc, the_largest_set_fits_the_text);
    tcase_add_test(tc, a_full_set_refuses_a_new_key_but_replaces_an_old_one);
    tcase_add_test(tc, bad_keys_and_values_are_refused_and_change_nothing);
    tcase_add_test(tc, an_absent_key_leaves_the_default);
    tcase_add_test(tc, a_wrong_type_is_refused_by_name);
    tcase_add_test(tc, sizes_are_integers_within_their_bounds);
    tcase_add_test(tc, numbers_lie_within_their_bounds);
    tcase_add_test(tc, only_names_the_first_unknown_key);
    tcase_add_test(tc, parse_refuses_all_but_the_canonical_text);
    tcase_add_test(tc, parse_refuses_overlong_and_overmany_lines);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
