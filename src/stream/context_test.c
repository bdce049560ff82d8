#include "config.h"

#include "test_main.h"

#include <string.h>

#include "context.h"

static uint8_t ring[4096];
static uint32_t table[512];
static struct regs regs;
static const struct history history = { ring, sizeof ring - 1, table, 511 };
static struct core_context in;

static void start(uint32_t pos)
{
    memset(ring, 0, sizeof ring);
    memset(table, 0, sizeof table);
    memset(&regs, 0, sizeof regs);
    context_init(&regs);
    regs.pos = regs.line_start = regs.start[0] = pos;
}

static void take(const char *text)
{
    for (; *text; text++) {
        uint32_t slot;

        ring[regs.pos & history.mask] = (uint8_t)*text;
        slot = context_advance(&regs, &history);
        ck_assert_uint_lt(slot, 512);
        table[slot] = regs.pos;
    }
    context_read(&regs, &history, &in);
}

static const uint32_t starts[] = { 1, 1000, UINT32_MAX - 30 };

START_TEST(the_match_goes_on_where_the_text_went_on)
{
    start(starts[_i]);
    take("a quick brown fox. a quick br");
    ck_assert_uint_eq(in.copy[0].symbol, 256 | 'o');
    ck_assert_uint_ge(regs.match_len, 6);
    take("own");
    ck_assert_uint_eq(in.copy[0].symbol, 256 | ' ');
}
END_TEST

START_TEST(a_match_survives_a_miss_but_not_many)
{
    start(1);
    take("0123456789abcdefghijklmnopqrstuvwxyz|0123456789");
    ck_assert_uint_eq(in.copy[0].symbol, 256 | 'a');
    take("X");
    ck_assert_uint_eq(in.copy[0].symbol, 256 | 'b');
    ck_assert_uint_eq(regs.match_len, 0);
    take("QWERTYUIOP");
    ck_assert_uint_eq(in.copy[0].symbol, 0);
}
END_TEST

START_TEST(above_is_the_same_field_of_the_line_before)
{
    start(starts[_i]);
    take("GET /index 200\n");
    ck_assert_uint_eq(in.copy[1].symbol, 256 | 'G');
    take("POST ");
    ck_assert_uint_eq(in.copy[1].symbol, 256 | '/');
    take("/in");
    ck_assert_uint_eq(in.copy[1].symbol, 256 | 'd');
}
END_TEST

START_TEST(digits_do_not_change_the_shape)
{
    uint32_t shape;

    start(1);
    take("id=17 ");
    shape = regs.shape;
    start(1);
    take("id=90210 ");
    ck_assert_uint_eq(regs.shape, shape);
    start(1);
    take("ip=17 ");
    ck_assert_uint_ne(regs.shape, shape);
}
END_TEST

START_TEST(words_know_no_case)
{
    uint32_t word;

    start(1);
    take("the Cat");
    word = regs.word[0];
    start(1);
    take("THE cAT");
    ck_assert_uint_eq(regs.word[0], word);
    ck_assert_uint_ne(regs.word[1], 0);
}
END_TEST

START_TEST(a_line_of_too_many_fields_is_taken)
{
    char line[1000];

    start(1);
    memset(line, ' ', sizeof line);
    line[998] = '\n';
    line[999] = 0;
    take(line);
    take(line);
    ck_assert_uint_le(regs.fields_above, MAX_FIELDS);
    ck_assert_int_eq(context_validate(&regs, NULL), 0);
}
END_TEST

START_TEST(registers_out_of_range_are_refused)
{
    start(1);
    regs.fields_above = MAX_FIELDS + 1;
    ck_assert_int_eq(context_validate(&regs, NULL), -1);
    regs.fields_above = 0;
    regs.match_missed = 9;
    ck_assert_int_eq(context_validate(&regs, NULL), -1);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("context");
    TCase *tc = tcase_create("context");

    tcase_add_loop_test(tc, the_match_goes_on_where_the_text_went_on, 0, 3);
    tcase_add_test(tc, a_match_survives_a_miss_but_not_many);
    tcase_add_loop_test(tc, above_is_the_same_field_of_the_line_before, 0, 3);
    tcase_add_test(tc, digits_do_not_change_the_shape);
    tcase_add_test(tc, words_know_no_case);
    tcase_add_test(tc, a_line_of_too_many_fields_is_taken);
    tcase_add_test(tc, registers_out_of_range_are_refused);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
