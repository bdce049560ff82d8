/* kernel_v3.c - the kernels for x86-64-v3: panels of 32 columns, four 8-lane vectors abreast.
 *
 * Four chains of fma hide their own latency; a row of a panel is two cache lines, loaded and
 * stored once per pair. Columns do not see each other (p_j, e_j and o_j need column j alone),
 * so two panels at most run through all pairs of the call before the next ones start and stay
 * in the first-level cache; two, because the second works while the first waits for the end of
 * its sums. Panels are first copied together when that pays (several pairs and rows that lie
 * far apart, which collide there, or a last panel narrower than 32, padded with zeros). Same
 * bits as kernel_base.c: the same operations in the same order for each column. */
#include "config.h"

#include "fastweight/kernel.h"

#include <string.h>

#include "panel.h"
#include "token.h"

#define COPY_ROWS 512 /* taller panels stay where they are: 64 KiB of stack */
#define COPY_N    4   /* so many pairs repay the copy */
#define PAIR_ROWS 128 /* two panels so tall fit the first-level cache */

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
    store(s->e, scale(_mm256_set1_ps(s->beta), s->blind ? load(s->v) : p));
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

/* Pair t at one panel; kp the pending key or NULL, e (32,) of the panel's columns. */
INLINE void pair_at(const struct fw_head *h, const struct fw_pairs *p, size_t t,
                    const struct panel *b, const float *kp, float *e)
{
    float v[WIDTH], err[WIDTH]; /* used when narrow */
    bool narrow = b->w < WIDTH;
    const float *v_t = p->v + t * p->v_stride + b->j;
    float *err_t = p->err + t * h->d_v + b->j;
    struct step s = {
        kp,         p->k + t * p->k_stride, narrow ? v : v_t, narrow ? err : err_t, e,
        p->beta[t], p->g ? p->g[t] : 1,     p->blind
    };

    if (t + 1 < p->n)
        expect(v_t + p->v_stride, b->w);
    if (narrow)
        widen(v, v_t, b->w);
    if (!kp || !b->full)
        sweep_rest(b, &s, p->g != NULL);
    else if (p->g)
        sweep_gate(b, &s);
    else
        sweep_fold(b, &s);
    if (narrow)
        memcpy(err_t, err, b->w * sizeof *err);
    if (p->q)
        read_row(b, s.k, e, p->q + t * p->q_stride, p->o + t * p->o_stride + b->j);
}

/* Pairs from the second on at one whole panel, dense, without gates and reads: there is nothing
 * else to do while a sum ends, so little may be done between two passes. */
OWN void run_dense(const struct fw_head *h, const struct fw_pairs *p, const struct panel *b)
{
    const struct panel dense = { b->P, WIDTH, b->rows, true, b->j, WIDTH };
    struct step s = {
        .kp = p->k, .k = p->k, .v = p->v + b->j, .e = h->e + b->j, .g = 1, .blind = p->blind
    };
    float *err = p->err + b->j;

    for (size_t t = 1; t < p->n; t++) {
        s.k += p->k_stride;
        s.v += p->v_stride;
        s.beta = p->beta[t];
        err += h->d_v;
        if (t + 1 < p->n) {
            expect(s.k + p->k_stride, h->d_k);
            expect(s.v + p->v_stride, WIDTH);
        }
        store(err, pass(&dense, &s, 0));
        s.kp = s.k;
    }
}

/* All pairs at one or two neighbouring panels: of two, neither waits for the other's sums. Only
 * the last may be narrow. */
static void delta_panels(struct fw_head *h, const struct fw_pairs *p, const struct panel *b,
                         size_t count)
{
    const struct panel *last = b + count - 1;
    float e[WIDTH], *head_e = h->e + last->j, *last_e = last->w < WIDTH ? e : head_e;
    const float *kp = h->valid ? h->k : NULL, *k = p->k;
    bool dense = count == 1 && last->w == WIDTH && last->ld == WIDTH && !p->g && !p->q;

    if (last_e == e)
        widen(e, head_e, last->w);
    for (size_t t = 0; t < p->n; t++, kp = k, k += p->k_stride) {
        if (t + 1 < p->n)
            expect(k + p->k_stride, h->d_k);
        if (count > 1)
            pair_at(h, p, t, b, kp, h->e + b->j);
        pair_at(h, p, t, last, kp, last_e);
        if (dense) {
            run_dense(h, p, last);
            break;
        }
    }
    if (last_e == e)
        memcpy(head_e, e, last->w * sizeof *e);
}

static struct panel panel_at(const struct fw_head *h, size_t j)
{
    size_t w = h->d_v - j < WIDTH ? h->d_v - j : WIDTH;

    return (struct panel){ h->S + j, h->d_v, h->d_k, w == WIDTH, j, w };
}

/* Of `count` neighbouring panels, the last given. */
static bool copy_pays(const struct fw_head *h, const struct panel *last, size_t count, size_t n)
{
    bool scattered = h->d_v > count * WIDTH;

    return h->d_k <= COPY_ROWS && (!last->full || (n >= COPY_N && scattered));
}

/* The panel together in own (rows, 32), zeros beside a narrow one. */
static struct panel gather(const struct panel *b, float *own)
{
    for (size_t i = 0; i < b->rows; i++)
        store(own + i * WIDTH, load_part(b->P + i * b->ld, b->w));
    return (struct panel){ own, WIDTH, b->rows, true, b->j, b->w };
}

OWN void delta_copied(struct fw_head *h, const struct fw_pairs *p, const struct panel *b,
                      size_t count)
{
    float own[COPY_ROWS * WIDTH] __attribute__((aligned(64)));
    struct panel c[2];

    for (size_t i = 0; i < count; i++)
        c[i] = gather(b + i, own + i * b->rows * WIDTH);
    delta_panels(h, p, c, count);
    for (size_t i = 0; i < count; i++)
        for (size_t r = 0; r < b->rows; r++)
            store_part(b[i].P + r * b->ld, load(c[i].P + r * WIDTH), b[i].w);
}

static void delta_v3(struct fw_head *h, const struct fw_pairs *p)
{
    for (size_t j = 0, count = 1; j < h->d_v; j += count * WIDTH) {
        struct panel b[2] = { panel_at(h, j) };

        count = h->d_k <= PAIR_ROWS && j + WIDTH < h->d_v ? 2 : 1;
        if (count > 1)
            b[1] = panel_at(h, j + WIDTH);
        if (copy_pays(h, b + count - 1, count, p->n))
            delta_copied(h, p, b, count);
        else
            delta_panels(h, p, b, count);
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

/* Two reads of a dense panel side by side: eight chains hide the latency of fma, four do not.
 */
OWN void read_two(const struct panel *b, const float *q, size_t q_stride, float *o,
                  size_t o_stride)
{
    struct row x = zero(), y = x;

    for (size_t i = 0; i < b->rows; i++) {
        struct row s = load(b->P + i * WIDTH);

        x = fma_row(_mm256_broadcast_ss(q + i), s, x);
        y = fma_row(_mm256_broadcast_ss(q + q_stride + i), s, y);
    }
    store_part(o, x, b->w);
    store_part(o + o_stride, y, b->w);
}

/* The pending pair is folded into the copy, once for all reads. */
OWN void read_copied(const struct fw_head *h, const struct fw_reads *r, const struct panel *b)
{
    float own[COPY_ROWS * WIDTH] __attribute__((aligned(64)));
    struct panel c = gather(b, own);
    struct row e = h->valid ? load_part(h->e + b->j, b->w) : zero();
    size_t t = 0;

    for (size_t i = 0; h->valid && i < b->rows; i++)
        store(own + i * WIDTH,
              fma_row(_mm256_broadcast_ss(h->k + i), e, load(own + i * WIDTH)));
    for (; t + 2 <= r->n; t += 2)
        read_two(&c, r->q + t * r->q_stride, r->q_stride, r->o + t * r->o_stride + b->j,
                 r->o_stride);
    if (t < r->n)
        read_row(&c, NULL, NULL, r->q + t * r->q_stride, r->o + t * r->o_stride + b->j);
}

static void read_v3(const struct fw_head *h, const struct fw_reads *r)
{
    for (size_t j = 0; j < h->d_v; j += WIDTH) {
        struct panel b = panel_at(h, j);

        if (h->d_k <= COPY_ROWS && (!b.full || r->n >= COPY_N))
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

const struct fw_kernels fw_kernels_v3 = { delta_v3, read_v3, fold_v3, fw_token_v3 };
