/* work.h - what the engine keeps of one request, and of what a session is busy with.
 *
 * "lock" below means: read and written under the engine lock. "runner": touched only by the
 * worker that runs the session (s->scheduled), or by nobody. */
#ifndef FW_ENGINE_WORK_H
#define FW_ENGINE_WORK_H

#include <pthread.h>
#include <stdbool.h>

#include "fastweight/learner.h"
#include "fastweight/request.h"
#include "fastweight/store.h"

#include "sampler.h"
#include "stops.h"

struct session;

struct line { /* sessions of a recipe that wait on the pool, the oldest first; lock */
    struct session *first, *last;
    size_t count;
    size_t sharing; /* not in it: in passes of several */
};

struct recipe { /* a model with one configuration; shared, freed with its last session */
    struct recipe *next;
    size_t refs; /* lock */
    struct line line;
    char model[FW_ID_MAX];
    struct fw_params config;    /* resolved */
    char text[FW_PARAMS_TEXT];  /* of config, canonical */
    char asked[FW_PARAMS_TEXT]; /* of the config as it was first asked for */
    struct fw_hash config_hash;
    struct fw_learner *learner; /* NULL: it cannot be opened (err): its sessions are corrupt */
    struct fw_err err;
    bool has_init_hash; /* lock */
    struct fw_hash init_hash;
};

struct pass { /* one way through a body's tokens, cut into slices (pass.c) */
    const struct fw_learner *l;
    const struct fw_tensors *in;
    size_t tokens, from, chunk, chunk_min, chunk_max;
    bool spread;     /* idle workers help with the next chunk */
    unsigned alone;  /* chunks before they may */
    double alone_ns; /* of a token, without help */
    double total;
    double *scratch; /* (chunk_max, width), or NULL: nothing is measured */
    double *detail;  /* (tokens, width) in place of scratch, or NULL */
    float *values;   /* (tokens, heads, d_v) or NULL */
    struct fw_line *line;
    size_t lines;
};

struct row { /* a learn on its way to the journal; freed when written and released */
    struct fw_store_op op; /* first: an op pointer is a row pointer */
    struct session *s;
    size_t cost; /* what it counts in the journal */
    bool async;
    bool taken, written, released; /* lock; taken: its learning has begun */
    struct fw_err err;             /* lock; why it was not written */
    char key[];                    /* the idempotency key's text, or "" */
};

struct key { /* an idempotency key that the store does not know the result of yet; lock */
    struct key *next;
    uint64_t hash;
    struct fw_hash digest;
    uint64_t version;
    double mean;
    bool done; /* learned, with version and mean; else in flight */
    bool held; /* a request points to it */
    char text[];
};

struct fw_work {         /* the engine's side of one request */
    struct fw_task task; /* first; for what runs beside the queue: key look-up, create */
    struct fw_request *r;
    struct session *s;
    const struct fw_tensors *in; /* the request's, or `own` */
    size_t tokens;
    struct pass pass;
    struct fw_err err; /* a code: that is the answer at its place */
    unsigned phase;
    /* lock */
    bool learns;      /* goes through the journal like a learn */
    bool barrier;     /* changes the version at its place: nothing behind it is handed over */
    bool started;     /* at work: its session's block stays */
    bool handed;      /* to the journal, with `version` */
    bool key_pending; /* the store is being asked about the key */
    bool repeat;      /* of a learn that was answered before: version, and mean if has_mean */
    bool has_mean;
    uint64_t version;
    double mean;
    struct key *key;
    struct row *row;
    /* runner */
    struct fw_store_op op;
    struct fw_store_session op_session;
    void *copy; /* a second block from the arena */
    size_t copy_bytes;
    struct fw_hash hash;
    uint64_t tokens_seen;
    struct fw_view *view;
    struct session *child; /* FORK */
    uint64_t rng;          /* GENERATE */
    struct fw_tensor own_tensor;
    struct fw_tensors own; /* GENERATE: what is learned, the prefix if wanted and the sampled */
    void *own_tokens;
    size_t lead, ready; /* GENERATE: tokens of the prefix in `own`; sampled for good */
    size_t told;        /* GENERATE: of these, r->progress knows, since told_ns */
    uint64_t told_ns;
    struct sampler *sampler; /* GENERATE, or NULL: the learner samples */
    struct stops stops;
};

struct load { /* a session coming into memory */
    void *block;
    struct fw_store_row *rows, *row; /* row: the next to replay */
    uint64_t version, tokens_seen, stored;
    struct fw_tensor item[16];
    struct fw_tensors in; /* of the row at work */
    struct pass pass;
    bool in_row;
};

struct checkpoint {
    struct fw_store_op op; /* first */
    struct session *s;
    struct fw_store_result *results;
};

#endif
