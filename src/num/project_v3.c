/* project_v3.c - fw_project for x86-64-v3: tiles of outputs x rows, up to twelve sums abreast.
 *
 * A sum is one 8-lane register, so the order fastweight/project.h fixes is what the machine
 * does anyway: twelve chains of fma hide their latency, and four registers at a time become
 * four results by shuffles. With four rows a weight is loaded once per four fma, which makes
 * the fma units the limit; with a single row memory is, and fewer rows of W abreast read faster
 * from beyond the first-level cache.
 *
 * Outputs go in blocks of twelve, which 12x1, 6x1, 6x2, 4x3 and 3x4 divide; a tile that would
 * pass the last output is moved back over outputs already written, with the same bits. Long
 * sums of many rows are cut into spans that leave a block of W in the first-level cache; the
 * sums wait in between as they are. With many rows each tile also asks for a share of the next
 * block of W, which otherwise arrives too late: a model's weights lie beyond the near caches.
 */
#include "config.h"

#include "project.h"

#include <stdbool.h>
#include <stdint.h>

#include <immintrin.h>

#define BLOCK  12   /* outputs, and sums of a tile */
#define ROWS   32   /* at once: 12 KiB of waiting sums */
#define LINE   64   /* bytes of a cache line */
#define SPAN   1024 /* of i, with four rows or more */
#define AHEAD  16   /* rows that leave time to fetch the next block of W */
#define INLINE static inline __attribute__((always_inline))
#define OWN    static __attribute__((noinline))
/* Wholly, and before sums are given registers: a count comes too late for that in clang. */
#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 12")
#endif

struct job {        /* a tile: O outputs of R rows over n elements */
    const char *w;  /* (O, n), rows w_stride bytes apart */
    const float *x; /* (R, n) */
    float *y;       /* (R, O), written when last */
    float *sums;    /* (R, O, 8): continued unless first, left behind unless last */
    size_t n, w_stride, x_stride, y_stride;
    bool first, last;
};

typedef void tile_fn(const struct job *j);

struct sums {
    __m256 s[BLOCK]; /* (R, O) */
};

/* For bf16: each half to the upper half of its float. */
static const int8_t up[32]
    __attribute__((aligned(32))) = { -1, -1, 0,  1,  -1, -1, 2,  3,  -1, -1, 4,
                                     5,  -1, -1, 6,  7,  -1, -1, 8,  9,  -1, -1,
                                     10, 11, -1, -1, 12, 13, -1, -1, 14, 15 };

/* Eight weights for R rows of x. */
INLINE __m256 load(const char *w, enum fw_weight type, size_t R)
{
    const int8_t *order = up;
    __m128i h;

    if (type == FW_WEIGHT_F32)
        return _mm256_loadu_ps((const float *)w);
    h = _mm_loadu_si128((const __m128i_u *)w);
    if (type == FW_WEIGHT_F16)
        return _mm256_cvtph_ps(h);
    if (R > 1)
        __asm__ volatile("" : "+r"(order)); /* from memory: no register is left for it */
    return _mm256_castsi256_ps(
        _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(h),
                            _mm256_load_si256((const __m256i *)(const void *)order)));
}

INLINE __m256i first_lanes(size_t n)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n),
                              _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

/* The first n < 8 weights; the others are -0, whose product with 0 is -0, which leaves any sum
 * as it is, also -0. */
INLINE __m256 load_rest(const char *w, size_t n, enum fw_weight type, size_t R)
{
    uint16_t h[8];
    __m256 keep;

    if (type == FW_WEIGHT_F32) {
        keep = _mm256_castsi256_ps(first_lanes(n));
        return _mm256_or_ps(_mm256_maskload_ps((const float *)w, first_lanes(n)),
                            _mm256_andnot_ps(keep, _mm256_set1_ps(-0.0f)));
    }
    for (size_t l = 0; l < 8; l++)
        h[l] = l < n ? ((const uint16_t *)w)[l] : 0x8000;
    return load((const char *)h, type, R);
}

/* n <= 8 elements of x; lanes beyond are 0. */
INLINE __m256 load_x(const float *x, size_t n)
{
    return n == 8 ? _mm256_loadu_ps(x) : _mm256_maskload_ps(x, first_lanes(n));
}

INLINE __m256 load_w(const char *w, size_t n, enum fw_weight type, size_t R)
{
    return n == 8 ? load(w, type, R) : load_rest(w, n, type, R);
}

/* n <= 8 elements more, from i on. The fewer of O and R wait in registers for the others, which
 * are loaded one after another: 12 sums + 3 + 1 are all there are. */
INLINE void step(struct sums *a, const struct job *j, size_t i, size_t n, enum fw_weight type,
                 size_t O, size_t R)
{
    const char *w = j->w + i * (type == FW_WEIGHT_F32 ? 4 : 2);
    const float *x = j->x + i;
    __m256 few[3];

    UNROLL
    for (size_t m = 0; m < 3; m++)
        if (m < (O < R ? O : R))
            few[m] = O < R ? load_w(w + m * j->w_stride, n, type, R)
                           : load_x(x + m * j->x_stride, n);
    UNROLL
    for (size_t k = 0; k < O * R; k++) {
        size_t o = O < R ? k % O : k / R, r = O < R ? k / O : k % R;
        __m256 one =
            O < R ? load_x(x + r * j->x_stride, n) : load_w(w + o * j->w_stride, n, type, R);

        a->s[r * O + o] = _mm256_fmadd_ps(one, few[O < R ? o : r], a->s[r * O + o]);
    }
}

/* The sums of four registers: lane l + lane l + 4, then + 2, then + 1. */
INLINE __m128 tree(__m256 a, __m256 b, __m256 c, __m256 d)
{
    __m256 ac =
        _mm256_add_ps(_mm256_permute2f128_ps(a, c, 0x20), _mm256_permute2f128_ps(a, c, 0x31));
    __m256 bd =
        _mm256_add_ps(_mm256_permute2f128_ps(b, d, 0x20), _mm256_permute2f128_ps(b, d, 0x31));
    __m256d low = _mm256_unpacklo_pd(_mm256_castps_pd(ac), _mm256_castps_pd(bd));
    __m256d high = _mm256_unpackhi_pd(_mm256_castps_pd(ac), _mm256_castps_pd(bd));
    __m256 two = _mm256_add_ps(_mm256_castpd_ps(low), _mm256_castpd_ps(high));
    __m128 ab = _mm256_castps256_ps128(two), cd = _mm256_extractf128_ps(two, 1);

    return _mm_add_ps(_mm_shuffle_ps(ab, cd, 0x88), _mm_shuffle_ps(ab, cd, 0xdd));
}

INLINE void finish(const struct sums *a, const struct job *j, size_t O, size_t R)
{
    float y[BLOCK];

    UNROLL
    for (size_t k = 0; k < O * R; k += 4)
        _mm_storeu_ps(y + k, tree(a->s[k], a->s[k + 1], a->s[k + 2], a->s[k + 3]));
    UNROLL
    for (size_t k = 0; k < O * R; k++)
        j->y[k / O * j->y_stride + k % O] = y[k];
}

INLINE void tile(const struct job *job, enum fw_weight type, size_t O, size_t R)
{
    struct job j = *job;
    struct sums a;
    size_t i = 0;

    UNROLL
    for (size_t k = 0; k < BLOCK; k++)
        a.s[k] = j.first || k >= O * R ? _mm256_setzero_ps() : _mm256_load_ps(j.sums + 8 * k);
    for (; i + 8 <= j.n; i += 8)
        step(&a, &j, i, 8, type, O, R);
    if (i < j.n)
        step(&a, &j, i, j.n - i, type, O, R);
    if (j.last) {
        finish(&a, &j, O, R);
        return;
    }
    UNROLL
    for (size_t k = 0; k < O * R; k++)
        _mm256_store_ps(j.sums + 8 * k, a.s[k]);
}

struct tiles {
    tile_fn *t12x1, *t6x1, *t4x1, *t1x1, *t6x2, *t4x3, *t3x4;
};

#define TILE(T, type, O, R)                                                                    \
    OWN void T##_##O##x##R(const struct job *j)                                                \
    {                                                                                          \
        tile(j, type, O, R);                                                                   \
    }
#define TILES(T, type)                                                                         \
    TILE(T, type, 12, 1)                                                                       \
    TILE(T, type, 6, 1)                                                                        \
    TILE(T, type, 4, 1)                                                                        \
    TILE(T, type, 1, 1)                                                                        \
    TILE(T, type, 6, 2)                                                                        \
    TILE(T, type, 4, 3)                                                                        \
    TILE(T, type, 3, 4)                                                                        \
    static const struct tiles T = { T##_12x1, T##_6x1, T##_4x1, T##_1x1,                       \
                                    T##_6x2,  T##_4x3, T##_3x4 };

TILES(f32, FW_WEIGHT_F32)
TILES(f16, FW_WEIGHT_F16)
TILES(bf16, FW_WEIGHT_BF16)

struct call { /* what stays the same for all tiles */
    const struct fw_matrix *W;
    const struct tiles *tiles;
    size_t size; /* of a weight */
    bool wide;   /* a single row reads W from a near cache */
};

struct part { /* n rows over elements from .. to; sums: (n, 12, 8) */
    const float *x;
    float *y, *sums;
    size_t n, x_stride, y_stride, from, to;
    const char *ahead, *ahead_end; /* what the next block needs of W */
    size_t share;                  /* bytes of it that each tile asks for; 0: none */
};

struct shape {
    tile_fn *f;
    size_t O, R;
};

/* The next block of W comes from afar while this one is multiplied. */
static void plan_ahead(const struct call *c, struct part *p, size_t o, size_t spans)
{
    size_t row = c->W->in * c->size, next = o + BLOCK, end = next + BLOCK;

    end = end < c->W->out ? end : c->W->out;
    next = next < end ? next : end;
    p->ahead = (const char *)c->W->data + next * row;
    p->ahead_end = (const char *)c->W->data + end * row;
    p->share = (end - next) * row / (p->n * spans) + LINE;
}

INLINE void ask_ahead(struct part *p)
{
    size_t n;

    if (p->share == 0)
        return;
    n = (size_t)(p->ahead_end - p->ahead);
    n = p->share < n ? p->share : n;
    for (size_t b = 0; b < n; b += LINE)
        _mm_prefetch(p->ahead + b, _MM_HINT_T0);
    p->ahead += n;
}

/* Outputs o .. o + n, n <= 12, of the rows from r on that one tile takes. */
static void across(const struct call *c, struct part *p, size_t r, size_t o, size_t n,
                   const struct shape *s)
{
    const struct fw_matrix *W = c->W;
    struct job j = { .x = p->x + r * p->x_stride + p->from,
                     .n = p->to - p->from,
                     .w_stride = W->in * c->size,
                     .x_stride = p->x_stride,
                     .y_stride = p->y_stride,
                     .first = p->from == 0,
                     .last = p->to == W->in };

    for (size_t k = 0; k < n; k += s->O) {
        size_t at = o + k + s->O > W->out ? W->out - s->O : o + k;

        j.w = (const char *)W->data + (at * W->in + p->from) * c->size;
        j.y = p->y + r * p->y_stride + at;
        j.sums = p->sums + 8 * (BLOCK * r + s->R * k);
        s->f(&j);
        ask_ahead(p);
    }
}

/* The tile for the next rows at a block of n outputs. */
static struct shape choose(const struct call *c, size_t rows, size_t n)
{
    const struct tiles *t = c->tiles;
    size_t out = c->W->out;

    if (rows >= 4 && out >= 3)
        return (struct shape){ t->t3x4, 3, 4 };
    if (rows == 3 && out >= 4)
        return (struct shape){ t->t4x3, 4, 3 };
    if (rows >= 2 && out >= 6)
        return (struct shape){ t->t6x2, 6, 2 };
    if (n == BLOCK)
        return c->wide ? (struct shape){ t->t12x1, 12, 1 } : (struct shape){ t->t6x1, 6, 1 };
    return out >= 4 ? (struct shape){ t->t4x1, 4, 1 } : (struct shape){ t->t1x1, 1, 1 };
}

static void block(const struct call *c, struct part *p, size_t o)
{
    size_t n = c->W->out - o < BLOCK ? c->W->out - o : BLOCK;

    for (size_t r = 0; r < p->n;) {
        struct shape s = choose(c, p->n - r, n);

        across(c, p, r, o, n, &s);
        r += s.R;
    }
}

static struct call call_of(const struct fw_matrix *W)
{
    bool is_f32 = W->type == FW_WEIGHT_F32;
    size_t near = is_f32 ? 48 << 10 : 512 << 10; /* where 12x1 was faster than 6x1 */

    return (struct call){
        .W = W,
        .tiles = is_f32                     ? &f32
                 : W->type == FW_WEIGHT_F16 ? &f16
                                            : &bf16,
        .size = is_f32 ? 4 : 2,
        .wide = W->out * W->in * (is_f32 ? 4 : 2) <= near,
    };
}

void fw_project_v3(const struct fw_matrix *W, const float *x, size_t x_stride, size_t rows,
                   float *y, size_t y_stride)
{
    struct call c = call_of(W);
    float sums[ROWS * BLOCK * 8] __attribute__((aligned(32)));

    for (size_t r = 0; r < rows; r += ROWS) {
        size_t n = rows - r < ROWS ? rows - r : ROWS, span = n < 4 ? W->in : SPAN;
        struct part p = { .x = x + r * x_stride,
                          .y = y + r * y_stride,
                          .sums = sums,
                          .n = n,
                          .x_stride = x_stride,
                          .y_stride = y_stride };

        for (size_t o = 0; o < W->out; o += BLOCK) {
            p.from = 0;
            if (n >= AHEAD)
                plan_ahead(&c, &p, o, W->in / SPAN + 1);
            do {
                p.to = W->in - p.from < span ? W->in : p.from + span;
                block(&c, &p, o);
                p.from = p.to;
            } while (p.from < W->in);
        }
    }
}
