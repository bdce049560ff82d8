#include "config.h"

#include "store_testing.h"

#define BIG ((size_t)2 * (1 << 20) + 64) /* three chunks */

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

static void reopen(void)
{
    fw_store_close(store);
    store = open_store();
}

static int64_t create_with_block(const char *id, const unsigned char *block, size_t bytes)
{
    struct fw_store_session row = a_session(fw_store_next_uid(store), id, bytes);
    struct waiting w = {
        .op = { .verb = FW_STORE_CREATE, .session = &row, .block = block, .block_bytes = bytes }
    };

    row.version = 1;
    row.tokens_seen = 5;
    row.parent_id = "mother";
    row.parent_version = 9;
    row.parent_hash = (struct fw_hash){ 3, 4 };
    row.hash = fw_hash128(block, bytes);
    ck_assert_int_eq(carry_out(store, &w), FW_OK);
    return row.uid;
}

static enum fw_code load(int64_t uid, void *block, size_t bytes, struct fw_store_session *ret)
{
    struct fw_err e = { 0 };

    return fw_store_load(store, uid, block, bytes, ret, &e) < 0 ? e.code : FW_OK;
}

static enum fw_code delete_session(int64_t uid)
{
    struct waiting w = { .op = { .verb = FW_STORE_DELETE, .uid = uid } };

    return carry_out(store, &w);
}

static enum fw_code set_labels(int64_t uid, const char *labels)
{
    struct waiting w = { .op = { .verb = FW_STORE_LABELS, .uid = uid, .labels = labels } };

    return carry_out(store, &w);
}

static enum fw_code snapshot(int64_t uid, const char *name, const void *block, size_t bytes)
{
    struct waiting w = { .op = { .verb = FW_STORE_SNAPSHOT,
                                 .uid = uid,
                                 .name = name,
                                 .version = 7,
                                 .tokens = 70,
                                 .block = block,
                                 .block_bytes = bytes,
                                 .hash = fw_hash128(block, bytes) } };

    return carry_out(store, &w);
}

static enum fw_code drop_snapshot(int64_t uid, const char *name)
{
    struct waiting w = { .op = { .verb = FW_STORE_SNAPSHOT_DELETE, .uid = uid, .name = name } };

    return carry_out(store, &w);
}

struct seen {
    int count, stop_at, damaged;
    int64_t uid[8];
    struct fw_store_session last;
    char id[FW_ID_MAX], config[64], labels[64], parent[FW_ID_MAX];
};

static int see(void *arg, const struct fw_store_session *row)
{
    struct seen *seen = arg;

    ck_assert_int_lt(seen->count, 8);
    seen->uid[seen->count++] = row->uid;
    seen->damaged += row->damaged;
    seen->last = *row;
    snprintf(seen->id, sizeof seen->id, "%s", row->id);
    snprintf(seen->config, sizeof seen->config, "%s", row->config);
    snprintf(seen->labels, sizeof seen->labels, "%s", row->labels);
    snprintf(seen->parent, sizeof seen->parent, "%s", row->parent_id);
    return seen->count == seen->stop_at;
}

static struct seen list(int stop_at)
{
    struct seen seen = { .stop_at = stop_at };
    struct fw_err e = { 0 };

    ck_assert_msg(fw_store_sessions(store, see, &seen, &e) == 0, "%s", e.msg);
    return seen;
}

START_TEST(sessions_are_listed_in_uid_order_with_all_their_facts)
{
    static unsigned char block[64];
    int64_t z = create(store, "z", 64), a;
    struct seen seen;

    fill(block, sizeof block, 1);
    a = create_with_block("a", block, sizeof block);
    ck_assert_int_eq(append(store, a, 2, "hello", NULL), FW_OK);
    ck_assert_int_eq(append(store, a, 3, "you", NULL), FW_OK);
    reopen();
    seen = list(0);
    ck_assert_int_eq(seen.count, 2);
    ck_assert(seen.uid[0] == z && seen.uid[1] == a && z < a);
    ck_assert_str_eq(seen.id, "a");
    ck_assert_str_eq(seen.config, "preset=s:auto\n");
    ck_assert_str_eq(seen.parent, "mother");
    ck_assert(seen.last.version == 1 && seen.last.tokens_seen == 5);
    ck_assert(seen.last.block_bytes == 64 && seen.last.has_block);
    ck_assert(fw_hash_equal(seen.last.hash, fw_hash128(block, 64)));
    ck_assert(seen.last.parent_version == 9 && seen.last.parent_hash.lo == 4);
    ck_assert_int_eq(seen.last.created_ms, 1700000000000);
    ck_assert(seen.last.journal_rows == 2 && seen.last.journal_bytes == 8);
    ck_assert_uint_eq(seen.last.journal_tokens, 8);
    ck_assert_int_eq(list(1).count, 1);
}
END_TEST

START_TEST(a_taken_id_is_refused_and_the_first_stays)
{
    struct fw_store_session row = a_session(0, "a", 64);
    struct waiting w = { .op = { .verb = FW_STORE_CREATE, .session = &row } };
    int64_t a = create(store, "a", 64);

    row.uid = fw_store_next_uid(store);
    ck_assert_int_eq(carry_out(store, &w), FW_EEXIST);
    ck_assert_str_eq(w.op.err.reason, "session_exists");
    ck_assert_int_eq(list(0).count, 1);
    row.owner = "other"; /* ids are unique per owner */
    ck_assert_int_eq(carry_out(store, &w), FW_OK);
    ck_assert_int_eq(list(0).count, 2);
    ck_assert(list(1).uid[0] == a);
}
END_TEST

START_TEST(a_block_comes_back_byte_for_byte_after_reopening)
{
    static const size_t size[] = { 1, 64, 1 << 20, (1 << 20) + 1, BIG };
    static unsigned char block[BIG], back[BIG];
    struct fw_store_session row;
    char id[8];
    size_t i;
    int64_t uid;

    for (i = 0; i < sizeof size / sizeof size[0]; i++) {
        fill(block, size[i], i);
        snprintf(id, sizeof id, "s%zu", i);
        uid = create_with_block(id, block, size[i]);
        reopen();
        memset(back, 0, sizeof back);
        ck_assert_int_eq(load(uid, back, size[i], &row), FW_OK);
        ck_assert(row.has_block && row.version == 1 && row.tokens_seen == 5);
        ck_assert_int_eq(memcmp(back, block, size[i]), 0);
        ck_assert(fw_hash_equal(row.hash, fw_hash128(back, size[i])));
        ck_assert_str_eq(row.model, "");
    }
}
END_TEST

START_TEST(a_session_without_a_block_leaves_the_callers_bytes_alone)
{
    unsigned char block[64] = { 7 };
    struct fw_store_session row;
    int64_t uid = create(store, "a", 64);

    ck_assert_int_eq(load(uid, block, 64, &row), FW_OK);
    ck_assert(!row.has_block && row.version == 0 && block[0] == 7);
    ck_assert_int_eq(load(uid, block, 63, &row), FW_ECORRUPT);
    ck_assert_int_eq(load(uid + 1, block, 64, &row), FW_ENOENT);
}
END_TEST

START_TEST(journal_rows_come_back_in_order_above_a_version)
{
    struct fw_store_row *rows;
    int64_t uid = create(store, "a", 64), other = create(store, "b", 64);

    ck_assert_int_eq(append(store, uid, 1, "one", NULL), FW_OK);
    ck_assert_int_eq(append(store, other, 1, "x", NULL), FW_OK);
    ck_assert_int_eq(append(store, uid, 2, "", NULL), FW_OK);
    ck_assert_int_eq(append(store, uid, 3, "three", "key-3"), FW_OK);
    reopen();
    ck_assert_int_eq(fw_store_journal(store, uid, 0, &rows, NULL), 0);
    ck_assert_uint_eq(count_rows(rows), 3);
    ck_assert(rows->version == 1 && rows->tokens == 3 && rows->body_len == 3);
    ck_assert_int_eq(memcmp(rows->body, "one", 3), 0);
    ck_assert_uint_eq((uintptr_t)rows->body % 64, 0);
    ck_assert_str_eq(rows->key, "");
    ck_assert(rows->next->version == 2 && rows->next->body_len == 0);
    ck_assert_str_eq(rows->next->next->key, "key-3");
    ck_assert(rows->next->next->digest.hi == 77 && rows->next->next->digest.lo == 3);
    fw_store_rows_free(rows);
    ck_assert_int_eq(journal_rows(store, uid, 2, NULL), 1);
    ck_assert_int_eq(journal_rows(store, uid, 3, NULL), 0);
}
END_TEST

START_TEST(a_body_of_16_mib_fits_and_one_over_64_mib_does_not)
{
    const size_t len = (size_t)16 << 20;
    unsigned char *body = malloc(len);
    struct waiting w = an_append(create(store, "a", 64), 1, "", NULL);
    struct fw_store_row *rows;

    ck_assert_ptr_nonnull(body);
    fill(body, len, 3);
    w.op.body = body;
    w.op.body_len = len;
    ck_assert_int_eq(carry_out(store, &w), FW_OK);
    ck_assert_int_eq(fw_store_journal(store, w.op.uid, 0, &rows, NULL), 0);
    ck_assert_uint_eq(rows->body_len, len);
    ck_assert_int_eq(memcmp(rows->body, body, len), 0);
    fw_store_rows_free(rows);
    w.op.version = 2;
    w.op.body_len = ((size_t)64 << 20) + 1; /* refused before it is read */
    ck_assert_int_eq(carry_out(store, &w), FW_ETOOBIG);
    free(body);
}
END_TEST

START_TEST(a_gap_in_the_journal_is_refused_and_writes_nothing)
{
    int64_t uid = create(store, "a", 64);
    struct waiting w = an_append(uid, 2, "x", "k");

    ck_assert_int_eq(carry_out(store, &w), FW_ENOSPC);
    ck_assert_str_eq(w.op.err.reason, "journal_gap");
    ck_assert_int_eq(append(store, uid, 1, "x", NULL), FW_OK);
    ck_assert_int_eq(append(store, uid, 1, "x", NULL), FW_EINTERNAL);
    ck_assert_int_eq(append(store, uid, 3, "x", NULL), FW_ENOSPC);
    ck_assert_int_eq(append(store, uid, 2, "x", NULL), FW_OK);
    ck_assert_int_eq(journal_rows(store, uid, 0, NULL), 2);
    ck_assert_int_eq(ask("SELECT count(*) FROM keys"), 0);
}
END_TEST

START_TEST(after_one_failed_row_the_later_ones_in_flight_fail_too)
{
    int64_t uid = create(store, "a", 64), other = create(store, "b", 64);
    struct waiting w[4] = { an_append(uid, 1, "x", NULL), an_append(uid, 2, "x", NULL),
                            an_append(uid, 3, "x", NULL), an_append(other, 1, "x", NULL) };
    int i;

    w[1].op.body_len = SIZE_MAX; /* fails by itself */
    for (i = 0; i < 4; i++)
        submit(store, &w[i]);
    ck_assert_int_eq(wait_for(&w[0]), FW_OK);
    ck_assert_int_eq(wait_for(&w[1]), FW_ETOOBIG);
    ck_assert_int_eq(wait_for(&w[2]), FW_ENOSPC);
    ck_assert_int_eq(wait_for(&w[3]), FW_OK);
    ck_assert_int_eq(append(store, uid, 2, "x", NULL), FW_OK);
}
END_TEST

START_TEST(a_checkpoint_cuts_only_the_rows_it_includes)
{
    static unsigned char block[BIG], back[BIG];
    struct fw_store_session row;
    int64_t uid = create(store, "a", BIG);
    uint64_t v;

    for (v = 1; v <= 3; v++)
        ck_assert_int_eq(append(store, uid, v, "abc", NULL), FW_OK);
    fill(block, BIG, 5);
    ck_assert_int_eq(checkpoint(store, uid, 2, block, BIG), FW_OK);
    ck_assert_int_eq(append(store, uid, 4, "d", NULL), FW_OK);
    reopen();
    ck_assert_int_eq(load(uid, back, BIG, &row), FW_OK);
    ck_assert(row.has_block && row.version == 2 && row.tokens_seen == 20);
    ck_assert(row.journal_rows == 2 && row.journal_bytes == 4);
    ck_assert_int_eq(memcmp(block, back, BIG), 0);
    ck_assert_int_eq(journal_rows(store, uid, 2, NULL), 2);
    block[BIG - 1] ^= 1; /* the last chunk is rewritten in place */
    ck_assert_int_eq(checkpoint(store, uid, 4, block, BIG), FW_OK);
    ck_assert_int_eq(load(uid, back, BIG, &row), FW_OK);
    ck_assert_int_eq(memcmp(block, back, BIG), 0);
    ck_assert_int_eq(ask("SELECT count(*) FROM blocks"), 3);
    ck_assert_int_eq(append(store, uid, 5, "e", NULL), FW_OK);
}
END_TEST

START_TEST(a_restore_jumps_over_all_rows_and_the_journal_goes_on_after_it)
{
    unsigned char block[64] = { 1 };
    int64_t uid = create(store, "a", 64);

    ck_assert_int_eq(append(store, uid, 1, "x", NULL), FW_OK);
    ck_assert_int_eq(append(store, uid, 2, "x", NULL), FW_OK);
    ck_assert_int_eq(checkpoint(store, uid, 3, block, 64), FW_OK);
    ck_assert_int_eq(journal_rows(store, uid, 3, NULL), 0);
    ck_assert_int_eq(append(store, uid, 3, "x", NULL), FW_EINTERNAL);
    ck_assert_int_eq(append(store, uid, 4, "x", NULL), FW_OK);
}
END_TEST

START_TEST(a_checkpoint_that_does_not_fit_is_refused)
{
    unsigned char block[64] = { 1 };
    int64_t uid = create(store, "a", 64);

    ck_assert_int_eq(checkpoint(store, uid, 1, block, 63), FW_EINTERNAL);
    ck_assert_int_eq(checkpoint(store, uid, 5, block, 64), FW_OK);
    ck_assert_int_eq(checkpoint(store, uid, 4, block, 64), FW_EINTERNAL);
    ck_assert_int_eq(checkpoint(store, uid + 1, 5, block, 64), FW_ENOENT);
}
END_TEST

START_TEST(an_unchanged_block_costs_next_to_nothing_to_checkpoint_again)
{
    static unsigned char block[BIG];
    int64_t uid = create(store, "a", BIG);
    struct fw_store_stats before, after;

    fill(block, BIG, 5);
    ck_assert_int_eq(checkpoint(store, uid, 1, block, BIG), FW_OK);
    fw_store_stats(store, &before);
    ck_assert_int_eq(checkpoint(store, uid, 2, block, BIG), FW_OK);
    fw_store_stats(store, &after);
    ck_assert_uint_le(after.wal_bytes - before.wal_bytes, 4 * 16408);
}
END_TEST

START_TEST(labels_are_replaced)
{
    char text[4098];
    int64_t uid = create(store, "a", 64);

    ck_assert_int_eq(set_labels(uid, "{\"a\":\"b\"}"), FW_OK);
    reopen();
    ck_assert_str_eq(list(0).labels, "{\"a\":\"b\"}");
    memset(text, ' ', sizeof text);
    text[4097] = 0;
    ck_assert_int_eq(set_labels(uid, text), FW_ETOOBIG);
    text[4096] = 0;
    ck_assert_int_eq(set_labels(uid, text), FW_OK);
    ck_assert_int_eq(set_labels(uid + 1, "{}"), FW_ENOENT);
}
END_TEST

START_TEST(snapshots_are_kept_listed_loaded_and_dropped_by_name)
{
    static unsigned char one[BIG], two[BIG], back[BIG];
    struct fw_store_snapshot snap[4];
    struct fw_err e = { 0 };
    size_t n;
    int64_t uid = create(store, "a", BIG);

    fill(one, BIG, 1);
    fill(two, BIG, 2);
    ck_assert_int_eq(snapshot(uid, "b", one, BIG), FW_OK);
    ck_assert_int_eq(snapshot(uid, "a", two, BIG), FW_OK);
    ck_assert_int_eq(snapshot(uid, "a", one, BIG), FW_EEXIST);
    ck_assert_int_eq(snapshot(uid, "c", one, BIG - 1), FW_EINTERNAL);
    ck_assert_int_eq(snapshot(uid + 1, "c", one, BIG), FW_ENOENT);
    reopen();
    ck_assert_int_eq(fw_store_snapshots(store, uid, "", 4, snap, &n, &e), 0);
    ck_assert(n == 2 && strcmp(snap[0].name, "a") == 0 && strcmp(snap[1].name, "b") == 0);
    ck_assert(snap[1].version == 7 && snap[1].tokens_seen == 70 && snap[1].block_bytes == BIG);
    ck_assert_int_gt(snap[1].created_ms, 1600000000000);
    ck_assert_int_eq(fw_store_snapshots(store, uid, "a", 4, snap, &n, &e), 0);
    ck_assert(n == 1 && strcmp(snap[0].name, "b") == 0);
    ck_assert_int_eq(fw_store_snapshots(store, uid, "", 1, snap, &n, &e), 0);
    ck_assert_uint_eq(n, 1);
    ck_assert_int_eq(fw_store_snapshot_load(store, uid, "b", back, BIG, snap, &e), 0);
    ck_assert_int_eq(memcmp(back, one, BIG), 0);
    ck_assert(fw_hash_equal(snap[0].hash, fw_hash128(back, BIG)));
    ck_assert_int_eq(fw_store_snapshot_load(store, uid, "a", NULL, 0, snap, &e), 0);
    ck_assert_int_eq(fw_store_snapshot_load(store, uid, "z", NULL, 0, snap, &e), -1);
    ck_assert(e.code == FW_ENOENT && strcmp(e.reason, "snapshot_not_found") == 0);
    ck_assert_int_eq(drop_snapshot(uid, "b"), FW_OK);
    ck_assert_int_eq(drop_snapshot(uid, "b"), FW_ENOENT);
    ck_assert_int_eq(ask("SELECT count(*) FROM blocks"), 3);
    ck_assert_int_eq(fw_store_snapshot_load(store, uid, "a", back, BIG, snap, &e), 0);
    ck_assert_int_eq(memcmp(back, two, BIG), 0);
}
END_TEST

START_TEST(delete_takes_everything_of_one_session_and_nothing_else)
{
    unsigned char block[64] = { 1 };
    int64_t uid = create_with_block("a", block, 64), other = create_with_block("b", block, 64);
    struct fw_store_session row;

    ck_assert_int_eq(append(store, uid, 2, "x", "k"), FW_OK);
    ck_assert_int_eq(append(store, other, 2, "x", "k"), FW_OK);
    ck_assert_int_eq(snapshot(uid, "s", block, 64), FW_OK);
    ck_assert_int_eq(snapshot(other, "s", block, 64), FW_OK);
    ck_assert_int_eq(delete_session(uid), FW_OK);
    ck_assert_int_eq(ask("SELECT (SELECT count(*) FROM blocks) * 10000 + (SELECT count(*) FROM"
                         " journal) * 1000 + (SELECT count(*) FROM keys) * 100 + (SELECT"
                         " count(*) FROM snapshots) * 10 + (SELECT count(*) FROM sessions)"),
                     21111);
    ck_assert_int_eq(delete_session(uid), FW_ENOENT);
    ck_assert_int_eq(append(store, uid, 3, "x", NULL), FW_ENOENT);
    ck_assert_int_eq(checkpoint(store, uid, 3, block, 64), FW_ENOENT);
    ck_assert_int_eq(load(other, block, 64, &row), FW_OK);
    ck_assert_int_eq(append(store, other, 3, "x", NULL), FW_OK);
}
END_TEST

START_TEST(a_uid_is_never_given_twice_even_when_the_highest_is_deleted)
{
    int64_t first = create(store, "a", 64), second = create(store, "a2", 64);

    ck_assert_int_gt(second, first);
    ck_assert_int_eq(delete_session(second), FW_OK);
    ck_assert_int_eq(delete_session(first), FW_OK);
    reopen();
    ck_assert_int_gt(fw_store_next_uid(store), second);
}
END_TEST

START_TEST(stats_count_what_was_done)
{
    struct fw_store_stats st;
    int64_t uid = create(store, "a", 64);

    ck_assert_int_eq(append(store, uid, 1, "12345", NULL), FW_OK);
    ck_assert_int_eq(append(store, uid, 9, "12345", NULL), FW_ENOSPC);
    ck_assert_int_eq(drop_snapshot(uid, "none"), FW_ENOENT); /* no fault of the disk */
    fw_store_stats(store, &st);
    ck_assert(st.ops == 4 && st.commits == 4 && st.failures == 1 && st.append_bytes == 5);
    ck_assert(st.queued == 0 && st.file_bytes > 0 && st.wal_bytes > 0);
}
END_TEST

static TCase *ops_case(void)
{
    TCase *tc = tcase_create("ops");

    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, a_taken_id_is_refused_and_the_first_stays);
    tcase_add_test(tc, a_gap_in_the_journal_is_refused_and_writes_nothing);
    tcase_add_test(tc, after_one_failed_row_the_later_ones_in_flight_fail_too);
    tcase_add_test(tc, a_checkpoint_cuts_only_the_rows_it_includes);
    tcase_add_test(tc, a_restore_jumps_over_all_rows_and_the_journal_goes_on_after_it);
    tcase_add_test(tc, a_checkpoint_that_does_not_fit_is_refused);
    tcase_add_test(tc, an_unchanged_block_costs_next_to_nothing_to_checkpoint_again);
    tcase_add_test(tc, labels_are_replaced);
    tcase_add_test(tc, snapshots_are_kept_listed_loaded_and_dropped_by_name);
    tcase_add_test(tc, delete_takes_everything_of_one_session_and_nothing_else);
    tcase_add_test(tc, a_uid_is_never_given_twice_even_when_the_highest_is_deleted);
    tcase_add_test(tc, stats_count_what_was_done);
    return tc;
}

static TCase *reads_case(void)
{
    TCase *tc = tcase_create("reads");

    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, sessions_are_listed_in_uid_order_with_all_their_facts);
    tcase_add_test(tc, a_block_comes_back_byte_for_byte_after_reopening);
    tcase_add_test(tc, a_session_without_a_block_leaves_the_callers_bytes_alone);
    tcase_add_test(tc, journal_rows_come_back_in_order_above_a_version);
    tcase_add_test(tc, a_body_of_16_mib_fits_and_one_over_64_mib_does_not);
    return tc;
}

int main(void)
{
    Suite *s = suite_create("store/store");

    suite_add_tcase(s, ops_case());
    suite_add_tcase(s, reads_case());
    return run_suite(s);
}
