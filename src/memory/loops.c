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
    memset(p, 0, h->d_v * sizeof *p);
    for (size_t i = 0; i < h->d_k; i++) {
        float *S = h->S + i * h->d_v;

        if (h->valid)
            axpy(h->k[i], h->e, S, h->d_v);
        if (decay)
            scale(decay[i], S, h->d_v);
        axpy(r[i], S, p, h->d_v);
    }
}

const struct fw_loops FW_AT(fw_loops) = { apply, apply_rows, outer, scale_rows, product,
                                          axpy,  scale,      dot,   clamp,      sweep };
