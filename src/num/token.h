/* token.h - what both levels do for one head of a token. */
#ifndef TOKEN_H
#define TOKEN_H

#include "fastweight/fmath.h"
#include "fastweight/kernel.h"

/* As a call of delta. */
static inline void fw_token_head(const struct fw_token *t, size_t head,
                                 void (*delta)(struct fw_head *h, const struct fw_pairs *p))
{
    struct fw_head h = { .d_k = t->d_k,
                         .d_v = t->d_v,
                         .S = t->S + head * t->d_k * t->d_v,
                         .k = t->pending_k + head * t->d_k,
                         .e = t->pending_e + head * t->d_v,
                         .valid = t->valid[head] != 0 };
    struct fw_pairs p = { .n = 1,
                          .k = t->k + head * t->d_k,
                          .v = t->v + head * t->d_v,
                          .beta = t->beta + head,
                          .g = t->g ? t->g + head : NULL,
                          .err = t->err + head * t->d_v };

    delta(&h, &p);
    t->valid[head] = h.valid;
}

/* |err| of one head. */
static inline void fw_token_residual(const struct fw_token *t, size_t head,
                                     double (*sum_squares)(const float *x, size_t n))
{
    t->residual[head] = fw_sqrt(sum_squares(t->err + head * t->d_v, t->d_v));
}

#endif
