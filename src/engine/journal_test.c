#include "config.h"

#include "engine_testing.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <sqlite3.h>

static void setup_dir(void)
{
    fw_num_init();
    memset(&config, 0, sizeof config);
    make_dir();
}

/* Runs fn with an engine of its own in a process that is then killed like by a power cut. */
static void crash_after(void (*fn)(void))
{
    pid_t pid = fork();
    int status;

    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        open_engine();
        fn();
        kill(getpid(), SIGKILL);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

/* The disk takes nothing more, or everything again. No page of the database fits below the
 * limit, only what the test's own runner writes. */
static void set_disk(bool full)
{
    struct rlimit limit;

    signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = full ? 16000 : limit.rlim_max;
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static struct call *async_pairs(const char *id, unsigned from, unsigned n)
{
    struct call *c = pairs(FW_LEARN, id, from, n);

    c->r.async = true;
    return c;
}

/* What `id` must be after pairs [0, n), each learned alone. */
static void expect_pairs(const char *id, unsigned n)
{
    struct fw_hash h;
    unsigned i;

    done(create_small("serial"));
    for (i = 0; i < n; i++)
        done(pairs(FW_LEARN, "serial", i, 1));
    h = hash_of("serial");
    done(call_new(FW_DELETE, "serial"));
    ck_assert_hash_eq(hash_of(id), h);
}

/* ---- crashes */

static void learn_and_checkpoint(void)
{
    struct call *c;
    unsigned i;

    done(create_small("a"));
    for (i = 0; i < 4; i++)
        done(pairs(FW_LEARN, "a", i, 1));
    done(call_new(FW_CHECKPOINT, "a"));
    for (; i < 9; i++)
        done(pairs(FW_LEARN, "a", i, 1));
    c = pairs(FW_LEARN, "a", 9, 1);
    snprintf(c->r.key, sizeof c->r.key, "k");
    done(c);
}

START_TEST(a_crash_loses_nothing_that_was_answered)
{
    struct fw_engine_stats st;
    struct call *c, *again;

    crash_after(learn_and_checkpoint);
    open_engine();
    ck_assert_uint_eq(facts_of("a").version, 10);
    ck_assert_uint_eq(facts_of("a").durable_version, 10);
    ck_assert_uint_eq(facts_of("a").tokens_seen, 10);
    c = pairs(FW_LEARN, "a", 9, 1); /* its mean is only known by replay */
    snprintf(c->r.key, sizeof c->r.key, "k");
    ok(c);
    ck_assert(c->r.replayed);
    ck_assert_uint_eq(c->r.version, 10);
    fw_engine_stats(engine, &st);
    ck_assert_uint_eq(st.replayed_tokens, 6);
    expect_pairs("a", 10);
    reopen_engine();
    again = pairs(FW_LEARN, "a", 9, 1);
    snprintf(again->r.key, sizeof again->r.key, "k");
    ok(again);
    ck_assert(again->r.replayed && again->r.mean == c->r.mean && c->r.mean > 0);
    call_free(c);
    call_free(again);
    teardown();
}
END_TEST

static void learn_much_in_a_small_journal(void)
{
    struct fw_engine_stats st;
    unsigned i;

    done(create_small("a"));
    for (i = 0; i < 60; i++)
        done(i % 2 ? pairs(FW_LEARN, "a", i, 1) : async_pairs("a", i, 1));
    fw_engine_stats(engine, &st);
    ck_assert_uint_ge(st.checkpoints, 5);
}

/* ---- edits */

static struct call *edit(const char *verb, const char *id, unsigned i)
{
    struct call *c = pairs(FW_EDIT, id, i, 1);
    size_t j;

    for (j = 0; j < 2; j++) {
        c->item[j].ndim = 1;
        c->item[j].shape[0] = DIM;
        snprintf(c->item[j].name, sizeof c->item[j].name, "%s.%s", verb, j ? "value" : "key");
    }
    c->r.in.count = strcmp(verb, "edit") == 0 ? 2 : 1;
    return c;
}

static void learn_and_edit(const char *id)
{
    struct call *c;
    unsigned j;

    done(create_small(id));
    done(pairs(FW_LEARN, id, 0, 5));
    c = ok(edit("edit", id, 7));
    ck_assert_uint_eq(c->r.version, 2);
    for (j = 0; j < DIM; j++)
        ck_assert_float_eq_tol(c->r.values[DIM + j], c->own[DIM + j], 1e-5f);
    call_free(c);
    done(pairs(FW_LEARN, id, 5, 2));
    done(edit("forget", id, 3));
}

static void edit_and_die(void)
{
    learn_and_edit("a");
}

START_TEST(a_crash_loses_no_edit_and_replays_it_to_the_byte)
{
    crash_after(edit_and_die);
    open_engine();
    ck_assert_uint_eq(facts_of("a").version, 4);
    ck_assert_uint_eq(facts_of("a").tokens_seen, 7);
    learn_and_edit("b");
    ck_assert_hash_eq(hash_of("a"), hash_of("b"));
    teardown();
}
END_TEST

START_TEST(a_full_journal_is_cut_by_a_checkpoint)
{
    config.journal_bytes = 2048;
    crash_after(learn_much_in_a_small_journal);
    open_engine();
    ck_assert_uint_eq(facts_of("a").version, 60);
    expect_pairs("a", 60);
    teardown();
}
END_TEST

START_TEST(async_learns_beyond_the_bound_wait_and_are_all_learned)
{
    enum { N = 30 };
    struct call *c[N];
    unsigned i;

    config.max_async_bytes = 1;
    open_engine();
    done(create_small("a"));
    for (i = 0; i < N; i++)
        send_call(c[i] = async_pairs("a", i, 1));
    for (i = 0; i < N; i++) {
        ck_assert(!wait_call(c[i])->r.failed);
        call_free(c[i]);
    }
    expect_pairs("a", N);
    teardown();
}
END_TEST

/* ---- a failing disk */

START_TEST(on_a_full_disk_nothing_is_learned_and_reads_go_on)
{
    enum { N = 6 };
    struct call *c[N];
    struct fw_hash before;
    struct fw_err err = { 0 };
    unsigned i;

    open_engine();
    done(create_small("a"));
    done(pairs(FW_LEARN, "a", 0, 1));
    before = hash_of("a");
    set_disk(true);
    for (i = 0; i < N; i++)
        send_call(c[i] = i % 3 == 1 ? pairs(FW_SCORE, "a", 0, 1) : pairs(FW_LEARN, "a", i, 1));
    for (i = 0; i < N; i++) {
        wait_call(c[i]);
        ck_assert_int_eq(c[i]->r.failed, i % 3 != 1);
        ck_assert(!c[i]->r.failed || c[i]->r.err.code == FW_ENOSPC);
        call_free(c[i]);
    }
    ck_assert_hash_eq(hash_of("a"), before);
    ck_assert_uint_eq(facts_of("a").version, 1);
    ck_assert_int_eq(fw_engine_ready(engine, &err), -1);
    set_disk(false);
    done(pairs(FW_LEARN, "a", 1, 1));
    ck_assert_int_eq(fw_engine_ready(engine, &err), 0);
    ck_assert_uint_eq(facts_of("a").version, 2);
    reopen_engine();
    expect_pairs("a", 2);
    teardown();
}
END_TEST

/* An async learn that is learned although its row cannot be written: when the failure comes
 * first it is refused and learns nothing, and can be sent again. */
static struct call *learn_a_lost_row(void)
{
    struct call *c;

    for (;;) {
        c = async_pairs("a", 1, 1);
        snprintf(c->r.key, sizeof c->r.key, "lost");
        send_call(c);
        if (!wait_call(c)->r.failed)
            return c;
        ck_assert_int_eq(c->r.err.code, FW_ENOSPC);
        ck_assert_uint_eq(facts_of("a").version, 1);
        call_free(c);
    }
}

START_TEST(after_a_lost_async_row_learns_are_refused_until_a_checkpoint_succeeds)
{
    struct call *c, *again;

    open_engine();
    done(create_small("a"));
    done(pairs(FW_LEARN, "a", 0, 1));
    set_disk(true);
    c = learn_a_lost_row();
    fails(call_new(FW_CHECKPOINT, "a"), FW_ENOSPC, "storage_failed");
    fails(pairs(FW_LEARN, "a", 2, 1), FW_ENOSPC, "storage_failed");
    fails(async_pairs("a", 2, 1), FW_ENOSPC, "storage_failed");
    ck_assert_uint_eq(facts_of("a").version, 2);
    ck_assert_uint_eq(facts_of("a").durable_version, 1);
    set_disk(false);
    done(pairs(FW_LEARN, "a", 2, 1)); /* it makes the checkpoint first */
    ck_assert_uint_eq(facts_of("a").durable_version, 3);
    reopen_engine();
    expect_pairs("a", 3);
    again = async_pairs("a", 1, 1);
    snprintf(again->r.key, sizeof again->r.key, "lost");
    ok(again);
    ck_assert(again->r.replayed && again->r.mean == c->r.mean);
    call_free(again);
    call_free(c);
    teardown();
}
END_TEST

START_TEST(what_cannot_be_written_changes_nothing)
{
    struct fw_hash h;
    struct call *c;

    open_engine();
    done(create_small("a"));
    done(pairs(FW_LEARN, "a", 0, 1));
    done(named(FW_SNAPSHOT, "a", "s"));
    done(pairs(FW_LEARN, "a", 1, 1));
    h = hash_of("a");
    set_disk(true);
    fails(named(FW_RESTORE, "a", "s"), FW_ENOSPC, "storage_failed");
    fails(named(FW_SNAPSHOT, "a", "t"), FW_ENOSPC, "storage_failed");
    fails(create_small("b"), FW_ENOSPC, "storage_failed");
    fails(call_new(FW_FORK, "a"), FW_ENOSPC, "storage_failed");
    fails(call_new(FW_DELETE, "a"), FW_ENOSPC, "storage_failed");
    c = call_new(FW_LABEL, "a");
    c->r.labels = "{\"x\":\"y\"}";
    fails(c, FW_ENOSPC, "storage_failed");
    ck_assert_str_eq(facts_of("a").labels, "{}");
    ck_assert_hash_eq(hash_of("a"), h);
    ck_assert_uint_eq(facts_of("a").version, 2);
    set_disk(false);
    done(create_small("b"));
    done(named(FW_RESTORE, "a", "s"));
    ck_assert_uint_eq(facts_of("a").version, 3);
    teardown();
}
END_TEST

/* ---- damage */

static void learn_two(void)
{
    done(create_small("a"));
    done(create_small("b"));
    done(pairs(FW_LEARN, "a", 0, 1));
    done(pairs(FW_LEARN, "b", 0, 1));
    done(call_new(FW_CHECKPOINT, "a"));
    done(pairs(FW_LEARN, "a", 1, 1));
}

static void damage(const char *sql)
{
    char path[128];
    sqlite3 *db;

    snprintf(path, sizeof path, "%s/fastweightd.db", test_dir);
    ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    ck_assert_int_gt(sqlite3_changes(db), 0);
    sqlite3_close(db);
}

static void expect_only_a_is_damaged(void)
{
    open_engine();
    fails(pairs(FW_LEARN, "a", 2, 1), FW_ECORRUPT, "state_corrupt");
    fails(call_new(FW_EXPORT, "a"), FW_ECORRUPT, "state_corrupt");
    fails(call_new(FW_INSPECT, "a"), FW_ECORRUPT, "state_corrupt");
    ck_assert_uint_eq(facts_of("a").version, 2);
    expect_pairs("b", 1);
    done(pairs(FW_LEARN, "b", 1, 1));
    done(call_new(FW_DELETE, "a"));
    done(create_small("a"));
    done(pairs(FW_LEARN, "a", 0, 1));
    teardown();
}

START_TEST(a_damaged_journal_row_fails_its_session_alone)
{
    crash_after(learn_two);
    damage("UPDATE journal SET body = zeroblob(length(body)) WHERE uid = 1");
    expect_only_a_is_damaged();
}
END_TEST

START_TEST(a_damaged_block_fails_its_session_alone)
{
    crash_after(learn_two);
    damage("UPDATE blocks SET data = zeroblob(length(data)) WHERE length(data) > 0");
    expect_only_a_is_damaged();
}
END_TEST

START_TEST(a_session_of_an_unknown_model_keeps_its_facts_and_can_be_deleted)
{
    crash_after(learn_two);
    damage("UPDATE sessions SET model = 'of tomorrow' WHERE uid = 1");
    expect_only_a_is_damaged();
}
END_TEST

/* ---- queues, ends */

START_TEST(a_full_queue_refuses_and_drains_again)
{
    enum { N = 12, BIG = 20000 };
    char *text = malloc(BIG);
    struct call *c[N];
    int i, full = 0;

    memset(text, 'x', BIG);
    config.max_queue = 4;
    open_engine();
    done(create("a"));
    for (i = 0; i < N; i++) /* each takes 50 ms, so they cannot end meanwhile */
        send_call(c[i] = with_bytes(call_new(FW_LEARN, "a"), text, BIG));
    for (i = 0; i < N; i++) {
        wait_call(c[i]);
        full += c[i]->r.failed && c[i]->r.err.code == FW_EBUSY;
        call_free(c[i]);
    }
    ck_assert_int_ge(full, 1);
    done(learn("a", "x"));
    ck_assert_uint_eq(facts_of("a").version, N - full + 1);
    free(text);
    teardown();
}
END_TEST

START_TEST(a_delete_ends_the_queue_and_frees_the_name)
{
    enum { BIG = 20000 };
    char *text = malloc(BIG);
    struct call *slow, *barrier, *behind;

    memset(text, 'x', BIG);
    open_engine();
    done(create("a"));
    done(named(FW_SNAPSHOT, "a", "s"));
    slow = with_bytes(call_new(FW_LEARN, "a"), text, BIG);
    barrier = named(FW_RESTORE, "a", "s");
    behind = learn("a", "x");
    done(learn("a", "x")); /* in memory: the slow one goes to the journal at once */
    send_call(slow);
    send_call(barrier);
    send_call(behind);
    done(call_new(FW_DELETE, "a"));
    ck_assert(slow->done && !slow->r.failed);
    ck_assert(barrier->done && barrier->r.failed && barrier->r.err.code == FW_ENOENT);
    ck_assert(behind->done && behind->r.failed && behind->r.err.code == FW_ENOENT);
    done(create("a"));
    ck_assert_uint_eq(facts_of("a").version, 0);
    call_free(slow);
    call_free(barrier);
    call_free(behind);
    free(text);
    teardown();
}
END_TEST

START_TEST(fifty_dirty_sessions_are_all_there_after_a_drain)
{
    enum { N = 50 };
    struct call *c[N];
    char id[16];
    int i;

    open_engine();
    for (i = 0; i < N; i++) {
        snprintf(id, sizeof id, "s%d", i);
        done(create_small(id));
        send_call(c[i] = async_pairs(id, 0, 1));
    }
    reopen_engine(); /* drains while the last of them still run */
    for (i = 0; i < N; i++) {
        ck_assert(!wait_call(c[i])->r.failed);
        call_free(c[i]);
        snprintf(id, sizeof id, "s%d", i);
        ck_assert_uint_eq(facts_of(id).durable_version, 1);
        expect_pairs(id, 1);
    }
    teardown();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("journal");
    TCase *tc = tcase_create("all");

    tcase_add_checked_fixture(tc, setup_dir, NULL);
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, a_crash_loses_nothing_that_was_answered);
    tcase_add_test(tc, a_crash_loses_no_edit_and_replays_it_to_the_byte);
    tcase_add_test(tc, a_full_journal_is_cut_by_a_checkpoint);
    tcase_add_test(tc, async_learns_beyond_the_bound_wait_and_are_all_learned);
    tcase_add_test(tc, on_a_full_disk_nothing_is_learned_and_reads_go_on);
    tcase_add_test(tc, after_a_lost_async_row_learns_are_refused_until_a_checkpoint_succeeds);
    tcase_add_test(tc, what_cannot_be_written_changes_nothing);
    tcase_add_test(tc, a_damaged_journal_row_fails_its_session_alone);
    tcase_add_test(tc, a_damaged_block_fails_its_session_alone);
    tcase_add_test(tc, a_session_of_an_unknown_model_keeps_its_facts_and_can_be_deleted);
    tcase_add_test(tc, a_full_queue_refuses_and_drains_again);
    tcase_add_test(tc, a_delete_ends_the_queue_and_frees_the_name);
    tcase_add_test(tc, fifty_dirty_sessions_are_all_there_after_a_drain);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
