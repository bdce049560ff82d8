#include "config.h"

#include "test_main.h"

#include "tables.h"

static struct tables *t;

static void setup(void)
{
    ck_assert_int_eq(tables_new(&t, NULL), 0);
}

static void teardown(void)
{
    free(t);
}

START_TEST(the_states_are_closed_and_fit_a_byte)
{
    ck_assert_uint_gt(t->states, 100);
    ck_assert_uint_le(t->states, 255);
    for (unsigned s = 0; s < t->states; s++) {
        for (int y = 0; y < 2; y++)
            ck_assert_uint_lt(t->next[s][y], t->states);
        ck_assert_uint_lt(t->aged[s], t->states);
        ck_assert_uint_le(t->total[t->aged[s]], t->total[s]);
    }
}
END_TEST

START_TEST(short_histories_are_exact)
{
    unsigned seen[15], count = 0, first[8];

    for (unsigned bits = 0; bits < 8; bits++) {
        unsigned s = 0;

        for (int i = 2; i >= 0; i--)
            s = t->next[s][bits >> i & 1];
        first[bits] = s;
    }
    for (unsigned i = 0; i < 8; i++) {
        for (unsigned j = 0; j < count; j++)
            ck_assert_uint_ne(seen[j], first[i]);
        seen[count++] = first[i];
    }
}
END_TEST

START_TEST(a_contradiction_cuts_a_long_run)
{
    unsigned s = 0, before;

    for (int i = 0; i < 100; i++)
        s = t->next[s][1];
    before = t->total[s];
    ck_assert_uint_ge(before, 40);
    s = t->next[s][0];
    ck_assert_uint_lt(t->total[s], 10);
}
END_TEST

START_TEST(a_state_starts_from_its_own_counts)
{
    unsigned ones = t->next[t->next[0][1]][1];

    ck_assert_uint_eq(t->prior[0] >> 10, 1u << (MAP_P_BITS - 1));
    ck_assert_uint_gt(t->prior[ones] >> 10, 3u << (MAP_P_BITS - 2));
    ck_assert_uint_eq(t->prior[ones] & MAP_N_MAX, 0);
}
END_TEST

START_TEST(stretch_rises_and_is_odd)
{
    const int steps = 1 << STRETCH_BITS;

    for (int i = 0; i < steps; i++) {
        ck_assert(i == 0 || t->stretch[i] > t->stretch[i - 1]);
        ck_assert_float_eq_tol(t->stretch[i], -t->stretch[steps - 1 - i], 1e-5F);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("tables");
    TCase *tc = tcase_create("tables");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, the_states_are_closed_and_fit_a_byte);
    tcase_add_test(tc, short_histories_are_exact);
    tcase_add_test(tc, a_contradiction_cuts_a_long_run);
    tcase_add_test(tc, a_state_starts_from_its_own_counts);
    tcase_add_test(tc, stretch_rises_and_is_odd);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
