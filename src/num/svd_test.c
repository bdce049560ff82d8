#include "config.h"

#include "test_main.h"

#include "fastweight/num.h"

START_TEST(singular_values_of_a_wide_matrix_are_known)
{
    double A[6] = { 3, 0, 0, 0, 0, -4 }, sigma[2]; /* (2, 3) */

    ck_assert_int_eq(fw_singular_values(A, 2, 3, sigma, NULL), 0);
    ck_assert_double_eq_tol(sigma[0], 4, 1e-12);
    ck_assert_double_eq_tol(sigma[1], 3, 1e-12);
}
END_TEST

START_TEST(singular_values_of_a_tall_rank_one_matrix_are_known)
{
    double A[6] = { 1, 2, 2, 4, 2, 4 }, sigma[2]; /* (3, 2): (1, 2, 2)' (1, 2) */

    ck_assert_int_eq(fw_singular_values(A, 3, 2, sigma, NULL), 0);
    ck_assert_double_eq_tol(sigma[0], 3 * 2.23606797749979, 1e-12);
    ck_assert_double_eq_tol(sigma[1], 0, 1e-12);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("num/svd");
    TCase *tc = tcase_create("svd");

    fw_num_init();
    tcase_add_test(tc, singular_values_of_a_wide_matrix_are_known);
    tcase_add_test(tc, singular_values_of_a_tall_rank_one_matrix_are_known);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
