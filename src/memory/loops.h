/* loops.h - elementwise and matrix loops for rules that do not fit kernel.h, at both levels.
 *
 * Every element of a result is one chain of fma in a fixed order, so results do not depend on
 * the level or the compiler. A (rows, cols) is row-major and dense. */
#ifndef LOOPS_H
#define LOOPS_H

#include <stddef.h>

#include "fastweight/kernel.h"
#include "fastweight/level.h"

struct fw_erase {
    size_t rows, cols;
    const float *d, *b, *k; /* (rows,) */
    const float *p, *v;     /* (cols,) */
    float limit;
};

struct fw_loops {
    /* y_j = sum_i x_i A_ij, i in order, from 0. */
    void (*apply)(const float *A, size_t rows, size_t cols, const float *x, float *y);
    /* y_i = sum_j A_ij x_j: 8 lanes (j mod 8), each in order, then lane 0 to 7. */
    void (*apply_rows)(const float *A, size_t rows, size_t cols, const float *x, float *y);
    /* A_ij = fma(x_i, y_j, A_ij). */
    void (*outer)(float *A, size_t rows, size_t cols, const float *x, const float *y);
    /* A_ij = d_i A_ij. */
    void (*scale_rows)(float *A, size_t rows, size_t cols, const float *d);
    /* C = A B: A (n, m), B (m, p), C (n, p); sums over m in order, from 0. */
    void (*product)(const float *A, const float *B, float *C, size_t n, size_t m, size_t p);
    /* y_i = fma(a, x_i, y_i). */
    void (*axpy)(float a, const float *x, float *y, size_t n);
    /* y_i = a y_i. */
    void (*scale)(float a, float *y, size_t n);
    /* sum x_i y_i: 8 lanes (i mod 8), each in order, then lane 0 to 7. */
    float (*dot)(const float *x, const float *y, size_t n);
    /* x_i into [-limit, limit]. */
    void (*clamp)(float *x, size_t n, float limit);
    /* One pass over h->S: folds the pending pair, multiplies row i by decay_i (NULL: none), and
     * p_j = sum_i r_i S_ij. The caller writes the new pending pair. */
    void (*sweep)(struct fw_head *h, const float *decay, const float *r, float *p);
    /* A_ij = d_i A_ij + b_i p_j + k_i v_j, two fma in that order, then cut into
     * [-limit, limit]; d NULL: no decay. */
    void (*erase_write)(float *A, const struct fw_erase *e);
    /* A_ij = fma(k_i, u_j, (1 - c_j k_i^2) A_ij), (1 - c k^2) one fma. */
    void (*diagonal)(float *A, size_t rows, size_t cols, const float *k, const float *c,
                     const float *u);
    /* y_i = fw_expf(x_i); y may be x. */
    void (*exp)(const float *x, float *y, size_t n);
};

extern const struct fw_loops fw_loops_base;
extern const struct fw_loops fw_loops_v3; /* where HAVE_V3 */
const struct fw_loops *fw_loops(void);    /* of the level chosen by fw_num_init */

#endif
