/* writer.c - the one thread that writes: group commit, and what happens when the disk fails.
 *
 * Whatever is queued, up to 512 ops or 8 MiB, becomes one transaction with one sync; `done` of
 * each op runs after COMMIT. When anything breaks in a group it is rolled back and every op is
 * carried out in a transaction of its own, so a bad op harms itself alone.
 *
 * The WAL is written back to the database between two groups, never inside a COMMIT, so an
 * acknowledgement does not wait for it and its failure fails nobody. SQLite starts the WAL
 * anew once it is all written back and no reader is left in it; when long readers prevent that
 * until it is four times its size, the writer waits for them once.
 *
 * On a full disk the writer also writes the WAL back, which needs no new space where pages are
 * replaced, and makes the WAL's own space usable again. A COMMIT that fails in its sync leaves
 * valid frames behind the end of the WAL, which a crash would bring to life: the next commit
 * overwrites them, and when no op does so at once, an empty one is made. */
#include "config.h"

#include "store_int.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fastweight/clock.h"

#define GROUP_OPS   512
#define GROUP_BYTES ((size_t)8 << 20)

static int on_commit(void *arg, sqlite3 *db, const char *name, int frames)
{
    struct fw_store *s = arg;

    (void)db;
    (void)name;
    if (frames < s->wal_frames) /* it began anew */
        s->wal_write_back_at = FW_STORE_WAL_FRAMES;
    s->wal_frames = frames;
    return SQLITE_OK;
}

static void write_back(struct fw_store *s)
{
    int mode = s->wal_frames >= 4 * FW_STORE_WAL_FRAMES ? SQLITE_CHECKPOINT_RESTART
                                                        : SQLITE_CHECKPOINT_PASSIVE;

    /* The result does not matter: what was not written back stays in the WAL, and the next
     * commit that starts it anew sets the mark back. */
    sqlite3_wal_checkpoint_v2(s->writer.db, NULL, mode, NULL, NULL);
    s->wal_write_back_at = s->wal_frames + FW_STORE_WAL_FRAMES / 4;
}

/* At most once a second: on a disk that stays full this is work for nothing. */
static void relieve_full_disk(struct fw_store *s)
{
    uint64_t now = fw_clock_mono_ns();

    if (s->wal_frames == 0 || now - s->relieved_ns < 1000000000u)
        return;
    s->relieved_ns = now;
    write_back(s);
}

static void roll_back(struct fw_store *s)
{
    /* SQLite has done it by itself after some failures. */
    if (!sqlite3_get_autocommit(s->writer.db))
        fw_sql_run(&s->writer, SQL_ROLLBACK, NULL, "");
}

static int commit(struct fw_store *s, struct fw_err *err)
{
    if (fw_sql_run(&s->writer, SQL_COMMIT, err, "") == 0) {
        s->stale_commit = 0;
        return 0;
    }
    s->stale_commit = 1;
    roll_back(s);
    return -1;
}

static void fail(struct fw_store_op *op, const struct fw_err *err)
{
    op->failed = 1;
    op->err = *err;
}

static void fail_all(struct fw_store_op *group, const struct fw_err *err)
{
    struct fw_store_op *op;

    for (op = group; op; op = op->next)
        fail(op, err);
}

/* -1: rolled back, nothing happened. */
static int apply_group(struct fw_store *s, struct fw_store_op *group, struct fw_err *err)
{
    struct fw_store_op *op;
    enum fw_applied got;

    for (op = group; op; op = op->next) {
        got = fw_op_apply(&s->writer, op);
        op->failed = got != FW_APPLIED;
        if (got == FW_BROKEN) {
            *err = op->err;
            roll_back(s);
            return -1;
        }
    }
    return commit(s, err);
}

static void apply_alone(struct fw_store *s, struct fw_store_op *op)
{
    enum fw_applied got;
    struct fw_err err;

    op->failed = 1;
    if (fw_sql_run(&s->writer, SQL_BEGIN, &op->err, "") < 0)
        return;
    got = fw_op_apply(&s->writer, op);
    if (got == FW_BROKEN && op->verb == FW_STORE_DELETE && op->err.code == FW_ECORRUPT) {
        roll_back(s);
        if (fw_sql_run(&s->writer, SQL_BEGIN, &op->err, "") < 0)
            return;
        got = fw_op_delete_name(&s->writer, op);
    }
    if (got == FW_BROKEN) {
        roll_back(s);
        return;
    }
    if (commit(s, &err) < 0)
        fail(op, &err);
    else
        op->failed = got != FW_APPLIED;
}

static void bury_stale_commit(struct fw_store *s)
{
    char text[64];

    snprintf(text, sizeof text, "PRAGMA user_version = %d", FW_STORE_USER_VERSION);
    if (fw_sql_run(&s->writer, SQL_BEGIN, NULL, "") < 0)
        return;
    if (fw_sql_exec(&s->writer, text, NULL) < 0)
        roll_back(s);
    else
        commit(s, NULL);
}

/* What is written to a file without a name is lost when we end, so it is not acknowledged. */
static int check_files(struct fw_store *s, struct fw_err *err)
{
    char wal[FW_STORE_PATH_MAX + 8];
    int moved = 0;

    snprintf(wal, sizeof wal, "%s-wal", s->path);
    sqlite3_file_control(s->writer.db, "main", SQLITE_FCNTL_HAS_MOVED, &moved);
    if (!moved && access(wal, F_OK) == 0)
        return 0;
    return fw_fail(err, FW_ENOSPC, "storage_failed", "%s or its WAL was moved or deleted",
                   s->path);
}

static void carry_out(struct fw_store *s, struct fw_store_op *group)
{
    struct fw_store_op *op;
    struct fw_err err = { 0 };

    if (check_files(s, &err) < 0) {
        fail_all(group, &err);
        return;
    }
    if (fw_sql_run(&s->writer, SQL_BEGIN, &err, "") < 0) {
        fail_all(group, &err);
        return;
    }
    if (apply_group(s, group, &err) == 0)
        return;
    if (strcmp(err.reason, "storage_full") == 0)
        relieve_full_disk(s);
    for (op = group; op; op = op->next)
        apply_alone(s, op);
    if (s->stale_commit)
        bury_stale_commit(s);
}

/* The head of the queue, cut to the size of a group. The mutex is held. */
static struct fw_store_op *take_group(struct fw_store *s)
{
    struct fw_store_op *group = s->head, *op = group;
    size_t bytes = fw_op_bytes(op), count = 1;

    while (op->next && count < GROUP_OPS && bytes + fw_op_bytes(op->next) <= GROUP_BYTES) {
        op = op->next;
        bytes += fw_op_bytes(op);
        count++;
    }
    s->head = op->next;
    if (!s->head)
        s->tail = &s->head;
    op->next = NULL;
    return group;
}

/* A name that is taken or unknown is its sender's affair; `failures` is for the disk's. */
static int is_refusal(const struct fw_store_op *op)
{
    return op->err.code == FW_EEXIST || op->err.code == FW_ENOENT;
}

/* Before `done`, after which an op may be gone. The mutex is held. */
static void count(struct fw_store *s, const struct fw_store_op *group)
{
    const struct fw_store_op *op;

    for (op = group; op; op = op->next) {
        s->stats.queued--;
        s->stats.ops++;
        s->stats.failures += op->failed && !is_refusal(op);
        if (!op->failed && op->verb == FW_STORE_APPEND)
            s->stats.append_bytes += op->body_len;
    }
    s->stats.commits++;
}

void *fw_writer_main(void *store)
{
    struct fw_store *s = store;
    struct fw_store_op *group, *op;

    s->wal_write_back_at = FW_STORE_WAL_FRAMES;
    sqlite3_wal_hook(s->writer.db, on_commit, s);
    pthread_mutex_lock(&s->mutex);
    for (;;) {
        while (!s->head && !s->stopping)
            pthread_cond_wait(&s->wake, &s->mutex);
        if (!s->head)
            break;
        group = take_group(s);
        pthread_mutex_unlock(&s->mutex);
        carry_out(s, group);
        pthread_mutex_lock(&s->mutex);
        count(s, group);
        pthread_mutex_unlock(&s->mutex);
        while ((op = group) != NULL) {
            group = op->next;
            op->done(op);
        }
        if (s->wal_frames >= s->wal_write_back_at)
            write_back(s);
        pthread_mutex_lock(&s->mutex);
    }
    pthread_mutex_unlock(&s->mutex);
    return NULL;
}
