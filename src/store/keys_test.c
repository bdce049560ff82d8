#include "config.h"

#include "store_testing.h"

static struct fw_store *store;

static void set_up(void)
{
    make_dir();
    store = open_store();
}

static void tear_down(void)
{
    fw_store_close(store);
    remove_dir();
}

START_TEST(a_key_outlives_its_row_and_gets_its_mean_from_the_checkpoint)
{
    unsigned char block[64] = { 1 };
    struct fw_store_result result = { .key = "k1", .version = 1, .mean = 1.25 };
    int64_t uid = create(store, "a", 64);
    struct waiting w = a_checkpoint(uid, 1, block, 64);
    struct fw_store_key key;
    struct fw_err e = { 0 };

    ck_assert_int_eq(append(store, uid, 1, "x", "k1"), FW_OK);
    ck_assert_int_eq(append(store, uid, 2, "x", "k2"), FW_OK);
    ck_assert_int_eq(fw_store_key_find(store, uid, "k1", &key, &e), 0);
    ck_assert(!key.has_mean && key.version == 1 && key.digest.hi == 77 && key.digest.lo == 1);
    w.op.result = &result;
    w.op.results = 1;
    ck_assert_int_eq(carry_out(store, &w), FW_OK);
    fw_store_close(store);
    store = open_store();
    ck_assert_int_eq(fw_store_key_find(store, uid, "k1", &key, &e), 0);
    ck_assert(key.has_mean && key.mean == 1.25 && key.version == 1);
    ck_assert_int_eq(fw_store_key_find(store, uid, "k2", &key, &e), 0);
    ck_assert(!key.has_mean);
    ck_assert_int_eq(fw_store_key_find(store, uid, "k3", &key, &e), -1);
    ck_assert_int_eq(e.code, FW_ENOENT);
    ck_assert_int_eq(fw_store_key_find(store, uid + 1, "k1", &key, &e), -1);
}
END_TEST

START_TEST(a_checkpoint_writes_a_key_whole_when_its_row_never_came)
{
    unsigned char block[64] = { 1 };
    struct fw_store_result result = {
        .key = "k", .version = 1, .mean = 0.5, .digest = { 8, 9 }
    };
    int64_t uid = create(store, "a", 64);
    struct waiting w = a_checkpoint(uid, 1, block, 64);
    struct fw_store_key key;

    w.op.result = &result;
    w.op.results = 1;
    ck_assert_int_eq(carry_out(store, &w), FW_OK);
    ck_assert_int_eq(fw_store_key_find(store, uid, "k", &key, NULL), 0);
    ck_assert(key.version == 1 && key.has_mean && key.mean == 0.5);
    ck_assert(key.digest.hi == 8 && key.digest.lo == 9);
    result.version = 2; /* another learn's: the key keeps what the first one got */
    result.mean = 7;
    w.op.version = 2;
    ck_assert_int_eq(carry_out(store, &w), FW_OK);
    ck_assert_int_eq(fw_store_key_find(store, uid, "k", &key, NULL), 0);
    ck_assert(key.version == 1 && key.mean == 0.5);
}
END_TEST

START_TEST(a_key_of_255_bytes_fits_and_of_256_does_not)
{
    char text[257];
    int64_t uid = create(store, "a", 64);
    struct fw_store_row *rows;

    memset(text, 'k', 256);
    text[256] = 0;
    ck_assert_int_eq(append(store, uid, 1, "x", text), FW_ETOOBIG);
    text[255] = 0;
    ck_assert_int_eq(append(store, uid, 1, "x", text), FW_OK);
    ck_assert_int_eq(fw_store_journal(store, uid, 0, &rows, NULL), 0);
    ck_assert_str_eq(rows->key, text);
    fw_store_rows_free(rows);
}
END_TEST

/* n keys of versions 1..n, of which `old` were made two days ago. */
static void make_keys(int64_t uid, int n, int old)
{
    char sql[512];

    snprintf(sql, sizeof sql,
             "WITH RECURSIVE v(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM v WHERE i < %d)"
             " INSERT INTO keys SELECT %lld, 'key' || i, i, zeroblob(16), 0.5,"
             " (strftime('%%s') - iif(i <= %d, 172800, 60)) * 1000 FROM v;"
             " UPDATE sessions SET version = %d WHERE uid = %lld",
             n, (long long)uid, old, n, (long long)uid);
    meddle(sql);
}

START_TEST(the_last_1000_keys_stay_however_old)
{
    unsigned char block[64] = { 1 };
    int64_t uid = create(store, "a", 64), other = create(store, "b", 64);

    make_keys(uid, 1500, 1500);
    make_keys(other, 1500, 1500);
    ck_assert_int_eq(checkpoint(store, uid, 1500, block, 64), FW_OK);
    ck_assert_int_eq(ask("SELECT count(*) FROM keys WHERE uid = 1"), 1000);
    ck_assert_int_eq(ask("SELECT min(version) FROM keys WHERE uid = 1"), 501);
    ck_assert_int_eq(ask("SELECT count(*) FROM keys WHERE uid = 2"), 1500);
}
END_TEST

START_TEST(keys_of_the_last_day_stay_however_many)
{
    unsigned char block[64] = { 1 };
    int64_t uid = create(store, "a", 64);

    make_keys(uid, 5000, 300);
    ck_assert_int_eq(checkpoint(store, uid, 5000, block, 64), FW_OK);
    ck_assert_int_eq(ask("SELECT count(*) FROM keys"), 4700);
    ck_assert_int_eq(ask("SELECT min(version) FROM keys"), 301);
}
END_TEST

START_TEST(of_more_than_100000_keys_the_oldest_go)
{
    unsigned char block[64] = { 1 };
    int64_t uid = create(store, "a", 64);

    make_keys(uid, 100050, 0);
    ck_assert_int_eq(checkpoint(store, uid, 100050, block, 64), FW_OK);
    ck_assert_int_eq(ask("SELECT count(*) FROM keys"), 100000);
    ck_assert_int_eq(ask("SELECT min(version) FROM keys"), 51);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("store/keys");
    TCase *tc = tcase_create("keys");

    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, a_key_outlives_its_row_and_gets_its_mean_from_the_checkpoint);
    tcase_add_test(tc, a_checkpoint_writes_a_key_whole_when_its_row_never_came);
    tcase_add_test(tc, a_key_of_255_bytes_fits_and_of_256_does_not);
    tcase_add_test(tc, the_last_1000_keys_stay_however_old);
    tcase_add_test(tc, keys_of_the_last_day_stay_however_many);
    tcase_add_test(tc, of_more_than_100000_keys_the_oldest_go);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
