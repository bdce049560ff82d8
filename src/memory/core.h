/* core.h - the step that the matrix rules share: decay, look, write, read.
 *
 * A head's S may have a pending pair or not (fw_head.k NULL). Families call these in that order
 * for every pair; what e is, and which key reads, is theirs to say. */
#ifndef CORE_H
#define CORE_H

#include <string.h>

#include "rule.h"

static inline const float *fw_row(struct fw_rows r, size_t t)
{
    return r.x + t * r.stride;
}

/* A scalar input of token t. */
static inline float fw_scalar(const struct fw_span *s, size_t in, size_t t)
{
    return *fw_row(s->in[in], t);
}

/* The row of token `at` of an input, (heads, inner); NULL when the body has none. Names of at
 * most seven letters, compared at once: a pair is learned in less time than a few calls of
 * strcmp take. */
static inline const float *fw_token_row(const struct fw_memory *m, const struct fw_tensors *in,
                                        size_t input, size_t at)
{
    const struct fw_place *p = &m->place[input];
    const struct fw_tensor *t = in->item, *end = t + in->count;
    uint64_t first;

    _Static_assert(sizeof t->name >= sizeof first, "a name has eight bytes");
    for (; t < end; t++) {
        memcpy(&first, t->name, sizeof first);
        if ((first & p->of_first) == p->first)
            return (const float *)t->data + at * p->row;
    }
    return NULL;
}

/* log_g_sum of a head whose S is multiplied by `factor` in [0, 1]; 0 counts as exp(-1e6). */
void fw_note_factor(const struct fw_memory *m, void *block, size_t head, float factor);
/* Folds the pending pair, decays rows by `decay` (NULL: none), err = v - S'k. */
void fw_core_look(struct fw_head *h, const float *decay, const float *k, const float *v,
                  float *err);
/* The new pending pair: k and scale x. */
void fw_core_write(struct fw_head *h, const float *k, float scale, const float *x);
/* For every token of the span, one pair each: S decays by g (NULL: not), err = v - S'k, the
 * pair (k, scale v) is written, the query read. */
void fw_core_write_blindly(const struct fw_memory *m, void *block, size_t head,
                           const struct fw_span *s, const float *scale, const float *g);
/* Token t's read, when the span has queries. */
void fw_core_read(const struct fw_head *h, const struct fw_span *s, size_t t);
/* fw_rule.read of every rule whose memory is S'q. */
void fw_core_read_head(const struct fw_memory *m, const void *block, size_t head,
                       const struct fw_reads *r);

/* log(1 + exp(x)), in double, rounded once. */
float fw_softplus(float x);
/* y_j = 1 / (1 + exp(-x_j)). */
void fw_sigmoids(const float *x, float *y, size_t n);
/* o_j = (o_j + D_j x_j) silu(z_j): the output of the state-space layers. z may be NULL: no
 * gate; D has one number per head (d_stride 0) or per channel (1). */
void fw_core_output(float *o, size_t n, const float *D, size_t d_stride, const float *x,
                    const float *z);

#endif
