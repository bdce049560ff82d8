/* loops.c - the loops of loops.h, compiled once per level.
 *
 * Columns do not see each other, so they advance 32, 8 or one at a time beside one another:
 * each element keeps its chain of fma. Sums along a row run in 8 lanes that are part of their
 * definition; four rows advance together there, to hide the latency of one. */
#include "config.h"

#include "loops.h"

#include <string.h>

#include "fastweight/fmath.h"
#include "lanes.h"

/* y of `w` vectors of columns (w a constant where it is used). */
INLINE void apply_panel(const float *A, size_t rows, size_t cols, const float *x, float *y,
                        int w)
{
    f8 sum[WIDE];

    ABREAST (c, w)
        sum[c] = all(0);
    for (size_t i = 0; i < rows; i++, A += cols)
        ABREAST (c, w)
            sum[c] = fma8(all(x[i]), load(A + 8 * c), sum[c]);
    ABREAST (c, w)
        store(y + 8 * c, sum[c]);
}

static void apply(const float *A, size_t rows, size_t cols, const float *x, float *y)
{
    size_t j = 0;

    for (; j + 8 * WIDE <= cols; j += 8 * WIDE)
        apply_panel(A + j, rows, cols, x, y + j, WIDE);
    for (; j + 8 <= cols; j += 8)
        apply_panel(A + j, rows, cols, x, y + j, 1);
    for (; j < cols; j++) {
        float sum = 0;

        for (size_t i = 0; i < rows; i++)
            sum = __builtin_fmaf(x[i], A[i * cols + j], sum);
        y[j] = sum;
    }
}

/* r dot products, of rows `stride` floats apart with one y (r a constant where it is used). */
INLINE void dots(const float *x, size_t stride, const float *y, size_t n, float *out, int r)
{
    f8 lane[WIDE];
    size_t i = 0;

    ABREAST (c, r)
        lane[c] = all(0);
    for (; i + 8 <= n; i += 8)
        ABREAST (c, r)
            lane[c] = fma8(load(x + (size_t)c * stride + i), load(y + i), lane[c]);
    ABREAST (c, r) {
        float sum = 0, part[8];

        store(part, lane[c]);
        for (size_t l = 0; i + l < n; l++)
            part[l] = __builtin_fmaf(x[(size_t)c * stride + i + l], y[i + l], part[l]);
        for (size_t l = 0; l < 8; l++)
            sum += part[l];
        out[c] = sum;
    }
}

static float dot(const float *x, const float *y, size_t n)
{
    float sum;

    dots(x, 0, y, n, &sum, 1);
    return sum;
}

static void apply_rows(const float *A, size_t rows, size_t cols, const float *x, float *y)
{
    size_t i = 0;

    for (; i + WIDE <= rows; i += WIDE)
        dots(A + i * cols, cols, x, cols, y + i, WIDE);
    for (; i < rows; i++)
        dots(A + i * cols, cols, x, cols, y + i, 1);
}

static void axpy(float a, const float *x, float *y, size_t n)
{
    size_t i = 0;

    for (; i + 8 <= n; i += 8)
        store(y + i, fma8(all(a), load(x + i), load(y + i)));
    for (; i < n; i++)
        y[i] = __builtin_fmaf(a, x[i], y[i]);
}

static void outer(float *A, size_t rows, size_t cols, const float *x, const float *y)
{
    for (size_t i = 0; i < rows; i++)
        axpy(x[i], y, A + i * cols, cols);
}

static void scale(float a, float *y, size_t n)
{
    size_t i = 0;

    for (; i + 8 <= n; i += 8)
        store(y + i, mul8(all(a), load(y + i)));
    for (; i < n; i++)
        y[i] = a * y[i];
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
    size_t i = 0;

    for (; i + 8 <= n; i += 8)
        store(x + i, clamp8(load(x + i), limit));
    for (; i < n; i++)
        x[i] = clamp_one(x[i], limit);
}

/* Columns [j, j + 8 w) of a sweep; w and fold are constants where it is used. */
INLINE void sweep_panel(struct fw_head *h, const float *decay, const float *r, float *p,
                        size_t j, int w, bool fold)
{
    f8 sum[WIDE], e[WIDE];

    ABREAST (c, w) {
        sum[c] = all(0);
        e[c] = fold ? load(h->e + j + 8 * c) : all(0);
    }
    for (size_t i = 0; i < h->d_k; i++) {
        float *S = h->S + i * h->d_v + j;
        f8 d = all(decay ? decay[i] : 1), k = all(fold ? h->k[i] : 0);

        ABREAST (c, w) {
            f8 s = load(S + 8 * c);

            s = mul8(d, fold ? fma8(k, e[c], s) : s);
            store(S + 8 * c, s);
            sum[c] = fma8(all(r[i]), s, sum[c]);
        }
    }
    ABREAST (c, w)
        store(p + j + 8 * c, sum[c]);
}

static void sweep(struct fw_head *h, const float *decay, const float *r, float *p)
{
    size_t j = 0;

    for (; h->valid && j + 8 * WIDE <= h->d_v; j += 8 * WIDE)
        sweep_panel(h, decay, r, p, j, WIDE, true);
    for (; j + 8 <= h->d_v; j += 8)
        if (h->valid)
            sweep_panel(h, decay, r, p, j, 1, true);
        else
            sweep_panel(h, decay, r, p, j, 1, false);
    for (; j < h->d_v; j++) {
        float sum = 0;

        for (size_t i = 0; i < h->d_k; i++) {
            float *S = h->S + i * h->d_v + j;
            float s = h->valid ? __builtin_fmaf(h->k[i], h->e[j], *S) : *S;

            *S = (decay ? decay[i] : 1) * s;
            sum = __builtin_fmaf(r[i], *S, sum);
        }
        p[j] = sum;
    }
}

static void erase_write(float *A, const struct fw_erase *e)
{
    for (size_t i = 0; i < e->rows; i++, A += e->cols) {
        float d = e->d ? e->d[i] : 1, b = e->b[i], k = e->k[i];
        size_t j = 0;

        for (; j + 8 <= e->cols; j += 8) {
            f8 a = fma8(all(b), load(e->p + j), mul8(all(d), load(A + j)));

            store(A + j, clamp8(fma8(all(k), load(e->v + j), a), e->limit));
        }
        for (; j < e->cols; j++) {
            float a = __builtin_fmaf(b, e->p[j], d * A[j]);

            A[j] = clamp_one(__builtin_fmaf(k, e->v[j], a), e->limit);
        }
    }
}

static void diagonal(float *A, size_t rows, size_t cols, const float *k, const float *c,
                     const float *u)
{
    for (size_t i = 0; i < rows; i++, A += cols) {
        float kk = -(k[i] * k[i]);
        size_t j = 0;

        for (; j + 8 <= cols; j += 8) {
            f8 a = mul8(fma8(load(c + j), all(kk), all(1)), load(A + j));

            store(A + j, fma8(all(k[i]), load(u + j), a));
        }
        for (; j < cols; j++)
            A[j] = __builtin_fmaf(k[i], u[j], __builtin_fmaf(c[j], kk, 1) * A[j]);
    }
}

static void exponents(const float *x, float *y, size_t n)
{
    size_t i = 0;

    for (; i + 8 <= n; i += 8) {
        float part[8];

        memcpy(part, x + i, sizeof part);
        for (int l = 0; l < 8; l++) /* of known length, so that compilers use vectors */
            part[l] = fw_expf(part[l]);
        memcpy(y + i, part, sizeof part);
    }
    for (; i < n; i++)
        y[i] = fw_expf(x[i]);
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
    .exp = exponents,
};
