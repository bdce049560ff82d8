/* muon.c - Newton-Schulz orthogonalisation, as the Muon optimiser does it.
 *
 *     X = Z / (|Z|_F + 1e-7), transposed when it has more rows than columns; five times
 *     A = X X',  X = a X + (b A + c A A) X,   (a, b, c) = (3.4445, -4.7750, 2.0315)
 *
 * Source: Keller Jordan, Muon (2024). All singular values start in [0, 1] and each step maps s
 * to a s + b s^3 + c s^5, so they end near [0.68, 1.13] and X is finite whatever finite Z was.
 * Sums are those of loops.h. */
#include "config.h"

#include "muon.h"

#include <string.h>

#include "fastweight/fmath.h"
#include "fastweight/num.h"
#include "loops.h"

#define STEPS   5
#define SQUARES (FW_MUON_MAX * FW_MUON_MAX)

/* X (m, n), m <= n; one iteration. */
static void iterate(float *X, size_t m, size_t n)
{
    const struct fw_loops *l = fw_loops();
    float A[SQUARES], B[SQUARES];

    for (size_t i = 0; i < m; i++)
        l->apply_rows(X, m, n, X + i * n, A + i * m);
    l->product(A, A, B, m, m, m);
    l->scale(-4.7750f, A, m * m);
    l->axpy(2.0315f, B, A, m * m);
    l->product(A, X, B, m, m, n);
    l->axpy(3.4445f, X, B, m * n);
    memcpy(X, B, m * n * sizeof *X);
}

/* Y (cols, rows) of X (rows, cols). */
static void transpose(const float *X, size_t rows, size_t cols, float *Y)
{
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < cols; j++)
            Y[j * rows + i] = X[i * cols + j];
}

void fw_muon(const float *Z, size_t rows, size_t cols, float *X)
{
    double inverse = 1 / (fw_sqrt(fw_sum_squares(Z, rows * cols)) + 1e-7);
    float turned[SQUARES], *Y = rows > cols ? turned : X;

    for (size_t i = 0; i < rows * cols; i++)
        X[i] = (float)((double)Z[i] * inverse);
    if (rows > cols)
        transpose(X, rows, cols, turned);
    for (int i = 0; i < STEPS; i++)
        iterate(Y, rows > cols ? cols : rows, rows > cols ? rows : cols);
    if (rows > cols)
        transpose(turned, cols, rows, X);
}
