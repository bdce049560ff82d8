#include "config.h"

#include "fastweight/utf8.h"

#include <check.h>

#include "test_main.h"

START_TEST(every_character_is_put_and_got_back_whole)
{
    for (uint32_t c = 0; c <= 0x10ffff; c++) {
        unsigned char p[4];
        bool valid, good;
        size_t len;

        if (c == 0xd800)
            c = 0xe000;
        len = fw_utf8_put(c, p);
        good = fw_utf8_piece(p, len, &valid) == len && valid && fw_utf8_get(p, len) == c &&
               fw_utf8_settled(p, len) == len;
        for (size_t part = 1; part < len; part++)
            good = good && fw_utf8_settled(p, part) == 0;
        if (!good) /* an assertion a character would take minutes */
            ck_abort_msg("U+%04X", (unsigned)c);
    }
}
END_TEST

START_TEST(surrogates_overlong_forms_and_stray_bytes_are_broken)
{
    static const char *const broken[] = {
        "\xed\xa0\x80",     "\xc0\x80", "\xe0\x80\x80", "\x80",
        "\xf4\x90\x80\x80", "\xf5",     "\xff",         "\xc3("
    };
    bool valid;

    for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++) {
        const unsigned char *p = (const unsigned char *)broken[i];

        ck_assert_uint_eq(fw_utf8_piece(p, strlen(broken[i]), &valid), 1);
        ck_assert(!valid);
    }
}
END_TEST

START_TEST(only_a_last_character_that_may_become_whole_is_held_back)
{
    static const struct {
        const char *bytes;
        size_t settled;
    } cases[] = {
        { "", 0 },
        { "abc", 3 },
        { "ab\xc3", 2 },
        { "ab\xc3\xa9", 4 },
        { "a\xe2\x82", 1 },
        { "a\xe2\x82\xac", 4 },
        { "\xf0\x9f\x98", 0 },
        { "\xf0\x9f\x98\x80", 4 },
        { "a\xed\xa0", 3 },        /* a surrogate never becomes whole */
        { "a\xe0\x80", 3 },        /* overlong */
        { "\x80\x80\x80\x80", 4 }, /* no lead byte */
        { "\xc3\xa9\xa9", 3 },     /* whole and a stray byte */
        { "a\xff", 2 },            /* never a lead byte */
        { "\xe2\xe2\x82", 1 },     /* the first is broken, the second is begun */
        { "\xf0\x9f\x98\x80\xf0", 4 },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        ck_assert_uint_eq(
            fw_utf8_settled((const unsigned char *)cases[i].bytes, strlen(cases[i].bytes)),
            cases[i].settled);
}
END_TEST

/* What a stream of text does: bytes come one at a time, and what is settled goes out. */
START_TEST(a_text_that_goes_out_as_it_settles_is_the_text_and_every_part_is_whole)
{
    static const char text[] = "na\xc3\xafve \xe2\x82\xac \xf0\x9f\x98\x80 \xe6\xbc\xa2";
    unsigned char held[4];
    char out[sizeof text];
    size_t have = 0, sent = 0;

    for (size_t i = 0; i < sizeof text - 1; i++) {
        size_t n;
        bool valid = true;

        held[have++] = (unsigned char)text[i];
        n = fw_utf8_settled(held, have);
        for (size_t at = 0; at < n; at += fw_utf8_piece(held + at, n - at, &valid))
            ck_assert(valid);
        memcpy(out + sent, held, n);
        sent += n;
        memmove(held, held + n, have - n);
        have -= n;
        ck_assert_uint_le(have, 3);
    }
    ck_assert_uint_eq(have, 0);
    ck_assert_uint_eq(sent, sizeof text - 1);
    ck_assert_mem_eq(out, text, sent);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("utf8");
    TCase *t = tcase_create("utf8");

    tcase_add_test(t, every_character_is_put_and_got_back_whole);
    tcase_add_test(t, surrogates_overlong_forms_and_stray_bytes_are_broken);
    tcase_add_test(t, only_a_last_character_that_may_become_whole_is_held_back);
    tcase_add_test(t, a_text_that_goes_out_as_it_settles_is_the_text_and_every_part_is_whole);
    suite_add_tcase(s, t);
    return run_suite(s);
}
