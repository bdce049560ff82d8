/* fastweight/stream.h - the online token learner: hashed multi-head fast weights.
 *
 * x = concat_h R_h(M_h[hash_h(C)]), z = W_g(C) x, p = hierarchical softmax(z); see
 * docs/stream-learner.md. p is a pure function of the block before the token, and one function
 * yields ln p: learn, score and predict agree to the bit. A plan is immutable and shared
 * between threads; a block is used by one thread at a time, which has called fw_num_thread().
 * Tokens: bytes models take uint8_t, events take uint16_t below `vocab` (the caller checked).
 */
#ifndef FW_STREAM_H
#define FW_STREAM_H

#include <stddef.h>
#include <stdint.h>

#include "fastweight/params.h"
#include "fastweight/tensor.h"

struct fw_stream; /* a plan: configuration, layout, offsets, constant tables */

/* One who predicts bytes from a block of its own, such as a pretrained model. The block lies in
 * the stream's ("expert.*"), and what the expert says joins the gates. Functions as the
 * stream's own: immutable context, any thread, nothing of learn and logits can fail. */
struct fw_expert {
    const char *name;               /* as config.expert calls it */
    const struct fw_layout *layout; /* lent, as all of this, until the plan is freed */
    const void *context;            /* first argument of the functions */
    void (*init)(const void *context, void *block); /* block: zeroed */
    int (*validate)(const void *context, const void *block, struct fw_err *err);
    /* Feeds n bytes; logits (n, 256) before each, or NULL. Does not depend on the cut. */
    void (*learn)(const void *context, void *block, const uint8_t *bytes, size_t n,
                  float *logits);
    /* (256,) of the next byte, equal to the bit to what learn would say of it. */
    void (*logits)(const void *context, const void *block, float *logits);
};

/* model: "bytes" (config: preset auto|text|log, state_bytes 256 KiB, 1, 4 or 16 MiB, expert
 * none|dense|the name of `expert`, which may be NULL) or "events" (vocab 2..65536,
 * state_bytes). *resolved gets the full configuration, defaults filled in.
 * FW_EINVAL naming config.KEY. The caller frees the plan after its last block. */
int fw_stream_new(struct fw_stream **ret, const char *model, const struct fw_params *config,
                  const struct fw_expert *expert, struct fw_params *resolved,
                  struct fw_err *err);
void fw_stream_free(struct fw_stream *s);
const struct fw_layout *fw_stream_layout(const struct fw_stream *s);
size_t fw_stream_token_bytes(const struct fw_stream *s); /* 1 or 2 */
uint32_t fw_stream_vocab(const struct fw_stream *s);

void fw_stream_init(const struct fw_stream *s, void *block); /* block: zeroed, block_bytes */
/* Every index, position and float of a foreign block, before it is used. FW_EINVAL. */
int fw_stream_validate(const struct fw_stream *s, const void *block, struct fw_err *err);

/* Predict, score, update, n times. logp: (n,) ln p of each token before its update, or NULL.
 * Cannot fail. The bytes do not depend on how a stream is cut into calls. */
void fw_stream_learn(const struct fw_stream *s, void *block, const void *tokens, size_t n,
                     double *logp);

/* Frozen reading: a view borrows the block (which must not change meanwhile) and owns the
 * registers, which advance as it is fed; weights, tables, counters and rng stand still. An
 * expert from outside advances wholly, on the view's copy: what it has read is all it has. */
struct fw_stream_view;
int fw_stream_view_new(struct fw_stream_view **ret, const struct fw_stream *s,
                       const void *block, struct fw_err *err);
void fw_stream_view_free(struct fw_stream_view *v);
/* Advances over n tokens; logp (n,) or NULL: ln p of each, before it. */
void fw_stream_view_feed(struct fw_stream_view *v, const void *tokens, size_t n, double *logp);
/* ln p of every token: logp (vocab,). No p is 0 and their sum is 1 within 1e-9. */
void fw_stream_view_predict(struct fw_stream_view *v, double *logp);
/* The k likeliest, ties by lower id: the head of the full distribution. Returns how many. */
size_t fw_stream_view_top(struct fw_stream_view *v, size_t k, uint32_t *ids, double *logp);
/* Draws one token at this temperature (0: the likeliest). *rng is the request's own. */
uint32_t fw_stream_view_sample(struct fw_stream_view *v, float temperature, uint64_t *rng);

#define FW_STREAM_MAX_HEADS 24
struct fw_stream_stats { /* `inspect`; all from counters inside the block */
    double bits_all, bits_1k, bits_10k,
        bits_100k;              /* mean bits per token, exponential windows */
    double calibration_error;   /* mean |p - outcome share| over p buckets */
    uint64_t tokens, nonfinite; /* nonfinite: floats that are not, 0 if sane */
    uint32_t heads;
    char head_name[FW_STREAM_MAX_HEADS][16];
    uint64_t rows[FW_STREAM_MAX_HEADS];     /* capacity that head shares, in rows */
    uint64_t used[FW_STREAM_MAX_HEADS];     /* rows inserted into an empty place */
    uint64_t replaced[FW_STREAM_MAX_HEADS]; /* rows that pushed out another */
    double weight[FW_STREAM_MAX_HEADS];     /* mean |gate weight| of that head's inputs */
};
void fw_stream_stats(const struct fw_stream *s, const void *block, struct fw_stream_stats *ret);

#endif
