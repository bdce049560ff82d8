/* store_int.h - what the files of this room share. */
#ifndef FW_STORE_INT_H
#define FW_STORE_INT_H

#include <pthread.h>
#include <stdatomic.h>

#include "fastweight/store.h"
#include "sql.h"

#define FW_STORE_APPLICATION_ID 0x46577431 /* "FWt1" */
#define FW_STORE_USER_VERSION   2
#define FW_STORE_CHUNK_BYTES    ((size_t)1 << 20)
#define FW_STORE_MAX_CHUNKS     1024 /* a block has at most 1 GiB */
#define FW_STORE_MAX_BLOCK      (FW_STORE_CHUNK_BYTES * FW_STORE_MAX_CHUNKS)
#define FW_STORE_MAX_BODY       ((size_t)64 << 20)
#define FW_STORE_MAX_KEY        255
#define FW_STORE_MAX_LABELS     4096
#define FW_STORE_MAX_UID        ((int64_t)1 << 51) /* keeps the chunk numbers below in range */
#define FW_STORE_PATH_MAX       4096

#define FW_STORE_WAL_FRAMES 4096 /* of 16 KiB: the WAL is written back at 64 MiB */

#define FW_STORE_KEYS_KEPT ((int64_t)1000)
#define FW_STORE_KEYS_MAX  ((int64_t)100000)
#define FW_STORE_KEYS_MS   ((int64_t)24 * 3600 * 1000)

struct fw_reader {
    struct fw_reader *next;
    struct fw_sql sql;
};

struct fw_store {
    char path[FW_STORE_PATH_MAX]; /* of the database */
    int lock_fd;
    _Atomic int64_t next_uid;

    /* The writer thread's alone, once it runs. */
    struct fw_sql writer;
    int wal_frames, wal_write_back_at;
    uint64_t relieved_ns; /* when a full disk last made us write the WAL back */
    int stale_commit;     /* a failed COMMIT may have left its frames in the WAL */

    pthread_t thread;
    int thread_runs;
    pthread_mutex_t mutex; /* of all below */
    pthread_cond_t wake;
    struct fw_store_op *head, **tail;
    int stopping;
    struct fw_store_stats stats;
    struct fw_reader *idle;
    unsigned idle_count;
};

/* dir.c: makes and locks the directory, makes sure that DIR/fastweightd.db is a database of
 * ours (refusing others untouched) or creates it whole. */
int fw_dir_open(const char *dir, char path[FW_STORE_PATH_MAX], int *ret_lock_fd,
                struct fw_err *err);

/* schema.c: creates the tables of `upto`, or brings an older database to it. */
int fw_schema_migrate(struct fw_sql *c, int upto, struct fw_err *err);

/* Chunk rows of a block: its set's number times 1,024 plus the index. */
static inline int64_t fw_session_set(int64_t uid)
{
    return 2 * uid;
}

static inline int64_t fw_snapshot_set(int64_t snap)
{
    return 2 * snap + 1;
}

static inline int64_t fw_chunk_id(int64_t set, int64_t idx)
{
    return set * FW_STORE_MAX_CHUNKS + idx;
}

/* What a journal row's `checksum` holds; key and digest are NULL when it has none. */
int64_t fw_row_checksum(int64_t uid, uint64_t version, uint64_t tokens, const char *key,
                        const struct fw_hash *digest, const void *body, size_t body_len);

enum fw_applied {
    FW_APPLIED,
    FW_REFUSED, /* nothing was written; err says why */
    FW_BROKEN   /* the transaction must be rolled back */
};

/* ops.c: carries out one op inside the open transaction. err goes to op->err. */
enum fw_applied fw_op_apply(struct fw_sql *c, struct fw_store_op *op);
/* Of a session whose rows are damaged: only the row that names it. */
enum fw_applied fw_op_delete_name(struct fw_sql *c, struct fw_store_op *op);
size_t fw_op_bytes(const struct fw_store_op *op);

/* keys.c: part of APPEND and CHECKPOINT. */
int fw_keys_add(struct fw_sql *c, struct fw_store_op *op);
int fw_keys_means(struct fw_sql *c, struct fw_store_op *op);
int fw_keys_prune(struct fw_sql *c, int64_t uid, struct fw_err *err);

/* writer.c */
void *fw_writer_main(void *store);

/* readers.c: a read-only connection for one call. NULL with err set. */
struct fw_reader *fw_reader_take(struct fw_store *s, struct fw_err *err);
void fw_reader_give(struct fw_store *s, struct fw_reader *r);
void fw_readers_close(struct fw_store *s);

#endif
