/* token.h - a token's heads one by one, as calls of delta: the reference, and what both levels
 * do where nothing faster fits. */
#ifndef TOKEN_H
#define TOKEN_H

#include "fastweight/fmath.h"
#include "fastweight/kernel.h"

static inline void fw_token_heads(const struct fw_token *t,
                                  void (*delta)(struct fw_head *h, const struct fw_pairs *p),
                                  double (*sum_squares)(const float *x, size_t n))
{
    float err[FW_TOKEN_COLUMNS];

    for (size_t head = 0; head < t->heads; head++) {
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
                              .err = err };

        delta(&h, &p);
        t->valid[head] = h.valid;
        t->residual[head] = fw_sqrt(sum_squares(err, t->d_v));
    }
}

void fw_token_v3(const struct fw_token *t); /* where HAVE_V3 */

#endif
