/* attention.c - memories that keep pairs as they are: softmax attention and its evictions.
 *
 *     m(q) = sum_j w_j v_j,   w = softmax_j(q.k_j / bandwidth) over the pairs kept
 *
 * which is the kernel regression of Nadaraya and Watson (1964): nothing is fitted, a pair is
 * there or it is gone. What is kept:
 *     softmax       the last max_pairs; full, it forgets the oldest, as learning cannot fail
 *     window        the last `window`
 *     sinks         the first `sinks` and the last `window` (Xiao et al. 2309.17453)
 *     heavy_hitter  the last `recent`, and of those before the max_pairs - recent with the
 *                   largest score_j = sum over pairs t learned since j, and j itself, of
 *                   softmax_j(k_t.k_j / bandwidth) over what was kept then (H2O 2306.14048,
 *                   where queries ask; here keys do, since a read never writes)
 *
 * Places: pair t lies in ring place t mod ring. What it finds there moves behind the ring, to
 * the first free place of `old`, then (heavy_hitter) to that of the lowest score if its own is
 * higher, the first of equals; else it is gone. So places [0, min(tokens, ring + old)) are
 * taken, and the count of tokens says all. */
#include "config.h"

#include "families.h"

#include <stdlib.h>
#include <string.h>

#include "attend.h"
#include "core.h"
#include "fastweight/fmath.h"

#define MOST ((size_t)1 << 20) /* pairs of a head */

struct own {
    size_t ring, old; /* places */
    bool scored;
    float inverse;
    size_t at_k, at_v, at_score;
};

struct places { /* of one head */
    float *k, *v;
    double *score; /* NULL where nobody scores */
};

static const struct own *own_of(const struct fw_memory *m)
{
    return m->own;
}

static struct places open_head(const struct fw_memory *m, const void *block, size_t head)
{
    const struct own *own = own_of(m);
    size_t first = head * (own->ring + own->old);
    struct places p = { (float *)fw_memory_at(block, own->at_k) + first * m->rows,
                        (float *)fw_memory_at(block, own->at_v) + first * m->d_v, NULL };

    if (own->scored)
        p.score = (double *)fw_memory_at(block, own->at_score) + first;
    return p;
}

/* Places taken after so many tokens. */
static size_t taken(const struct own *own, uint64_t tokens)
{
    size_t all = own->ring + own->old;

    return tokens < all ? (size_t)tokens : all;
}

static uint64_t tokens_of(const struct fw_memory *m, const void *block)
{
    return ((const uint64_t *)fw_memory_at(block, m->at_counters))[FW_COUNT_PAIRS];
}

static struct fw_kept kept_of(const struct fw_memory *m, const struct places *p,
                              uint64_t tokens)
{
    return (struct fw_kept){ .k = p->k,
                             .v = p->v,
                             .n = taken(own_of(m), tokens),
                             .rows = m->rows,
                             .d_v = m->d_v,
                             .inverse = own_of(m)->inverse };
}

static void put(const struct fw_memory *m, struct places *p, size_t at, const float *k,
                const float *v, double score)
{
    memcpy(p->k + at * m->rows, k, m->rows * sizeof *k);
    memcpy(p->v + at * m->d_v, v, m->d_v * sizeof *v);
    if (p->score)
        p->score[at] = score;
}

/* Pair `at` of the ring gives way after t tokens. */
static void move_on(const struct fw_memory *m, struct places *p, size_t at, uint64_t t)
{
    const struct own *own = own_of(m);
    size_t to = own->ring, end = own->ring + own->old;
    double score = p->score ? p->score[at] : 0;

    if (t < end) {
        to = (size_t)t;
    } else {
        if (!p->score || own->old == 0)
            return;
        for (size_t i = to + 1; i < end; i++)
            to = p->score[i] < p->score[to] ? i : to;
        if (score <= p->score[to])
            return;
    }
    put(m, p, to, p->k + at * m->rows, p->v + at * m->d_v, score);
}

static void learn(const struct fw_memory *m, void *block, size_t head, const struct fw_span *s)
{
    const struct own *own = own_of(m);
    struct places p = open_head(m, block, head);

    for (size_t t = 0; t < s->n; t++) {
        const float *k = fw_row(s->k, t), *v = fw_row(s->v, t);
        float *err = s->err + t * m->d_v;
        struct fw_kept kept = kept_of(m, &p, s->at + t);
        size_t at = (size_t)((s->at + t) % own->ring);

        if (t >= s->err_from) {
            fw_attend(&kept, k, err, NULL);
            for (size_t j = 0; j < m->d_v; j++)
                err[j] = v[j] - err[j];
        }
        if (s->at + t >= own->ring)
            move_on(m, &p, at, s->at + t);
        put(m, &p, at, k, v, 0);
        kept.n = taken(own, s->at + t + 1);
        if (p.score)
            fw_attend_score(&kept, k, p.score);
        if (s->q.x)
            fw_attend(&kept, fw_row(s->q, t), s->o + t * s->o_stride, NULL);
    }
}

static void read_head(const struct fw_memory *m, const void *block, size_t head,
                      const struct fw_reads *r)
{
    struct places p = open_head(m, block, head);
    struct fw_kept kept = kept_of(m, &p, tokens_of(m, block));

    for (size_t t = 0; t < r->n; t++)
        fw_attend(&kept, r->q + t * r->q_stride, r->o + t * r->o_stride, NULL);
}

/* What is not taken is zero. */
static int validate(const struct fw_memory *m, const void *block, size_t head,
                    struct fw_err *err)
{
    const struct own *own = own_of(m);
    struct places p = open_head(m, block, head);
    size_t all = own->ring + own->old, n = taken(own, tokens_of(m, block)), rest = all - n;

    if (!(fw_largest(p.k, n * m->rows) <= FW_ELEMENT_MAX) ||
        !(fw_largest(p.k + n * m->rows, rest * m->rows) <= 0))
        return fw_bad_state(err, "kept_k", head, "is out of bounds");
    if (!(fw_largest(p.v, n * m->d_v) <= FW_ELEMENT_MAX) ||
        !(fw_largest(p.v + n * m->d_v, rest * m->d_v) <= 0))
        return fw_bad_state(err, "kept_v", head, "is out of bounds");
    for (size_t i = 0; p.score && i < all; i++)
        if (!(p.score[i] >= 0 && p.score[i] <= (i < n ? 0x1p64 : 0)))
            return fw_bad_state(err, "kept_score", head, "is out of bounds");
    return 0;
}

static void usage(const struct fw_memory *m, const void *block, struct fw_usage *u)
{
    const struct own *own = own_of(m);
    size_t n = taken(own, tokens_of(m, block)), each;

    each = (m->rows + m->d_v) * sizeof(float) + (own->scored ? sizeof(double) : 0);
    u->pairs += n;
    u->places += own->ring + own->old;
    u->empty_bytes += (own->ring + own->old - n) * m->heads * each;
}

/* ---- plans */

static int lay_out(struct fw_memory *m, struct own *own, struct fw_err *err)
{
    uint64_t shape[3] = { m->heads, own->ring + own->old, m->rows };

    if (fw_layout_add(&m->layout, "kept_k", FW_F32, 3, shape, &own->at_k, err) < 0)
        return -1;
    shape[2] = m->d_v;
    if (fw_layout_add(&m->layout, "kept_v", FW_F32, 3, shape, &own->at_v, err) < 0)
        return -1;
    if (!own->scored)
        return 0;
    return fw_layout_add(&m->layout, "kept_score", FW_F64, 2, shape, &own->at_score, err);
}

/* `places` sets ring and old from the configuration. */
static int plan(struct fw_memory *m, struct fw_config *c,
                int (*places)(struct fw_config *c, struct own *own, struct fw_err *err),
                struct fw_err *err)
{
    double bandwidth = fw_sqrt((double)m->rows);
    struct own *own = calloc(1, sizeof *own);

    m->own = own;
    if (!own)
        return fw_fail(err, FW_ENOMEM, "out_of_memory", "no memory for a plan");
    if (fw_config_number(c, "bandwidth", 1e-6, 1e6, &bandwidth, err) < 0 ||
        places(c, own, err) < 0)
        return -1;
    own->inverse = (float)(1 / bandwidth);
    return lay_out(m, own, err);
}

static int softmax_places(struct fw_config *c, struct own *own, struct fw_err *err)
{
    own->ring = 1024;
    return fw_config_size(c, "max_pairs", 1, MOST, &own->ring, err);
}

static int window_places(struct fw_config *c, struct own *own, struct fw_err *err)
{
    own->ring = 64;
    return fw_config_size(c, "window", 1, MOST, &own->ring, err);
}

static int sinks_places(struct fw_config *c, struct own *own, struct fw_err *err)
{
    own->ring = 60;
    own->old = 4;
    if (fw_config_size(c, "window", 1, MOST, &own->ring, err) < 0)
        return -1;
    return fw_config_size(c, "sinks", 0, MOST, &own->old, err);
}

static int heavy_places(struct fw_config *c, struct own *own, struct fw_err *err)
{
    size_t all = 64;

    if (fw_config_size(c, "max_pairs", 1, MOST, &all, err) < 0)
        return -1;
    own->ring = (all + 1) / 2;
    if (fw_config_size(c, "recent", 1, all, &own->ring, err) < 0)
        return -1;
    own->old = all - own->ring;
    own->scored = true;
    return 0;
}

static int plan_softmax(struct fw_memory *m, struct fw_config *c, struct fw_err *err)
{
    return plan(m, c, softmax_places, err);
}

static int plan_window(struct fw_memory *m, struct fw_config *c, struct fw_err *err)
{
    return plan(m, c, window_places, err);
}

static int plan_sinks(struct fw_memory *m, struct fw_config *c, struct fw_err *err)
{
    return plan(m, c, sinks_places, err);
}

static int plan_heavy(struct fw_memory *m, struct fw_config *c, struct fw_err *err)
{
    return plan(m, c, heavy_places, err);
}

#define ATTENTION(name_, retention_, horizon_, plan_)                                          \
    {                                                                                          \
        .name = (name_), .memory = "pairs", .objective = "kernel-weighted mean",               \
        .retention = (retention_), .optimiser = "none", .horizon = (horizon_), .learn = learn, \
        .read = read_head, .plan = (plan_), .validate = validate, .usage = usage               \
    }

const struct fw_rule fw_rule_softmax =
    ATTENTION("softmax", "evicts the oldest", "the last `max_pairs` pairs", plan_softmax);
const struct fw_rule fw_rule_window =
    ATTENTION("window", "evicts the oldest", "the last `window` pairs", plan_window);
const struct fw_rule fw_rule_sinks =
    ATTENTION("sinks", "evicts the oldest but the first",
              "the first `sinks` and the last `window` pairs", plan_sinks);
const struct fw_rule fw_rule_heavy_hitter = ATTENTION(
    "heavy_hitter", "evicts the least attended", "`max_pairs` pairs of the past", plan_heavy);
