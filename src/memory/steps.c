/* steps.c - the loops of steps.h, compiled once per level.
 *
 * As in loops.c, 32, 8 or one column at a time. Two pairs of a window look, and two rows are
 * written, side by side: that many chains of fma hide the latency of one. */
#include "config.h"

#include "steps.h"

#include "lanes.h"

static void scale_panel(const struct fw_panel *A, float decay)
{
    for (size_t r = 0; r < A->rows; r++) {
        float *row = A->A + r * A->width + A->at;
        size_t j = 0;

        for (; j + 8 <= A->cols; j += 8)
            store(row + j, mul8(all(decay), load(row + j)));
        for (; j < A->cols; j++)
            row[j] *= decay;
    }
}

/* e_p = S'k_p of `pairs` pairs and `w` vectors of columns (constants where it is used). */
INLINE void look_block(const struct fw_panel *S, size_t j, const float *const *k, float *e,
                       int pairs, int w)
{
    const float *row = S->A + S->at + j;
    f8 sum[2][WIDE], x[WIDE];

    ABREAST (p, pairs)
        ABREAST (c, w)
            sum[p][c] = all(0);
    for (size_t r = 0; r < S->rows; r++, row += S->width) {
        ABREAST (c, w)
            x[c] = load(row + 8 * c);
        ABREAST (p, pairs)
            ABREAST (c, w)
                sum[p][c] = fma8(all(k[p][r]), x[c], sum[p][c]);
    }
    ABREAST (p, pairs)
        ABREAST (c, w)
            store(e + p * FW_PANEL + 8 * c, sum[p][c]);
}

INLINE void look_columns(const struct fw_panel *S, size_t j, const float *const *k, size_t n,
                         float *e, int w)
{
    size_t i = 0;

    for (; i + 2 <= n; i += 2)
        look_block(S, j, k + i, e + i * FW_PANEL + j, 2, w);
    if (i < n)
        look_block(S, j, k + i, e + i * FW_PANEL + j, 1, w);
}

static void look_one(const struct fw_panel *S, size_t j, const float *const *k, size_t n,
                     float *e)
{
    for (size_t i = 0; i < n; i++) {
        float sum = 0;

        for (size_t r = 0; r < S->rows; r++)
            sum = __builtin_fmaf(k[i][r], S->A[r * S->width + S->at + j], sum);
        e[i * FW_PANEL + j] = sum;
    }
}

static void look(const struct fw_panel *S, float decay, const float *const *k,
                 const float *const *v, size_t n, float *e)
{
    size_t j = 0;

    if (decay != 1)
        scale_panel(S, decay);
    for (; j + 8 * WIDE <= S->cols; j += 8 * WIDE)
        look_columns(S, j, k, n, e, WIDE);
    for (; j + 8 <= S->cols; j += 8)
        look_columns(S, j, k, n, e, 1);
    for (; j < S->cols; j++)
        look_one(S, j, k, n, e);
    for (size_t i = 0; i < n; i++)
        for (j = 0; j < S->cols; j++)
            e[i * FW_PANEL + j] = v[i][S->at + j] - e[i * FW_PANEL + j];
}

struct writing {
    const float *const *k;
    const float *e;
    size_t n;
    float decay, limit;
};

/* Rows [r, r + rows) and `w` vectors of columns (constants where it is used). */
INLINE void write_block(const struct fw_panel *A, const struct writing *x, size_t r, size_t j,
                        int rows, int w)
{
    float *at = A->A + r * A->width + A->at + j;
    f8 sum[2][WIDE];

    ABREAST (p, rows)
        ABREAST (c, w)
            sum[p][c] = mul8(all(x->decay), load(at + (size_t)p * A->width + 8 * c));
    for (size_t i = 0; i < x->n; i++)
        ABREAST (p, rows)
            ABREAST (c, w)
                sum[p][c] = fma8(all(x->k[i][r + (size_t)p]),
                                 load(x->e + i * FW_PANEL + j + 8 * c), sum[p][c]);
    ABREAST (p, rows)
        ABREAST (c, w)
            store(at + (size_t)p * A->width + 8 * c, clamp8(sum[p][c], x->limit));
}

INLINE void write_columns(const struct fw_panel *A, const struct writing *x, size_t j, int w)
{
    size_t r = 0;

    for (; r + 2 <= A->rows; r += 2)
        write_block(A, x, r, j, 2, w);
    if (r < A->rows)
        write_block(A, x, r, j, 1, w);
}

static void write_one(const struct fw_panel *A, const struct writing *x, size_t j)
{
    for (size_t r = 0; r < A->rows; r++) {
        float *at = A->A + r * A->width + A->at + j, sum = x->decay * *at;

        for (size_t i = 0; i < x->n; i++)
            sum = __builtin_fmaf(x->k[i][r], x->e[i * FW_PANEL + j], sum);
        *at = clamp_one(sum, x->limit);
    }
}

static void write_panel(const struct fw_panel *A, float decay, const float *const *k,
                        const float *e, size_t n, float limit)
{
    const struct writing x = { k, e, n, decay, limit };
    size_t j = 0;

    for (; j + 8 * WIDE <= A->cols; j += 8 * WIDE)
        write_columns(A, &x, j, WIDE);
    for (; j + 8 <= A->cols; j += 8)
        write_columns(A, &x, j, 1);
    for (; j < A->cols; j++)
        write_one(A, &x, j);
}

static void heavy_ball(const struct fw_heavy_ball *b)
{
    for (size_t i = 0; i < b->rows; i++) {
        float *S = b->S + i * b->cols, *Z = b->Z + i * b->cols, x = b->k[i];
        size_t j = 0;

        for (; j + 8 <= b->cols; j += 8) {
            f8 z = fma8(all(x), load(b->w + j), mul8(all(b->eta), load(Z + j)));

            z = clamp8(z, b->limit);
            store(Z + j, z);
            store(S + j, clamp8(fma8(all(b->keep), load(S + j), z), b->limit));
        }
        for (; j < b->cols; j++) {
            Z[j] = clamp_one(__builtin_fmaf(x, b->w[j], b->eta * Z[j]), b->limit);
            S[j] = clamp_one(__builtin_fmaf(b->keep, S[j], Z[j]), b->limit);
        }
    }
}

static void square(float *H, size_t n, float g, float beta, const float *k, float limit)
{
    for (size_t i = 0; i < n; i++, H += n) {
        size_t j = 0;

        for (; j + 8 <= n; j += 8) {
            f8 kk = mul8(all(k[i]), load(k + j));

            store(H + j, clamp8(fma8(all(beta), kk, mul8(all(g), load(H + j))), limit));
        }
        for (; j < n; j++)
            H[j] = clamp_one(__builtin_fmaf(beta, k[i] * k[j], g * H[j]), limit);
    }
}

static void cross(float *A, size_t rows, size_t cols, float g, const float *k, const float *v,
                  float limit)
{
    for (size_t i = 0; i < rows; i++, A += cols) {
        size_t j = 0;

        for (; j + 8 <= cols; j += 8)
            store(A + j,
                  clamp8(fma8(all(k[i]), load(v + j), mul8(all(g), load(A + j))), limit));
        for (; j < cols; j++)
            A[j] = clamp_one(__builtin_fmaf(k[i], v[j], g * A[j]), limit);
    }
}

const struct fw_steps FW_AT(fw_steps) = { look, write_panel, heavy_ball, square, cross };
