/* fastweight/engine.h - sessions by name: order, scheduling, residency, journal, recovery.
 *
 * A caller fills a struct fw_request, submits it, and gets `done` exactly once. Per session
 * requests run in FIFO order: a read sees all before it, none after it, never the middle of one
 * (docs/design.md). Long work is cut into slices on the worker pool, so sessions take turns. No
 * thread waits for the disk, for memory or for another session while it holds one: a request is
 * parked and resumed.
 *
 * Locks, the only order: engine lock, then the leaf locks of pool, store and arena (submitting
 * only). It is held for short list and flag work, never across learning, I/O or `done`. A block
 * is touched by the one worker that runs its session, or by the writer while the session is
 * parked on it (pinned). */
#ifndef FW_ENGINE_H
#define FW_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fastweight/log.h"
#include "fastweight/pool.h"
#include "fastweight/request.h"

struct fw_engine;
struct fw_models;

struct fw_engine_config {
    const char *data_dir;
    size_t max_resident_bytes;      /* of state blocks; 1 GiB by default */
    size_t max_sessions;            /* 100,000 */
    size_t max_queue;               /* requests waiting per session, 64 */
    size_t max_async_bytes;         /* unwritten async rows in all, 64 MiB */
    size_t journal_bytes;           /* per session before a checkpoint, 256 KiB */
    const struct fw_models *models; /* borrowed, may be NULL: no checkpoints */
    const struct fw_log *log;       /* borrowed, may be NULL */
    struct fw_pool *pool;           /* borrowed; its threads have called fw_num_thread() */
};

int fw_engine_open(struct fw_engine **ret, const struct fw_engine_config *c,
                   struct fw_err *err);
/* Refuses new requests with FW_EAGAIN "draining"; returns at once. */
void fw_engine_drain(struct fw_engine *e);
/* A read that is not done in this time is ended with FW_EAGAIN "draining", so that a stop has
 * a bound; what was learned is always finished. Returns at once. */
void fw_engine_end_reads(struct fw_engine *e, unsigned in_ms);
/* After drain: waits for every accepted request, checkpoints every dirty session, closes. The
 * first checkpoint that failed is told in err (-1), all the same everything is closed. */
int fw_engine_close(struct fw_engine *e, struct fw_err *err);

/* Checks the body whole (the calling thread's time), then queues. done may run before it
 * returns. Any thread. */
void fw_engine_submit(struct fw_engine *e, struct fw_request *r);

/* A read that was submitted and is not done ends at its next slice with FW_EAGAIN "cancelled";
 * a learn that the journal has is finished all the same. Any thread. */
void fw_engine_cancel(struct fw_engine *e, struct fw_request *r);

/* At once, without queueing; any thread. */
int fw_engine_facts(struct fw_engine *e, const char *id, struct fw_facts *ret,
                    struct fw_err *err);
/* Up to max sessions with this prefix after id `after`, sorted by id. Returns how many. */
size_t fw_engine_list(struct fw_engine *e, const char *prefix, const char *after, size_t max,
                      struct fw_facts *ret, bool *ret_more);

struct fw_model_facts { /* a recipe */
    char id[FW_ID_MAX], kind[16];
    struct fw_about about;
    uint64_t state_bytes;    /* with the default config */
    struct fw_params config; /* the defaults */
    struct fw_err err;       /* with a code: a checkpoint that is not served, and why */
};
/* Fills in at most max of the recipes, the built-in ones first; returns how many there are. */
size_t fw_engine_models(const struct fw_engine *e, struct fw_model_facts *ret, size_t max);
/* One of them, served or not. FW_ENOENT "model_not_found". */
int fw_engine_model(const struct fw_engine *e, const char *id, struct fw_model_facts *ret,
                    struct fw_err *err);

/* A model's tokenizer: appends uint32_t ids; lends the bytes of an id. FW_EINVAL
 * "no_tokenizer", or "text_not_in_vocabulary" with the place. */
int fw_engine_encode(const struct fw_engine *e, const char *model, const void *text, size_t len,
                     struct fw_buf *ids, struct fw_err *err);
const unsigned char *fw_engine_token(const struct fw_engine *e, const char *model, uint32_t id,
                                     size_t *ret_len);

/* The names of all tensors that some associative rule takes in a learn; lent for ever. Returns
 * how many (at most max). */
size_t fw_engine_inputs(const char **ret, size_t max);

struct fw_engine_stats { /* gauges, and counters since start */
    uint64_t sessions, resident, resident_bytes, resident_limit_bytes, queued;
    uint64_t requests[FW_CHECKPOINT + 1], failed[FW_CHECKPOINT + 1]; /* by verb */
    uint64_t tokens_learned, tokens_scored, tokens_generated, learn_ns;
    uint64_t shared_passes; /* over a model's weights, of several sessions */
    uint64_t cancelled, evictions, loads, replayed_tokens;
    uint64_t load_ns; /* reading, hashing and validating blocks, without replay */
    uint64_t checkpoints, checkpoint_failures, async_bytes;
    struct fw_store_stats store;
};
void fw_engine_stats(struct fw_engine *e, struct fw_engine_stats *ret);
/* -1 with the reason while draining or while the last write to the disk failed. */
int fw_engine_ready(struct fw_engine *e, struct fw_err *why);

#endif
