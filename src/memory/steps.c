/* steps.c - the loops of steps.h, compiled once per level.
 *
 * As in loops.c: rows and pairs outermost, columns side by side, so that vectors change no
 * order. A row of a panel is loaded once for all pairs of a window. */
#include "config.h"

#include "steps.h"

#include <string.h>

static float cut(float x, float limit)
{
    return x > limit ? limit : x < -limit ? -limit : x;
}

static void look(const struct fw_panel *S, float decay, const float *const *k,
                 const float *const *v, size_t n, float *e)
{
    memset(e, 0, n * FW_PANEL * sizeof *e);
    for (size_t r = 0; r < S->rows; r++) {
        float *row = S->A + r * S->width + S->at;

        for (size_t j = 0; j < S->cols && decay != 1; j++)
            row[j] *= decay;
        for (size_t i = 0; i < n; i++) {
            float *p = e + i * FW_PANEL, x = k[i][r];

            for (size_t j = 0; j < S->cols; j++)
                p[j] = __builtin_fmaf(x, row[j], p[j]);
        }
    }
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < S->cols; j++)
            e[i * FW_PANEL + j] = v[i][S->at + j] - e[i * FW_PANEL + j];
}

static void write_panel(const struct fw_panel *A, float decay, const float *const *k,
                        const float *e, size_t n, float limit)
{
    for (size_t r = 0; r < A->rows; r++) {
        float *row = A->A + r * A->width + A->at;

        for (size_t j = 0; j < A->cols && decay != 1; j++)
            row[j] *= decay;
        for (size_t i = 0; i < n; i++) {
            const float *w = e + i * FW_PANEL;
            float x = k[i][r];

            for (size_t j = 0; j < A->cols; j++)
                row[j] = __builtin_fmaf(x, w[j], row[j]);
        }
        for (size_t j = 0; j < A->cols; j++)
            row[j] = cut(row[j], limit);
    }
}

static void heavy_ball(const struct fw_heavy_ball *b)
{
    for (size_t i = 0; i < b->rows; i++) {
        float *S = b->S + i * b->cols, *Z = b->Z + i * b->cols, x = b->k[i];

        for (size_t j = 0; j < b->cols; j++) {
            Z[j] = cut(__builtin_fmaf(x, b->w[j], b->eta * Z[j]), b->limit);
            S[j] = cut(__builtin_fmaf(b->keep, S[j], Z[j]), b->limit);
        }
    }
}

static void square(float *H, size_t n, float g, float beta, const float *k, float limit)
{
    for (size_t i = 0; i < n; i++, H += n)
        for (size_t j = 0; j < n; j++)
            H[j] = cut(__builtin_fmaf(beta, k[i] * k[j], g * H[j]), limit);
}

static void cross(float *A, size_t rows, size_t cols, float g, const float *k, const float *v,
                  float limit)
{
    for (size_t i = 0; i < rows; i++, A += cols)
        for (size_t j = 0; j < cols; j++)
            A[j] = cut(__builtin_fmaf(k[i], v[j], g * A[j]), limit);
}

const struct fw_steps FW_AT(fw_steps) = { look, write_panel, heavy_ball, square, cross };
