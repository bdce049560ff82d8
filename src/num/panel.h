/* panel.h - 32 columns of a head abreast, for x86-64-v3: rows of four vectors, and one pass of
 * a pair over a panel, which is what both kernel_v3.c and token_v3.c are made of. */
#ifndef PANEL_H
#define PANEL_H

#include <stdbool.h>
#include <stddef.h>

#include <immintrin.h>

#define WIDTH  32
#define INLINE static inline __attribute__((always_inline))
#define OWN    static __attribute__((noinline))

struct row { /* 32 columns */
    __m256 a, b, c, d;
};

INLINE struct row load(const float *x)
{
    return (struct row){ _mm256_loadu_ps(x), _mm256_loadu_ps(x + 8), _mm256_loadu_ps(x + 16),
                         _mm256_loadu_ps(x + 24) };
}

INLINE void store(float *x, struct row r)
{
    _mm256_storeu_ps(x, r.a);
    _mm256_storeu_ps(x + 8, r.b);
    _mm256_storeu_ps(x + 16, r.c);
    _mm256_storeu_ps(x + 24, r.d);
}

INLINE struct row fma_row(__m256 x, struct row y, struct row z)
{
    return (struct row){ _mm256_fmadd_ps(x, y.a, z.a), _mm256_fmadd_ps(x, y.b, z.b),
                         _mm256_fmadd_ps(x, y.c, z.c), _mm256_fmadd_ps(x, y.d, z.d) };
}

INLINE struct row scale(__m256 x, struct row y)
{
    return (struct row){ _mm256_mul_ps(x, y.a), _mm256_mul_ps(x, y.b), _mm256_mul_ps(x, y.c),
                         _mm256_mul_ps(x, y.d) };
}

INLINE struct row sub(struct row x, struct row y)
{
    return (struct row){ _mm256_sub_ps(x.a, y.a), _mm256_sub_ps(x.b, y.b),
                         _mm256_sub_ps(x.c, y.c), _mm256_sub_ps(x.d, y.d) };
}

INLINE struct row zero(void)
{
    __m256 z = _mm256_setzero_ps();

    return (struct row){ z, z, z, z };
}

struct panel {       /* w columns of a head from column j on */
    float *P;        /* (rows, full ? 32 : w), rows ld floats apart */
    size_t ld, rows; /* rows > 0 */
    bool full;       /* 32 columns may be touched in P */
    size_t j, w;
};

struct step { /* one pair at one panel; v, err and e are 32 wide */
    const float *kp, *k, *v;
    float *err, *e; /* written; e holds e' before */
    float beta, g;
    bool blind; /* e = beta v */
};

/* Rows of k and v of one head lie a page apart when there are many heads, where the processor
 * does not fetch ahead by itself. */
INLINE void expect(const float *x, size_t n)
{
    for (size_t i = 0; i < n; i += 16)
        _mm_prefetch((const char *)(x + i), _MM_HINT_T0);
}

/* Compilers leave the order around it alone: x is computed here, and what touches memory stays
 * on its side. How far one pass overlaps the next depends on that, up to a tenth. */
INLINE __m256 pin(__m256 x)
{
    __asm__ volatile("" : "+x"(x) : : "memory");
    return x;
}

/* One row of a pass: S_i = g fma(k'_i, e', S_i), p = fma(k_i, S_i, p). */
INLINE struct row pass_row(float *P, const float *kp, struct row e, const __m256 *g,
                           const float *k, struct row p)
{
    __m256 c = _mm256_broadcast_ss(kp);
    struct row x;

    x.a = pin(_mm256_fmadd_ps(c, e.a, _mm256_loadu_ps(P)));
    x.b = pin(_mm256_fmadd_ps(c, e.b, _mm256_loadu_ps(P + 8)));
    x.c = pin(_mm256_fmadd_ps(c, e.c, _mm256_loadu_ps(P + 16)));
    x.d = pin(_mm256_fmadd_ps(c, e.d, _mm256_loadu_ps(P + 24)));
    if (g)
        x = scale(*g, x);
    store(P, x);
    c = pin(_mm256_broadcast_ss(k));
    p.a = pin(_mm256_fmadd_ps(c, x.a, p.a));
    p.b = pin(_mm256_fmadd_ps(c, x.b, p.b));
    p.c = pin(_mm256_fmadd_ps(c, x.c, p.c));
    p.d = pin(_mm256_fmadd_ps(c, x.d, p.d));
    return p;
}

/* One pass over a whole panel: S = g fma(k', e', S), p = S'k; then e = beta (v - p), and v - p
 * is returned. gate is a constant where it is used. Eight rows a round: what counts rows would
 * fill a fifth of the instructions. */
INLINE struct row pass(const struct panel *b, const struct step *s, int gate)
{
    struct row p = zero(), e = load(s->e);
    __m256 all_g = _mm256_set1_ps(s->g), *g = gate ? &all_g : NULL;
    const float *kp = s->kp, *k = s->k;
    float *P = b->P;
    size_t ld = b->ld, rows = b->rows;

    for (; rows >= 8; rows -= 8, kp += 8, k += 8, P += 8 * ld) {
        p = pass_row(P, kp, e, g, k, p);
        p = pass_row(P + ld, kp + 1, e, g, k + 1, p);
        p = pass_row(P + 2 * ld, kp + 2, e, g, k + 2, p);
        p = pass_row(P + 3 * ld, kp + 3, e, g, k + 3, p);
        p = pass_row(P + 4 * ld, kp + 4, e, g, k + 4, p);
        p = pass_row(P + 5 * ld, kp + 5, e, g, k + 5, p);
        p = pass_row(P + 6 * ld, kp + 6, e, g, k + 6, p);
        p = pass_row(P + 7 * ld, kp + 7, e, g, k + 7, p);
    }
    for (; rows > 0; rows--, P += ld)
        p = pass_row(P, kp++, e, g, k++, p);
    p = sub(load(s->v), p);
    store(s->e, scale(_mm256_set1_ps(s->beta), s->blind ? load(s->v) : p));
    p.a = pin(p.a); /* e first: the next pass waits for it */
    return p;
}

#endif
