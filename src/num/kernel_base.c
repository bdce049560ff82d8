/* kernel_base.c - the kernels as plain loops: what they mean, and the reference of the fast
 * ones.
 *
 * Delta rule with an optional decay first (memory/delta.c has the sources):
 *
 *     S_ij = g fma(k'_i, e'_j, S_ij)          k', e' the pending pair, skipped when not valid
 *     p_j  = sum_i k_i S_ij, i in order, each step one fma from 0
 *     err_j = v_j - p_j,  e_j = beta err_j,  pending = (k, e)
 *     o_j  = sum_i q_i fma(k_i, e_j, S_ij)
 *
 * The rows go outermost and the sums of all columns advance side by side, which changes no
 * column's order. */
#include "config.h"

#include "fastweight/kernel.h"

#include <string.h>

#include "norm.h"
#include "token.h"

/* One pass: folds the pending pair, decays, and p = S'k. */
static void sweep(struct fw_head *h, const float *k, const float *g, float *p)
{
    memset(p, 0, h->d_v * sizeof *p);
    for (size_t i = 0; i < h->d_k; i++) {
        float *S = h->S + i * h->d_v;

        for (size_t j = 0; j < h->d_v; j++) {
            float s = h->valid ? __builtin_fmaf(h->k[i], h->e[j], S[j]) : S[j];

            S[j] = g ? *g * s : s;
            p[j] = __builtin_fmaf(k[i], S[j], p[j]);
        }
    }
}

static void read_one(const struct fw_head *h, const float *q, float *o)
{
    memset(o, 0, h->d_v * sizeof *o);
    for (size_t i = 0; i < h->d_k; i++) {
        const float *S = h->S + i * h->d_v;

        for (size_t j = 0; j < h->d_v; j++) {
            float s = h->valid ? __builtin_fmaf(h->k[i], h->e[j], S[j]) : S[j];

            o[j] = __builtin_fmaf(q[i], s, o[j]);
        }
    }
}

static void delta_base(struct fw_head *h, const struct fw_pairs *p)
{
    for (size_t t = 0; t < p->n; t++) {
        const float *k = p->k + t * p->k_stride, *v = p->v + t * p->v_stride;
        float *err = p->err + t * h->d_v;

        sweep(h, k, p->g ? p->g + t : NULL, err);
        for (size_t j = 0; j < h->d_v; j++) {
            err[j] = v[j] - err[j];
            h->e[j] = p->beta[t] * (p->blind ? v[j] : err[j]);
        }
        memcpy(h->k, k, h->d_k * sizeof *k);
        h->valid = true;
        if (p->q)
            read_one(h, p->q + t * p->q_stride, p->o + t * p->o_stride);
    }
}

static void read_base(const struct fw_head *h, const struct fw_reads *r)
{
    for (size_t t = 0; t < r->n; t++)
        read_one(h, r->q + t * r->q_stride, r->o + t * r->o_stride);
}

static void fold_base(const struct fw_head *h, float *out)
{
    for (size_t i = 0; i < h->d_k; i++)
        for (size_t j = 0; j < h->d_v; j++) {
            float s = h->S[i * h->d_v + j];

            out[i * h->d_v + j] = h->valid ? __builtin_fmaf(h->k[i], h->e[j], s) : s;
        }
}

static void token_base(const struct fw_token *t)
{
    fw_token_heads(t, delta_base, fw_sum_squares_base);
}

const struct fw_kernels fw_kernels_base = { delta_base, read_base, fold_base, token_base };
