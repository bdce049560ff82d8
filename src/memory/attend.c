/* attend.c - softmax over kept pairs, 64 at a time, in the order of their places.
 *
 *     w_j = exp(s_j - max s) / sum_l exp(s_l - max s),   s_j = q.k_j / h
 *     gaussian: s_j = -|q - k_j|^2 / 2h, and a pair (0, 0) of logit -8 takes part: a query
 *     beyond |q - k_j|^2 = 16h of every key reads 0, one at a key its value but for e^-8
 *
 * The maximum is carried along: where a tile raises it, what was summed before shrinks by
 * exp(old - new) <= 1. Weights are at most 1 and one of them is exactly 1, so nothing overflows
 * and the sum is at least 1. The tiles follow from the places alone: a read has the same bits
 * whoever asks. Logits are finite: |q| <= 64e12 and |k| <= 64e6 (state.c), 1 / h <= 1e6. */
#include "config.h"

#include "attend.h"

#include <float.h>
#include <string.h>

#include "fastweight/fmath.h"
#include "loops.h"
#include "span.h"

#define TILE 64

static size_t tile_at(const struct fw_kept *p, size_t at)
{
    return p->n - at < TILE ? p->n - at : TILE;
}

/* Logits of pairs [at, at + n); the largest of them and `max`. */
static float logits(const struct fw_kept *p, size_t at, size_t n, const float *q, float max,
                    float *s)
{
    const float *k = p->k + at * p->rows;
    float half = p->gaussian ? 0.5f * fw_loops()->dot(q, q, p->rows) : 0;

    fw_loops()->apply_rows(k, n, p->rows, q, s);
    for (size_t i = 0; p->gaussian && i < n; i++) {
        s[i] -= 0.5f * fw_loops()->dot(k + i * p->rows, k + i * p->rows, p->rows);
        s[i] -= half; /* exactly 0 where q = k: all three sums run in the same order */
        s[i] = s[i] > 0 ? 0 : s[i];
    }
    fw_loops()->scale(p->inverse, s, n);
    for (size_t i = 0; i < n; i++)
        max = s[i] > max ? s[i] : max;
    return max;
}

/* s becomes exp(s - max), and is added to sum in order. */
static double weigh(float *s, size_t n, float max, double sum)
{
    for (size_t i = 0; i < n; i++)
        s[i] -= max;
    fw_loops()->exp(s, s, n);
    for (size_t i = 0; i < n; i++)
        sum += (double)s[i];
    return sum;
}

static void add_weighted(const float *A, size_t n, size_t cols, const float *w, float old,
                         float *sum)
{
    float part[FW_MAX_DIM];

    fw_loops()->apply(A, n, cols, w, part);
    for (size_t j = 0; j < cols; j++)
        sum[j] = __builtin_fmaf(old, sum[j], part[j]);
}

void fw_attend(const struct fw_kept *p, const float *q, float *o, float *mean_k)
{
    float s[TILE], max = p->gaussian ? FW_SILENCE : -FLT_MAX;
    double sum = p->gaussian;

    memset(o, 0, p->d_v * sizeof *o);
    if (mean_k)
        memset(mean_k, 0, p->rows * sizeof *mean_k);
    for (size_t at = 0, n; at < p->n; at += n) {
        float before = max, old;

        n = tile_at(p, at);
        max = logits(p, at, n, q, max, s);
        old = fw_expf(before - max);
        sum = weigh(s, n, max, sum * (double)old);
        add_weighted(p->v + at * p->d_v, n, p->d_v, s, old, o);
        if (mean_k)
            add_weighted(p->k + at * p->rows, n, p->rows, s, old, mean_k);
    }
    if (!(sum > 0))
        return;
    fw_loops()->scale((float)(1 / sum), o, p->d_v);
    if (mean_k)
        fw_loops()->scale((float)(1 / sum), mean_k, p->rows);
}

void fw_attend_score(const struct fw_kept *p, const float *q, double *score)
{
    float s[TILE], max = p->gaussian ? FW_SILENCE : -FLT_MAX;
    double sum = p->gaussian;

    for (size_t at = 0; at < p->n; at += TILE) {
        size_t n = tile_at(p, at);
        float before = max;

        max = logits(p, at, n, q, max, s);
        sum = weigh(s, n, max, sum * (double)fw_expf(before - max));
    }
    for (size_t at = 0; at < p->n; at += TILE) {
        size_t n = tile_at(p, at);

        logits(p, at, n, q, max, s);
        weigh(s, n, max, 0);
        for (size_t i = 0; i < n; i++)
            score[at + i] += (double)s[i] / sum;
    }
}
