#include "config.h"

#include "store_testing.h"

START_TEST(what_is_created_is_listed_after_reopening)
{
    struct fw_store *s = open_store();
    int64_t a = create(s, "a", 64);

    ck_assert_int_eq(append(s, a, 1, "hello", NULL), FW_OK);
    fw_store_close(s);
    s = open_store();
    ck_assert_int_eq(journal_rows(s, a, 0, NULL), 1);
    ck_assert_int_gt(fw_store_next_uid(s), a);
    fw_store_close(s);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("store/store");
    TCase *tc = tcase_create("store");

    tcase_add_checked_fixture(tc, make_dir, remove_dir);
    tcase_add_test(tc, what_is_created_is_listed_after_reopening);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
