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
#include "squares.h"
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
    store(s->e, scale(_mm256_set1_ps(s->beta), p));
    p.a = pin(p.a); /* e first: the next pass waits for it */
    return p;
}

/* The loops that carry the load are functions of their own: nothing else wants registers, and
 * handing 32 columns back through memory would cost an eighth of the time at d_k = 32. */
OWN void sweep_fold(const struct panel *b, const struct step *s)
{
    store(s->err, pass(b, s, 0));
}

OWN void sweep_gate(const struct panel *b, const struct step *s)
{
    store(s->err, pass(b, s, 1));
}

/* No pending pair, or a narrow panel in place: rare. */
OWN void sweep_rest(const struct panel *b, const struct step *s, int gate)
{
    size_t cols = b->full ? WIDTH : b->w;
    struct row p = zero(), e = s->kp ? load(s->e) : p;
    float *P = b->P;

    for (size_t i = 0; i < b->rows; i++, P += b->ld) {
        struct row x = load_part(P, cols);

        if (s->kp)
            x = fma_row(_mm256_broadcast_ss(s->kp + i), e, x);
        if (gate)
            x = scale(_mm256_set1_ps(s->g), x);
        p = fma_row(_mm256_broadcast_ss(s->k + i), x, p);
        if (s->kp || gate)
            store_part(P, x, cols);
    }
    p = sub(load(s->v), p);
    store(s->err, p);
    store(s->e, scale(_mm256_set1_ps(s->beta), p));
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

    for (; i + WIDTH <= n; i += WIDTH)
        store(to + i, load(x + i));
    for (; i < n; i++)
        to[i] = x[i];
}

INLINE struct squares add_squares(struct squares s, struct row x)
{
    s = fw_squares_add(s, x.a);
    s = fw_squares_add(s, x.b);
    s = fw_squares_add(s, x.c);
    return fw_squares_add(s, x.d);
}

/* Heads with a pending pair, their panels whole and in place; d_k, d_v and gate may be
 * constants where it is used. The residual of a head, all latency, follows the passes of the
 * next one and hides in them. */
INLINE void token_heads(const struct fw_token *t, size_t d_k, size_t d_v, int gate)
{
    struct panel b = { t->S, d_v, d_k, true, 0, WIDTH };
    struct step s = { t->pending_k, t->k, t->v, NULL, t->pending_e, 0, 1 };
    struct squares last = fw_squares_none();
    float *pending_k = t->pending_k;

    for (size_t head = 0; head < t->heads; head++) {
        struct squares squares = fw_squares_none();

        s.beta = t->beta[head];
        if (gate)
            s.g = t->g[head];
        for (size_t j = 0; j < d_v; j += WIDTH) {
            squares = add_squares(squares, pass(&b, &s, gate));
            b.P += WIDTH;
            s.v += WIDTH;
            s.e += WIDTH;
        }
        copy(pending_k, s.k, d_k);
        pending_k += d_k;
        b.P += (d_k - 1) * d_v;
        s.kp += d_k;
        s.k += d_k;
        if (head > 0)
            t->residual[head - 1] = fw_sqrt(fw_squares_sum(last));
        last = squares;
    }
    t->residual[t->heads - 1] = fw_sqrt(fw_squares_sum(last));
}

OWN void token_32(const struct fw_token *t)
{
    token_heads(t, 32, 32, 0);
}

OWN void token_64(const struct fw_token *t)
{
    token_heads(t, 64, 64, 0);
}

OWN void token_plain(const struct fw_token *t)
{
    token_heads(t, t->d_k, t->d_v, 0);
}

OWN void token_gate(const struct fw_token *t)
{
    token_heads(t, t->d_k, t->d_v, 1);
}

OWN void token_slow(const struct fw_token *t)
{
    fw_token_heads(t, delta_v3, fw_sum_squares_v3);
}

static void token_v3(const struct fw_token *t)
{
    bool whole = t->d_v % WIDTH == 0;

    for (size_t head = 0; head < t->heads; head++)
        whole &= t->valid[head] != 0;
    if (!whole)
        token_slow(t);
    else if (t->g)
        token_gate(t);
    else if (t->d_k == 32 && t->d_v == 32)
        token_32(t);
    else if (t->d_k == 64 && t->d_v == 64)
        token_64(t);
    else
        token_plain(t);
}

const struct fw_kernels fw_kernels_v3 = { delta_v3, read_v3, fold_v3, token_v3 };
