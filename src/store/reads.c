/* reads.c - the store's reads, each one short transaction on a connection of its own.
 *
 * Everything read is checked before it is used: sizes against what the caller expects, a
 * journal row against its checksum and its predecessor. What does not fit is FW_ECORRUPT for
 * this session and this call; the other sessions do not notice. */
#include "config.h"

#include "store_int.h"

#include <stdlib.h>
#include <string.h>

static int corrupt(struct fw_err *err, int64_t uid, const char *what)
{
    return fw_fail(err, FW_ECORRUPT, "state_corrupt", "session %lld: %s", (long long)uid, what);
}

/* Runs fn inside one read transaction. */
static int in_transaction(struct fw_store *s, int (*fn)(struct fw_sql *c, void *arg), void *arg,
                          struct fw_err *err)
{
    struct fw_reader *r = fw_reader_take(s, err);
    int rc;

    if (!r)
        return -1;
    rc = fw_sql_run(&r->sql, SQL_BEGIN_READ, err, "");
    if (rc == 0) {
        rc = fn(&r->sql, arg);
        fw_sql_run(&r->sql, SQL_COMMIT, NULL, "");
    }
    fw_reader_give(s, r);
    return rc;
}

/* Column text, or NULL when it is no text (a damaged row). */
static const char *text(sqlite3_stmt *st, int column)
{
    if (sqlite3_column_type(st, column) != SQLITE_TEXT)
        return NULL;
    return (const char *)sqlite3_column_text(st, column);
}

/* The row that st stands on; strings live as long as it does. */
static int session_from(sqlite3_stmt *st, struct fw_store_session *ret, struct fw_err *err)
{
    struct fw_store_session row = {
        .uid = sqlite3_column_int64(st, 0),
        .owner = text(st, 1),
        .id = text(st, 2),
        .model = text(st, 3),
        .config = text(st, 4),
        .labels = text(st, 5),
        .version = (uint64_t)sqlite3_column_int64(st, 6),
        .tokens_seen = (uint64_t)sqlite3_column_int64(st, 7),
        .block_bytes = (uint64_t)sqlite3_column_int64(st, 8),
        .has_block = sqlite3_column_int(st, 9),
        .created_ms = sqlite3_column_int64(st, 11),
        .parent_id = text(st, 12),
        .parent_version = (uint64_t)sqlite3_column_int64(st, 13),
    };

    if (!row.owner || !row.id || !row.model || !row.config || !row.labels || !row.parent_id ||
        strlen(row.id) >= FW_ID_MAX || strlen(row.model) >= FW_ID_MAX ||
        strlen(row.parent_id) >= FW_ID_MAX || strlen(row.labels) > FW_STORE_MAX_LABELS ||
        row.version > INT64_MAX || row.tokens_seen > INT64_MAX ||
        row.block_bytes > FW_STORE_MAX_BLOCK || fw_sql_hash(st, 10, &row.hash) < 0 ||
        fw_sql_hash(st, 14, &row.parent_hash) < 0)
        return corrupt(err, row.uid, "its row makes no sense");
    *ret = row;
    return 0;
}

static int journal_sum(struct fw_sql *c, struct fw_store_session *row, struct fw_err *err)
{
    sqlite3_stmt *st =
        fw_sql_start(c, SQL_JOURNAL_SUM, err, "ii", row->uid, (int64_t)row->version);
    int rc = st ? fw_sql_step(c, st, err) : -1;

    if (rc > 0) {
        row->journal_rows = (uint64_t)sqlite3_column_int64(st, 0);
        row->journal_bytes = (uint64_t)sqlite3_column_int64(st, 1);
        row->journal_tokens = (uint64_t)sqlite3_column_int64(st, 2);
    }
    fw_sql_end(st);
    return rc < 0 ? -1 : 0;
}

struct sessions_call {
    int (*fn)(void *arg, const struct fw_store_session *row);
    void *arg;
    struct fw_err *err;
};

/* 1: fn wants no more. */
static int visit(struct fw_sql *c, sqlite3_stmt *name, struct sessions_call *call)
{
    struct fw_store_session row = { 0 };
    struct fw_err err;
    int64_t uid = sqlite3_column_int64(name, 0);
    sqlite3_stmt *st = fw_sql_start(c, SQL_SESSION, &err, "i", uid);
    int rc = st ? fw_sql_step(c, st, &err) : -1;

    if (rc == 0)
        rc = corrupt(&err, uid, "its row is missing");
    else if (rc > 0)
        rc = session_from(st, &row, &err);
    if (rc == 0)
        rc = journal_sum(c, &row, &err);
    if (rc < 0 && err.code == FW_ECORRUPT) {
        row = (struct fw_store_session){ .uid = uid, .damaged = 1 };
        row.owner = text(name, 1);
        row.id = text(name, 2);
        row.model = row.config = row.labels = row.parent_id = "";
        rc = row.owner && row.id && strlen(row.id) < FW_ID_MAX ? 0 : -1;
    }
    if (rc == 0)
        rc = call->fn(call->arg, &row) != 0;
    else if (call->err)
        *call->err = err;
    fw_sql_end(st);
    return rc;
}

/* The names come from their index and each row by itself, so a damaged page of rows takes no
 * other session with it. */
static int read_sessions(struct fw_sql *c, void *arg)
{
    struct sessions_call *call = arg;
    sqlite3_stmt *st = fw_sql_start(c, SQL_NAMES, call->err, "");
    int rc = st ? 0 : -1;

    while (rc == 0) {
        rc = fw_sql_step(c, st, call->err);
        if (rc <= 0)
            break;
        rc = visit(c, st, call);
    }
    fw_sql_end(st);
    return rc < 0 ? -1 : 0;
}

int fw_store_sessions(struct fw_store *s,
                      int (*fn)(void *arg, const struct fw_store_session *row), void *arg,
                      struct fw_err *err)
{
    struct sessions_call call = { .fn = fn, .arg = arg, .err = err };

    return in_transaction(s, read_sessions, &call, err);
}

/* Opens the chunk, or moves the open handle to it. */
static int open_chunk(struct fw_sql *c, int64_t id, sqlite3_blob **blob, struct fw_err *err)
{
    int rc = *blob ? sqlite3_blob_reopen(*blob, id)
                   : sqlite3_blob_open(c->db, "main", "blocks", "data", id, 0, blob);

    if (rc == SQLITE_ERROR) /* no such row */
        return fw_fail(err, FW_ECORRUPT, "state_corrupt", "chunk %lld is missing",
                       (long long)id);
    return rc == SQLITE_OK ? 0 : fw_sql_fail(c, rc, err);
}

/* The incremental interface copies from the pages right into the block; a column would be put
 * together in memory of its own first. */
static int read_block(struct fw_sql *c, int64_t set, void *block, size_t bytes,
                      struct fw_err *err)
{
    unsigned char *to = block;
    sqlite3_blob *blob = NULL;
    size_t at, len;
    int64_t id = fw_chunk_id(set, 0);
    int rc = 0;

    for (at = 0; at < bytes && rc == 0; at += len, id++) {
        len = bytes - at < FW_STORE_CHUNK_BYTES ? bytes - at : FW_STORE_CHUNK_BYTES;
        rc = open_chunk(c, id, &blob, err);
        if (rc == 0 && (size_t)sqlite3_blob_bytes(blob) != len)
            rc = fw_fail(err, FW_ECORRUPT, "state_corrupt", "chunk %lld has a wrong size",
                         (long long)id);
        if (rc == 0) {
            rc = sqlite3_blob_read(blob, to + at, (int)len, 0);
            rc = rc == SQLITE_OK ? 0 : fw_sql_fail(c, rc, err);
        }
    }
    sqlite3_blob_close(blob);
    return rc;
}

struct load_call {
    int64_t uid;
    void *block;
    size_t block_bytes;
    struct fw_store_session *ret;
    struct fw_err *err;
};

static int read_session(struct fw_sql *c, struct load_call *call, struct fw_store_session *ret)
{
    sqlite3_stmt *st = fw_sql_start(c, SQL_SESSION, call->err, "i", call->uid);
    int rc = st ? fw_sql_step(c, st, call->err) : -1;

    if (rc == 0)
        rc = fw_fail(call->err, FW_ENOENT, "session_not_found", "no session %lld",
                     (long long)call->uid);
    else if (rc > 0)
        rc = session_from(st, ret, call->err);
    ret->owner = ret->id = ret->model = ret->config = ret->labels = ret->parent_id = "";
    fw_sql_end(st);
    return rc;
}

static int read_load(struct fw_sql *c, void *arg)
{
    struct load_call *call = arg;
    struct fw_store_session row = { 0 };

    if (read_session(c, call, &row) < 0)
        return -1;
    if (row.block_bytes != call->block_bytes)
        return corrupt(call->err, call->uid, "its state has another size");
    if (journal_sum(c, &row, call->err) < 0)
        return -1;
    if (row.has_block &&
        read_block(c, fw_session_set(call->uid), call->block, call->block_bytes, call->err) < 0)
        return -1;
    *call->ret = row;
    return 0;
}

int fw_store_load(struct fw_store *s, int64_t uid, void *block, size_t block_bytes,
                  struct fw_store_session *ret, struct fw_err *err)
{
    struct load_call call = {
        .uid = uid, .block = block, .block_bytes = block_bytes, .ret = ret, .err = err
    };

    return in_transaction(s, read_load, &call, err);
}

struct journal_call {
    int64_t uid;
    uint64_t version; /* of the row before the next */
    struct fw_store_row **tail;
    struct fw_err *err;
};

static int fill_body(sqlite3_stmt *st, struct fw_store_row *row, struct fw_err *err)
{
    const void *data = sqlite3_column_blob(st, 5);

    row->body_len = data ? (size_t)sqlite3_column_bytes(st, 5) : 0;
    row->body = aligned_alloc(64, (row->body_len + 64) & ~(size_t)63);
    if (!row->body)
        return fw_fail(err, FW_ENOMEM, "out_of_memory", "no memory for a journal row");
    if (row->body_len > 0)
        memcpy(row->body, data, row->body_len);
    return 0;
}

static int fill_row(sqlite3_stmt *st, struct journal_call *call, struct fw_store_row *row)
{
    const char *key = text(st, 2);
    const struct fw_hash *digest = NULL;

    row->version = (uint64_t)sqlite3_column_int64(st, 0);
    row->tokens = (uint64_t)sqlite3_column_int64(st, 1);
    if (row->version != call->version + 1)
        return corrupt(call->err, call->uid, "its journal has a gap");
    if (key) {
        if (strlen(key) >= sizeof row->key || fw_sql_hash(st, 3, &row->digest) < 0)
            return corrupt(call->err, call->uid, "a journal row makes no sense");
        memcpy(row->key, key, strlen(key) + 1);
        digest = &row->digest;
    }
    if (fill_body(st, row, call->err) < 0)
        return -1;
    if (fw_row_checksum(call->uid, row->version, row->tokens, key, digest, row->body,
                        row->body_len) != sqlite3_column_int64(st, 4))
        return corrupt(call->err, call->uid, "a journal row's checksum is wrong");
    return 0;
}

static int add_row(sqlite3_stmt *st, struct journal_call *call)
{
    struct fw_store_row *row = calloc(1, sizeof *row);

    if (!row)
        return fw_fail(call->err, FW_ENOMEM, "out_of_memory", "no memory for a journal row");
    *call->tail = row;
    call->tail = &row->next;
    if (fill_row(st, call, row) < 0)
        return -1;
    call->version = row->version;
    return 0;
}

static int read_journal(struct fw_sql *c, void *arg)
{
    struct journal_call *call = arg;
    sqlite3_stmt *st =
        fw_sql_start(c, SQL_JOURNAL, call->err, "ii", call->uid, (int64_t)call->version);
    int rc = st ? 0 : -1;

    while (rc == 0) {
        rc = fw_sql_step(c, st, call->err);
        if (rc <= 0)
            break;
        rc = add_row(st, call);
    }
    fw_sql_end(st);
    return rc;
}

int fw_store_journal(struct fw_store *s, int64_t uid, uint64_t version,
                     struct fw_store_row **ret, struct fw_err *err)
{
    struct fw_store_row *rows = NULL;
    struct journal_call call = { .uid = uid, .version = version, .tail = &rows, .err = err };

    if (in_transaction(s, read_journal, &call, err) < 0) {
        fw_store_rows_free(rows);
        return -1;
    }
    *ret = rows;
    return 0;
}

void fw_store_rows_free(struct fw_store_row *row)
{
    struct fw_store_row *next;

    for (; row; row = next) {
        next = row->next;
        free(row->body);
        free(row);
    }
}

struct key_call {
    int64_t uid;
    const char *key;
    struct fw_store_key *ret;
    struct fw_err *err;
};

static int read_key(struct fw_sql *c, void *arg)
{
    struct key_call *call = arg;
    struct fw_store_key k = { 0 };
    sqlite3_stmt *st = fw_sql_start(c, SQL_KEY, call->err, "it", call->uid, call->key);
    int rc = st ? fw_sql_step(c, st, call->err) : -1;

    if (rc == 0)
        rc = fw_fail(call->err, FW_ENOENT, "key_not_found", "no such idempotency key");
    if (rc > 0) {
        rc = fw_sql_hash(st, 0, &k.digest) < 0 ? corrupt(call->err, call->uid, "a key") : 0;
        k.version = (uint64_t)sqlite3_column_int64(st, 1);
        k.has_mean = sqlite3_column_type(st, 2) == SQLITE_FLOAT;
        k.mean = sqlite3_column_double(st, 2);
    }
    fw_sql_end(st);
    if (rc == 0)
        *call->ret = k;
    return rc;
}

int fw_store_key_find(struct fw_store *s, int64_t uid, const char *key,
                      struct fw_store_key *ret, struct fw_err *err)
{
    struct key_call call = { .uid = uid, .key = key, .ret = ret, .err = err };

    return in_transaction(s, read_key, &call, err);
}

static int snapshot_from(sqlite3_stmt *st, int64_t uid, struct fw_store_snapshot *ret,
                         struct fw_err *err)
{
    const char *name = text(st, 0);
    struct fw_store_snapshot snap = {
        .version = (uint64_t)sqlite3_column_int64(st, 1),
        .tokens_seen = (uint64_t)sqlite3_column_int64(st, 2),
        .block_bytes = (uint64_t)sqlite3_column_int64(st, 3),
        .created_ms = sqlite3_column_int64(st, 5),
    };

    if (!name || strlen(name) >= sizeof snap.name || fw_sql_hash(st, 4, &snap.hash) < 0)
        return corrupt(err, uid, "a snapshot's row makes no sense");
    memcpy(snap.name, name, strlen(name) + 1);
    *ret = snap;
    return 0;
}

struct snapshots_call {
    int64_t uid;
    const char *after;
    size_t max, count;
    struct fw_store_snapshot *ret;
    struct fw_err *err;
};

static int read_snapshots(struct fw_sql *c, void *arg)
{
    struct snapshots_call *call = arg;
    sqlite3_stmt *st = fw_sql_start(c, SQL_SNAPSHOTS, call->err, "iti", call->uid, call->after,
                                    (int64_t)call->max);
    int rc = st ? 0 : -1;

    while (rc == 0 && (rc = fw_sql_step(c, st, call->err)) > 0) {
        rc = snapshot_from(st, call->uid, &call->ret[call->count], call->err);
        call->count++;
    }
    fw_sql_end(st);
    return rc;
}

int fw_store_snapshots(struct fw_store *s, int64_t uid, const char *after, size_t max,
                       struct fw_store_snapshot *ret, size_t *ret_count, struct fw_err *err)
{
    struct snapshots_call call = {
        .uid = uid, .after = after, .max = max, .ret = ret, .err = err
    };

    if (in_transaction(s, read_snapshots, &call, err) < 0)
        return -1;
    *ret_count = call.count;
    return 0;
}

struct snapshot_call {
    int64_t uid;
    const char *name;
    void *block; /* or NULL */
    size_t block_bytes;
    struct fw_store_snapshot *ret;
    struct fw_err *err;
};

static int read_snapshot(struct fw_sql *c, void *arg)
{
    struct snapshot_call *call = arg;
    struct fw_store_snapshot found;
    sqlite3_stmt *st = fw_sql_start(c, SQL_SNAPSHOT, call->err, "it", call->uid, call->name);
    int rc = st ? fw_sql_step(c, st, call->err) : -1;
    int64_t snap = 0;

    if (rc == 0)
        rc = fw_fail_param(call->err, FW_ENOENT, "snapshot_not_found", "name",
                           "no snapshot '%s'", call->name);
    else if (rc > 0) {
        snap = sqlite3_column_int64(st, 6);
        rc = snapshot_from(st, call->uid, &found, call->err);
    }
    fw_sql_end(st);
    if (rc == 0 && call->block && found.block_bytes != call->block_bytes)
        rc = corrupt(call->err, call->uid, "a snapshot has another size");
    if (rc == 0 && call->block)
        rc = read_block(c, fw_snapshot_set(snap), call->block, call->block_bytes, call->err);
    if (rc == 0)
        *call->ret = found;
    return rc;
}

int fw_store_snapshot_load(struct fw_store *s, int64_t uid, const char *name, void *block,
                           size_t block_bytes, struct fw_store_snapshot *ret,
                           struct fw_err *err)
{
    struct snapshot_call call = { .uid = uid,
                                  .name = name,
                                  .block = block,
                                  .block_bytes = block_bytes,
                                  .ret = ret,
                                  .err = err };

    return in_transaction(s, read_snapshot, &call, err);
}
