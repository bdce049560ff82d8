/* inside.h - what the files of this room share: a checkpoint, a plan, an architecture.
 *
 * To add an architecture: a file with its tensor names and its layer, a row in the table of
 * checkpoint.c, golden numbers. A layer sees a chunk of up to FW_CHUNK tokens at once, of one
 * session or of several: projections take all rows together, what runs in time (convolutions,
 * shifts, memories) goes row by row through each session's own; so no bit depends on how a
 * stream is cut or whose rows stand beside it. */
#ifndef INSIDE_H
#define INSIDE_H

#include <pthread.h>
#include <stdbool.h>

#include "fastweight/memory.h"
#include "fastweight/model.h"
#include "parts.h"
#include "settings.h"
#include "weights.h"

#define FW_CHUNK 32   /* tokens */
#define FW_MADE  8    /* tensors a layer makes for its memory */
#define FW_KEPT  4    /* fields a layer has besides its memory */
#define FW_LIMIT 1e6f /* of every float a layer writes into a block */

struct fw_linear {
    struct fw_matrix W;
    const float *bias; /* (out,) or NULL */
};

struct fw_norm {
    const float *w, *b; /* (d,); b may be NULL */
};

struct fw_checkpoint {
    struct fw_model_shape shape;
    struct fw_settings set;
    struct fw_weights weights;
    const struct fw_arch *arch;
    struct fw_matrix embed, positions; /* (vocab, d_model); (max_context, d_model) or no data */
    struct fw_norm first, last;        /* first.w NULL: none */
    struct fw_linear head;
    void *layers; /* owned; (layers,) of the architecture's struct */
};

/* ---- the rows of one chunk */
struct fw_scratch {
    struct fw_scratch *next;
    size_t size; /* floats */
    float *data; /* 64-byte aligned */
};

struct fw_span { /* the rows of one session */
    void *block;
    size_t from, n;
};

struct fw_chunk {
    size_t n; /* tokens */
    const struct fw_span *span;
    size_t spans;
    float *x;     /* (n, d_model): the residual stream, in place */
    float *first; /* (n, d_model): for later layers; rwkv7's values of layer 0 */
    struct fw_scratch *scratch;
    size_t used; /* floats of it */
};

/* Lends (rows, width) floats until the layer ends. */
float *fw_chunk_take(struct fw_chunk *c, size_t rows, size_t width);

/* ---- an architecture */
enum fw_made_shape { FW_MADE_SCALAR, FW_MADE_D_K, FW_MADE_D_V };

struct fw_made { /* a tensor that a layer makes for its memory, (n, heads, [inner]) */
    const char *name;
    enum fw_made_shape shape;
};

struct fw_kept { /* a field of a layer besides its memory, F32 (rows, cols) */
    const char *name;
    size_t rows, cols;
};

struct fw_arch {
    const char *name, *rule;
    struct fw_made made[FW_MADE + 1]; /* ends with a NULL name */
    bool unit_keys;                   /* |key| <= 1 */
    bool rms;                         /* the last norm is an RMS norm */
    const char *const *ignored; /* ends of names of tensors that are no weights, or NULL */
    /* Takes the tensors; fills in shape, norms, head and layers. */
    int (*open)(struct fw_checkpoint *c, struct fw_err *err);
    /* Fields of a layer; how many. */
    size_t (*kept)(const struct fw_checkpoint *c, struct fw_kept ret[FW_KEPT]);
    float (*query_scale)(const struct fw_checkpoint *c);
    /* Floats of scratch that a layer takes with n rows, all alignment apart. */
    size_t (*scratch)(const struct fw_checkpoint *c, size_t n);
    void (*layer)(const struct fw_model *m, size_t layer, struct fw_chunk *c);
};

extern const struct fw_arch fw_arch_rwkv7, fw_arch_gated_deltanet, fw_arch_delta_net,
    fw_arch_gpt2;

/* The contextual layer of deltanet.c alone: x += attn(h), h (n, d_model) normed rows. */
void fw_deltanet_attention(const struct fw_model *m, size_t layer, const float *h,
                           struct fw_chunk *c);

/* ---- a plan */
struct fw_model {
    const struct fw_checkpoint *c;
    struct fw_memory *memory; /* of every layer */
    struct fw_layout layout;
    size_t layer_bytes;      /* layer l's fields begin at l * layer_bytes */
    size_t at_kept[FW_KEPT]; /* in a layer */
    size_t at_hidden, at_tokens;
    size_t at_pairs;    /* of a layer's memory: its `counters` */
    size_t max_context; /* 0: none */
    float limit;        /* of what goes into a memory: no row is longer than 1e6 */
    size_t slots;       /* of a memory's body */
    struct fw_tensor slot[FW_MADE];
    size_t made[FW_MADE]; /* which of the layer's */
    size_t scratch_floats;
    pthread_mutex_t lock; /* guards `free` and waiters */
    pthread_cond_t back;
    struct fw_scratch *free;
};

/* Field `kept` of a layer. */
float *fw_model_kept(const struct fw_model *m, void *block, size_t layer, size_t kept);
/* made: one pointer per tensor of arch->made. out: (n, heads, d_v) read after each token. */
void fw_model_memory(const struct fw_model *m, size_t layer, const struct fw_chunk *c,
                     float *const *made, float *out);

/* ---- over rows (blocks.c) */
/* y (rows, out) = W x + bias, x (rows, in) */
void fw_linear_rows(const struct fw_linear *l, const float *x, size_t rows, float *y);
void fw_layer_norm_rows(const struct fw_norm *norm, double eps, const float *x, size_t rows,
                        size_t d, float *y);
void fw_rms_norm_rows(const struct fw_norm *norm, double eps, const float *x, size_t rows,
                      size_t d, float *y);
/* Row i of a matrix as floats. */
void fw_matrix_row(const struct fw_matrix *W, size_t row, float *ret);
/* x += y (in, d_model) through a projection: the end of every branch. */
void fw_residual(const struct fw_linear *l, const float *y, struct fw_chunk *c);

/* ---- scratches (scratch.c) */
int fw_scratch_init(struct fw_model *m, struct fw_err *err);
void fw_scratch_done(struct fw_model *m);
struct fw_scratch *fw_scratch_take(const struct fw_model *m); /* waits rather than fail */
void fw_scratch_give(const struct fw_model *m, struct fw_scratch *s);

#endif
