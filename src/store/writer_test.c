#include "config.h"

#include "store_testing.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/syscall.h>

/* The disk, as SQLite sees it: this program's own pwrite64 and fdatasync come before libc's. */
static atomic_llong disk_end = INT64_MAX; /* writing beyond it in a file is ENOSPC */
static atomic_int bad_syncs;              /* so many times EIO */

ssize_t pwrite64(int fd, const void *data, size_t len, off64_t at);
int fdatasync(int fd);

ssize_t pwrite64(int fd, const void *data, size_t len, off64_t at)
{
    if (at + (off64_t)len > atomic_load(&disk_end)) {
        errno = ENOSPC;
        return -1;
    }
    return syscall(SYS_pwrite64, fd, data, len, at);
}

int fdatasync(int fd)
{
    if (atomic_load(&bad_syncs) > 0) {
        atomic_fetch_sub(&bad_syncs, 1);
        errno = EIO;
        return -1;
    }
    return (int)syscall(SYS_fdatasync, fd);
}

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

START_TEST(a_full_disk_fails_learns_while_reads_go_on_and_heals_when_space_returns)
{
    struct waiting w = an_append(create(store, "a", 64), 1, "0123456789", NULL);
    struct fw_store_stats st;

    ck_assert_int_eq(carry_out(store, &w), FW_OK);
    fw_store_stats(store, &st);
    atomic_store(&disk_end, 0);
    w.op.version = 2;
    ck_assert_int_eq(carry_out(store, &w), FW_ENOSPC);
    ck_assert_str_eq(w.op.err.reason, "storage_full");
    w.op.version = 3;
    ck_assert_int_eq(carry_out(store, &w), FW_ENOSPC);
    ck_assert_str_eq(w.op.err.reason, "journal_gap");
    ck_assert_int_eq(journal_rows(store, w.op.uid, 0, NULL), 1);
    atomic_store(&disk_end, INT64_MAX);
    w.op.version = 2;
    ck_assert_int_eq(carry_out(store, &w), FW_OK);
    ck_assert_int_eq(journal_rows(store, w.op.uid, 0, NULL), 2);
}
END_TEST

START_TEST(the_space_of_the_wal_itself_is_used_before_the_disk_counts_as_full)
{
    static unsigned char block[1 << 20];
    struct fw_store_stats st;
    int64_t uid = create(store, "a", sizeof block);
    uint64_t v;

    fill(block, sizeof block, 1);
    ck_assert_int_eq(checkpoint(store, uid, 1, block, sizeof block), FW_OK);
    fw_store_stats(store, &st);
    atomic_store(&disk_end, 2 << 20); /* of the WAL as of the database */
    for (v = 2; v < 12; v++) {
        fill(block, sizeof block, v);
        if (checkpoint(store, uid, v, block, sizeof block) != FW_OK)
            break;
    }
    ck_assert_uint_gt(v, 2); /* the WAL was written back and began anew at least once */
    atomic_store(&disk_end, INT64_MAX);
}
END_TEST

START_TEST(one_op_that_breaks_a_group_harms_only_itself)
{
    static unsigned char large[4 << 20];
    int64_t a = create(store, "a", 64), b = create(store, "b", 64), c = create(store, "c", 64);
    struct waiting w[] = { an_append(a, 1, "x", NULL), an_append(b, 1, "", NULL),
                           an_append(c, 1, "x", NULL), an_append(a, 2, "x", NULL),
                           an_append(b, 2, "x", NULL) };
    int i;

    w[1].op.body = large;
    w[1].op.body_len = sizeof large;
    atomic_store(&disk_end, 1 << 20);
    for (i = 0; i < 5; i++)
        submit(store, &w[i]);
    ck_assert_int_eq(wait_for(&w[0]), FW_OK);
    ck_assert_int_eq(wait_for(&w[1]), FW_ENOSPC);
    ck_assert_int_eq(wait_for(&w[2]), FW_OK);
    ck_assert_int_eq(wait_for(&w[3]), FW_OK);
    ck_assert_int_eq(wait_for(&w[4]), FW_ENOSPC);
    ck_assert_str_eq(w[4].op.err.reason, "journal_gap");
    atomic_store(&disk_end, INT64_MAX);
    ck_assert_int_eq(journal_rows(store, a, 0, NULL), 2);
    ck_assert_int_eq(journal_rows(store, b, 0, NULL), 0);
}
END_TEST

static void copy_file(const char *name, const char *to_dir)
{
    char path[160];
    static char data[4 << 20];
    int fd;
    ssize_t n;

    snprintf(path, sizeof path, "%s/%s", test_dir, name);
    fd = open(path, O_RDONLY);
    n = read(fd, data, sizeof data);
    ck_assert(n >= 0 && (size_t)n < sizeof data);
    close(fd);
    snprintf(path, sizeof path, "%s/%s", to_dir, name);
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ck_assert_int_eq(write(fd, data, (size_t)n), n);
    close(fd);
}

/* What another process would find after a crash now. */
static int rows_after_a_crash(int64_t uid)
{
    char live[64], crashed[64] = "/tmp/fw_crash_XXXXXX";
    struct fw_store *s;
    int rows;

    ck_assert_ptr_nonnull(mkdtemp(crashed));
    copy_file("fastweightd.db", crashed);
    copy_file("fastweightd.db-wal", crashed);
    memcpy(live, test_dir, sizeof live);
    memcpy(test_dir, crashed, sizeof crashed);
    s = open_store();
    rows = journal_rows(s, uid, 0, NULL);
    fw_store_close(s);
    remove_dir();
    memcpy(test_dir, live, sizeof live);
    return rows;
}

START_TEST(a_commit_whose_sync_failed_does_not_come_back_after_a_crash)
{
    int64_t uid = create(store, "a", 64);

    ck_assert_int_eq(append(store, uid, 1, "x", NULL), FW_OK);
    ck_assert_int_eq(rows_after_a_crash(uid), 1);
    atomic_store(&bad_syncs, 2); /* in the group, and alone */
    ck_assert_int_eq(append(store, uid, 2, "x", NULL), FW_ENOSPC);
    ck_assert_int_eq(journal_rows(store, uid, 0, NULL), 1);
    ck_assert_int_eq(rows_after_a_crash(uid), 1);
    ck_assert_int_eq(append(store, uid, 2, "y", NULL), FW_OK);
    ck_assert_int_eq(rows_after_a_crash(uid), 2);
}
END_TEST

START_TEST(close_carries_out_what_is_queued)
{
    enum { N = 300 };
    static struct waiting w[N];
    int64_t uid = create(store, "a", 64);
    int i;

    for (i = 0; i < N; i++) {
        w[i] = an_append(uid, (uint64_t)i + 1, "x", NULL);
        submit(store, &w[i]);
    }
    fw_store_close(store);
    for (i = 0; i < N; i++)
        ck_assert_int_eq(wait_for(&w[i]), FW_OK);
    store = open_store();
    ck_assert_int_eq(journal_rows(store, uid, 0, NULL), N);
}
END_TEST

struct client {
    pthread_t thread;
    int64_t uid;
};

static void *learn_and_read(void *arg)
{
    enum { N = 60, FLIGHT = 4 };
    struct client *c = arg;
    struct waiting w[FLIGHT];
    int i, j;

    for (i = 0; i < N; i++) {
        for (j = 0; j < FLIGHT; j++) {
            w[j] = an_append(c->uid, (uint64_t)(i * FLIGHT + j) + 1, "some text", NULL);
            submit(store, &w[j]);
        }
        for (j = 0; j < FLIGHT; j++)
            ck_assert_int_eq(wait_for(&w[j]), FW_OK);
        ck_assert_int_eq(journal_rows(store, c->uid, 0, NULL), (i + 1) * FLIGHT);
    }
    return NULL;
}

START_TEST(many_threads_share_commits_and_each_reads_what_it_wrote)
{
    enum { CLIENTS = 8 };
    struct client c[CLIENTS];
    struct fw_store_stats st;
    char id[8];
    int i;

    for (i = 0; i < CLIENTS; i++) {
        snprintf(id, sizeof id, "s%d", i);
        c[i].uid = create(store, id, 64);
    }
    for (i = 0; i < CLIENTS; i++)
        ck_assert_int_eq(pthread_create(&c[i].thread, NULL, learn_and_read, &c[i]), 0);
    for (i = 0; i < CLIENTS; i++)
        pthread_join(c[i].thread, NULL);
    fw_store_stats(store, &st);
    ck_assert_uint_eq(st.ops, CLIENTS * 60 * 4 + CLIENTS);
    ck_assert_uint_lt(st.commits, st.ops);
    ck_assert_uint_eq(st.failures, 0);
}
END_TEST

START_TEST(the_wal_is_written_back_and_stays_bounded)
{
    enum { BYTES = 1 << 20 };
    static unsigned char block[BYTES];
    int64_t uid = create(store, "a", BYTES);
    struct fw_store_stats st;
    uint64_t v, most = 0;

    for (v = 1; v <= 150; v++) {
        fill(block, 64, v);
        memset(block + 64, (int)v, BYTES - 64);
        ck_assert_int_eq(checkpoint(store, uid, v, block, BYTES), FW_OK);
        fw_store_stats(store, &st);
        most = st.wal_bytes > most ? st.wal_bytes : most;
    }
    ck_assert_uint_le(most, 70u << 20);
    ck_assert_uint_gt(most, 60u << 20);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("store/writer");
    TCase *tc = tcase_create("writer");

    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, a_full_disk_fails_learns_while_reads_go_on_and_heals_when_space_returns);
    tcase_add_test(tc, the_space_of_the_wal_itself_is_used_before_the_disk_counts_as_full);
    tcase_add_test(tc, one_op_that_breaks_a_group_harms_only_itself);
    tcase_add_test(tc, a_commit_whose_sync_failed_does_not_come_back_after_a_crash);
    tcase_add_test(tc, close_carries_out_what_is_queued);
    tcase_add_test(tc, many_threads_share_commits_and_each_reads_what_it_wrote);
    tcase_add_test(tc, the_wal_is_written_back_and_stays_bounded);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
