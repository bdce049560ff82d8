#include "config.h"

#include "test_main.h"

#include <math.h>

#include "memory_testing.h"

START_TEST(one_pair_makes_a_state_of_rank_one)
{
    const struct shape s = { "gated_delta", "none", 2, 8, 5, 1 };
    struct fw_memory *m = make_memory(&s);
    void *block = make_block(m);
    struct body b;
    struct fw_memory_head_stats st;
    double spectrum[5], residual[2], after[2];

    make_body(&b, &s, 1, 21);
    fw_memory_learn(m, block, &b.in, 0, 1, residual, NULL);
    fw_memory_score(m, block, &b.in, 0, 1, after);
    for (uint32_t h = 0; h < 2; h++) {
        ck_assert_int_eq(fw_memory_head_stats(m, block, h, &st, spectrum, NULL), 0);
        ck_assert_double_eq_tol(st.effective_rank, 1, 1e-5);
        ck_assert_double_eq_tol(spectrum[0], st.norm, 1e-6 * st.norm);
        ck_assert_double_lt(spectrum[1], 1e-6 * st.norm);
        ck_assert(st.residual_before == residual[h]);
        ck_assert_double_eq_tol(st.residual_after, after[h], 1e-6);
        ck_assert(st.log_g_sum == (double)b.data[4][h]);
        ck_assert_uint_eq(st.nonfinite, 0);
    }
    free_body(&b);
    free(block);
    fw_memory_free(m);
}
END_TEST

START_TEST(an_identity_has_full_effective_rank)
{
    const struct shape s = { "delta", "none", 1, 6, 6, 1 };
    struct fw_memory *m = make_memory(&s);
    void *block = make_block(m);
    float *S = field(m, block, "S");
    struct fw_memory_head_stats st;

    for (size_t i = 0; i < 6; i++)
        S[i * 7] = 2;
    ck_assert_int_eq(fw_memory_head_stats(m, block, 0, &st, NULL, NULL), 0);
    ck_assert_double_eq_tol(st.effective_rank, 6, 1e-9);
    ck_assert_double_eq_tol(st.norm, sqrt(24), 1e-12);
    S[3] = NAN;
    ck_assert_int_eq(fw_memory_head_stats(m, block, 0, &st, NULL, NULL), 0);
    ck_assert_uint_eq(st.nonfinite, 1);
    free(block);
    fw_memory_free(m);
}
END_TEST

START_TEST(an_empty_memory_has_no_rank_and_no_residual)
{
    const struct shape s = { "delta", "none", 1, 6, 3, 1 };
    struct fw_memory *m = make_memory(&s);
    void *block = make_block(m);
    struct fw_memory_head_stats st;

    ck_assert_int_eq(fw_memory_head_stats(m, block, 0, &st, NULL, NULL), 0);
    ck_assert(st.norm == 0 && st.effective_rank == 0);
    ck_assert(st.residual_before == 0 && st.residual_after == 0);
    free(block);
    fw_memory_free(m);
}
END_TEST

START_TEST(capacity_used_is_the_share_of_the_rank_or_of_the_places)
{
    const struct shape shapes[] = { { "delta", "none", 1, 6, 3, 1 },
                                    { "softmax", "none", 1, 6, 3, 1 },
                                    { "linear_norm", "none", 1, 6, 3, 1 } };

    for (size_t i = 0; i < 3; i++) {
        struct fw_memory *m = make_memory(&shapes[i]);
        void *block = make_block(m);
        struct fw_memory_head_stats st;
        struct body b;

        make_body(&b, &shapes[i], 512, 3);
        b.in.count = i == 1 ? 3 : 4 - (i == 2);
        ck_assert_int_eq(fw_memory_head_stats(m, block, 0, &st, NULL, NULL), 0);
        ck_assert(st.capacity_used == 0);
        ck_assert(isnan(st.covariance_condition));
        fw_memory_learn(m, block, &b.in, 0, 512, NULL, NULL);
        ck_assert_int_eq(fw_memory_head_stats(m, block, 0, &st, NULL, NULL), 0);
        if (i == 1) /* of 1,024 places */
            ck_assert(st.capacity_used == 0.5);
        else
            ck_assert_double_eq_tol(st.capacity_used, st.effective_rank / 3, 1e-12);
        ck_assert(st.capacity_used > 0.1 && st.capacity_used <= 1);
        free_body(&b);
        free(block);
        fw_memory_free(m);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("memory/inspect");
    TCase *tc = tcase_create("inspect");

    fw_num_init();
    fw_num_thread();
    tcase_add_test(tc, one_pair_makes_a_state_of_rank_one);
    tcase_add_test(tc, an_identity_has_full_effective_rank);
    tcase_add_test(tc, an_empty_memory_has_no_rank_and_no_residual);
    tcase_add_test(tc, capacity_used_is_the_share_of_the_rank_or_of_the_places);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
