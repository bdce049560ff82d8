/* schema.c - the tables, and the way from every older version of them to the present one.
 *
 * sessions   one row per session: its facts, and the version of its stored block
 * blocks     the bytes of blocks in chunks of 1 MiB. id = set * 1024 + index, where set is
 *            2 * uid for a session's own block and 2 * snap + 1 for a snapshot's; a chunk is
 *            rewritten in place, and SQLite writes only those of its pages that differ
 * journal    the learn bodies above the stored block, clustered by session
 * keys       idempotency keys; mean is NULL while only the journal row holds the learn
 * snapshots  named kept blocks
 *
 * Hashes are 16 bytes, big-endian. A step runs in one transaction together with the number
 * that it leads to, so a crash leaves the old version or the new one. docs/storage.md
 * describes the file for its owner. */
#include "config.h"

#include "store_int.h"

#include <stdio.h>

static const char *const step[FW_STORE_USER_VERSION] = {
    /* 0 -> 1 */
    "CREATE TABLE sessions ("
    " uid INTEGER PRIMARY KEY AUTOINCREMENT, owner TEXT NOT NULL, id TEXT NOT NULL,"
    " model TEXT NOT NULL, config TEXT NOT NULL, labels TEXT NOT NULL,"
    " version INTEGER NOT NULL, tokens_seen INTEGER NOT NULL, block_bytes INTEGER NOT NULL,"
    " has_block INTEGER NOT NULL, hash BLOB NOT NULL, created_ms INTEGER NOT NULL,"
    " parent_id TEXT NOT NULL, parent_version INTEGER NOT NULL, parent_hash BLOB NOT NULL"
    ") STRICT;"
    "CREATE UNIQUE INDEX sessions_by_name ON sessions (owner, id);"
    "CREATE TABLE blocks (id INTEGER PRIMARY KEY, data BLOB NOT NULL) STRICT;"
    "CREATE TABLE journal ("
    " uid INTEGER NOT NULL, version INTEGER NOT NULL, tokens INTEGER NOT NULL,"
    " key TEXT, digest BLOB, checksum INTEGER NOT NULL, body BLOB NOT NULL,"
    " PRIMARY KEY (uid, version)) STRICT, WITHOUT ROWID;"
    "CREATE TABLE keys ("
    " uid INTEGER NOT NULL, key TEXT NOT NULL, version INTEGER NOT NULL,"
    " digest BLOB NOT NULL, mean REAL, created_ms INTEGER NOT NULL,"
    " PRIMARY KEY (uid, key)) STRICT, WITHOUT ROWID;"
    "CREATE TABLE snapshots ("
    " snap INTEGER PRIMARY KEY, uid INTEGER NOT NULL, name TEXT NOT NULL,"
    " version INTEGER NOT NULL, tokens_seen INTEGER NOT NULL, block_bytes INTEGER NOT NULL,"
    " hash BLOB NOT NULL, created_ms INTEGER NOT NULL) STRICT;"
    "CREATE UNIQUE INDEX snapshots_by_name ON snapshots (uid, name);",
    /* 1 -> 2: the oldest keys of a session are found without reading all of them */
    "CREATE INDEX keys_by_version ON keys (uid, version, created_ms);",
};

static int version_of(struct fw_sql *c, int *ret, struct fw_err *err)
{
    sqlite3_stmt *st;
    int rc = sqlite3_prepare_v2(c->db, "PRAGMA user_version", -1, &st, NULL);

    if (rc == SQLITE_OK)
        rc = sqlite3_step(st);
    if (rc == SQLITE_ROW)
        *ret = sqlite3_column_int(st, 0);
    sqlite3_finalize(st);
    return rc == SQLITE_ROW ? 0 : fw_sql_fail(c, rc, err);
}

static int take_step(struct fw_sql *c, int from, struct fw_err *err)
{
    char text[96];

    snprintf(text, sizeof text, "PRAGMA application_id = %d; PRAGMA user_version = %d; COMMIT",
             FW_STORE_APPLICATION_ID, from + 1);
    if (fw_sql_exec(c, "BEGIN IMMEDIATE", err) < 0)
        return -1;
    if (fw_sql_exec(c, step[from], err) == 0 && fw_sql_exec(c, text, err) == 0)
        return 0;
    if (!sqlite3_get_autocommit(c->db))
        fw_sql_exec(c, "ROLLBACK", NULL);
    return -1;
}

int fw_schema_migrate(struct fw_sql *c, int upto, struct fw_err *err)
{
    int version = 0;

    if (version_of(c, &version, err) < 0)
        return -1;
    if (version < 0 || version > FW_STORE_USER_VERSION)
        return fw_fail(err, FW_EIO, "newer_database",
                       "the database has version %d, this program knows up to %d", version,
                       FW_STORE_USER_VERSION);
    for (; version < upto; version++) {
        if (take_step(c, version, err) < 0)
            return -1;
    }
    return 0;
}
