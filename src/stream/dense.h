/* dense.h - the low-rank dense expert, and the tree that any expert's logits become.
 *
 * Fields: dense.rows F32 (rows, 16), dense.sums F32 (rows,), dense.out F32 (16, 256),
 * dense.bias F32 (256,). A context owns rows by hash alone: keys that collide merge. */
#ifndef DENSE_H
#define DENSE_H

#include "core.h"

#define DENSE_RANK 16
#define DENSE_KEYS 7 /* contexts that are summed */

struct dense { /* part of a plan; rows == 0: there is none */
    uint32_t rows;
    size_t at_rows, at_sums, at_out, at_bias;
};

struct dense_step { /* what one byte's update needs of its reading */
    _Alignas(32) float a[DENSE_RANK];
    uint32_t row[DENSE_KEYS];
};

/* rows > 0. */
int dense_plan(struct dense *d, uint32_t rows, struct fw_layout *l, struct fw_err *err);
void dense_init(const struct dense *d, void *block);
int dense_validate(const struct dense *d, const void *block, struct fw_err *err);

/* The hot functions, one table per CPU level. */
struct dense_fns {
    /* logits (256,) of the context whose hashes are in step->row. */
    void (*read)(const struct dense *d, const void *block, struct dense_step *step,
                 float *logits);
    /* One step on `symbol` after read; tree: what `tree` made of its logits. */
    void (*update)(const struct dense *d, void *block, uint32_t symbol,
                   const struct dense_step *step, const float *tree);
    /* tree (512,): leaf 256 + i = e^(logit i - the largest) and a little, inner = sum of two,
     * so p(bit 1 | prefix) = tree[2 prefix + 1] / tree[prefix]. */
    void (*tree)(const float *logits, float *tree);
};
extern const struct dense_fns dense_fns_base, dense_fns_v3;
const struct dense_fns *dense_fns(void);

#endif
