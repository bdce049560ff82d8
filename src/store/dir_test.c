#include "config.h"

#include "store_testing.h"

#include <fcntl.h>
#include <sys/stat.h>

static const char *in_dir(const char *name)
{
    static char path[128];

    snprintf(path, sizeof path, "%s/%s", test_dir, name);
    return path;
}

static void write_file(const char *path, const void *data, size_t len)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, data, len), (ssize_t)len);
    close(fd);
}

static struct fw_hash hash_of(const char *path)
{
    static char data[1 << 20];
    int fd = open(path, O_RDONLY);
    ssize_t n = read(fd, data, sizeof data);

    ck_assert_int_ge(n, 0);
    close(fd);
    return fw_hash128(data, (size_t)n);
}

static void expect_refusal(const char *reason)
{
    struct fw_store *s;
    struct fw_err e = { 0 };

    ck_assert_int_eq(fw_store_open(&s, test_dir, &e), -1);
    ck_assert_int_eq(e.code, FW_EIO);
    ck_assert_str_eq(e.reason, reason);
    ck_assert_str_ne(e.msg, "");
}

static void expect_refusal_untouched(const char *reason)
{
    struct fw_hash before = hash_of(db_path());

    expect_refusal(reason);
    ck_assert(fw_hash_equal(before, hash_of(db_path())));
    ck_assert_int_ne(access(in_dir("fastweightd.db-wal"), F_OK), 0);
}

START_TEST(a_missing_directory_is_made_for_its_owner_alone)
{
    struct stat st;

    ck_assert_int_eq(rmdir(test_dir), 0);
    fw_store_close(open_store());
    ck_assert_int_eq(stat(test_dir, &st), 0);
    ck_assert_int_eq(st.st_mode & 0777, 0700);
    ck_assert_int_eq(stat(db_path(), &st), 0);
    ck_assert_int_eq(st.st_mode & 0777, 0600);
    ck_assert_int_ne(access(in_dir("fastweightd.db.new"), F_OK), 0);
    ck_assert_int_ne(access(in_dir("fastweightd.db-wal"), F_OK), 0);
}
END_TEST

START_TEST(a_path_that_is_no_directory_is_a_clear_error)
{
    struct fw_store *s;
    struct fw_err e = { 0 };

    write_file(in_dir("lock"), "", 0);
    ck_assert_int_eq(fw_store_open(&s, in_dir("lock"), &e), -1);
    ck_assert_str_eq(e.reason, "data_dir_failed");
    ck_assert_ptr_nonnull(strstr(e.msg, test_dir));
    ck_assert_int_eq(fw_store_open(&s, in_dir("no/such"), &e), -1);
    ck_assert_ptr_nonnull(strstr(e.msg, "No such file"));
}
END_TEST

START_TEST(a_second_daemon_is_locked_out_until_the_first_has_closed)
{
    struct fw_store *s = open_store();

    expect_refusal("locked");
    fw_store_close(s);
    fw_store_close(open_store());
}
END_TEST

START_TEST(another_programs_file_is_refused_and_stays_as_it_is)
{
    static const char text[] = "this is no database at all";

    write_file(db_path(), text, sizeof text);
    expect_refusal_untouched("foreign_database");
    ck_assert_int_eq(unlink(db_path()), 0);
    meddle("CREATE TABLE t (x); INSERT INTO t VALUES (1)");
    expect_refusal_untouched("foreign_database");
    meddle("PRAGMA application_id = 42");
    expect_refusal_untouched("foreign_database");
}
END_TEST

START_TEST(a_newer_database_is_refused_and_stays_as_it_is)
{
    fw_store_close(open_store());
    meddle("PRAGMA user_version = 3; PRAGMA journal_mode = DELETE");
    expect_refusal_untouched("newer_database");
}
END_TEST

START_TEST(an_empty_file_becomes_a_database)
{
    struct fw_store *s;

    write_file(db_path(), "", 0);
    write_file(in_dir("fastweightd.db.new"), "half a database",
               15); /* a crash while creating */
    s = open_store();
    create(s, "a", 64);
    fw_store_close(s);
    ck_assert_int_eq(ask("PRAGMA page_size"), 16384);
    ck_assert_int_eq(ask("PRAGMA application_id"), 0x46577431);
}
END_TEST

START_TEST(a_wal_without_its_database_is_not_applied_to_a_new_one)
{
    write_file(in_dir("fastweightd.db-wal"), "something", 9);
    expect_refusal("database_missing");
    ck_assert_int_eq(access(in_dir("fastweightd.db-wal"), F_OK), 0);
}
END_TEST

START_TEST(a_copy_made_of_a_running_store_is_a_store)
{
    struct fw_store *s = open_store();
    int64_t uid = create(s, "a", 64);
    char sql[200];

    ck_assert_int_eq(append(s, uid, 1, "x", NULL), FW_OK);
    snprintf(sql, sizeof sql, "VACUUM INTO '%s'", in_dir("copy"));
    meddle(sql);
    ck_assert_int_eq(append(s, uid, 2, "x", NULL), FW_OK);
    fw_store_close(s);
    ck_assert_int_eq(rename(in_dir("copy"), db_path()), 0);
    s = open_store();
    ck_assert_int_eq(journal_rows(s, uid, 0, NULL), 1);
    ck_assert_int_gt(fw_store_next_uid(s), uid);
    fw_store_close(s);
    ck_assert_int_eq(ask("PRAGMA page_size"), 16384);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("store/dir");
    TCase *tc = tcase_create("dir");

    tcase_add_checked_fixture(tc, make_dir, remove_dir);
    tcase_add_test(tc, a_missing_directory_is_made_for_its_owner_alone);
    tcase_add_test(tc, a_path_that_is_no_directory_is_a_clear_error);
    tcase_add_test(tc, a_second_daemon_is_locked_out_until_the_first_has_closed);
    tcase_add_test(tc, another_programs_file_is_refused_and_stays_as_it_is);
    tcase_add_test(tc, a_newer_database_is_refused_and_stays_as_it_is);
    tcase_add_test(tc, an_empty_file_becomes_a_database);
    tcase_add_test(tc, a_wal_without_its_database_is_not_applied_to_a_new_one);
    tcase_add_test(tc, a_copy_made_of_a_running_store_is_a_store);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
