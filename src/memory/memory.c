/* memory.c - learn, score, recall: a body's pairs cut into spans and handed to the rule.
 *
 * A span is at most 64 pairs of one head and never crosses a multiple of 4,096 pairs, where the
 * state is folded and cut (state.c). Rules see keys that are normalised and queries that are
 * normalised and scaled:
 *     key_norm l2:  x / max(|x|, 1e-12), the norm and the quotient in double, rounded once
 *     query:        query_scale x, in float
 * Nothing here depends on how a stream is cut into calls or spans. No allocation; about 160 KiB
 * of stack with the kernels'. */
#include "config.h"

#include "rule.h"

#include <string.h>

#include "fastweight/fmath.h"
#include "fastweight/num.h"

#define SCRATCH 8192 /* floats a buffer: as many rows of a span as fit, at least one */

struct rows { /* (n, d), `stride` floats apart */
    const float *x;
    size_t stride;
};

/* Pairs in one span: the buffers must hold their rows. */
static size_t span_max(const struct fw_memory *m)
{
    size_t d = m->d_k > m->d_v ? m->d_k : m->d_v, rows = SCRATCH / d;

    _Static_assert(FW_MAX_DIM <= SCRATCH, "one row must fit");
    return rows < FW_SPAN ? rows : FW_SPAN;
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
    struct fw_body body;
    size_t from; /* of the call, for residual and values */
    double *residual;
    float *values;
};

/* beta and log_g of a span, together; the sum of log_g goes into the block. */
static void gates(const struct learn *l, size_t at, size_t n, size_t head, float *beta,
                  float *log_g)
{
    const struct fw_memory *m = l->m;
    struct rows b = rows_of(m, &l->body, FW_IN_BETA, at, head);
    struct rows g = rows_of(m, &l->body, FW_IN_LOG_G, at, head);
    double *sum = doubles(l->block, m->at_log_g) + head;

    for (size_t t = 0; t < n; t++) {
        beta[t] = b.x ? b.x[t * b.stride] : m->beta;
        log_g[t] = g.x ? g.x[t * g.stride] : 0;
        *sum += (double)log_g[t];
    }
}

static void note_residuals(const struct learn *l, size_t at, size_t n, size_t head,
                           const float *err)
{
    const struct fw_memory *m = l->m;
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
    float own_k[SCRATCH], own_q[SCRATCH], err[SCRATCH], beta[FW_SPAN], log_g[FW_SPAN];
    struct rows k = rows_of(m, &l->body, FW_IN_KEYS, at, head);
    struct rows v = rows_of(m, &l->body, FW_IN_VALUES, at, head);
    struct rows q = { 0 };
    struct fw_span s = { .n = n, .beta = beta, .err = err };

    if (l->values)
        q = rows_of(m, &l->body, FW_IN_QUERIES, at, head);
    k = prepare(m, k, n, 1, own_k);
    q = prepare(m, q, n, m->query_scale, own_q);
    gates(l, at, n, head, beta, log_g);
    s.k = k.x;
    s.k_stride = k.stride;
    s.v = v.x;
    s.v_stride = v.stride;
    s.q = q.x;
    s.q_stride = q.stride;
    s.log_g = l->body.in[FW_IN_LOG_G] ? log_g : NULL;
    if (q.x) {
        s.o = l->values + ((at - l->from) * m->heads + head) * m->d_v;
        s.o_stride = m->heads * m->d_v;
    }
    m->rule->learn(m, l->block, head, &s);
    note_residuals(l, at, n, head, err);
}

void fw_memory_learn(const struct fw_memory *m, void *block, const struct fw_tensors *in,
                     size_t from, size_t n, double *residual, float *values)
{
    struct learn l = { m, block, fw_body_open(m, in), from, residual, values };
    uint64_t *counter = (uint64_t *)(void *)((char *)block + m->at_counters);

    for (size_t at = from, end = from + n, step; at < end; at += step) {
        size_t room = FW_SATURATE_EVERY - (size_t)(counter[FW_COUNT_PAIRS] % FW_SATURATE_EVERY);

        step = end - at < span_max(m) ? end - at : span_max(m);
        step = step < room ? step : room;
        for (size_t head = 0; head < m->heads; head++) {
            if (room == FW_SATURATE_EVERY)
                counter[FW_COUNT_SATURATED] += fw_memory_saturate(m, block, head);
            learn_span(&l, at, step, head);
        }
        counter[FW_COUNT_PAIRS] += step;
    }
}

void fw_memory_score(const struct fw_memory *m, const void *block, const struct fw_tensors *in,
                     size_t from, size_t n, double *residual)
{
    struct fw_body b = fw_body_open(m, in);
    float own[SCRATCH], p[SCRATCH];

    for (size_t done = 0, step; done < n; done += step) {
        step = n - done < span_max(m) ? n - done : span_max(m);
        for (size_t head = 0; head < m->heads; head++) {
            struct rows k = rows_of(m, &b, FW_IN_KEYS, from + done, head);
            struct rows v = rows_of(m, &b, FW_IN_VALUES, from + done, head);

            k = prepare(m, k, step, 1, own);
            m->rule->read(m, block, head, &(struct fw_reads){ step, k.x, k.stride, p, m->d_v });
            for (size_t t = 0; t < step; t++) {
                float *err = p + t * m->d_v;

                for (size_t j = 0; j < m->d_v; j++)
                    err[j] = v.x[t * v.stride + j] - err[j];
                residual[(done + t) * m->heads + head] = fw_sqrt(fw_sum_squares(err, m->d_v));
            }
        }
    }
}

void fw_memory_recall(const struct fw_memory *m, const void *block, const struct fw_tensors *in,
                      size_t from, size_t n, float *values)
{
    struct fw_body b = fw_body_open(m, in);
    float own[SCRATCH];

    for (size_t done = 0, step; done < n; done += step) {
        step = n - done < span_max(m) ? n - done : span_max(m);
        for (size_t head = 0; head < m->heads; head++) {
            struct rows q = rows_of(m, &b, FW_IN_QUERIES, from + done, head);
            struct fw_reads r = { .n = step, .o_stride = m->heads * m->d_v };

            q = prepare(m, q, step, m->query_scale, own);
            r.q = q.x;
            r.q_stride = q.stride;
            r.o = values + (done * m->heads + head) * m->d_v;
            m->rule->read(m, block, head, &r);
        }
    }
}
