#include "config.h"

#include "store_testing.h"

#include "store_int.h"

/* A database as version 1 of the schema made it, with one learned session in it. */
static void make_version_1(const char *more)
{
    struct fw_sql c;
    struct fw_err e = { 0 };
    struct fw_hash digest = { 5, 6 };
    char sql[512];

    ck_assert_int_eq(fw_sql_open(&c, db_path(), SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, &e),
                     0);
    ck_assert_int_eq(fw_schema_migrate(&c, 1, &e), 0);
    snprintf(
        sql, sizeof sql,
        "INSERT INTO sessions VALUES (7, 'default', 'old', 'bytes', '', '{}', 0, 0, 64, 0,"
        " zeroblob(16), 0, '', 0, zeroblob(16));"
        "INSERT INTO journal VALUES (7, 1, 3, 'k', x'%016x%016x', %lld, CAST('abc' AS BLOB));"
        "INSERT INTO keys VALUES (7, 'k', 1, x'%016x%016x', NULL, 1);%s",
        5, 6, (long long)fw_row_checksum(7, 1, 3, "k", &digest, "abc", 3), 5, 6, more);
    ck_assert_msg(fw_sql_exec(&c, sql, &e) == 0, "%s", e.msg);
    fw_sql_close(&c);
}

START_TEST(a_database_of_version_1_is_brought_to_version_2_with_its_contents)
{
    struct fw_store *s;
    struct fw_store_key key;
    unsigned char block[64] = { 1 };

    make_version_1("");
    ck_assert_int_eq(ask("PRAGMA user_version"), 1);
    s = open_store();
    ck_assert_int_eq(ask("PRAGMA user_version"), 2);
    ck_assert_int_eq(ask("SELECT count(*) FROM sqlite_schema WHERE name = 'keys_by_version'"),
                     1);
    ck_assert_int_eq(journal_rows(s, 7, 0, NULL), 1);
    ck_assert_int_eq(fw_store_key_find(s, 7, "k", &key, NULL), 0);
    ck_assert(key.digest.hi == 5 && key.digest.lo == 6);
    ck_assert_int_eq(append(s, 7, 2, "x", "k2"), FW_OK);
    ck_assert_int_eq(checkpoint(s, 7, 2, block, 64), FW_OK);
    ck_assert_int_eq(fw_store_next_uid(s), 8);
    fw_store_close(s);
}
END_TEST

START_TEST(a_migration_that_fails_leaves_the_old_version)
{
    struct fw_store *s;
    struct fw_err e = { 0 };

    make_version_1("CREATE INDEX keys_by_version ON keys (version)"); /* the name is taken */
    ck_assert_int_eq(fw_store_open(&s, test_dir, &e), -1);
    ck_assert_int_eq(ask("PRAGMA user_version"), 1);
    ck_assert_int_eq(ask("SELECT count(*) FROM journal"), 1);
    meddle("DROP INDEX keys_by_version");
    fw_store_close(open_store());
    ck_assert_int_eq(ask("PRAGMA user_version"), 2);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("store/schema");
    TCase *tc = tcase_create("schema");

    tcase_add_checked_fixture(tc, make_dir, remove_dir);
    tcase_add_test(tc, a_database_of_version_1_is_brought_to_version_2_with_its_contents);
    tcase_add_test(tc, a_migration_that_fails_leaves_the_old_version);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
