/* fastweight/learner.h - the one interface of a learner kind: stream, associative,
 * transformer.
 *
 * An opened learner is a recipe's plan: immutable, shared by every session of the same model
 * and configuration, used from any thread. A block is used by one thread at a time, which has
 * called fw_num_thread(). A body (`in`) was checked whole before it is learned, scored or read;
 * after that nothing of it can fail. Which function serves which request is in engine/. */
#ifndef FW_LEARNER_H
#define FW_LEARNER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fastweight/buf.h"
#include "fastweight/models.h"
#include "fastweight/params.h"
#include "fastweight/report.h"
#include "fastweight/tensor.h"

struct fw_pool;

struct fw_learner { /* what each kind's own struct begins with */
    const struct fw_learner_kind *kind;
    const struct fw_layout *layout; /* lent: the block */
    uint32_t vocab;                 /* 0: predicts no tokens */
    size_t token_bytes;             /* of an element of "tokens": 1, 2 or 4; 0: takes pairs */
    size_t width;                   /* surprise values a token: 1, or heads (residuals) */
    size_t values[2];               /* what a query reads: (heads, d_v); 0, 0: no recall */
    size_t batch;                   /* tokens that cost less together; 0: none do */
    const struct fw_about *about;   /* lent; transformers, else NULL */
    struct fw_pool *pool;           /* borrowed; set by the engine after open */
};

#define FW_LEARNER_PARTS 32

struct fw_learner_part { /* what learn() takes, of one of several blocks */
    void *block;
    const struct fw_tensors *in;
    size_t from, n;
    double *surprise;
};

struct fw_view { /* a frozen reading of a block; what each kind's own view begins with */
    const struct fw_learner *learner;
};

enum fw_use {
    FW_USE_LEARN, /* at least one token */
    FW_USE_SCORE, /* the same without queries */
    FW_USE_PREFIX,
    FW_USE_QUERY,
    FW_USE_EDIT /* one association; *ret_tokens is 0 */
};

struct fw_learner_kind {
    const char *name;
    const char *const *models; /* ids that open() takes, NULL-terminated; NULL: checkpoints' */
    /* All of the block is registers: what reads on learns on a copy of it. `score` is NULL. */
    bool all_registers;

    /* *resolved: the full configuration. FW_EINVAL naming config.KEY. The catalogue is borrowed
     * until close; it may be NULL. */
    int (*open)(struct fw_learner **ret, const struct fw_models *models, const char *model,
                const struct fw_params *config, struct fw_params *resolved, struct fw_err *err);
    void (*close)(struct fw_learner *l);

    void (*init)(const struct fw_learner *l, void *block); /* block: zeroed */
    /* Every index, position and float of a foreign block, before it is used. FW_EINVAL. */
    int (*validate)(const struct fw_learner *l, const void *block, struct fw_err *err);

    /* FW_EINVAL says what is wrong where; a use that the kind does not know is one too. */
    int (*check)(const struct fw_learner *l, enum fw_use use, const struct fw_tensors *in,
                 size_t *ret_tokens, struct fw_err *err);
    /* Learns tokens [from, from + n). surprise: (n, width) bits (or residuals) before each
     * update, values: what the body's queries read after each, or NULL. */
    void (*learn)(const struct fw_learner *l, void *block, const struct fw_tensors *in,
                  size_t from, size_t n, double *surprise, float *values);
    /* The same with the help of idle workers of l->pool, for long ones. NULL: has none. */
    void (*learn_spread)(const struct fw_learner *l, void *block, const struct fw_tensors *in,
                         size_t from, size_t n, double *surprise, float *values);
    /* The same for at most FW_LEARNER_PARTS blocks together, each of them once, with the bytes
     * of a call for each; NULL: nothing is gained by it. */
    void (*learn_many)(const struct fw_learner *l, const struct fw_learner_part *part,
                       size_t parts);

    /* Writes or takes away the one association of a checked body; NULL: the kind has none (its
     * check refuses the use). probes: a body of the use QUERY or NULL. values (2, values[0],
     * values[1]): what the key read before and after; *change: the norm of the block's change;
     * *disturbed: RMS change of what the probes read, or the last key. All NULL in a replay. */
    void (*edit)(const struct fw_learner *l, void *block, const struct fw_tensors *in,
                 const struct fw_tensors *probes, float *values, double *change,
                 double *disturbed);

    /* The block must not change while a view of it exists. */
    int (*view_new)(struct fw_view **ret, const struct fw_learner *l, const void *block,
                    struct fw_err *err);
    void (*view_free)(struct fw_view *v); /* NULL is allowed */
    /* Frozen: registers advance, all else stands still. surprise may be NULL. */
    void (*score)(struct fw_view *v, const struct fw_tensors *in, size_t from, size_t n,
                  double *surprise);
    void (*recall)(struct fw_view *v, const struct fw_tensors *in, size_t from, size_t n,
                   float *values);
    /* Of the next token; only where vocab > 0. logp: (vocab,) nats. */
    void (*predict)(struct fw_view *v, double *logp);
    size_t (*top)(struct fw_view *v, size_t k, uint32_t *ids, double *logp);
    uint32_t (*sample)(struct fw_view *v, float temperature, uint64_t *rng);

    int (*inspect)(const struct fw_learner *l, const void *block, struct fw_report *r,
                   struct fw_err *err);
    /* What was learned between two blocks, as a file; NULL: the kind has no such thing. */
    int (*patch)(const struct fw_learner *l, const void *base, const void *block,
                 struct fw_buf *out, struct fw_err *err);
    /* One field as people shall see it, into out (field->bytes). */
    void (*show)(const struct fw_learner *l, const void *block, const struct fw_field *f,
                 void *out);
};

extern const struct fw_learner_kind fw_learner_stream, fw_learner_associative,
    fw_learner_transformer;

#endif
