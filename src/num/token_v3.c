/* token_v3.c - one pair of every head for x86-64-v3.
 *
 * What a call costs beside its passes matters here: a head of 32 x 32 takes 130 cycles. So the
 * passes are inlined, the sizes most asked for are constants, and the residual is summed from
 * registers. Heads larger than that are walked to and fro, so that a token begins where the one
 * before ended, and the rows of the next head are asked for early: together that is a fifth
 * where the state fills the second-level cache. No column's order changes by it. */
#include "config.h"

#include "token.h"

#include "norm.h"
#include "panel.h"
#include "squares.h"

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

/* One head with a pending pair, its panels whole and in place; ends behind it. Returns the
 * lanes of |err|^2. */
INLINE struct squares one_head(struct panel *b, struct step *s, size_t d_v, bool gate)
{
    struct squares sum = fw_squares_none();

    for (size_t j = 0; j < d_v; j += WIDTH) {
        sum = add_squares(sum, pass(b, s, gate));
        b->P += WIDTH;
        s->v += WIDTH;
        s->e += WIDTH;
    }
    return sum;
}

/* d_k and d_v are constants where it is used. The residual of a head, all latency, follows the
 * passes of the next one and hides in them. */
INLINE void small_heads(const struct fw_token *t, size_t d_k, size_t d_v)
{
    struct panel b = { t->S, d_v, d_k, true, 0, WIDTH };
    struct step s = { .kp = t->pending_k, .k = t->k, .v = t->v, .e = t->pending_e, .g = 1 };
    struct squares last = fw_squares_none();
    float *pending_k = t->pending_k;

    for (size_t head = 0; head < t->heads; head++) {
        struct squares sum;

        s.beta = t->beta[head];
        sum = one_head(&b, &s, d_v, false);
        copy(pending_k, s.k, d_k);
        pending_k += d_k;
        b.P += (d_k - 1) * d_v;
        s.kp += d_k;
        s.k += d_k;
        if (head > 0)
            t->residual[head - 1] = fw_sqrt(fw_squares_sum(last));
        last = sum;
    }
    t->residual[t->heads - 1] = fw_sqrt(fw_squares_sum(last));
}

INLINE double large_head(const struct fw_token *t, size_t head, size_t d_k, size_t d_v,
                         bool gate)
{
    struct panel b = { t->S + head * d_k * d_v, d_v, d_k, true, 0, WIDTH };
    struct step s = { .kp = t->pending_k + head * d_k,
                      .k = t->k + head * d_k,
                      .v = t->v + head * d_v,
                      .e = t->pending_e + head * d_v,
                      .beta = t->beta[head],
                      .g = gate ? t->g[head] : 1 };
    struct squares sum = one_head(&b, &s, d_v, gate);

    copy(t->pending_k + head * d_k, s.k, d_k);
    return fw_sqrt(fw_squares_sum(sum));
}

/* d_k, d_v and gate may be constants where it is used. */
INLINE void large_heads(const struct fw_token *t, size_t d_k, size_t d_v, bool gate)
{
    size_t last = t->heads - 1;

    for (size_t i = 0; i <= last; i++) {
        size_t head = t->turn & 1 ? last - i : i, next = t->turn & 1 ? head - 1 : head + 1;

        if (i < last) {
            expect(t->k + next * d_k, d_k);
            expect(t->v + next * d_v, d_v);
        }
        t->residual[head] = large_head(t, head, d_k, d_v, gate);
    }
}

OWN void heads_of_32(const struct fw_token *t)
{
    small_heads(t, 32, 32);
}

OWN void heads_of_64(const struct fw_token *t)
{
    large_heads(t, 64, 64, false);
}

OWN void heads_plain(const struct fw_token *t)
{
    large_heads(t, t->d_k, t->d_v, false);
}

OWN void heads_gated(const struct fw_token *t)
{
    large_heads(t, t->d_k, t->d_v, true);
}

OWN void heads_slowly(const struct fw_token *t)
{
    fw_token_heads(t, fw_kernels_v3.delta, fw_sum_squares_v3);
}

void fw_token_v3(const struct fw_token *t)
{
    bool whole = t->d_v % WIDTH == 0;

    for (size_t head = 0; head < t->heads; head++)
        whole &= t->valid[head] != 0;
    if (!whole)
        heads_slowly(t);
    else if (t->g)
        heads_gated(t);
    else if (t->d_k == 32 && t->d_v == 32)
        heads_of_32(t);
    else if (t->d_k == 64 && t->d_v == 64)
        heads_of_64(t);
    else
        heads_plain(t);
}
