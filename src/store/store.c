/* store.c - the store's front door: up, down, submit, numbers.
 *
 * One SQLite file in WAL mode. One thread (writer.c) and one connection write; callers read
 * through their own connections (reads.c). Ops wait in an intrusive list that the writer takes
 * in groups, so the order of one session's ops is the order in which they were submitted. */
#include "config.h"

#include "store_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* secure_delete: Debian's SQLite zeroes what it deletes, which would write every page that a
 * cut journal leaves. cache_size is in KiB: it counts as resident memory. */
static const char pragmas[] = "PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0;"
                              "PRAGMA journal_size_limit = 67108864; PRAGMA cache_size = -4096;"
                              "PRAGMA secure_delete = OFF; PRAGMA temp_store = MEMORY;"
                              "PRAGMA trusted_schema = OFF";

static int set_wal(struct fw_sql *c, struct fw_err *err)
{
    sqlite3_stmt *st;
    int rc = sqlite3_prepare_v2(c->db, "PRAGMA journal_mode = WAL", -1, &st, NULL), is_wal = 0;

    if (rc == SQLITE_OK)
        rc = sqlite3_step(st);
    if (rc == SQLITE_ROW)
        is_wal = strcmp((const char *)sqlite3_column_text(st, 0), "wal") == 0;
    sqlite3_finalize(st);
    if (rc != SQLITE_ROW)
        return fw_sql_fail(c, rc, err);
    if (!is_wal)
        return fw_fail(err, FW_EIO, "no_wal", "the data directory's disk cannot do WAL");
    return 0;
}

static int read_last_uid(struct fw_store *s, struct fw_err *err)
{
    int64_t last = 0;
    int rc =
        fw_sql_int(&s->writer, fw_sql_start(&s->writer, SQL_LAST_UID, err, ""), &last, err);

    atomic_init(&s->next_uid, last + 1);
    return rc < 0 ? -1 : 0;
}

static int open_writer(struct fw_store *s, struct fw_err *err)
{
    if (fw_sql_open(&s->writer, s->path, SQLITE_OPEN_READWRITE, err) < 0)
        return -1;
    if (sqlite3_db_readonly(s->writer.db, "main")) /* SQLite falls back to reading silently */
        return fw_fail(err, FW_EIO, "data_dir_failed", "%s cannot be written", s->path);
    if (fw_sql_exec(&s->writer, pragmas, err) < 0)
        return -1;
    /* Migration comes before WAL: it refuses a newer version before anything is written. */
    if (fw_schema_migrate(&s->writer, FW_STORE_USER_VERSION, err) < 0 ||
        set_wal(&s->writer, err) < 0)
        return -1;
    return read_last_uid(s, err);
}

/* A reader is opened now: on a disk that fills up later, it has all it needs. */
static int open_first_reader(struct fw_store *s, struct fw_err *err)
{
    struct fw_reader *r = fw_reader_take(s, err);

    if (!r)
        return -1;
    fw_reader_give(s, r);
    return 0;
}

static int start_writer(struct fw_store *s, struct fw_err *err)
{
    int rc = pthread_create(&s->thread, NULL, fw_writer_main, s);

    if (rc != 0)
        return fw_fail(err, FW_ENOMEM, "no_thread", "cannot start the writer: %s",
                       strerror(rc));
    s->thread_runs = 1;
    return 0;
}

int fw_store_open(struct fw_store **ret, const char *dir, struct fw_err *err)
{
    struct fw_store *s = calloc(1, sizeof *s);

    if (!s)
        return fw_fail(err, FW_ENOMEM, "out_of_memory", "no memory for the store");
    s->lock_fd = -1;
    s->tail = &s->head;
    pthread_mutex_init(&s->mutex, NULL);
    pthread_cond_init(&s->wake, NULL);
    if (fw_dir_open(dir, s->path, &s->lock_fd, err) < 0 || open_writer(s, err) < 0 ||
        open_first_reader(s, err) < 0 || start_writer(s, err) < 0) {
        fw_store_close(s);
        return -1;
    }
    *ret = s;
    return 0;
}

static void stop_writer(struct fw_store *s)
{
    pthread_mutex_lock(&s->mutex);
    s->stopping = 1;
    pthread_cond_signal(&s->wake);
    pthread_mutex_unlock(&s->mutex);
    pthread_join(s->thread, NULL);
}

void fw_store_close(struct fw_store *s)
{
    if (!s)
        return;
    if (s->thread_runs)
        stop_writer(s);
    fw_readers_close(s);
    if (s->thread_runs) /* best effort: the next open would do it */
        sqlite3_wal_checkpoint_v2(s->writer.db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    fw_sql_close(&s->writer);
    if (s->lock_fd >= 0)
        close(s->lock_fd);
    pthread_cond_destroy(&s->wake);
    pthread_mutex_destroy(&s->mutex);
    free(s);
}

int64_t fw_store_next_uid(struct fw_store *s)
{
    return atomic_fetch_add(&s->next_uid, 1);
}

void fw_store_submit(struct fw_store *s, struct fw_store_op *op)
{
    op->next = NULL;
    op->failed = 0;
    op->err = (struct fw_err){ 0 };
    pthread_mutex_lock(&s->mutex);
    *s->tail = op;
    s->tail = &op->next;
    s->stats.queued++;
    pthread_cond_signal(&s->wake);
    pthread_mutex_unlock(&s->mutex);
}

static uint64_t file_bytes(const char *path, const char *suffix)
{
    char full[FW_STORE_PATH_MAX + 8];
    struct stat st;

    snprintf(full, sizeof full, "%s%s", path, suffix);
    return stat(full, &st) == 0 ? (uint64_t)st.st_size : 0;
}

void fw_store_stats(struct fw_store *s, struct fw_store_stats *ret)
{
    pthread_mutex_lock(&s->mutex);
    *ret = s->stats;
    pthread_mutex_unlock(&s->mutex);
    ret->file_bytes = file_bytes(s->path, "");
    ret->wal_bytes = file_bytes(s->path, "-wal");
}
