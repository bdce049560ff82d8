/* parts.h - what layers are made of, besides projections and memories: norms, gates, shifts and
 * convolutions over rows. One table per CPU level, both with the same bits: sums run in 8 lanes
 * in double, then lane 0 to 7; all else is elementwise. */
#ifndef PARTS_H
#define PARTS_H

#include <stddef.h>

#include "fastweight/level.h"

struct fw_row_parts {
    /* y = (x - mean) / sqrt(var + eps) w + b, var biased; b NULL: 0. y may be x. */
    void (*layer_norm)(const float *x, size_t n, const float *w, const float *b, double eps,
                       float *y);
    /* y = x / sqrt(mean(x^2) + eps) w. y may be x. */
    void (*rms_norm)(const float *x, size_t n, const float *w, double eps, float *y);
    /* x /= sqrt(sum x^2 + eps), or with eps 0: x /= max(|x|, 1e-12). */
    void (*unit)(float *x, size_t n, double eps);
    /* y = x + mu (last - x) */
    void (*mix)(const float *x, const float *last, const float *mu, size_t n, float *y);
    /* y[t][c] = b[c] + sum_m w[m][c] x[t + m][c], m < size; x (rows + size - 1, n) */
    void (*conv)(const float *x, const float *w, const float *b, size_t size, size_t rows,
                 size_t n, float *y);
    void (*add)(float *x, const float *y, size_t n);                 /* x += y */
    void (*scale)(float *x, const float *y, size_t n);               /* x *= y */
    void (*fma)(float *x, const float *y, const float *z, size_t n); /* x += y z */
    void (*tanh)(float *x, size_t n);
    void (*sigmoid)(float *x, size_t n);
    void (*silu)(float *x, size_t n);
    void (*softplus)(float *x, size_t n);
    void (*gelu)(float *x, size_t n);
    void (*gelu_tanh)(float *x, size_t n);
    void (*relu_squared)(float *x, size_t n);
    /* Into [-limit, limit]; what is no number becomes 0. */
    void (*bound)(float *x, size_t n, float limit);
    double (*dot)(const float *x, const float *y, size_t n); /* in double */
    /* log sum exp(x), in double. x finite. */
    double (*log_sum_exp)(const float *x, size_t n);
};

extern const struct fw_row_parts fw_parts_base, fw_parts_v3;
const struct fw_row_parts *fw_parts(void); /* of the level chosen by fw_num_init */

#endif
