/* dense.c - the dense expert's arithmetic; compiled once per CPU level.
 *
 *     a = sum_j T[hash_j], clipped;  logits = O a + b;  p = softmax
 *     e = onehot(y) - p;  g = O^T e;  O += 0.02 e a^T;  b += 0.005 e
 *     G_j += |g|^2;  T[hash_j] += 0.3 / sqrt(G_j + 0.3) g          for each j in turn
 *
 * Low-rank fast weights trained by the cross-entropy gradient, Adagrad (Duchi, Hazan, Singer
 * 2011) with one rate a row. O lies transposed, (16, 256). 8 lanes, one multiply and one add
 * each, fixed sums: the same bits at every level. */
#include "config.h"

#include "dense.h"

#include "fastweight/fmath.h"

#include "stream_int.h"

#define LEAF_MIN 0x1p-22F
#define A_MAX    64.0F
#define BLOCKS   (256 / 8)

static inline float sum8(const fw_f8 *v)
{
    const fw_f8 s = *v;

    return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
}

static inline float clip(float x, float limit)
{
    return x > limit ? limit : x < -limit ? -limit : x;
}

static void dense_read(const struct dense *d, const void *block, struct dense_step *step,
                       float *logits)
{
    const float *rows = at(block, d->at_rows);
    const fw_f8 *out = at(block, d->at_out), *bias = at(block, d->at_bias);
    fw_f8 *a = (fw_f8 *)step->a, *l = (fw_f8 *)logits;

    for (int j = 0; j < DENSE_KEYS; j++) {
        step->row[j] = (uint32_t)((uint64_t)step->row[j] * d->rows >> 32);
        __builtin_prefetch(rows + (size_t)step->row[j] * DENSE_RANK);
    }
    a[0] = a[1] = (fw_f8){ 0 };
    for (int j = 0; j < DENSE_KEYS; j++) {
        const fw_f8 *row = (const fw_f8 *)(rows + (size_t)step->row[j] * DENSE_RANK);

        a[0] += row[0];
        a[1] += row[1];
    }
    for (int r = 0; r < DENSE_RANK; r++)
        step->a[r] = clip(step->a[r], A_MAX);
    for (int i = 0; i < BLOCKS; i++) {
        fw_f8 s = bias[i];

        for (int r = 0; r < DENSE_RANK; r++)
            s += step->a[r] * out[r * BLOCKS + i];
        l[i] = s;
    }
}

static inline void learn_out(fw_f8 *out, const fw_f8 *e, float a, float *g)
{
    fw_f8 s = { 0 };

    for (int i = 0; i < BLOCKS; i++) {
        s += out[i] * e[i];
        out[i] += 0.02F * a * e[i];
    }
    *g = sum8(&s);
}

static void dense_update(const struct dense *d, void *block, uint32_t symbol,
                         const struct dense_step *step, const float *tree)
{
    float *rows = at_mut(block, d->at_rows), *sums = at_mut(block, d->at_sums);
    fw_f8 *out = at_mut(block, d->at_out), *bias = at_mut(block, d->at_bias);
    const fw_f8 *leaf = (const fw_f8 *)(tree + 256);
    const float scale = 1.0F / tree[1];
    fw_f8 e[BLOCKS], g[2], square;
    float norm;

    for (int i = 0; i < BLOCKS; i++)
        e[i] = -scale * leaf[i];
    ((float *)e)[symbol] += 1.0F;
    for (int r = 0; r < DENSE_RANK; r++)
        learn_out(out + r * BLOCKS, e, step->a[r], (float *)g + r);
    for (int i = 0; i < BLOCKS; i++)
        bias[i] += 0.005F * e[i];
    square = g[0] * g[0] + g[1] * g[1];
    norm = sum8(&square);
    for (int j = 0; j < DENSE_KEYS; j++) {
        fw_f8 *row = (fw_f8 *)(rows + (size_t)step->row[j] * DENSE_RANK);
        float rate;

        sums[step->row[j]] += norm;
        rate = 0.3F / fw_sqrtf(sums[step->row[j]] + 0.3F);
        row[0] += rate * g[0];
        row[1] += rate * g[1];
    }
}

static void tree_of(const float *logits, float *tree)
{
    float max = logits[0];

    for (int i = 1; i < 256; i++)
        max = logits[i] > max ? logits[i] : max;
    for (int i = 0; i < 256; i++)
        tree[256 + i] = fw_expf(logits[i] - max) + LEAF_MIN;
    tree[0] = 0;
    for (int i = 255; i > 0; i--)
        tree[i] = tree[2 * i] + tree[2 * i + 1];
}

const struct dense_fns FW_AT(dense_fns) = { dense_read, dense_update, tree_of };
