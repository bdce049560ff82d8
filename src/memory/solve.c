/* solve.c - a symmetric system with a positive diagonal added, compiled once per level.
 *
 * Exact: U'DU without roots, row by row from the top. In exact arithmetic H is positive
 * semidefinite, so pivot i is at least lambda_i (it is the least value of x'(H + Lambda) x over
 * x_i = 1, x_j free for j < i, 0 beyond). H was summed in float, though, and where it has grown
 * large beside lambda its rounding may outweigh that: then a pivot falls below lambda_i / 2,
 * and all is done again with more on the diagonal, from the rounding of H's largest element on,
 * 8 times as much each time. The last attempt is dominated by its diagonal, so it succeeds.
 *
 * Steps of conjugate gradients: those of the Mesa layer (2506.05233; guards of 1e-5 in both
 * quotients), without an early stop. A curvature that rounding made negative ends the walk. */
#include "config.h"

#include "solve.h"

#include <stdbool.h>
#include <string.h>

#include "lanes_double.h"

static void axpy(double a, const double *x, double *y, size_t n)
{
    size_t i = 0;

    for (; i + 4 <= n; i += 4)
        store4(y + i, fma4(all4(a), load4(x + i), load4(y + i)));
    for (; i < n; i++)
        y[i] = __builtin_fma(a, x[i], y[i]);
}

/* y_j += sum_i x_i A_ij, i in order, for `w` vectors (a constant where it is used). */
INLINE void apply_block(const float *A, size_t rows, size_t cols, const double *x, double *y,
                        int w)
{
    d4 sum[WIDE];

    ABREAST (c, w)
        sum[c] = load4(y + 4 * c);
    for (size_t i = 0; i < rows; i++, A += cols)
        ABREAST (c, w)
            sum[c] = fma4(all4(x[i]), widen4(A + 4 * c), sum[c]);
    ABREAST (c, w)
        store4(y + 4 * c, sum[c]);
}

/* y_j += sum_i x_i A_ij, i in order. */
static void apply(const float *A, size_t rows, size_t cols, const double *x, double *y)
{
    size_t j = 0;

    for (; j + 4 * WIDE <= cols; j += 4 * WIDE)
        apply_block(A + j, rows, cols, x, y + j, WIDE);
    for (; j + 4 <= cols; j += 4)
        apply_block(A + j, rows, cols, x, y + j, 1);
    for (; j < cols; j++)
        for (size_t i = 0; i < rows; i++)
            y[j] = __builtin_fma(x[i], (double)A[i * cols + j], y[j]);
}

static double dot(const double *x, const double *y, size_t n)
{
    d4 low = all4(0), high = all4(0);
    double lane[8], sum = 0;
    size_t i = 0;

    for (; i + 8 <= n; i += 8) {
        low = fma4(load4(x + i), load4(y + i), low);
        high = fma4(load4(x + i + 4), load4(y + i + 4), high);
    }
    store4(lane, low);
    store4(lane + 4, high);
    for (size_t l = 0; i + l < n; l++)
        lane[l] = __builtin_fma(x[i + l], y[i + l], lane[l]);
    for (size_t l = 0; l < 8; l++)
        sum += lane[l];
    return sum;
}

#define ATTEMPTS 14 /* 2^-24 8^12 = 4096: more than any row has elements */

/* Eliminates with `more` added to the diagonal; false when a pivot is too small. Rows begin up
 * to three elements before their diagonal and end on a multiple of four, so that no vector is
 * cut short: what lies below the diagonal is never read. */
static bool eliminate(const struct fw_system *s, double more, struct fw_factor *f)
{
    size_t n = s->n, width = f->width;

    for (size_t i = 0; i < n; i++)
        for (size_t j = i & ~(size_t)3; j < width; j++)
            f->A[i * width + j] = j < n ? (double)s->H[i * n + j] : 0;
    for (size_t k = 0; k < n; k++) {
        const double *row = f->A + k * width;
        double added = (double)s->lambda[k] + more, pivot = row[k] + added;

        if (!(pivot >= added / 2))
            return false;
        f->d[k] = 1 / pivot;
        for (size_t i = k + 1, at; i < n; i++) {
            at = i & ~(size_t)3;
            axpy(-row[i] * f->d[k], row + at, f->A + i * width + at, width - at);
        }
    }
    return true;
}

static double largest(const float *x, size_t n)
{
    float max = 0;

    for (size_t i = 0; i < n; i++)
        max = __builtin_fabsf(x[i]) > max ? __builtin_fabsf(x[i]) : max;
    return (double)max;
}

static void factor(const struct fw_system *s, struct fw_factor *f)
{
    double more = 0;

    f->n = s->n;
    f->width = (s->n + 3) & ~(size_t)3;
    for (int i = 0; i < ATTEMPTS && !eliminate(s, more, f); i++)
        more = more > 0 ? 8 * more : 0x1p-24 * largest(s->H, s->n * s->n);
}

static void solve(const struct fw_factor *f, double *x)
{
    size_t n = f->n;

    for (size_t k = 0; k < n; k++)
        axpy(-x[k] * f->d[k], f->A + k * f->width + k + 1, x + k + 1, n - k - 1);
    for (size_t k = n; k-- > 0;)
        x[k] = (x[k] - dot(f->A + k * f->width + k + 1, x + k + 1, n - k - 1)) * f->d[k];
}

/* y = (H + diag(lambda)) x; H is symmetric, so its rows serve as columns. */
static void multiply(const struct fw_system *s, const double *x, double *y)
{
    for (size_t j = 0; j < s->n; j++)
        y[j] = (double)s->lambda[j] * x[j];
    apply(s->H, s->n, s->n, x, y);
}

static void cg(const struct fw_system *s, const float *q, size_t steps, double *x)
{
    double r[FW_CG_MAX], p[FW_CG_MAX], w[FW_CG_MAX], d0, d1;
    size_t n = s->n;

    for (size_t i = 0; i < n; i++)
        x[i] = (double)q[i] / ((double)s->H[i * n + i] + (double)s->lambda[i]);
    multiply(s, x, w);
    for (size_t i = 0; i < n; i++)
        p[i] = r[i] = (double)q[i] - w[i];
    d0 = dot(r, r, n);
    for (size_t step = 0; step < steps; step++, d0 = d1) {
        double curvature, alpha;

        multiply(s, p, w);
        curvature = dot(p, w, n) + 1e-5;
        if (!(curvature > 0))
            return;
        alpha = d0 / curvature;
        axpy(alpha, p, x, n);
        axpy(-alpha, w, r, n);
        d1 = dot(r, r, n);
        for (size_t i = 0; i < n; i++)
            p[i] = __builtin_fma(d1 / (d0 + 1e-5), p[i], r[i]);
    }
}

static void values(const float *G, size_t rows, size_t cols, const double *x, float *o)
{
    double y[FW_CG_MAX];

    memset(y, 0, cols * sizeof *y);
    apply(G, rows, cols, x, y);
    for (size_t j = 0; j < cols; j++)
        o[j] = (float)(y[j] > 1e30 ? 1e30 : y[j] < -1e30 ? -1e30 : y[j] == y[j] ? y[j] : 0);
}

const struct fw_solvers FW_AT(fw_solvers) = { factor, solve, cg, values };
