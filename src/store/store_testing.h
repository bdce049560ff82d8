/* store_testing.h - what the store's tests share: a fresh directory, ops that are waited for.
 */
#ifndef STORE_TESTING_H
#define STORE_TESTING_H

#include "test_main.h"

#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fastweight/store.h"

#pragma GCC diagnostic ignored "-Wunused-function" /* each program uses some of them */

struct waiting { /* op first: done() gets the op back as this */
    struct fw_store_op op;
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    int done;
};

static char test_dir[64];

static void make_dir(void)
{
    snprintf(test_dir, sizeof test_dir, "/tmp/fw_store_XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(test_dir));
}

static void remove_dir(void)
{
    static const char *const name[] = { "lock", "fastweightd.db", "fastweightd.db-wal",
                                        "fastweightd.db-shm", "fastweightd.db.new" };
    char path[128];
    size_t i;

    for (i = 0; i < sizeof name / sizeof name[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", test_dir, name[i]);
        unlink(path);
    }
    rmdir(test_dir);
}

static const char *db_path(void)
{
    static char path[128];

    snprintf(path, sizeof path, "%s/fastweightd.db", test_dir);
    return path;
}

static struct fw_store *open_store(void)
{
    struct fw_store *s = NULL;
    struct fw_err e = { 0 };

    ck_assert_msg(fw_store_open(&s, test_dir, &e) == 0, "%s: %s", e.reason, e.msg);
    return s;
}

static void wake(struct fw_store_op *op)
{
    struct waiting *w = (struct waiting *)op;

    pthread_mutex_lock(&w->mutex);
    w->done = 1;
    pthread_cond_signal(&w->cond);
    pthread_mutex_unlock(&w->mutex);
}

static void submit(struct fw_store *s, struct waiting *w)
{
    pthread_mutex_init(&w->mutex, NULL);
    pthread_cond_init(&w->cond, NULL);
    w->done = 0;
    w->op.done = wake;
    fw_store_submit(s, &w->op);
}

/* 0 or the code with which it failed. */
static enum fw_code wait_for(struct waiting *w)
{
    pthread_mutex_lock(&w->mutex);
    while (!w->done)
        pthread_cond_wait(&w->cond, &w->mutex);
    pthread_mutex_unlock(&w->mutex);
    pthread_cond_destroy(&w->cond);
    pthread_mutex_destroy(&w->mutex);
    return w->op.failed ? w->op.err.code : FW_OK;
}

static enum fw_code carry_out(struct fw_store *s, struct waiting *w)
{
    submit(s, w);
    return wait_for(w);
}

static struct fw_store_session a_session(int64_t uid, const char *id, size_t block_bytes)
{
    return (struct fw_store_session){ .uid = uid,
                                      .owner = "default",
                                      .id = id,
                                      .model = "bytes",
                                      .config = "preset=s:auto\n",
                                      .labels = "{}",
                                      .block_bytes = block_bytes,
                                      .hash = { 1, 2 },
                                      .created_ms = 1700000000000,
                                      .parent_id = "" };
}

/* Creates a session without a block and returns its uid. */
static int64_t create(struct fw_store *s, const char *id, size_t block_bytes)
{
    struct fw_store_session row = a_session(fw_store_next_uid(s), id, block_bytes);
    struct waiting w = { .op = { .verb = FW_STORE_CREATE, .session = &row } };

    ck_assert_int_eq(carry_out(s, &w), FW_OK);
    return row.uid;
}

static struct waiting an_append(int64_t uid, uint64_t version, const char *body,
                                const char *key)
{
    return (struct waiting){ .op = { .verb = FW_STORE_APPEND,
                                     .uid = uid,
                                     .version = version,
                                     .tokens = strlen(body),
                                     .body = body,
                                     .body_len = strlen(body),
                                     .key = key,
                                     .digest = { 77, version } } };
}

static enum fw_code append(struct fw_store *s, int64_t uid, uint64_t version, const char *body,
                           const char *key)
{
    struct waiting w = an_append(uid, version, body, key);

    return carry_out(s, &w);
}

static struct waiting a_checkpoint(int64_t uid, uint64_t version, const void *block,
                                   size_t bytes)
{
    return (struct waiting){ .op = { .verb = FW_STORE_CHECKPOINT,
                                     .uid = uid,
                                     .version = version,
                                     .tokens = 10 * version,
                                     .block = block,
                                     .block_bytes = bytes,
                                     .hash = fw_hash128(block, bytes) } };
}

static enum fw_code checkpoint(struct fw_store *s, int64_t uid, uint64_t version,
                               const void *block, size_t bytes)
{
    struct waiting w = a_checkpoint(uid, version, block, bytes);

    return carry_out(s, &w);
}

static void fill(unsigned char *block, size_t bytes, uint64_t seed)
{
    size_t i;

    for (i = 0; i < bytes; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        block[i] = (unsigned char)(seed >> 56);
    }
}

static size_t count_rows(struct fw_store_row *row)
{
    size_t n = 0;

    for (; row; row = row->next)
        n++;
    return n;
}

/* How many journal rows above `version`, or -1 with *code. */
static int journal_rows(struct fw_store *s, int64_t uid, uint64_t version, enum fw_code *code)
{
    struct fw_store_row *rows;
    struct fw_err e = { 0 };
    int n;

    if (fw_store_journal(s, uid, version, &rows, &e) < 0) {
        if (code)
            *code = e.code;
        return -1;
    }
    n = (int)count_rows(rows);
    fw_store_rows_free(rows);
    return n;
}

/* Does to the database what no program of ours would. */
static void meddle(const char *sql)
{
    sqlite3 *db;
    char *why = NULL;

    ck_assert_int_eq(sqlite3_open(db_path(), &db), SQLITE_OK);
    sqlite3_busy_timeout(db, 5000);
    ck_assert_msg(sqlite3_exec(db, sql, NULL, NULL, &why) == SQLITE_OK, "%s", why);
    sqlite3_close(db);
}

static int64_t ask(const char *sql)
{
    sqlite3 *db;
    sqlite3_stmt *st;
    int64_t n;

    ck_assert_int_eq(sqlite3_open(db_path(), &db), SQLITE_OK);
    sqlite3_busy_timeout(db, 5000);
    ck_assert_msg(sqlite3_prepare_v2(db, sql, -1, &st, NULL) == SQLITE_OK, "%s",
                  sqlite3_errmsg(db));
    ck_assert_int_eq(sqlite3_step(st), SQLITE_ROW);
    n = sqlite3_column_int64(st, 0);
    sqlite3_finalize(st);
    sqlite3_close(db);
    return n;
}

#endif
