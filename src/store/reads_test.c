#include "config.h"

#include "store_testing.h"

#include <fcntl.h>
#include <stdatomic.h>

#define PAGE  16384
#define BYTES ((size_t)(1 << 20) + 4096)

static struct fw_store *store;
static unsigned char block[BYTES], back[BYTES];
static int64_t bad, good; /* two sessions, each with a block and a journal of three rows */

static void make_sessions(void)
{
    static const char *const key[] = { "k2", "k3", "k4" };
    uint64_t v;

    bad = create(store, "bad", BYTES);
    good = create(store, "good", BYTES);
    fill(block, BYTES, 1);
    ck_assert_int_eq(checkpoint(store, bad, 1, block, BYTES), FW_OK);
    ck_assert_int_eq(checkpoint(store, good, 1, block, BYTES), FW_OK);
    for (v = 2; v <= 4; v++) {
        ck_assert_int_eq(append(store, bad, v, "some text", key[v - 2]), FW_OK);
        ck_assert_int_eq(append(store, good, v, "some text", NULL), FW_OK);
    }
}

static void set_up(void)
{
    make_dir();
    store = open_store();
    make_sessions();
}

static void tear_down(void)
{
    fw_store_close(store);
    remove_dir();
}

static enum fw_code load(int64_t uid)
{
    struct fw_store_session row;
    struct fw_err e = { 0 };

    return fw_store_load(store, uid, back, BYTES, &row, &e) < 0 ? e.code : FW_OK;
}

static void expect_good_session(void)
{
    ck_assert_int_eq(load(good), FW_OK);
    ck_assert_int_eq(memcmp(back, block, BYTES), 0);
    ck_assert_int_eq(journal_rows(store, good, 1, NULL), 3);
}

static void damage(const char *sql, int64_t number)
{
    char text[256];

    snprintf(text, sizeof text, "%s%lld", sql, (long long)number);
    meddle(text);
}

START_TEST(a_missing_or_short_chunk_fails_its_session_alone)
{
    damage("UPDATE blocks SET data = substr(data, 2) WHERE id = ", bad * 2 * 1024 + 1);
    ck_assert_int_eq(load(bad), FW_ECORRUPT);
    damage("DELETE FROM blocks WHERE id = ", bad * 2 * 1024 + 1);
    ck_assert_int_eq(load(bad), FW_ECORRUPT);
    damage("DELETE FROM blocks WHERE id = ", bad * 2 * 1024);
    ck_assert_int_eq(load(bad), FW_ECORRUPT);
    expect_good_session();
}
END_TEST

START_TEST(every_change_of_a_journal_row_is_found)
{
    static const char *const change[] = {
        "body = CAST('some texu' AS BLOB)",
        "body = CAST('some tex' AS BLOB)",
        "tokens = 8",
        "key = 'l'",
        "key = NULL",
        "digest = zeroblob(16)",
        "digest = NULL",
        "checksum = 1",
    };
    char sql[256];
    enum fw_code code;
    size_t i;

    meddle("CREATE TABLE kept AS SELECT * FROM journal");
    for (i = 0; i < sizeof change / sizeof change[0]; i++) {
        snprintf(sql, sizeof sql, "UPDATE journal SET %s WHERE version = 2 AND uid = %lld",
                 change[i], (long long)bad);
        meddle(sql);
        code = FW_OK;
        ck_assert_msg(journal_rows(store, bad, 1, &code) == -1, "%s", change[i]);
        ck_assert_int_eq(code, FW_ECORRUPT);
        meddle("DELETE FROM journal; INSERT INTO journal SELECT * FROM kept");
        ck_assert_int_eq(journal_rows(store, bad, 1, NULL), 3);
    }
    expect_good_session();
}
END_TEST

START_TEST(a_missing_or_moved_row_is_a_gap)
{
    enum fw_code code = FW_OK;

    damage("UPDATE journal SET version = 9 WHERE version = 4 AND uid = ", bad);
    ck_assert_int_eq(journal_rows(store, bad, 1, &code), -1);
    ck_assert_int_eq(code, FW_ECORRUPT);
    damage("DELETE FROM journal WHERE version = 9 AND uid = ", bad);
    ck_assert_int_eq(journal_rows(store, bad, 1, NULL), 2);
    damage("DELETE FROM journal WHERE version = 2 AND uid = ", bad);
    ck_assert_int_eq(journal_rows(store, bad, 1, NULL), -1);
    ck_assert_int_eq(journal_rows(store, bad, 2, NULL), 1);
    expect_good_session();
}
END_TEST

/* Spoils the first four bytes of the first page in which `needle` lies. */
static void damage_page(const void *needle, size_t needle_len)
{
    static unsigned char page[PAGE];
    int fd = open(db_path(), O_RDWR), found = 0;
    off_t at = 0;

    ck_assert_int_ge(fd, 0);
    for (; !found && pread(fd, page, PAGE, at) == PAGE; at += PAGE)
        found = memmem(page, PAGE, needle, needle_len) != NULL;
    ck_assert(found);
    memset(page, 0xff, 4);
    ck_assert_int_eq(pwrite(fd, page, 4, at - PAGE), 4);
    close(fd);
}

START_TEST(a_damaged_page_of_a_block_fails_its_session_alone_and_it_can_be_deleted)
{
    struct waiting w = { .op = { .verb = FW_STORE_DELETE, .uid = bad } };

    fw_store_close(store);
    /* an overflow page of its first chunk now points nowhere */
    damage_page(block + 500000, 64);
    store = open_store();
    ck_assert_int_eq(load(bad), FW_ECORRUPT);
    expect_good_session();
    ck_assert_int_eq(carry_out(store, &w), FW_OK);
    ck_assert_int_eq(load(bad), FW_ENOENT);
    create(store, "bad", BYTES);
    expect_good_session();
}
END_TEST

struct seen {
    int all, damaged, named;
};

static int see(void *arg, const struct fw_store_session *row)
{
    struct seen *seen = arg;

    seen->all++;
    seen->damaged += row->damaged;
    seen->named += strncmp(row->id, "many", 4) == 0;
    return 0;
}

START_TEST(a_damaged_page_of_sessions_is_told_by_name_and_the_others_are_served)
{
    struct seen seen = { 0 };
    char labels[3000], id[16];
    int i;

    memset(labels, 'x', sizeof labels);
    labels[sizeof labels - 1] = 0;
    for (i = 0; i < 40; i++) {
        struct fw_store_session row = a_session(fw_store_next_uid(store), id, 64);
        struct waiting w = { .op = { .verb = FW_STORE_CREATE, .session = &row } };

        snprintf(id, sizeof id, "many%d", i);
        row.labels = labels;
        memcpy(labels, id, strlen(id) + 1);
        labels[strlen(id)] = '!';
        ck_assert_int_eq(carry_out(store, &w), FW_OK);
    }
    fw_store_close(store);
    damage_page("many20!", 7);
    store = open_store();
    ck_assert_int_eq(fw_store_sessions(store, see, &seen, NULL), 0);
    ck_assert(seen.all == 42 && seen.named == 40);
    ck_assert(seen.damaged >= 1 && seen.damaged <= 6);
    expect_good_session();
}
END_TEST

START_TEST(a_row_that_makes_no_sense_is_damaged)
{
    struct seen seen = { 0 };

    damage("UPDATE sessions SET hash = x'00' WHERE uid = ", bad);
    ck_assert_int_eq(fw_store_sessions(store, see, &seen, NULL), 0);
    ck_assert(seen.all == 2 && seen.damaged == 1);
    ck_assert_int_eq(load(bad), FW_ECORRUPT);
    expect_good_session();
}
END_TEST

struct reading {
    atomic_int stop;
    int64_t uid;
    int reads;
};

/* The block of version v is all bytes v. */
static void *read_again_and_again(void *arg)
{
    struct reading *r = arg;
    struct fw_store_session row;
    static unsigned char mine[BYTES];

    while (!atomic_load(&r->stop)) {
        ck_assert_int_eq(fw_store_load(store, r->uid, mine, BYTES, &row, NULL), 0);
        ck_assert_uint_eq(mine[0], row.version & 255);
        ck_assert_int_eq(memcmp(mine, mine + 1, BYTES - 1), 0);
        ck_assert_uint_eq(row.tokens_seen, 10 * row.version);
        r->reads++;
    }
    return NULL;
}

START_TEST(a_load_is_consistent_while_checkpoints_are_written)
{
    struct reading r = { .uid = good };
    pthread_t thread;
    uint64_t v;

    memset(block, 4, BYTES);
    ck_assert_int_eq(checkpoint(store, good, 4, block, BYTES), FW_OK);
    ck_assert_int_eq(pthread_create(&thread, NULL, read_again_and_again, &r), 0);
    for (v = 5; v < 60; v++) {
        memset(block, (int)v, BYTES);
        ck_assert_int_eq(checkpoint(store, good, v, block, BYTES), FW_OK);
    }
    atomic_store(&r.stop, 1);
    pthread_join(thread, NULL);
    ck_assert_int_gt(r.reads, 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("store/reads");
    TCase *tc = tcase_create("reads");

    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, a_missing_or_short_chunk_fails_its_session_alone);
    tcase_add_test(tc, every_change_of_a_journal_row_is_found);
    tcase_add_test(tc, a_missing_or_moved_row_is_a_gap);
    tcase_add_test(tc, a_damaged_page_of_a_block_fails_its_session_alone_and_it_can_be_deleted);
    tcase_add_test(tc, a_damaged_page_of_sessions_is_told_by_name_and_the_others_are_served);
    tcase_add_test(tc, a_row_that_makes_no_sense_is_damaged);
    tcase_add_test(tc, a_load_is_consistent_while_checkpoints_are_written);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
