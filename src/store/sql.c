/* sql.c - every SQL statement of this room, and the one place that reads SQLite's result codes.
 *
 * Statements are prepared when first used and kept for the connection's life; each is bound,
 * stepped and reset in one function, so that no read transaction outlives its reader. A
 * connection is opened without SQLite's own mutex: one thread at a time uses it.
 *
 * What a code means depends on who asked: to the writer a full, read-only or failing disk is
 * FW_ENOSPC (507); to a reader it is FW_EIO. Damage is FW_ECORRUPT to both. */
#include "config.h"

#include "sql.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

static const char *const text_of[SQL_COUNT] = {
    [SQL_BEGIN] = "BEGIN IMMEDIATE",
    [SQL_BEGIN_READ] = "BEGIN",
    [SQL_COMMIT] = "COMMIT",
    [SQL_ROLLBACK] = "ROLLBACK",
    [SQL_LAST_UID] = "SELECT max(ifnull((SELECT max(uid) FROM sessions), 0), ifnull("
                     "(SELECT seq FROM sqlite_sequence WHERE name = 'sessions'), 0))",
    [SQL_NAME] = "SELECT uid FROM sessions WHERE owner = ?1 AND id = ?2",
    [SQL_CREATE] = "INSERT INTO sessions (uid, owner, id, model, config, labels, version,"
                   " tokens_seen, block_bytes, has_block, hash, created_ms, parent_id,"
                   " parent_version, parent_hash)"
                   " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)",
    [SQL_STORED] = "SELECT version, block_bytes FROM sessions WHERE uid = ?1",
    [SQL_LAST_VERSION] = "SELECT max(version, ifnull((SELECT max(j.version) FROM journal j"
                         " WHERE j.uid = ?1), 0)) FROM sessions WHERE uid = ?1",
    [SQL_APPEND] = "INSERT INTO journal (uid, version, tokens, key, digest, checksum, body)"
                   " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    [SQL_KEY_ADD] = "INSERT INTO keys (uid, key, version, digest, created_ms)"
                    " VALUES (?1, ?2, ?3, ?4, ?5)",
    [SQL_CHUNK_UPDATE] = "UPDATE blocks SET data = ?1 WHERE id = ?2",
    [SQL_CHUNK_INSERT] = "INSERT INTO blocks (data, id) VALUES (?1, ?2)",
    [SQL_CHUNKS_DELETE] = "DELETE FROM blocks WHERE id BETWEEN ?1 AND ?2",
    [SQL_CHECKPOINT] = "UPDATE sessions SET version = ?2, tokens_seen = ?3, has_block = 1,"
                       " hash = ?4 WHERE uid = ?1",
    [SQL_CUT] = "DELETE FROM journal WHERE uid = ?1 AND version <= ?2",
    [SQL_MEAN] = "INSERT INTO keys (uid, key, version, mean, digest, created_ms)"
                 " VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (uid, key)"
                 " DO UPDATE SET mean = excluded.mean WHERE version = excluded.version",
    [SQL_KEY_SPAN] = "SELECT (SELECT max(version) FROM keys WHERE uid = ?1)"
                     " - (SELECT min(version) FROM keys WHERE uid = ?1)",
    [SQL_KEY_NEWEST] = "SELECT version FROM keys WHERE uid = ?1"
                       " ORDER BY version DESC LIMIT 1 OFFSET ?2",
    [SQL_KEY_RECENT] = "SELECT version FROM keys WHERE uid = ?1 AND created_ms > ?2"
                       " ORDER BY version LIMIT 1",
    [SQL_KEYS_PRUNE] = "DELETE FROM keys WHERE uid = ?1 AND version <= ?2",
    [SQL_LABELS] = "UPDATE sessions SET labels = ?2 WHERE uid = ?1",
    [SQL_DELETE_SESSION] = "DELETE FROM sessions WHERE uid = ?1",
    [SQL_DELETE_JOURNAL] = "DELETE FROM journal WHERE uid = ?1",
    [SQL_DELETE_KEYS] = "DELETE FROM keys WHERE uid = ?1",
    [SQL_DELETE_SNAPSHOTS] = "DELETE FROM snapshots WHERE uid = ?1",
    [SQL_SNAPSHOT_IDS] = "SELECT snap FROM snapshots WHERE uid = ?1",
    [SQL_SNAPSHOT_ADD] = "INSERT INTO snapshots (uid, name, version, tokens_seen, block_bytes,"
                         " hash, created_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    [SQL_SNAPSHOT_DELETE] = "DELETE FROM snapshots WHERE snap = ?1",
    [SQL_SNAPSHOT] = "SELECT name, version, tokens_seen, block_bytes, hash, created_ms, snap"
                     " FROM snapshots WHERE uid = ?1 AND name = ?2",
    [SQL_SNAPSHOTS] = "SELECT name, version, tokens_seen, block_bytes, hash, created_ms, snap"
                      " FROM snapshots WHERE uid = ?1 AND name > ?2 ORDER BY name LIMIT ?3",
    [SQL_NAMES] =
        "SELECT uid, owner, id FROM sessions INDEXED BY sessions_by_name ORDER BY uid",
    [SQL_SESSION] = "SELECT uid, owner, id, model, config, labels, version, tokens_seen,"
                    " block_bytes, has_block, hash, created_ms, parent_id, parent_version,"
                    " parent_hash FROM sessions WHERE uid = ?1",
    [SQL_JOURNAL_SUM] = "SELECT count(*), ifnull(sum(length(body)), 0), ifnull(sum(tokens), 0)"
                        " FROM journal WHERE uid = ?1 AND version > ?2",
    [SQL_JOURNAL] = "SELECT version, tokens, key, digest, checksum, body FROM journal"
                    " WHERE uid = ?1 AND version > ?2 ORDER BY version",
    [SQL_KEY] = "SELECT digest, version, mean FROM keys WHERE uid = ?1 AND key = ?2",
};

/* A quota and a file size limit are a full disk, too. */
static int errno_means_full(int e)
{
    return e == ENOSPC || e == EDQUOT || e == EFBIG;
}

static int fail_io(const struct fw_sql *c, int rc, struct fw_err *err)
{
    int e = sqlite3_system_errno(c->db);
    int full = rc == SQLITE_FULL || ((rc & 0xff) == SQLITE_IOERR && errno_means_full(e));

    if (!c->writer)
        return fw_fail(err, FW_EIO, "storage_failed", "the database cannot be read: %s (%d)",
                       sqlite3_errmsg(c->db), rc);
    return fw_fail(err, FW_ENOSPC, full ? "storage_full" : "storage_failed",
                   "%s: %s (%d, errno %d)",
                   full ? "the data directory's disk is full" : "the data directory fails",
                   sqlite3_errmsg(c->db), rc, e);
}

int fw_sql_fail(const struct fw_sql *c, int rc, struct fw_err *err)
{
    if (rc == SQLITE_IOERR_NOMEM || (rc & 0xff) == SQLITE_NOMEM)
        return fw_fail(err, FW_ENOMEM, "out_of_memory", "no memory for the database");
    if (rc == SQLITE_IOERR_SHORT_READ)
        rc = SQLITE_CORRUPT;
    switch (rc & 0xff) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return fw_fail(err, FW_ECORRUPT, "state_corrupt", "the database is damaged here: %s",
                       sqlite3_errmsg(c->db));
    case SQLITE_FULL:
    case SQLITE_IOERR:
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_PROTOCOL:
    case SQLITE_PERM:
    case SQLITE_AUTH:
    case SQLITE_NOLFS:
        return fail_io(c, rc, err);
    default:
        return fw_fail(err, FW_EINTERNAL, "sql_failed", "SQLite: %s (%d)",
                       sqlite3_errmsg(c->db), rc);
    }
}

int fw_sql_open(struct fw_sql *c, const char *path, int flags, struct fw_err *err)
{
    int rc;

    *c = (struct fw_sql){ .writer = (flags & SQLITE_OPEN_READONLY) == 0 };
    rc = sqlite3_open_v2(path, &c->db, flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE,
                         NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_busy_timeout(c->db, 5000);
    if (rc != SQLITE_OK) {
        if (!c->db)
            fw_fail(err, FW_ENOMEM, "out_of_memory", "no memory for the database");
        else
            fw_sql_fail(c, rc, err);
        fw_sql_close(c);
        return -1;
    }
    return 0;
}

void fw_sql_close(struct fw_sql *c)
{
    int i;

    for (i = 0; i < SQL_COUNT; i++)
        sqlite3_finalize(c->stmt[i]);
    sqlite3_close(c->db);
    *c = (struct fw_sql){ 0 };
}

int fw_sql_exec(struct fw_sql *c, const char *text, struct fw_err *err)
{
    int rc = sqlite3_exec(c->db, text, NULL, NULL, NULL);

    return rc == SQLITE_OK ? 0 : fw_sql_fail(c, rc, err);
}

static void put_be64(unsigned char *to, uint64_t v)
{
    int i;

    for (i = 0; i < 8; i++)
        to[i] = (unsigned char)(v >> (56 - 8 * i));
}

static uint64_t get_be64(const unsigned char *from)
{
    uint64_t v = 0;
    int i;

    for (i = 0; i < 8; i++)
        v = v << 8 | from[i];
    return v;
}

static int bind_hash(sqlite3_stmt *st, int at, const struct fw_hash *h)
{
    unsigned char bytes[16];

    put_be64(bytes, h->hi);
    put_be64(bytes + 8, h->lo);
    return sqlite3_bind_blob(st, at, bytes, sizeof bytes, SQLITE_TRANSIENT);
}

static int bind_bytes(sqlite3_stmt *st, int at, const void *data, size_t len)
{
    if (len == 0) /* a NULL pointer would bind NULL */
        return sqlite3_bind_zeroblob(st, at, 0);
    return sqlite3_bind_blob64(st, at, data, len, SQLITE_STATIC);
}

static int bind_all(sqlite3_stmt *st, const char *types, va_list ap)
{
    const void *data;
    int at, rc = SQLITE_OK;

    for (at = 1; *types && rc == SQLITE_OK; types++, at++) {
        switch (*types) {
        case 'i':
            rc = sqlite3_bind_int64(st, at, va_arg(ap, int64_t));
            break;
        case 'd':
            rc = sqlite3_bind_double(st, at, va_arg(ap, double));
            break;
        case 't':
            rc = sqlite3_bind_text(st, at, va_arg(ap, const char *), -1, SQLITE_STATIC);
            break;
        case 'b':
            data = va_arg(ap, const void *);
            rc = bind_bytes(st, at, data, va_arg(ap, size_t));
            break;
        case 'h':
            rc = bind_hash(st, at, va_arg(ap, const struct fw_hash *));
            break;
        default:
            rc = SQLITE_MISUSE;
        }
    }
    return rc;
}

static sqlite3_stmt *start(struct fw_sql *c, enum fw_sql_id id, struct fw_err *err,
                           const char *types, va_list ap)
{
    int rc = SQLITE_OK;

    if (!c->stmt[id])
        rc = sqlite3_prepare_v3(c->db, text_of[id], -1, SQLITE_PREPARE_PERSISTENT, &c->stmt[id],
                                NULL);
    if (rc == SQLITE_OK)
        rc = bind_all(c->stmt[id], types, ap);
    if (rc != SQLITE_OK) {
        fw_sql_fail(c, rc, err);
        fw_sql_end(c->stmt[id]);
        return NULL;
    }
    return c->stmt[id];
}

sqlite3_stmt *fw_sql_start(struct fw_sql *c, enum fw_sql_id id, struct fw_err *err,
                           const char *types, ...)
{
    sqlite3_stmt *st;
    va_list ap;

    va_start(ap, types);
    st = start(c, id, err, types, ap);
    va_end(ap);
    return st;
}

int fw_sql_step(struct fw_sql *c, sqlite3_stmt *st, struct fw_err *err)
{
    int rc = sqlite3_step(st);

    if (rc == SQLITE_ROW)
        return 1;
    return rc == SQLITE_DONE ? 0 : fw_sql_fail(c, rc, err);
}

void fw_sql_end(sqlite3_stmt *st)
{
    if (st) {
        sqlite3_reset(st);
        sqlite3_clear_bindings(st); /* no pointer of the caller's stays behind */
    }
}

int fw_sql_run(struct fw_sql *c, enum fw_sql_id id, struct fw_err *err, const char *types, ...)
{
    sqlite3_stmt *st;
    va_list ap;
    int rc;

    va_start(ap, types);
    st = start(c, id, err, types, ap);
    va_end(ap);
    if (!st)
        return -1;
    do
        rc = fw_sql_step(c, st, err);
    while (rc > 0);
    fw_sql_end(st);
    return rc;
}

int fw_sql_int(struct fw_sql *c, sqlite3_stmt *st, int64_t *ret, struct fw_err *err)
{
    int rc = st ? fw_sql_step(c, st, err) : -1;

    if (rc > 0)
        *ret = sqlite3_column_int64(st, 0);
    if (rc > 0 && sqlite3_column_type(st, 0) == SQLITE_NULL)
        rc = 0;
    fw_sql_end(st);
    return rc;
}

int fw_sql_hash(sqlite3_stmt *st, int column, struct fw_hash *ret)
{
    const unsigned char *bytes = sqlite3_column_blob(st, column);

    if (!bytes || sqlite3_column_bytes(st, column) != 16)
        return -1;
    *ret = (struct fw_hash){ .hi = get_be64(bytes), .lo = get_be64(bytes + 8) };
    return 0;
}
