/* kernel_v3.c - the kernels for x86-64-v3: panels of 32 columns, four 8-lane vectors abreast.
 *
 * Four chains of fma hide their own latency; a row of a panel is two cache lines, loaded and
 * stored once per pair. Columns do not see each other (p_j, e_j and o_j need column j alone),
 * so a panel runs through all pairs of the call before the next one starts and stays in the
 * first-level cache. A panel is first copied together when that pays (several pairs, or the
 * last one, narrower than 32 and padded with zeros), because rows d_v floats apart collide
 * there. Same bits as kernel_base.c: the same operations in the same order for each column.
 */
#include "config.h"

#include "fastweight/kernel.h"

#include <string.h>

#include <immintrin.h>

#include "norm.h"
#include "token.h"

#define WIDTH     32
#define COPY_ROWS 512 /* taller panels stay where they are: 64 KiB of stack */
#define COPY_N    4   /* so many pairs repay the copy */
#define INLINE    static inline __attribute__((always_inline))
#define OWN       static __attribute__((noinline))

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

/* Off the fast path: the first w < 32 columns, the others read as 0 and are not written. */
OWN struct row load_narrow(const float *x, size_t w)
{
    float full[WIDTH] = { 0 };

    memcpy(full, x, w * sizeof *x);
    return load(full);
}

OWN void store_narrow(float *x, struct row r, size_t w)
{
    float full[WIDTH];

    store(full, r);
    memcpy(x, full, w * sizeof *x);
}

INLINE struct row load_part(const float *x, size_t w)
{
    return w == WIDTH ? load(x) : load_narrow(x, w);
}

INLINE void store_part(float *x, struct row r, size_t w)
{
    if (w == WIDTH)
        store(x, r);
    else
        store_narrow(x, r, w);
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
};

/* One pass: S = g fma(k', e', S), p = S'k; then err = v - p, e = beta err. cols, fold and gate
 * are constants where it is used. The end belongs to the loop's function: handing 32 columns
 * back through memory costs an eighth of the time at d_k = 32. */
INLINE void sweep(const struct panel *b, const struct step *s, size_t cols, int fold, int gate)
{
    struct row p = zero(), e = fold ? load(s->e) : p;
    __m256 g = _mm256_set1_ps(s->g);
    const float *kp = s->kp, *k = s->k;
    float *P = b->P;
    size_t ld = b->ld, rows = b->rows;

    for (size_t i = 0; i < rows; i++, P += ld) {
        __m256 ki = _mm256_broadcast_ss(k + i);
        struct row x = load_part(P, cols);

        if (fold)
            x = fma_row(_mm256_broadcast_ss(kp + i), e, x);
        if (gate)
            x = scale(g, x);
        p = fma_row(ki, x, p);
        if (fold || gate)
            store_part(P, x, cols);
    }
    p = sub(load(s->v), p);
    store(s->err, p);
    store(s->e, scale(_mm256_set1_ps(s->beta), p));
}

/* The loops that carry the load are functions of their own: nothing else wants registers. */
OWN void sweep_fold(const struct panel *b, const struct step *s)
{
    sweep(b, s, WIDTH, 1, 0);
}

OWN void sweep_gate(const struct panel *b, const struct step *s)
{
    sweep(b, s, WIDTH, 1, 1);
}

/* No pending pair, or a narrow panel in place: rare. */
OWN void sweep_rest(const struct panel *b, const struct step *s, int gate)
{
    size_t cols = b->full ? WIDTH : b->w;

    sweep(b, s, cols, s->kp != NULL, gate);
}

/* o = S_t'q, S_t formed on the way when there is a pending pair. */
INLINE struct row read_cols(const struct panel *b, size_t cols, const float *kp, const float *e,
                            const float *q)
{
    struct row o = zero(), ep = kp ? load(e) : o;
    const float *P = b->P;
    size_t ld = b->ld, rows = b->rows;

    for (size_t i = 0; i < rows; i++, P += ld) {
        struct row s = load_part(P, cols);

        if (kp)
            s = fma_row(_mm256_broadcast_ss(kp + i), ep, s);
        o = fma_row(_mm256_broadcast_ss(q + i), s, o);
    }
    return o;
}

OWN void read_row(const struct panel *b, const float *kp, const float *e, const float *q,
                  float *o)
{
    struct row x;

    if (!b->full)
        x = read_cols(b, b->w, kp, e, q);
    else
        x = kp ? read_cols(b, WIDTH, kp, e, q) : read_cols(b, WIDTH, NULL, e, q);
    store_part(o, x, b->w);
}

static void widen(float *to, const float *x, size_t w)
{
    store(to, load_narrow(x, w));
}

/* Rows of k and v of one head lie a page apart when there are many heads, where the processor
 * does not fetch ahead by itself. */
INLINE void expect(const float *x, size_t n)
{
    for (size_t i = 0; i < n; i += 16)
        _mm_prefetch((const char *)(x + i), _MM_HINT_T0);
}

static void delta_panel(struct fw_head *h, const struct fw_pairs *p, const struct panel *b)
{
    float v[WIDTH], err[WIDTH], e[WIDTH], *head_e = h->e + b->j; /* used when narrow */
    bool narrow = b->w < WIDTH;
    struct step s = {
        .kp = h->valid ? h->k : NULL, .v = v, .err = err, .e = narrow ? e : head_e
    };

    if (narrow)
        widen(e, head_e, b->w);
    for (size_t t = 0; t < p->n; t++) {
        const float *v_t = p->v + t * p->v_stride + b->j;
        float *err_t = p->err + t * h->d_v + b->j;

        s.k = p->k + t * p->k_stride;
        s.beta = p->beta[t];
        s.g = p->g ? p->g[t] : 1;
        if (t + 1 < p->n) {
            expect(s.k + p->k_stride, h->d_k);
            expect(v_t + p->v_stride, b->w);
        }
        if (narrow) {
            widen(v, v_t, b->w);
        } else {
            s.v = v_t;
            s.err = err_t;
        }
        if (!s.kp || !b->full)
            sweep_rest(b, &s, p->g != NULL);
        else if (p->g)
            sweep_gate(b, &s);
        else
            sweep_fold(b, &s);
        if (narrow)
            memcpy(err_t, err, b->w * sizeof *err);
        s.kp = s.k;
        if (p->q)
            read_row(b, s.kp, s.e, p->q + t * p->q_stride, p->o + t * p->o_stride + b->j);
    }
    if (narrow)
        memcpy(head_e, e, b->w * sizeof *e);
}

static struct panel panel_at(const struct fw_head *h, size_t j)
{
    size_t w = h->d_v - j < WIDTH ? h->d_v - j : WIDTH;

    return (struct panel){ h->S + j, h->d_v, h->d_k, w == WIDTH, j, w };
}

static bool copy_pays(const struct fw_head *h, const struct panel *b, size_t n)
{
    return h->d_k <= COPY_ROWS && (!b->full || (n >= COPY_N && h->d_v != WIDTH));
}

/* The panel together in own (COPY_ROWS, 32), zeros beside a narrow one. */
static struct panel gather(const struct panel *b, float *own)
{
    for (size_t i = 0; i < b->rows; i++)
        store(own + i * WIDTH, load_part(b->P + i * b->ld, b->w));
    return (struct panel){ own, WIDTH, b->rows, true, b->j, b->w };
}

OWN void delta_copied(struct fw_head *h, const struct fw_pairs *p, const struct panel *b)
{
    float own[COPY_ROWS * WIDTH] __attribute__((aligned(64)));
    struct panel c = gather(b, own);

    delta_panel(h, p, &c);
    for (size_t i = 0; i < b->rows; i++)
        store_part(b->P + i * b->ld, load(own + i * WIDTH), b->w);
}

static void delta_v3(struct fw_head *h, const struct fw_pairs *p)
{
    for (size_t j = 0; j < h->d_v; j += WIDTH) {
        struct panel b = panel_at(h, j);

        if (copy_pays(h, &b, p->n))
            delta_copied(h, p, &b);
        else
            delta_panel(h, p, &b);
    }
    memcpy(h->k, p->k + (p->n - 1) * p->k_stride, h->d_k * sizeof *h->k);
    h->valid = true;
}

static void read_panel(const struct fw_head *h, const struct fw_reads *r, const struct panel *b)
{
    const float *kp = h->valid ? h->k : NULL;
    float e[WIDTH];

    store(e, load_part(h->e + b->j, b->w));
    for (size_t t = 0; t < r->n; t++)
        read_row(b, kp, e, r->q + t * r->q_stride, r->o + t * r->o_stride + b->j);
}

OWN void read_copied(const struct fw_head *h, const struct fw_reads *r, const struct panel *b)
{
    float own[COPY_ROWS * WIDTH] __attribute__((aligned(64)));
    struct panel c = gather(b, own);

    read_panel(h, r, &c);
}

static void read_v3(const struct fw_head *h, const struct fw_reads *r)
{
    for (size_t j = 0; j < h->d_v; j += WIDTH) {
        struct panel b = panel_at(h, j);

        if (copy_pays(h, &b, r->n))
            read_copied(h, r, &b);
        else
            read_panel(h, r, &b);
    }
}

static void fold_v3(const struct fw_head *h, float *out)
{
    if (!h->valid) {
        memmove(out, h->S, h->d_k * h->d_v * sizeof *out);
        return;
    }
    for (size_t j = 0; j < h->d_v; j += WIDTH) {
        struct panel b = panel_at(h, j);
        struct row e = load_part(h->e + j, b.w);

        for (size_t i = 0; i < h->d_k; i++)
            store_part(
                out + i * h->d_v + j,
                fma_row(_mm256_broadcast_ss(h->k + i), e, load_part(b.P + i * b.ld, b.w)), b.w);
    }
}

/* memcpy, but inline: a call costs a tenth of a head of 32 x 32. */
INLINE void copy(float *to, const float *x, size_t n)
{
    size_t i = 0;

    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(to + i, _mm256_loadu_ps(x + i));
    for (; i < n; i++)
        to[i] = x[i];
}

/* Heads with a pending pair, their panels whole and in place. The residual of a head, all
 * latency, follows the sweep of the next one and hides in it. */
static void token_whole(const struct fw_token *t)
{
    struct panel b = { t->S, t->d_v, t->d_k, true, 0, WIDTH };
    struct step s = { t->pending_k, t->k, t->v, t->err, t->pending_e, 0, 1 };

    for (size_t head = 0; head < t->heads; head++) {
        s.beta = t->beta[head];
        s.g = t->g ? t->g[head] : 1;
        for (size_t j = 0; j < t->d_v; j += WIDTH) {
            if (t->g)
                sweep_gate(&b, &s);
            else
                sweep_fold(&b, &s);
            b.P += WIDTH;
            s.v += WIDTH;
            s.err += WIDTH;
            s.e += WIDTH;
        }
        copy(t->pending_k + head * t->d_k, s.k, t->d_k);
        b.P += (t->d_k - 1) * t->d_v;
        s.kp += t->d_k;
        s.k += t->d_k;
        if (head > 0)
            fw_token_residual(t, head - 1, fw_sum_squares_v3);
    }
    fw_token_residual(t, t->heads - 1, fw_sum_squares_v3);
}

static void token_v3(const struct fw_token *t)
{
    bool whole = t->d_v % WIDTH == 0;

    for (size_t head = 0; whole && head < t->heads; head++)
        whole = t->valid[head] != 0;
    if (whole) {
        token_whole(t);
        return;
    }
    for (size_t head = 0; head < t->heads; head++) {
        fw_token_head(t, head, delta_v3);
        fw_token_residual(t, head, fw_sum_squares_v3);
    }
}

const struct fw_kernels fw_kernels_v3 = { delta_v3, read_v3, fold_v3, token_v3 };
