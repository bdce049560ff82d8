/* fastweight/model.h - stacks of contextual blocks: checkpoints and the plans that run them.
 *
 * A checkpoint is a directory with config.json and model.safetensors (or its shards and index):
 * weights in their stored type, mapped read-only, shared by all plans. A plan is a checkpoint
 * with a configuration: immutable, shared between threads. Its block holds what the next token
 * depends on: per block the contextual layer's memory (fastweight/memory.h), token shifts or
 * conv tails, and the last hidden vector. A block is used by one thread at a time, which has
 * called fw_num_thread(). docs/models.md lists architectures, tensor names and formulas. */
#ifndef FW_MODEL_H
#define FW_MODEL_H

#include <stddef.h>
#include <stdint.h>

#include "fastweight/hash.h"
#include "fastweight/params.h"
#include "fastweight/tensor.h"

struct fw_checkpoint;
/* FW_EINVAL "bad_model" says which file, field or tensor is wrong, missing or too many. */
int fw_checkpoint_open(struct fw_checkpoint **ret, const char *dir, struct fw_err *err);
void fw_checkpoint_close(struct fw_checkpoint *c); /* after the last plan; NULL is allowed */

struct fw_model_shape {    /* what config.json says, checked against the tensors */
    char architecture[32]; /* "rwkv7", "gated_deltanet", "delta_net", "gpt2" */
    char tokenizer[32];    /* "bytes", "chars", "rwkv_world", "bpe" or "" (ids only) */
    char memory[32];       /* the contextual layer's own rule */
    char
        weights[FW_HASH_HEX]; /* hash of all tensors, however they lie in files, and settings */
    uint32_t vocab, d_model, layers, heads, d_k, d_v, d_ff, max_context; /* 0: no limit */
    uint64_t parameters, weight_bytes;
};
const struct fw_model_shape *fw_checkpoint_shape(const struct fw_checkpoint *c);

struct fw_model; /* a plan */
/* config: memory (the rule of the contextual layer; default: the architecture's own),
 * max_context (gpt2). *resolved gets the full configuration. FW_EINVAL naming config.KEY. The
 * checkpoint is borrowed until fw_model_free. */
int fw_model_new(struct fw_model **ret, const struct fw_checkpoint *c,
                 const struct fw_params *config, struct fw_params *resolved,
                 struct fw_err *err);
void fw_model_free(struct fw_model *m);
const struct fw_layout *fw_model_layout(const struct fw_model *m);
uint32_t fw_model_vocab(const struct fw_model *m);

void fw_model_init(const struct fw_model *m, void *block); /* block: zeroed */
int fw_model_validate(const struct fw_model *m, const void *block, struct fw_err *err);

/* Feeds n tokens (each < vocab: the caller checked). logp: (n,) ln p of each before it, or
 * NULL. Cannot fail. The bytes do not depend on how a stream is cut into calls. */
void fw_model_learn(const struct fw_model *m, void *block, const uint32_t *tokens, size_t n,
                    double *logp);
struct fw_model_part { /* of a call for several blocks */
    void *block;
    const uint32_t *tokens; /* (n,) */
    size_t n;
    double *logp;  /* (n,) as above, or NULL */
    float *logits; /* (n, vocab), all of them before each token, or NULL */
};
/* The same for several blocks, each of them once: their rows share passes over the weights. The
 * bytes are those of a call for each. Uses the parts up: n becomes 0. */
void fw_model_learn_many(const struct fw_model *m, struct fw_model_part *part, size_t parts);
/* Of the next token, from the block as it is: logits (vocab,), and ln p (vocab,) = log softmax
 * in double. Before the first token every p is 1 / vocab and every logit 0. */
void fw_model_logits(const struct fw_model *m, const void *block, float *logits);
void fw_model_predict(const struct fw_model *m, const void *block, double *logp);

/* One field as people shall see it, into out (field->bytes): blocks.N.S with its pending pair
 * folded in, all else as the block has it. */
void fw_model_show(const struct fw_model *m, const void *block, const struct fw_field *f,
                   void *out);

struct fw_model_layer_stats { /* `inspect`, per block and head */
    double norm, effective_rank, update_norm;
    uint64_t nonfinite;
};
int fw_model_layer_stats(const struct fw_model *m, const void *block, uint32_t layer,
                         uint32_t head, struct fw_model_layer_stats *ret, struct fw_err *err);

#endif
