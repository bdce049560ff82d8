/* loops.c - the loops of loops.h, compiled once per level.
 *
 * Rows go outermost and columns advance side by side, so a compiler may use vectors without
 * changing an order; sums along a row run in 8 lanes that are part of their definition. */
#include "config.h"

#include "loops.h"

#include <string.h>

static void apply(const float *A, size_t rows, size_t cols, const float *x, float *y)
{
    memset(y, 0, cols * sizeof *y);
    for (size_t i = 0; i < rows; i++, A += cols)
        for (size_t j = 0; j < cols; j++)
            y[j] = __builtin_fmaf(x[i], A[j], y[j]);
}

static float dot(const float *x, const float *y, size_t n)
{
    float lane[8] = { 0 }, sum = 0;
    size_t i = 0;

    for (; i + 8 <= n; i += 8)
        for (size_t l = 0; l < 8; l++)
            lane[l] = __builtin_fmaf(x[i + l], y[i + l], lane[l]);
    for (size_t l = 0; i + l < n; l++)
        lane[l] = __builtin_fmaf(x[i + l], y[i + l], lane[l]);
    for (size_t l = 0; l < 8; l++)
        sum += lane[l];
    return sum;
}

static void apply_rows(const float *A, size_t rows, size_t cols, const float *x, float *y)
{
    for (size_t i = 0; i < rows; i++)
        y[i] = dot(A + i * cols, x, cols);
}

static void axpy(float a, const float *x, float *y, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = __builtin_fmaf(a, x[i], y[i]);
}

static void outer(float *A, size_t rows, size_t cols, const float *x, const float *y)
{
    for (size_t i = 0; i < rows; i++)
        axpy(x[i], y, A + i * cols, cols);
}

static void scale(float a, float *y, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] *= a;
}

static void scale_rows(float *A, size_t rows, size_t cols, const float *d)
{
    for (size_t i = 0; i < rows; i++)
        scale(d[i], A + i * cols, cols);
}

static void product(const float *A, const float *B, float *C, size_t n, size_t m, size_t p)
{
    for (size_t i = 0; i < n; i++)
        apply(B, m, p, A + i * m, C + i * p);
}

static void clamp(float *x, size_t n, float limit)
{
    for (size_t i = 0; i < n; i++)
        x[i] = x[i] > limit ? limit : x[i] < -limit ? -limit : x[i];
}

static void sweep(struct fw_head *h, const float *decay, const float *r, float *p)
{
    size_t n = h->d_v;

    memset(p, 0, n * sizeof *p);
    for (size_t i = 0; i < h->d_k; i++) {
        float *S = h->S + i * n, d = decay ? decay[i] : 1;

        for (size_t j = 0; j < n && h->valid; j++) {
            S[j] = d * __builtin_fmaf(h->k[i], h->e[j], S[j]);
            p[j] = __builtin_fmaf(r[i], S[j], p[j]);
        }
        for (size_t j = 0; j < n && !h->valid; j++) {
            S[j] *= d;
            p[j] = __builtin_fmaf(r[i], S[j], p[j]);
        }
    }
}

static void erase_write(float *A, const struct fw_erase *e)
{
    for (size_t i = 0; i < e->rows; i++, A += e->cols) {
        float d = e->d ? e->d[i] : 1, b = e->b[i], k = e->k[i];

        for (size_t j = 0; j < e->cols; j++)
            A[j] = __builtin_fmaf(k, e->v[j], __builtin_fmaf(b, e->p[j], d * A[j]));
        clamp(A, e->cols, e->limit);
    }
}

static void diagonal(float *A, size_t rows, size_t cols, const float *k, const float *c,
                     const float *u)
{
    for (size_t i = 0; i < rows; i++, A += cols) {
        float kk = -(k[i] * k[i]);

        for (size_t j = 0; j < cols; j++)
            A[j] = __builtin_fmaf(k[i], u[j], __builtin_fmaf(c[j], kk, 1) * A[j]);
    }
}

const struct fw_loops FW_AT(fw_loops) = {
    .apply = apply,
    .apply_rows = apply_rows,
    .outer = outer,
    .scale_rows = scale_rows,
    .product = product,
    .axpy = axpy,
    .scale = scale,
    .dot = dot,
    .clamp = clamp,
    .sweep = sweep,
    .erase_write = erase_write,
    .diagonal = diagonal,
};
