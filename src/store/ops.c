/* ops.c - what each op does inside the writer's open transaction.
 *
 * An op first checks itself with reads alone. When it is refused there, nothing was written and
 * its companions in the transaction are not harmed; when SQLite fails later, it is broken and
 * the whole transaction must be rolled back.
 *
 * A journal row follows the last one of its session without a gap, so what replay finds is
 * always a prefix of what was learned. A checkpoint writes the block, cuts the rows that it
 * includes and nothing above them, all in one transaction. */
#include "config.h"

#include "store_int.h"

#include <string.h>

#include "fastweight/clock.h"

static enum fw_applied refuse(int minus_one)
{
    (void)minus_one;
    return FW_REFUSED;
}

static enum fw_applied written(int rc)
{
    return rc < 0 ? FW_BROKEN : FW_APPLIED;
}

static enum fw_applied too_big(struct fw_store_op *op, const char *what, size_t limit)
{
    return refuse(
        fw_fail(&op->err, FW_ETOOBIG, "too_large", "%s has more than %zu bytes", what, limit));
}

static enum fw_applied no_session(struct fw_store_op *op)
{
    return refuse(fw_fail(&op->err, FW_ENOENT, "session_not_found", "the session is deleted"));
}

static int write_chunk(struct fw_sql *c, const void *data, size_t len, int64_t id,
                       struct fw_err *err)
{
    if (fw_sql_run(c, SQL_CHUNK_UPDATE, err, "bi", data, len, id) < 0)
        return -1;
    if (sqlite3_changes(c->db) > 0)
        return 0;
    return fw_sql_run(c, SQL_CHUNK_INSERT, err, "bi", data, len, id);
}

static int write_block(struct fw_sql *c, int64_t set, const void *block, size_t bytes,
                       struct fw_err *err)
{
    const unsigned char *data = block;
    size_t at, len;
    int64_t idx = 0;

    for (at = 0; at < bytes; at += len, idx++) {
        len = bytes - at < FW_STORE_CHUNK_BYTES ? bytes - at : FW_STORE_CHUNK_BYTES;
        if (write_chunk(c, data + at, len, fw_chunk_id(set, idx), err) < 0)
            return -1;
    }
    return 0;
}

static int delete_block(struct fw_sql *c, int64_t set, struct fw_err *err)
{
    return fw_sql_run(c, SQL_CHUNKS_DELETE, err, "ii", fw_chunk_id(set, 0),
                      fw_chunk_id(set, FW_STORE_MAX_CHUNKS - 1));
}

static int insert_session(struct fw_sql *c, struct fw_store_op *op)
{
    const struct fw_store_session *s = op->session;

    return fw_sql_run(c, SQL_CREATE, &op->err, "itttttiiiihitih", s->uid, s->owner, s->id,
                      s->model, s->config, s->labels, (int64_t)s->version,
                      (int64_t)s->tokens_seen, (int64_t)s->block_bytes,
                      (int64_t)(op->block != NULL), &s->hash, s->created_ms, s->parent_id,
                      (int64_t)s->parent_version, &s->parent_hash);
}

static enum fw_applied create(struct fw_sql *c, struct fw_store_op *op)
{
    const struct fw_store_session *s = op->session;
    sqlite3_stmt *st;
    int64_t taken;
    int rc;

    if (s->uid < 1 || s->uid >= FW_STORE_MAX_UID ||
        (op->block && op->block_bytes != s->block_bytes))
        return refuse(fw_fail(&op->err, FW_EINTERNAL, "bad_session", "uid or block size"));
    if (s->block_bytes > FW_STORE_MAX_BLOCK)
        return too_big(op, "the state", FW_STORE_MAX_BLOCK);
    if (strlen(s->labels) > FW_STORE_MAX_LABELS)
        return too_big(op, "labels", FW_STORE_MAX_LABELS);
    st = fw_sql_start(c, SQL_NAME, &op->err, "tt", s->owner, s->id);
    rc = fw_sql_int(c, st, &taken, &op->err);
    if (rc < 0)
        return FW_BROKEN;
    if (rc > 0)
        return refuse(
            fw_fail(&op->err, FW_EEXIST, "session_exists", "session '%s' exists", s->id));
    if (insert_session(c, op) < 0)
        return FW_BROKEN;
    if (!op->block)
        return FW_APPLIED;
    return written(
        write_block(c, fw_session_set(s->uid), op->block, op->block_bytes, &op->err));
}

int64_t fw_row_checksum(int64_t uid, uint64_t version, uint64_t tokens, const char *key,
                        const struct fw_hash *digest, const void *body, size_t body_len)
{
    uint64_t head[6] = { (uint64_t)uid, version, tokens, key ? strlen(key) + 1 : 0 };
    struct fw_hash_piece piece[] = {
        { head, sizeof head },
        { key, key ? strlen(key) : 0 },
        { body, body_len },
    };

    if (digest) {
        head[4] = digest->hi;
        head[5] = digest->lo;
    }
    return (int64_t)fw_hash128_pieces(piece, 3).lo;
}

static enum fw_applied check_successor(struct fw_sql *c, struct fw_store_op *op)
{
    sqlite3_stmt *st = fw_sql_start(c, SQL_LAST_VERSION, &op->err, "i", op->uid);
    int64_t last;
    int rc = fw_sql_int(c, st, &last, &op->err);

    if (rc < 0)
        return FW_BROKEN;
    if (rc == 0)
        return no_session(op);
    if (op->version == (uint64_t)last + 1)
        return FW_APPLIED;
    /* Above it: an earlier row failed, and this one fails with it. Below: our own bug. */
    return refuse(fw_fail(&op->err, op->version > (uint64_t)last + 1 ? FW_ENOSPC : FW_EINTERNAL,
                          "journal_gap", "version %llu does not follow stored version %lld",
                          (unsigned long long)op->version, (long long)last));
}

static int insert_row(struct fw_sql *c, struct fw_store_op *op)
{
    const struct fw_hash *digest = op->key ? &op->digest : NULL;
    int64_t sum = fw_row_checksum(op->uid, op->version, op->tokens, op->key, digest, op->body,
                                  op->body_len);

    if (!op->key)
        return fw_sql_run(c, SQL_APPEND, &op->err, "iiittib", op->uid, (int64_t)op->version,
                          (int64_t)op->tokens, (const char *)NULL, (const char *)NULL, sum,
                          op->body, op->body_len);
    if (fw_keys_add(c, op) < 0)
        return -1;
    return fw_sql_run(c, SQL_APPEND, &op->err, "iiithib", op->uid, (int64_t)op->version,
                      (int64_t)op->tokens, op->key, digest, sum, op->body, op->body_len);
}

static enum fw_applied append(struct fw_sql *c, struct fw_store_op *op)
{
    enum fw_applied got;

    if (op->body_len > FW_STORE_MAX_BODY)
        return too_big(op, "the body", FW_STORE_MAX_BODY);
    if (op->key && strlen(op->key) > FW_STORE_MAX_KEY)
        return too_big(op, "the idempotency key", FW_STORE_MAX_KEY);
    got = check_successor(c, op);
    return got == FW_APPLIED ? written(insert_row(c, op)) : got;
}

/* The stored row: FW_APPLIED with both values, or why the op cannot be. */
static enum fw_applied stored(struct fw_sql *c, struct fw_store_op *op, uint64_t *version,
                              uint64_t *block_bytes)
{
    sqlite3_stmt *st = fw_sql_start(c, SQL_STORED, &op->err, "i", op->uid);
    int rc = st ? fw_sql_step(c, st, &op->err) : -1;

    if (rc > 0) {
        *version = (uint64_t)sqlite3_column_int64(st, 0);
        *block_bytes = (uint64_t)sqlite3_column_int64(st, 1);
    }
    fw_sql_end(st);
    if (rc < 0)
        return FW_BROKEN;
    return rc == 0 ? no_session(op) : FW_APPLIED;
}

static enum fw_applied checkpoint(struct fw_sql *c, struct fw_store_op *op)
{
    uint64_t version = 0, block_bytes = 0;
    enum fw_applied got = stored(c, op, &version, &block_bytes);

    if (got != FW_APPLIED)
        return got;
    if (!op->block || op->block_bytes != block_bytes || op->version < version)
        return refuse(fw_fail(&op->err, FW_EINTERNAL, "bad_checkpoint",
                              "version %llu of %zu bytes onto version %llu of %llu bytes",
                              (unsigned long long)op->version, op->block_bytes,
                              (unsigned long long)version, (unsigned long long)block_bytes));
    if (write_block(c, fw_session_set(op->uid), op->block, op->block_bytes, &op->err) < 0 ||
        fw_sql_run(c, SQL_CHECKPOINT, &op->err, "iiih", op->uid, (int64_t)op->version,
                   (int64_t)op->tokens, &op->hash) < 0 ||
        fw_sql_run(c, SQL_CUT, &op->err, "ii", op->uid, (int64_t)op->version) < 0 ||
        fw_keys_means(c, op) < 0)
        return FW_BROKEN;
    return written(fw_keys_prune(c, op->uid, &op->err));
}

static int delete_snapshot_blocks(struct fw_sql *c, struct fw_store_op *op)
{
    sqlite3_stmt *st = fw_sql_start(c, SQL_SNAPSHOT_IDS, &op->err, "i", op->uid);
    int rc = st ? 1 : -1;

    while (rc > 0 && (rc = fw_sql_step(c, st, &op->err)) > 0) {
        if (delete_block(c, fw_snapshot_set(sqlite3_column_int64(st, 0)), &op->err) < 0)
            rc = -1;
    }
    fw_sql_end(st);
    return rc;
}

static enum fw_applied delete_session(struct fw_sql *c, struct fw_store_op *op)
{
    uint64_t version, block_bytes;
    enum fw_applied got = stored(c, op, &version, &block_bytes);

    if (got != FW_APPLIED)
        return got;
    if (delete_snapshot_blocks(c, op) < 0 ||
        fw_sql_run(c, SQL_DELETE_SNAPSHOTS, &op->err, "i", op->uid) < 0 ||
        delete_block(c, fw_session_set(op->uid), &op->err) < 0 ||
        fw_sql_run(c, SQL_DELETE_JOURNAL, &op->err, "i", op->uid) < 0 ||
        fw_sql_run(c, SQL_DELETE_KEYS, &op->err, "i", op->uid) < 0)
        return FW_BROKEN;
    return fw_op_delete_name(c, op);
}

enum fw_applied fw_op_delete_name(struct fw_sql *c, struct fw_store_op *op)
{
    return written(fw_sql_run(c, SQL_DELETE_SESSION, &op->err, "i", op->uid));
}

static enum fw_applied set_labels(struct fw_sql *c, struct fw_store_op *op)
{
    if (strlen(op->labels) > FW_STORE_MAX_LABELS)
        return too_big(op, "labels", FW_STORE_MAX_LABELS);
    if (fw_sql_run(c, SQL_LABELS, &op->err, "it", op->uid, op->labels) < 0)
        return FW_BROKEN;
    return sqlite3_changes(c->db) > 0 ? FW_APPLIED : no_session(op);
}

/* Column 6 of SQL_SNAPSHOT: its number. 1, 0 when there is none, -1. */
static int find_snapshot(struct fw_sql *c, struct fw_store_op *op, int64_t *ret)
{
    sqlite3_stmt *st = fw_sql_start(c, SQL_SNAPSHOT, &op->err, "it", op->uid, op->name);
    int rc = st ? fw_sql_step(c, st, &op->err) : -1;

    if (rc > 0)
        *ret = sqlite3_column_int64(st, 6);
    fw_sql_end(st);
    return rc;
}

static enum fw_applied snapshot(struct fw_sql *c, struct fw_store_op *op)
{
    uint64_t version, block_bytes = 0;
    enum fw_applied got = stored(c, op, &version, &block_bytes);
    int64_t snap;
    int rc;

    if (got != FW_APPLIED)
        return got;
    if (!op->block || op->block_bytes != block_bytes)
        return refuse(fw_fail(&op->err, FW_EINTERNAL, "bad_snapshot", "%zu bytes, not %llu",
                              op->block_bytes, (unsigned long long)block_bytes));
    rc = find_snapshot(c, op, &snap);
    if (rc < 0)
        return FW_BROKEN;
    if (rc > 0)
        return refuse(fw_fail_param(&op->err, FW_EEXIST, "snapshot_exists", "name",
                                    "snapshot '%s' exists", op->name));
    if (fw_sql_run(c, SQL_SNAPSHOT_ADD, &op->err, "itiiihi", op->uid, op->name,
                   (int64_t)op->version, (int64_t)op->tokens, (int64_t)op->block_bytes,
                   &op->hash, fw_clock_wall_ms()) < 0)
        return FW_BROKEN;
    snap = sqlite3_last_insert_rowid(c->db);
    return written(write_block(c, fw_snapshot_set(snap), op->block, op->block_bytes, &op->err));
}

static enum fw_applied delete_snapshot(struct fw_sql *c, struct fw_store_op *op)
{
    int64_t snap = 0;
    int rc = find_snapshot(c, op, &snap);

    if (rc < 0)
        return FW_BROKEN;
    if (rc == 0)
        return refuse(fw_fail_param(&op->err, FW_ENOENT, "snapshot_not_found", "name",
                                    "no snapshot '%s'", op->name));
    if (delete_block(c, fw_snapshot_set(snap), &op->err) < 0)
        return FW_BROKEN;
    return written(fw_sql_run(c, SQL_SNAPSHOT_DELETE, &op->err, "i", snap));
}

enum fw_applied fw_op_apply(struct fw_sql *c, struct fw_store_op *op)
{
    switch (op->verb) {
    case FW_STORE_CREATE:
        return create(c, op);
    case FW_STORE_APPEND:
        return append(c, op);
    case FW_STORE_CHECKPOINT:
        return checkpoint(c, op);
    case FW_STORE_DELETE:
        return delete_session(c, op);
    case FW_STORE_LABELS:
        return set_labels(c, op);
    case FW_STORE_SNAPSHOT:
        return snapshot(c, op);
    case FW_STORE_SNAPSHOT_DELETE:
        return delete_snapshot(c, op);
    }
    return refuse(fw_fail(&op->err, FW_EINTERNAL, "bad_verb", "no such store op"));
}

size_t fw_op_bytes(const struct fw_store_op *op)
{
    return op->block_bytes + op->body_len + 256;
}
