/* stops_test.c - texts that grow by tokens, and where they end. */
#include "config.h"

#include "stops.h"

#include <string.h>

#include "test_main.h"

enum { TOKENS = 16 };

/* Adds the tokens ("|" between them); returns at which it stopped, or how many there are. */
static size_t grow(struct stops *t, const struct fw_sampling *s, const char *tokens)
{
    size_t n = 0, len;
    int rc = 0;

    ck_assert_int_eq(stops_init(t, s, TOKENS, NULL), 0);
    while (rc == 0) {
        len = strcspn(tokens, "|");
        rc = stops_add(t, tokens, len, NULL);
        if (rc == 0)
            n++;
        if (!tokens[len])
            break;
        tokens += len + 1;
    }
    ck_assert_int_ge(rc, 0);
    return n;
}

static void expect(const char *tokens, size_t stopped_at, size_t kept, const char *text)
{
    const struct fw_stop stop[] = { { "END", 3 }, { "\n\n", 2 } };
    const struct fw_sampling s = { .stop = stop, .stops = 2 };
    struct stops t = { 0 };

    ck_assert_uint_eq(grow(&t, &s, tokens), stopped_at);
    ck_assert_uint_eq(t.kept, kept);
    if (text) {
        ck_assert_uint_eq(t.cut, strlen(text));
        ck_assert_mem_eq(t.text.data, text, t.cut);
    }
    stops_done(&t);
}

START_TEST(a_text_ends_before_its_stop_string)
{
    expect("ab|END", 1, 1, "ab");
    expect("a|b|E|N|D", 4, 2, "ab");
    expect("END", 0, 0, "");
}
END_TEST

START_TEST(a_stop_string_may_begin_and_end_inside_of_tokens)
{
    expect("ab|cdE|NDef", 2, 1, "abcd");
    expect("xENDy", 0, 0, "x");
}
END_TEST

START_TEST(what_could_become_a_stop_string_is_held_back)
{
    expect("ab|E|N", 3, 1, NULL);
    expect("ab|E|N|x", 4, 4, NULL);
    expect("ab|E|E", 3, 2, NULL);
    expect("a\n|b", 2, 2, NULL);
}
END_TEST

START_TEST(of_two_stop_strings_the_first_to_begin_counts)
{
    expect("a|\n\nEND", 1, 1, "a");
    expect("aEND\n\n", 0, 0, "a");
    expect("EN|\n|\n", 2, 1, "EN");
}
END_TEST

START_TEST(tokens_without_text_are_kept_in_their_place)
{
    expect("a||E||ND", 4, 2, "a");
}
END_TEST

int main(void)
{
    Suite *s = suite_create("engine/stops");
    TCase *t = tcase_create("stops");

    tcase_add_test(t, a_text_ends_before_its_stop_string);
    tcase_add_test(t, a_stop_string_may_begin_and_end_inside_of_tokens);
    tcase_add_test(t, what_could_become_a_stop_string_is_held_back);
    tcase_add_test(t, of_two_stop_strings_the_first_to_begin_counts);
    tcase_add_test(t, tokens_without_text_are_kept_in_their_place);
    suite_add_tcase(s, t);
    return run_suite(s);
}
