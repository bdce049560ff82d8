/* memory.c - learn, score, recall: a body's pairs cut into spans and handed to the rule.
 *
 * A span is at most 64 pairs of one head and never crosses a multiple of 4,096 pairs, where the
 * state is folded and cut (state.c). Rules see keys that are normalised and queries that are
 * normalised and scaled:
 *     key_norm l2:  x / max(|x|, 1e-12), the norm and the quotient in double, rounded once
 *     query:        query_scale x, in float
 * Nothing here depends on how a stream is cut into calls or spans. No allocation; about 160 KiB
 * of stack with the kernels', a few when little is asked for: touching many pages of stack for
 * one pair would cost more than the pair. */
#include "config.h"

#include "rule.h"

#include <string.h>

#include "fastweight/fmath.h"
#include "fastweight/num.h"

#define LARGE 8192 /* floats a buffer holds: as many rows of a span as fit, at least one */
#define SMALL 512

struct rows { /* (n, d), `stride` floats apart */
    const float *x;
    size_t stride;
};

struct scratch {
    float *k, *q, *err; /* (rows, d) each */
    size_t rows;        /* pairs in one span */
};

static struct scratch scratch_over(const struct fw_memory *m, float *buffer, size_t size)
{
    size_t d = m->d_k > m->d_v ? m->d_k : m->d_v, rows = size / d;

    _Static_assert(FW_MAX_DIM <= LARGE, "one row must fit");
    return (struct scratch){ buffer, buffer + size, buffer + 2 * size,
                             rows < FW_SPAN ? rows : FW_SPAN };
}

/* Do n rows fit the small buffers? */
static bool is_small(const struct fw_memory *m, size_t n)
{
    return m->d_k <= SMALL && m->d_v <= SMALL && n * m->d_k <= SMALL && n * m->d_v <= SMALL;
}

static double inverse_norm(const float *x, size_t d)
{
    double norm = fw_sqrt(fw_sum_squares(x, d));

    return 1 / (norm > 1e-12 ? norm : 1e-12);
}

/* Keys or queries as the rule wants them; as they are when nothing is to be done. */
static struct rows prepare(const struct fw_memory *m, struct rows r, size_t n, float scale,
                           float *own)
{
    if (!r.x || (!m->l2 && scale == 1))
        return r;
    for (size_t t = 0; t < n; t++) {
        const float *x = r.x + t * r.stride;
        float *y = own + t * m->d_k;

        memcpy(y, x, m->d_k * sizeof *y);
        if (m->l2) {
            double inverse = inverse_norm(x, m->d_k);

            for (size_t i = 0; i < m->d_k; i++)
                y[i] = (float)((double)x[i] * inverse);
        }
        for (size_t i = 0; scale != 1 && i < m->d_k; i++)
            y[i] *= scale;
    }
    return (struct rows){ own, m->d_k };
}

/* Row `at` of an input for one head; x NULL when the body has none. */
static struct rows rows_of(const struct fw_memory *m, const struct fw_body *b, enum fw_in in,
                           size_t at, size_t head)
{
    size_t inner = fw_input_inner(m, in);

    return (struct rows){ b->in[in] ? b->in[in] + (at * m->heads + head) * inner : NULL,
                          m->heads * inner };
}

static double *doubles(void *block, size_t offset)
{
    return (double *)(void *)((char *)block + offset);
}

struct learn { /* what the spans of one call share */
    const struct fw_memory *m;
    void *block;
    const struct fw_body *body;
    struct scratch own;
    size_t from, n; /* of the call */
    double *residual;
    float *values;
};

/* beta and log_g of a span, together; the sum of log_g goes into the block. */
static void gates(const struct learn *l, size_t at, size_t n, size_t head, float *beta,
                  float *log_g)
{
    const struct fw_memory *m = l->m;
    struct rows b = rows_of(m, l->body, FW_IN_BETA, at, head);
    struct rows g = rows_of(m, l->body, FW_IN_LOG_G, at, head);
    double *sum = doubles(l->block, m->at_log_g) + head;

    for (size_t t = 0; t < n; t++)
        beta[t] = b.x ? b.x[t * b.stride] : m->beta;
    for (size_t t = 0; g.x && t < n; t++) {
        log_g[t] = g.x[t * g.stride];
        *sum += (double)log_g[t];
    }
}

static void note_residuals(const struct learn *l, size_t at, size_t n, size_t head)
{
    const struct fw_memory *m = l->m;
    const float *err = l->own.err;
    double *last = doubles(l->block, m->at_residual) + head;

    for (size_t t = l->residual ? 0 : n - 1; t < n; t++) {
        *last = fw_sqrt(fw_sum_squares(err + t * m->d_v, m->d_v));
        if (l->residual)
            l->residual[(at - l->from + t) * m->heads + head] = *last;
    }
}

/* Pairs [at, at + n) of one head. */
static void learn_span(const struct learn *l, size_t at, size_t n, size_t head)
{
    const struct fw_memory *m = l->m;
    float beta[FW_SPAN], log_g[FW_SPAN];
    struct rows k = rows_of(m, l->body, FW_IN_KEYS, at, head);
    struct rows v = rows_of(m, l->body, FW_IN_VALUES, at, head);
    struct rows q = { 0 };
    struct fw_span s = { .n = n, .beta = beta, .err = l->own.err };

    if (l->values)
        q = rows_of(m, l->body, FW_IN_QUERIES, at, head);
    k = prepare(m, k, n, 1, l->own.k);
    q = prepare(m, q, n, m->query_scale, l->own.q);
    gates(l, at, n, head, beta, log_g);
    s.k = k.x;
    s.k_stride = k.stride;
    s.v = v.x;
    s.v_stride = v.stride;
    s.q = q.x;
    s.q_stride = q.stride;
    s.log_g = l->body->in[FW_IN_LOG_G] ? log_g : NULL;
    if (q.x) {
        s.o = l->values + ((at - l->from) * m->heads + head) * m->d_v;
        s.o_stride = m->heads * m->d_v;
    }
    m->rule->learn(m, l->block, head, &s);
    note_residuals(l, at, n, head);
}

static void learn_all(struct learn *l, float *buffer, size_t size)
{
    const struct fw_memory *m = l->m;
    uint64_t *counter = (uint64_t *)(void *)((char *)l->block + m->at_counters);

    l->own = scratch_over(m, buffer, size);
    for (size_t at = l->from, end = at + l->n, step; at < end; at += step) {
        size_t room = FW_SATURATE_EVERY - (size_t)(counter[FW_COUNT_PAIRS] % FW_SATURATE_EVERY);

        step = end - at < l->own.rows ? end - at : l->own.rows;
        step = step < room ? step : room;
        for (size_t head = 0; head < m->heads; head++) {
            if (room == FW_SATURATE_EVERY)
                counter[FW_COUNT_SATURATED] += fw_memory_saturate(m, l->block, head);
            learn_span(l, at, step, head);
        }
        counter[FW_COUNT_PAIRS] += step;
    }
}

__attribute__((noinline)) static void learn_large(struct learn *l)
{
    float buffer[3 * LARGE];

    learn_all(l, buffer, LARGE);
}

void fw_memory_learn(const struct fw_memory *m, void *block, const struct fw_tensors *in,
                     size_t from, size_t n, double *residual, float *values)
{
    struct fw_body body = fw_body_open(m, in);
    struct learn l = { .m = m,
                       .block = block,
                       .body = &body,
                       .from = from,
                       .n = n,
                       .residual = residual,
                       .values = values };
    float buffer[3 * SMALL];

    if (is_small(m, n))
        learn_all(&l, buffer, SMALL);
    else
        learn_large(&l);
}

/* |v - p| of n pairs of one head, p (n, d_v) becoming v - p. */
static void score_rows(const struct fw_memory *m, struct rows v, float *p, size_t n,
                       double *residual)
{
    for (size_t t = 0; t < n; t++, p += m->d_v) {
        for (size_t j = 0; j < m->d_v; j++)
            p[j] = v.x[t * v.stride + j] - p[j];
        residual[t * m->heads] = fw_sqrt(fw_sum_squares(p, m->d_v));
    }
}

void fw_memory_score(const struct fw_memory *m, const void *block, const struct fw_tensors *in,
                     size_t from, size_t n, double *residual)
{
    struct fw_body b = fw_body_open(m, in);
    float buffer[3 * LARGE];
    struct scratch own = scratch_over(m, buffer, LARGE);

    for (size_t done = 0, step; done < n; done += step) {
        step = n - done < own.rows ? n - done : own.rows;
        for (size_t head = 0; head < m->heads; head++) {
            struct rows k = rows_of(m, &b, FW_IN_KEYS, from + done, head);
            struct rows v = rows_of(m, &b, FW_IN_VALUES, from + done, head);
            struct fw_reads r = { .n = step, .o = own.err, .o_stride = m->d_v };

            k = prepare(m, k, step, 1, own.k);
            r.q = k.x;
            r.q_stride = k.stride;
            m->rule->read(m, block, head, &r);
            score_rows(m, v, own.err, step, residual + done * m->heads + head);
        }
    }
}

void fw_memory_recall(const struct fw_memory *m, const void *block, const struct fw_tensors *in,
                      size_t from, size_t n, float *values)
{
    struct fw_body b = fw_body_open(m, in);
    float buffer[3 * LARGE];
    struct scratch own = scratch_over(m, buffer, LARGE);

    for (size_t done = 0, step; done < n; done += step) {
        step = n - done < own.rows ? n - done : own.rows;
        for (size_t head = 0; head < m->heads; head++) {
            struct rows q = rows_of(m, &b, FW_IN_QUERIES, from + done, head);
            struct fw_reads r = { .n = step, .o_stride = m->heads * m->d_v };

            q = prepare(m, q, step, m->query_scale, own.q);
            r.q = q.x;
            r.q_stride = q.stride;
            r.o = values + (done * m->heads + head) * m->d_v;
            m->rule->read(m, block, head, &r);
        }
    }
}
