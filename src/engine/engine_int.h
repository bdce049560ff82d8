/* engine_int.h - what the files of this room share: sessions and the engine; requests are in
 * work.h, the functions in parts.h and steps.h. "lock" and "runner" as in work.h. */
#ifndef FW_ENGINE_INT_H
#define FW_ENGINE_INT_H

#include <pthread.h>
#include <stdbool.h>

#include "fastweight/arena.h"
#include "fastweight/engine.h"
#include "fastweight/store.h"

#include "work.h"

#define FW_OWNER "default" /* until keys name owners */

enum {
    SLICE_NS = 4000000,        /* of work before other sessions get their turn */
    ROOM_WAIT_NS = 1000000000, /* how long a request waits for busy sessions' memory */
    ROW_COST = 128,            /* what a journal row counts beside its body */
    VALUES_MAX = 1 << 24,      /* floats that a request's queries read: 64 MiB */
    LINES_MAX = 65536
};

struct session {
    struct fw_task task; /* first */
    struct fw_engine *e;
    struct recipe *recipe; /* NULL only while being created */
    int64_t uid, created_ms;
    char *id, *labels, *parent_id; /* labels: lock */
    uint64_t parent_version;
    struct fw_hash parent_hash;

    /* order; lock */
    struct fw_request *head, *tail;
    struct fw_request *unhanded; /* the first that hand-over has not passed */
    size_t queued;
    unsigned handed; /* learns handed over and not finished */
    bool visible;    /* false: its id is reserved for a create */
    bool passing;    /* in no directory and no store; ends with its one request */
    bool deleted, scheduled, want_evict, evict_idle;
    struct session *line_prev, *line_next; /* in_line: of its recipe's */
    bool in_line;                          /* on the pool and with no worker */
    bool came;                             /* its task came up while another worker had it */
    struct fw_request *deleter;
    unsigned writes; /* store ops that hold the head or pin the block */

    /* the line of versions; lock */
    uint64_t version, tokens_seen; /* of the state; changed by the runner */
    uint64_t assigned;             /* the last number given out */
    uint64_t good;                 /* while failing: the last that may still be written */
    uint64_t durable, stored;      /* newest on disk; of the block on disk */
    size_t journal_bytes, unlearned_bytes; /* handed over and not cut; of these not learned */
    unsigned rows;                         /* appends in flight */
    bool preparing;                        /* a checkpoint that hand-over waits for */
    bool failing;                          /* a row failed and others are still in flight */
    bool async_failed;                     /* learned what the journal lacks */
    struct key *keys;

    void *block;       /* written under lock, its bytes are the runner's; NULL: not resident */
    struct load *load; /* runner */
    struct checkpoint *checkpoint; /* runner: begun and not yet ended */
    struct fw_err *corrupt;        /* lock; why its state cannot be had, or NULL */
    struct session *lru_prev, *lru_next;
    struct session *room_next, *async_next; /* waiting for memory, for async rows */
    bool room_wait, room_refused, async_wait;
    size_t room_bytes;
    uint64_t room_since_ns; /* 0: not waiting */
};

struct served {     /* a model's default recipe, or why there is none */
    const char *id; /* lent */
    struct recipe *recipe;
    struct fw_err err;
};

struct session_list { /* FIFO through one of the *_next */
    struct session *first, *last;
};

struct fw_engine {
    struct fw_engine_config c;
    struct fw_store *store;
    struct fw_arena *arena;
    pthread_mutex_t lock;
    pthread_cond_t quiet; /* a request, task or eviction ended while closing */
    struct session **dir; /* sorted by id */
    size_t dir_count, dir_cap;
    struct recipe *recipes;
    struct served *models; /* in order of fw_engine_models */
    size_t model_count;
    struct session *lru_first, *lru_last; /* resident ones, oldest use first */
    size_t resident;
    struct session_list room, async; /* who waits */
    size_t room_bytes;               /* what those in `room` need */
    size_t evicting_bytes, evicting_idle_bytes;
    uint64_t freed; /* counts blocks given back */
    size_t async_bytes;
    bool draining, disk_failed;
    uint64_t reads_end_ns; /* from then on reads are ended; 0: never */
    struct fw_err disk_err, close_err;
    size_t active, tasks, evicting; /* requests accepted, on the pool, being evicted */
    struct fw_engine_stats stats;   /* counters */
};

#endif
