/* memory.c - learn, score, recall: a body's pairs cut into spans and handed to the rule.
 *
 * A span is at most 64 pairs of one head and never crosses a multiple of 4,096 pairs, where the
 * state is folded and cut (state.c). Rules see keys that are normalised and mapped, queries
 * that are so too and then scaled:
 *
 *     key_norm l2:  x / max(|x|, 1e-12), the norm and the quotient in double, rounded once
 *     feature_map:  phi(x), feature.c
 *     query:        query_scale phi(x), in float
 *
 * Nothing here depends on how a stream is cut into calls or spans. No allocation; about
 * 160 KiB of stack with the kernels', a few when little is asked for: touching many pages of
 * stack for one pair would cost more than the pair. */
#include "config.h"

#include "inside.h"

#include <string.h>

#include "cache.h"
#include "covariance.h"
#include "fastweight/fmath.h"
#include "fastweight/num.h"
#include "probe.h"

#define SMALL 512 /* floats of a buffer when little is asked for; else FW_BUFFER */

struct scratch {
    float *k, *q, *err; /* (rows, d) each */
};

static size_t widest(const struct fw_memory *m)
{
    return m->rows > m->d_v ? m->rows : m->d_v;
}

static struct scratch scratch_over(float *buffer, size_t size)
{
    _Static_assert(FW_MAX_DIM <= FW_BUFFER, "one row must fit");
    return (struct scratch){ buffer, buffer + size, buffer + 2 * size };
}

/* Do n rows fit the small buffers? */
static bool is_small(const struct fw_memory *m, size_t n)
{
    return n <= SMALL && n * m->pairs * widest(m) <= SMALL;
}

/* Keys or queries as the rule wants them; as they are when nothing is to be done. */
static struct fw_rows prepare(const struct fw_memory *m, struct fw_rows r, size_t n,
                              float scale, float *own)
{
    bool plain = fw_map_is_identity(m);

    if (!r.x || (plain && !m->l2 && scale == 1))
        return r;
    for (size_t t = 0; t < n; t++) {
        const float *x = r.x + t * r.stride;
        float *y = own + t * m->rows;

        if (!plain)
            fw_map_key(m, x, y);
        else if (m->l2)
            fw_l2(x, m->d_k, y);
        else
            memcpy(y, x, m->d_k * sizeof *y);
        for (size_t i = 0; scale != 1 && i < m->rows; i++)
            y[i] *= scale;
    }
    return (struct fw_rows){ own, m->rows };
}

/* An input from token `at` on, of one head; x NULL when the body has none. */
static struct fw_rows rows_of(const struct fw_memory *m, const struct fw_body *b, size_t in,
                              size_t at, size_t head)
{
    const struct fw_place *p = &m->place[in];

    return (struct fw_rows){ b->in[in] ? b->in[in] + (at * p->each * m->heads + head) * p->inner
                                       : NULL,
                             m->heads * p->inner };
}

struct learn { /* what the spans of one call share */
    const struct fw_memory *m;
    void *block;
    const struct fw_body *body;
    struct scratch own;
    size_t from;         /* the token whose residuals and values come first */
    size_t head, behind; /* the heads [head, behind) */
    uint64_t learned;    /* tokens before the span */
    double *residual;
    float *values;
};

/* One number per token: over its pairs, the root of the sum of squares. */
static void note_residuals(const struct learn *l, size_t at, size_t n, size_t head)
{
    const struct fw_memory *m = l->m;
    size_t width = m->pairs * m->d_v;
    const float *err = l->own.err;
    double *last = (double *)fw_memory_at(l->block, m->at_residual) + head;

    for (size_t t = l->residual ? 0 : n - 1; t < n; t++) {
        *last = fw_sqrt(fw_sum_squares(err + t * width, width));
        if (l->residual)
            l->residual[(at - l->from + t) * m->heads + head] = *last;
    }
}

static void note_last(const struct learn *l, const struct fw_span *s, size_t head)
{
    const struct fw_memory *m = l->m;
    size_t t = s->n * m->pairs - 1;

    if (m->at_last_k == FW_NOWHERE)
        return;
    memcpy((float *)fw_memory_at(l->block, m->at_last_k) + head * m->rows,
           s->k.x + t * s->k.stride, m->rows * sizeof(float));
    memcpy((float *)fw_memory_at(l->block, m->at_last_v) + head * m->d_v,
           s->v.x + t * s->v.stride, m->d_v * sizeof(float));
}

/* The rule's own inputs of a span, absent ones from their fallbacks. */
static void own_inputs(const struct learn *l, size_t at, size_t head, struct fw_rows *in)
{
    const struct fw_memory *m = l->m;

    for (size_t i = 0; i < m->rule->input_count; i++) {
        in[i] = rows_of(m, l->body, FW_IN_OWN + i, at, head);
        if (!in[i].x)
            in[i] = (struct fw_rows){ m->fallback + i * m->widest, 0 };
    }
}

/* Tokens [at, at + n) of one head. The span is not zeroed first: it has room for the inputs of
 * any rule, and clearing that would cost a fifth of a small pair. */
static void learn_span(const struct learn *l, size_t at, size_t n, size_t head)
{
    const struct fw_memory *m = l->m;
    struct fw_span s;

    s.n = n;
    s.at = l->learned;
    s.k = prepare(m, rows_of(m, l->body, FW_IN_KEYS, at, head), n * m->pairs, 1, l->own.k);
    s.v = rows_of(m, l->body, FW_IN_VALUES, at, head);
    s.q = (struct fw_rows){ NULL, 0 };
    own_inputs(l, at, head, s.in);
    s.err = l->own.err;
    s.o = NULL;
    s.o_stride = 0;
    if (l->values && l->body->in[FW_IN_QUERIES]) {
        s.q = prepare(m, rows_of(m, l->body, FW_IN_QUERIES, at, head), n, m->query_scale,
                      l->own.q);
        s.o = l->values + ((at - l->from) * m->heads + head) * m->d_v;
        s.o_stride = m->heads * m->d_v;
    }
    s.err_from = l->residual ? 0 : n - 1;
    m->rule->learn(m, l->block, head, &s);
    if (m->cache)
        fw_cache_note(m, l->block, head, &s);
    if (m->at_covariance != FW_NOWHERE)
        fw_covariance_note(m, l->block, head, &s);
    if (m->probes)
        fw_probe_note(m, l->block, head, &s);
    note_residuals(l, at, n, head);
    note_last(l, &s, head);
}

/* What the cache adds to the reads of token `at`, once all of it is learned. */
__attribute__((noinline)) static void add_cached(const struct learn *l, size_t at)
{
    const struct fw_memory *m = l->m;
    float own[FW_MAX_DIM];

    for (size_t head = 0; head < m->heads; head++) {
        struct fw_rows q = rows_of(m, l->body, FW_IN_QUERIES, at, head);
        struct fw_reads r = { .n = 1 };

        q = prepare(m, q, 1, m->query_scale, own);
        r.q = q.x;
        r.o = l->values + ((at - l->from) * m->heads + head) * m->d_v;
        fw_cache_read(m, l->block, head, &r);
    }
}

/* Tokens [at, at + n); writes nothing but its heads' own. How many elements it cut. */
static uint64_t learn_over(struct learn *l, size_t at, size_t n, float *buffer, size_t size)
{
    const struct fw_memory *m = l->m;
    const uint64_t *counter = fw_memory_at(l->block, m->at_counters);
    size_t every = FW_SATURATE_EVERY / m->pairs;
    uint64_t cut = 0;

    l->learned = counter[FW_COUNT_PAIRS];
    l->own = scratch_over(buffer, size);
    for (size_t end = at + n, step; at < end; at += step) {
        size_t room = every - (size_t)(l->learned % every);

        step = end - at < m->span ? end - at : m->span;
        step = step < room ? step : room;
        for (size_t head = l->head; head < l->behind; head++) {
            if (room == every)
                cut += fw_memory_saturate(m, l->block, head);
            learn_span(l, at, step, head);
        }
        l->learned += step;
    }
    return cut;
}

__attribute__((noinline)) static uint64_t learn_large(struct learn *l, size_t at, size_t n)
{
    float buffer[3 * FW_BUFFER];

    return learn_over(l, at, n, buffer, FW_BUFFER);
}

__attribute__((noinline)) static uint64_t learn_small(struct learn *l, size_t at, size_t n)
{
    float buffer[3 * SMALL];

    return learn_over(l, at, n, buffer, SMALL);
}

static uint64_t learn_tokens(struct learn *l, size_t at, size_t n)
{
    return is_small(l->m, n) ? learn_small(l, at, n) : learn_large(l, at, n);
}

/* One token of all heads at once: what is done per head above would take longer than the rule
 * itself. The counter goes first, so that the rule is called last and nothing is kept for after
 * it. */
static void learn_direct(const struct fw_memory *m, void *block, const struct fw_tensors *in,
                         size_t at, double *residual)
{
    double *last = fw_memory_at(block, m->at_residual);

    ((uint64_t *)fw_memory_at(block, m->at_counters))[FW_COUNT_PAIRS]++;
    if (!residual) {
        m->rule->learn_token(m, block, in, at, last);
        return;
    }
    m->rule->learn_token(m, block, in, at, last);
    memcpy(residual, last, m->heads * sizeof *last);
}

/* Is it time to fold and cut? */
static bool is_due(const struct fw_memory *m, const void *block)
{
    const uint64_t *counter = fw_memory_at(block, m->at_counters);

    return counter[FW_COUNT_PAIRS] % FW_SATURATE_EVERY == 0;
}

__attribute__((noinline)) static void learn_spans(const struct fw_memory *m, void *block,
                                                  const struct fw_tensors *in, size_t from,
                                                  size_t n, double *residual, float *values)
{
    struct fw_body body;
    struct learn l = { .m = m,
                       .block = block,
                       .body = &body,
                       .from = from,
                       .behind = m->heads,
                       .residual = residual,
                       .values = values };
    bool cached;

    fw_body_open(m, in, &body);
    cached = m->cache && values && body.in[FW_IN_QUERIES];
    for (size_t at = from, step = cached ? 1 : n; at < from + n; at += step) {
        fw_memory_learned(m, block, step, learn_tokens(&l, at, step));
        if (cached)
            add_cached(&l, at);
    }
}

void fw_memory_learn(const struct fw_memory *m, void *block, const struct fw_tensors *in,
                     size_t from, size_t n, double *residual, float *values)
{
    if (n == 1 && m->direct && !values && !is_due(m, block))
        learn_direct(m, block, in, from, residual);
    else
        learn_spans(m, block, in, from, n, residual, values);
}

uint64_t fw_memory_learn_heads(const struct fw_memory *m, void *block,
                               const struct fw_memory_learning *what, size_t head,
                               size_t behind)
{
    struct fw_body body;
    struct learn l = { .m = m,
                       .block = block,
                       .body = &body,
                       .from = what->from,
                       .head = head,
                       .behind = behind,
                       .residual = what->residual,
                       .values = what->values };

    fw_body_open(m, what->in, &body);
    return learn_tokens(&l, what->from, what->n);
}

void fw_memory_learned(const struct fw_memory *m, void *block, size_t n, uint64_t cut)
{
    uint64_t *counter = fw_memory_at(block, m->at_counters);

    counter[FW_COUNT_PAIRS] += n;
    counter[FW_COUNT_SATURATED] += cut;
}

/* |v - p| of n tokens of one head, p (n, pairs, d_v) becoming v - p. */
static void score_rows(const struct fw_memory *m, struct fw_rows v, float *p, size_t n,
                       double *residual)
{
    size_t width = m->pairs * m->d_v;

    for (size_t t = 0; t < n * m->pairs; t++)
        for (size_t j = 0; j < m->d_v; j++)
            p[t * m->d_v + j] = v.x[t * v.stride + j] - p[t * m->d_v + j];
    for (size_t t = 0; t < n; t++)
        residual[t * m->heads] = fw_sqrt(fw_sum_squares(p + t * width, width));
}

void fw_memory_score(const struct fw_memory *m, const void *block, const struct fw_tensors *in,
                     size_t from, size_t n, double *residual)
{
    struct fw_body b;
    float buffer[3 * FW_BUFFER];
    struct scratch own = scratch_over(buffer, FW_BUFFER);

    fw_body_open(m, in, &b);
    for (size_t done = 0, step; done < n; done += step) {
        step = n - done < m->span ? n - done : m->span;
        for (size_t head = 0; head < m->heads; head++) {
            struct fw_rows k = rows_of(m, &b, FW_IN_KEYS, from + done, head);
            struct fw_rows v = rows_of(m, &b, FW_IN_VALUES, from + done, head);
            struct fw_reads r = { .n = step * m->pairs, .o = own.err, .o_stride = m->d_v };

            k = prepare(m, k, step * m->pairs, 1, own.k);
            r.q = k.x;
            r.q_stride = k.stride;
            m->rule->read(m, block, head, &r);
            score_rows(m, v, own.err, step, residual + done * m->heads + head);
        }
    }
}

/* Queries are one per token, whatever the pairs. */
void fw_memory_recall(const struct fw_memory *m, const void *block, const struct fw_tensors *in,
                      size_t from, size_t n, float *values)
{
    struct fw_body b;
    float buffer[3 * FW_BUFFER];
    struct scratch own = scratch_over(buffer, FW_BUFFER);

    fw_body_open(m, in, &b);
    for (size_t done = 0, step; done < n; done += step) {
        step = n - done < m->span ? n - done : m->span;
        for (size_t head = 0; head < m->heads; head++) {
            struct fw_rows q = rows_of(m, &b, FW_IN_QUERIES, from + done, head);
            struct fw_reads r = { .n = step, .o_stride = m->heads * m->d_v };

            q = prepare(m, q, step, m->query_scale, own.q);
            r.q = q.x;
            r.q_stride = q.stride;
            r.o = values + (done * m->heads + head) * m->d_v;
            m->rule->read(m, block, head, &r);
            if (m->cache)
                fw_cache_read(m, block, head, &r);
        }
    }
}
