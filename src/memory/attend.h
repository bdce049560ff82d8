/* attend.h - reading pairs that are kept as they are: the softmax of Nadaraya and Watson. */
#ifndef ATTEND_H
#define ATTEND_H

#include <stdbool.h>
#include <stddef.h>

struct fw_kept {        /* n pairs, dense; borrowed */
    const float *k, *v; /* (n, rows), (n, d_v) */
    size_t n, rows, d_v;
    float inverse; /* 1 / bandwidth */
    bool gaussian; /* logits -|q - k_j|^2 / 2 inverse, beside the answer 0 of FW_SILENCE */
};

#define FW_SILENCE (-8.0f)

/* o = sum_j w_j v_j, (d_v,); mean_k = sum_j w_j k_j, (rows,), unless NULL. w_j: the softmax of
 * the logits q.k_j inverse. No pairs: 0. */
void fw_attend(const struct fw_kept *p, const float *q, float *o, float *mean_k);
/* score_j += w_j, (n,). */
void fw_attend_score(const struct fw_kept *p, const float *q, double *score);

#endif
