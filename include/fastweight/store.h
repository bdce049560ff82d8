/* fastweight/store.h - durable bytes in one SQLite file: sessions, journal, blocks, snapshots.
 *
 * Knows no learner. All writing goes through one connection in one thread with group commit
 * (WAL, synchronous=FULL): an op is submitted, and its `done` runs on that thread after COMMIT.
 * Ops of one session are carried out in the order they were submitted. Reading uses read-only
 * connections in the caller's thread and may block on the disk. Format: docs/storage.md. */
#ifndef FW_STORE_H
#define FW_STORE_H

#include <stddef.h>
#include <stdint.h>

#include "fastweight/err.h"
#include "fastweight/hash.h"

#define FW_ID_MAX 129 /* ids and names: [A-Za-z0-9][A-Za-z0-9._-]{0,127} and the NUL */

struct fw_store;

/* Opens or creates DIR/fastweightd.db, takes the directory lock (flock; FW_EIO "locked" when
 * another daemon has it), migrates, starts the writer. */
int fw_store_open(struct fw_store **ret, const char *dir, struct fw_err *err);
void fw_store_close(struct fw_store *s);       /* carries out what is queued, then stops */
int64_t fw_store_next_uid(struct fw_store *s); /* never given twice, across restarts too */

struct fw_store_session { /* one row; strings are borrowed (ops) or lent for the call (reads) */
    int64_t uid;
    const char *owner, *id, *model, *config, *labels;
    uint64_t version, tokens_seen; /* of the stored block */
    uint64_t block_bytes;
    int has_block;       /* 0: never checkpointed; the block is the learner's initial one */
    struct fw_hash hash; /* of the stored (or initial) block */
    int64_t created_ms;
    const char *parent_id; /* "" when none */
    uint64_t parent_version;
    struct fw_hash parent_hash;
    uint64_t journal_rows, journal_bytes, journal_tokens; /* reads only: above the block */
    int damaged; /* reads only: the row cannot be read; only uid, owner and id are set */
};

struct fw_store_result { /* of one keyed learn: outlives its journal row */
    char key[FW_ID_MAX + 127];
    uint64_t version;
    double mean;
    struct fw_hash digest; /* the row itself may never have reached the journal (async) */
};

enum fw_store_verb {
    FW_STORE_CREATE,          /* session (all facts are its), block or NULL; FW_EEXIST */
    FW_STORE_APPEND,          /* uid, version, tokens, body, key, digest */
    FW_STORE_CHECKPOINT,      /* uid, version, tokens, block, hash, results; cuts the journal */
    FW_STORE_DELETE,          /* uid, with journal, keys, snapshots; damaged ones, too */
    FW_STORE_LABELS,          /* uid, labels */
    FW_STORE_SNAPSHOT,        /* uid, name, version, tokens, block, hash; FW_EEXIST */
    FW_STORE_SNAPSHOT_DELETE, /* uid, name; FW_ENOENT */
};

struct fw_store_op {
    struct fw_store_op *next; /* the store's, while submitted */
    enum fw_store_verb verb;
    int64_t uid;
    const struct fw_store_session *session;
    const char *name, *labels;
    uint64_t version, tokens; /* APPEND: this row's tokens; else tokens_seen */
    const void *block;        /* borrowed until done: pinned bytes */
    size_t block_bytes;
    struct fw_hash hash;
    const void *body; /* borrowed until done */
    size_t body_len;
    const char *key; /* idempotency key or NULL */
    struct fw_hash digest;
    const struct fw_store_result *result; /* keyed rows that this checkpoint cuts */
    size_t results;
    int failed; /* set before done, with err: FW_ENOSPC when the disk is full or failing */
    struct fw_err err;
    void (*done)(struct fw_store_op *op); /* on the writer thread; must not block */
};

/* Any thread; never blocks. An APPEND whose version is not the successor of what the store has
 * for that session fails (FW_ENOSPC "journal_gap"): after one failed row all later ones in
 * flight fail. Any op of a deleted session: FW_ENOENT. Above a limit: FW_ETOOBIG. */
void fw_store_submit(struct fw_store *s, struct fw_store_op *op);

/* Every session once, in uid order (at start). Stops when fn returns non-zero; 0 then, too. */
int fw_store_sessions(struct fw_store *s,
                      int (*fn)(void *arg, const struct fw_store_session *row), void *arg,
                      struct fw_err *err);
/* The stored block into `block` (block_bytes; untouched when !has_block), its version,
 * tokens_seen, hash as recorded: one consistent read; the strings in *ret are "". FW_ECORRUPT
 * when chunks are missing or SQLite calls the page damaged; the caller compares the hash. */
int fw_store_load(struct fw_store *s, int64_t uid, void *block, size_t block_bytes,
                  struct fw_store_session *ret, struct fw_err *err);

struct fw_store_row { /* a journal row; owned by the caller, freed with fw_store_rows_free */
    struct fw_store_row *next;
    uint64_t version, tokens;
    void *body; /* 64-byte aligned */
    size_t body_len;
    char key[FW_ID_MAX + 127]; /* "" when none */
    struct fw_hash digest;
};
/* The rows above `version` in order, without a gap and with matching checksums, else
 * FW_ECORRUPT. *ret is NULL when there is none. */
int fw_store_journal(struct fw_store *s, int64_t uid, uint64_t version,
                     struct fw_store_row **ret, struct fw_err *err);
void fw_store_rows_free(struct fw_store_row *row);

struct fw_store_key { /* what is remembered of an idempotency key */
    struct fw_hash digest;
    uint64_t version;
    int has_mean; /* 0 while only a journal row holds it */
    double mean;
};
/* FW_ENOENT when the key is unknown to this session. */
int fw_store_key_find(struct fw_store *s, int64_t uid, const char *key,
                      struct fw_store_key *ret, struct fw_err *err);

struct fw_store_snapshot {
    char name[FW_ID_MAX];
    uint64_t version, tokens_seen, block_bytes;
    struct fw_hash hash;
    int64_t created_ms;
};
/* At most `max` after name `after` ("" = from the start), sorted by name. */
int fw_store_snapshots(struct fw_store *s, int64_t uid, const char *after, size_t max,
                       struct fw_store_snapshot *ret, size_t *ret_count, struct fw_err *err);
/* block may be NULL: facts only. FW_ENOENT "snapshot_not_found". */
int fw_store_snapshot_load(struct fw_store *s, int64_t uid, const char *name, void *block,
                           size_t block_bytes, struct fw_store_snapshot *ret,
                           struct fw_err *err);

struct fw_store_stats { /* since open; failures: not those of FW_EEXIST and FW_ENOENT */
    uint64_t commits, ops, append_bytes, failures, queued, file_bytes, wal_bytes;
};
void fw_store_stats(struct fw_store *s, struct fw_store_stats *ret);

#endif
