/* cache.c - the second tier: the N most surprising pairs, exact, beside any rule.
 *
 *     score = beta |e|, e = v - m(k) before the update, beta 1 where the rule has none
 *     read:  m(q) + sum_j w_j v_j - m(sum_j w_j k_j)
 *     w_j = exp(-|q - k_j|^2 / 2h) / (e^-8 + sum_l exp(-|q - k_l|^2 / 2h))
 *
 * Score and softmax read: HOLA and LoLA (2505.23666), whose caches add to or replace what
 * their layers were trained on. Here nothing is trained, so what is added is what m lacks at
 * the cached keys: a kernel regression of v_j - m(k_j) in one more read of m, exact where m is
 * linear in q or one weight is 1. A cached key reads its value; e^-8 is the weight of silence:
 * a query near no cached key reads m alone. An edit at k drops what would be heard there with a
 * weight above e^-14: all pairs with |k - k_j|^2 < 44h.
 *
 * A pair within |k - k_j|^2 <= h of a cached one takes its place, for the newest value counts;
 * else it takes a free place, else that of the lowest score if its own is higher, the first of
 * equals. A score of 0 is a free place; taken places come first. Whatever learns sees the rule
 * alone: residuals, scores and S are those without a cache. */
#include "config.h"

#include "cache.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "attend.h"
#include "core.h"
#include "fastweight/fmath.h"
#include "fastweight/num.h"
#include "inside.h"

#define SCORE_MIN 0x1p-1000
#define SCORE_MAX 0x1p1000
#define HEARD     44 /* bandwidths */

struct fw_cache {
    size_t places;
    float bandwidth, inverse;
    size_t beta; /* its place in the rule's inputs, or FW_NOWHERE */
    size_t at_k, at_v, at_score;
};

struct cached { /* of one head */
    float *k, *v;
    double *score;
    size_t n; /* taken */
};

static struct cached open_head(const struct fw_memory *m, const void *block, size_t head)
{
    const struct fw_cache *c = m->cache;
    size_t first = head * c->places;
    struct cached h = { (float *)fw_memory_at(block, c->at_k) + first * m->rows,
                        (float *)fw_memory_at(block, c->at_v) + first * m->d_v,
                        (double *)fw_memory_at(block, c->at_score) + first, 0 };

    while (h.n < c->places && h.score[h.n] > 0)
        h.n++;
    return h;
}

static double distance(const struct fw_memory *m, const struct cached *h, size_t at,
                       const float *k)
{
    const float *own = h->k + at * m->rows;
    float d[FW_MAX_DIM];

    for (size_t i = 0; i < m->rows; i++)
        d[i] = k[i] - own[i];
    return fw_sum_squares(d, m->rows);
}

/* The nearest pair that is within the bandwidth, or h->n. */
static size_t find_near(const struct fw_memory *m, const struct cached *h, const float *k)
{
    double nearest = (double)m->cache->bandwidth;
    size_t at = h->n;

    for (size_t j = 0; j < h->n; j++) {
        double far = distance(m, h, j, k);

        if (far < nearest || (far == nearest && at == h->n)) {
            nearest = far;
            at = j;
        }
    }
    return at;
}

/* Where a pair of this score goes; c->places: nowhere. */
static size_t find_place(const struct fw_memory *m, const struct cached *h, const float *k,
                         double score)
{
    size_t at = find_near(m, h, k), places = m->cache->places;

    if (at < h->n)
        return at;
    if (h->n == places) {
        at = 0;
        for (size_t j = 1; j < places; j++)
            at = h->score[j] < h->score[at] ? j : at;
    }
    return h->n < places || score > h->score[at] ? at : places;
}

static void note(const struct fw_memory *m, struct cached *h, const float *k, const float *v,
                 double score)
{
    size_t at = find_place(m, h, k, score);

    if (at == m->cache->places || (at == h->n && !(score > 0)))
        return;
    memcpy(h->k + at * m->rows, k, m->rows * sizeof *k);
    memcpy(h->v + at * m->d_v, v, m->d_v * sizeof *v);
    h->score[at] = score < SCORE_MIN ? SCORE_MIN : score > SCORE_MAX ? SCORE_MAX : score;
    h->n += at == h->n;
}

void fw_cache_note(const struct fw_memory *m, void *block, size_t head, const struct fw_span *s)
{
    struct cached h = open_head(m, block, head);
    size_t beta = m->cache->beta;

    for (size_t i = 0; i < m->pairs; i++) {
        double score = fw_sqrt(fw_sum_squares(s->err + i * m->d_v, m->d_v));

        if (beta != FW_NOWHERE)
            score *= (double)fw_scalar(s, beta, m->place[FW_IN_OWN + beta].each > 1 ? i : 0);
        note(m, &h, fw_row(s->k, i), fw_row(s->v, i), score);
    }
}

/* The last pair takes the place of pair `at`. */
static void drop(const struct fw_memory *m, struct cached *h, size_t at)
{
    size_t last = --h->n;

    memmove(h->k + at * m->rows, h->k + last * m->rows, m->rows * sizeof *h->k);
    memmove(h->v + at * m->d_v, h->v + last * m->d_v, m->d_v * sizeof *h->v);
    h->score[at] = h->score[last];
    memset(h->k + last * m->rows, 0, m->rows * sizeof *h->k);
    memset(h->v + last * m->d_v, 0, m->d_v * sizeof *h->v);
    h->score[last] = 0;
}

void fw_cache_drop(const struct fw_memory *m, void *block, size_t head, const float *k)
{
    struct cached h = open_head(m, block, head);

    for (size_t j = h.n; j-- > 0;)
        if (distance(m, &h, j, k) < HEARD * (double)m->cache->bandwidth)
            drop(m, &h, j);
}

static float cut(double x)
{
    return x > (double)FLT_MAX ? FLT_MAX : x < -(double)FLT_MAX ? -FLT_MAX : (float)x;
}

void fw_cache_read(const struct fw_memory *m, const void *block, size_t head,
                   const struct fw_reads *r)
{
    struct cached h = open_head(m, block, head);
    struct fw_kept kept = { h.k, h.v, h.n, m->rows, m->d_v, m->cache->inverse, true };
    float k[FW_MAX_DIM], v[FW_MAX_DIM], p[FW_MAX_DIM];
    struct fw_reads own = { .n = 1, .q = k, .q_stride = m->rows, .o = p, .o_stride = m->d_v };

    for (size_t t = 0; h.n && t < r->n; t++) {
        float *o = r->o + t * r->o_stride;

        fw_attend(&kept, r->q + t * r->q_stride, v, k);
        m->rule->read(m, block, head, &own);
        for (size_t j = 0; j < m->d_v; j++)
            o[j] = cut((double)o[j] + ((double)v[j] - (double)p[j]));
    }
}

int fw_cache_validate(const struct fw_memory *m, const void *block, size_t head,
                      struct fw_err *err)
{
    struct cached h = open_head(m, block, head);
    size_t rest = m->cache->places - h.n;

    for (size_t j = 0; j < m->cache->places; j++)
        if (j < h.n ? !(h.score[j] >= SCORE_MIN && h.score[j] <= SCORE_MAX) : h.score[j] != 0)
            return fw_bad_state(err, "cache_score", head, "is out of bounds");
    if (!(fw_largest(h.k, h.n * m->rows) <= FW_ELEMENT_MAX) ||
        !(fw_largest(h.k + h.n * m->rows, rest * m->rows) <= 0))
        return fw_bad_state(err, "cache_k", head, "is out of bounds");
    if (!(fw_largest(h.v, h.n * m->d_v) <= FW_ELEMENT_MAX) ||
        !(fw_largest(h.v + h.n * m->d_v, rest * m->d_v) <= 0))
        return fw_bad_state(err, "cache_v", head, "is out of bounds");
    return 0;
}

void fw_cache_usage(const struct fw_memory *m, const void *block, struct fw_usage *u)
{
    size_t each = (m->rows + m->d_v) * sizeof(float) + sizeof(double), most = 0;

    for (size_t head = 0; head < m->heads; head++) {
        size_t n = open_head(m, block, head).n;

        most = n > most ? n : most;
        u->empty_bytes += (m->cache->places - n) * each;
    }
    u->pairs += most;
}

/* ---- plans */

static int lay_out(struct fw_memory *m, struct fw_cache *own, struct fw_err *err)
{
    uint64_t shape[3] = { m->heads, own->places, m->rows };

    if (fw_layout_add(&m->layout, "cache_k", FW_F32, 3, shape, &own->at_k, err) < 0)
        return -1;
    shape[2] = m->d_v;
    if (fw_layout_add(&m->layout, "cache_v", FW_F32, 3, shape, &own->at_v, err) < 0)
        return -1;
    return fw_layout_add(&m->layout, "cache_score", FW_F64, 2, shape, &own->at_score, err);
}

int fw_cache_plan(struct fw_memory *m, struct fw_config *c, struct fw_err *err)
{
    size_t places = 0;
    double bandwidth = 1.0 / 64;
    struct fw_cache *own;

    if (fw_config_size(c, "cache", 0, FW_MAX_DIM, &places, err) < 0)
        return -1;
    if (places == 0) {
        fw_config_forget(c, "cache");
        return 0;
    }
    if (m->query_scale != 1)
        return fw_fail_param(err, FW_EINVAL, "bad_value", "config.cache",
                             "a cache compares queries with keys: query_scale must be 1");
    if (fw_config_number(c, "cache_bandwidth", 1e-6, 1e6, &bandwidth, err) < 0)
        return -1;
    m->cache = own = calloc(1, sizeof *own);
    if (!own)
        return fw_fail(err, FW_ENOMEM, "out_of_memory", "no memory for a plan");
    own->places = places;
    own->bandwidth = (float)bandwidth;
    own->inverse = (float)(1 / bandwidth);
    own->beta = FW_NOWHERE;
    for (size_t i = 0; i < m->rule->input_count; i++)
        if (strcmp(m->rule->inputs[i].name, "beta") == 0)
            own->beta = i;
    return lay_out(m, own, err);
}
