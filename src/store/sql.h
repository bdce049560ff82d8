/* sql.h - one SQLite connection with its prepared statements, used by one thread at a time. */
#ifndef FW_STORE_SQL_H
#define FW_STORE_SQL_H

#include <sqlite3.h>
#include <stddef.h>
#include <stdint.h>

#include "fastweight/err.h"
#include "fastweight/hash.h"

enum fw_sql_id {
    SQL_BEGIN,
    SQL_BEGIN_READ,
    SQL_COMMIT,
    SQL_ROLLBACK,
    SQL_LAST_UID,
    SQL_NAME,
    SQL_CREATE,
    SQL_STORED,
    SQL_LAST_VERSION,
    SQL_APPEND,
    SQL_KEY_ADD,
    SQL_CHUNK_UPDATE,
    SQL_CHUNK_INSERT,
    SQL_CHUNKS_DELETE,
    SQL_CHECKPOINT,
    SQL_CUT,
    SQL_MEAN,
    SQL_KEY_SPAN,
    SQL_KEY_NEWEST,
    SQL_KEY_RECENT,
    SQL_KEYS_PRUNE,
    SQL_LABELS,
    SQL_DELETE_SESSION,
    SQL_DELETE_JOURNAL,
    SQL_DELETE_KEYS,
    SQL_DELETE_SNAPSHOTS,
    SQL_SNAPSHOT_IDS,
    SQL_SNAPSHOT_ADD,
    SQL_SNAPSHOT_DELETE,
    SQL_SNAPSHOT,
    SQL_SNAPSHOTS,
    SQL_NAMES,
    SQL_SESSION,
    SQL_JOURNAL_SUM,
    SQL_JOURNAL,
    SQL_KEY,
    SQL_COUNT
};

struct fw_sql {
    sqlite3 *db;
    int writer;                    /* its failures are the disk's: FW_ENOSPC, not FW_EIO */
    sqlite3_stmt *stmt[SQL_COUNT]; /* prepared when first used */
};

/* flags: those of sqlite3_open_v2. On failure c is closed. */
int fw_sql_open(struct fw_sql *c, const char *path, int flags, struct fw_err *err);
void fw_sql_close(struct fw_sql *c); /* closed or zeroed: nothing happens */
int fw_sql_exec(struct fw_sql *c, const char *text, struct fw_err *err);
/* Turns a SQLite result code into err; always -1. */
int fw_sql_fail(const struct fw_sql *c, int rc, struct fw_err *err);

/* Binds by `types`: i int64_t, d double, t text or NULL, b pointer and size_t, h a pointer to a
 * struct fw_hash. Pointers are borrowed until fw_sql_end. NULL with err set on failure. */
sqlite3_stmt *fw_sql_start(struct fw_sql *c, enum fw_sql_id id, struct fw_err *err,
                           const char *types, ...);
int fw_sql_step(struct fw_sql *c, sqlite3_stmt *st, struct fw_err *err); /* 1 row, 0 end, -1 */
void fw_sql_end(sqlite3_stmt *st);                                       /* NULL is allowed */
/* start, step to the end, end. */
int fw_sql_run(struct fw_sql *c, enum fw_sql_id id, struct fw_err *err, const char *types, ...);

/* The integer in the first row of a started st (NULL is allowed: it failed), and the end of st:
 * 1, 0 when there is none, -1. */
int fw_sql_int(struct fw_sql *c, sqlite3_stmt *st, int64_t *ret, struct fw_err *err);

/* A column of 16 bytes, big-endian, so that hex(hash) is what the API shows. -1 when it is not
 * that. */
int fw_sql_hash(sqlite3_stmt *st, int column, struct fw_hash *ret);

#endif
