/* events_read.c - the probability of every id, from one reading.
 *
 * The candidates with the largest linear P are asked for in that order. Question i reads what
 * each source says of candidate c once those before it are refused, r = w_h(c) / rest of w_h,
 * through the source's map (how often was such an r right?), and the linear mix in the same
 * way: z = <S[set of c] + R[i], x>, p_i = 1 / (1 + e^-z), P(c) = p_i prod_{j<i} (1 - p_j).
 * What is left over goes, by a last question, to the other candidates in proportion to their
 * linear P, or to ids nobody expects: those seen before by popularity, those never seen evenly,
 * save that the id after the last new one is expected on its own (ids are often numbered in
 * order of appearance). Where nothing is left to go to, the question is not asked: certain.
 * Each piece is divided by its exact sum, so the sum over all ids is 1 by construction. */
#include "config.h"

#include "fastweight/fmath.h"

#include "events.h"

#define Z_MAX 11.0F
#define BIAS  0.4F

static float clamp(float x, float low, float high)
{
    return x < low ? low : x > high ? high : x;
}

static float squash(float z)
{
    return 1 / (1 + fw_expf(-z));
}

static float logit(float p)
{
    return fw_logf(p / (1 - p));
}

/* The likeliest candidates in order, ties by lower id. */
static void order(struct events_read *r)
{
    r->ranks = r->count < EVENTS_RANKS ? r->count : EVENTS_RANKS;
    for (uint32_t i = 0; i < r->count; i++)
        r->rank[i] = i;
    for (uint32_t i = 0; i < r->ranks; i++) {
        uint32_t best = i, swap;

        for (uint32_t k = i + 1; k < r->count; k++) {
            const struct events_candidate *a = &r->candidate[r->rank[k]];
            const struct events_candidate *b = &r->candidate[r->rank[best]];

            if (a->linear > b->linear || (a->linear == b->linear && a->id < b->id))
                best = k;
        }
        swap = r->rank[i];
        r->rank[i] = r->rank[best];
        r->rank[best] = swap;
    }
}

/* 16 steps of ln(r / (1 - r)) over +-9.3. */
static uint32_t ratio_class(const struct tables *t, float r)
{
    const int i = (int)(clamp(r, 0, 1) * 4095.0F);

    return (uint32_t)clamp((t->stretch[i] + 9.3F) * (16 / 18.6F), 0, 15);
}

struct left { /* what is not refused yet, of the linear mix and of each source */
    float linear, w[EVENTS_SOURCES];
};

static void inputs(const struct events *e, const void *block, const struct events_read *r,
                   const struct left *left, struct events_decision *d)
{
    const struct events_candidate *c = &r->candidate[d->candidate];
    const uint32_t *maps = at(block, e->maps);
    const struct tables *t = e->tables;

    for (int h = 0; h < EVENTS_SOURCES; h++) {
        const struct events_source *s = &r->source[h];
        uint32_t ratio;

        d->map[h] = EVENTS_NONE;
        d->x[h] = 0;
        if (!s->known)
            continue;
        ratio = c->set >> h & 1 ? ratio_class(t, c->w[h] / clamp(left->w[h], 0.002F, 1))
                                : 16 + ratio_class(t, left->w[h]);
        d->map[h] = ((uint32_t)h * EVENTS_CLASSES + s->visits_class) * 32 + ratio;
        d->x[h] = t->stretch[maps[d->map[h]] >> (32 - STRETCH_BITS)];
    }
    d->x[EVENTS_SOURCES] = logit(clamp(c->linear / left->linear, 1e-6F, 0.9999F));
    d->x[EVENTS_SOURCES + 1] = BIAS;
    for (int i = EVENTS_SOURCES + 2; i < EVENTS_INPUTS; i++)
        d->x[i] = 0;
}

/* 8 lanes, then a fixed sum. */
static float gated(const float *set, const float *rank, const float *x)
{
    float lane[8];

    for (int i = 0; i < 8; i++)
        lane[i] = (set[i] + rank[i]) * x[i] + (set[i + 8] + rank[i + 8]) * x[i + 8];
    return ((lane[0] + lane[4]) + (lane[2] + lane[6])) +
           ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}

/* Returns what is left when all questions asked were answered no. */
static double ask(const struct events *e, const void *block, int certain_end, uint32_t stop,
                  struct events_read *r)
{
    const float *sets = at(block, e->set_weights), *ranks = at(block, e->rank_weights);
    struct left left = { .linear = 1 };
    double q = 1;

    r->decided = 0;

    for (int h = 0; h < EVENTS_SOURCES; h++)
        left.w[h] = 1;
    for (uint32_t i = 0; i < r->ranks; i++) {
        struct events_decision *d = &r->decision[i];
        const struct events_candidate *c = &r->candidate[d->candidate = r->rank[i]];

        inputs(e, block, r, &left, d);
        d->z = clamp(gated(sets + c->set * EVENTS_INPUTS, ranks + i * EVENTS_INPUTS, d->x),
                     -Z_MAX, Z_MAX);
        d->p = certain_end && i + 1 == r->ranks ? 1 : squash(d->z);
        r->p[i] = q * (double)d->p;
        r->decided = i + 1;
        if (c->id == stop)
            return 0;
        q *= 1 - (double)d->p;
        left.linear = clamp(left.linear - c->linear, 1e-6F, 1);
        for (int h = 0; h < EVENTS_SOURCES; h++)
            left.w[h] -= c->w[h];
    }
    return q;
}

struct others { /* ids nobody expects */
    uint64_t popularity;
    uint32_t unseen;
};

static struct others others(const struct events *e, const void *block,
                            const struct events_read *r)
{
    const uint16_t *popularity = at(block, e->popularity);
    const struct events_unseen *u = at(block, e->unseen);
    struct others o = { u->total, e->vocab - u->seen };

    for (uint32_t i = 0; i < r->count; i++) {
        const uint32_t n = popularity[r->candidate[i].id];

        o.popularity -= n;
        o.unseen -= n == 0;
    }
    return o;
}

/* Divides what the last question gives to the unexpected. */
static void split_others(const struct events *e, const void *block, struct others o, double q,
                         struct events_read *r)
{
    const uint16_t *popularity = at(block, e->popularity);
    const struct events_unseen *u = at(block, e->unseen);
    const uint32_t next = u->last + 1;
    const double nu = !o.unseen ? 0 : !o.popularity ? 1 : (double)u->nu;
    double alone = 0;

    r->seen_unit = o.popularity ? q * (1 - nu) / (double)o.popularity : 0;
    r->next = EVENTS_NONE;
    if (next < e->vocab && !popularity[next] && events_find(r, next) == EVENTS_NONE) {
        r->next = next;
        alone = (double)u->next;
    }
    r->unseen_p = o.unseen ? q * nu * (1 - alone) / o.unseen : 0;
    r->next_p = r->unseen_p + q * nu * alone;
}

void events_read(const struct events *e, const void *block, const struct events_regs *regs,
                 const uint16_t *ring, uint32_t stop, struct events_read *r)
{
    const float *escape;
    struct others o;
    double q, tail = 0, priors = 0, none;
    int more;

    events_gather(e, block, regs, ring, r);
    order(r);
    o = others(e, block, r);
    more = o.popularity || o.unseen;
    r->escape_asked = 0;
    q = ask(e, block, r->count == r->ranks && !more, stop, r);
    for (uint32_t i = r->ranks; i < r->count; i++)
        tail += (double)r->candidate[r->rank[i]].linear;
    for (uint32_t i = 0; i < r->count; i++)
        priors += (double)r->candidate[i].prior;
    r->escape_p = more;
    if (more && r->count > r->ranks) {
        none = (double)r->base * (priors < 1 ? 1 - priors : 0);
        none = none < 1e-7 ? 1e-7 : none;
        escape = (const float *)at(block, e->escape) + r->known * 2;
        r->escape_asked = 1;
        r->escape_x = logit(clamp((float)(none / (none + tail)), 1e-5F, 0.99999F));
        r->escape_p = squash(clamp((escape[0] + 1) * r->escape_x + escape[1], -Z_MAX, Z_MAX));
    }
    r->tail_unit = tail > 0 ? q * (1 - (double)r->escape_p) / tail : 0;
    split_others(e, block, o, q * (double)r->escape_p, r);
}

static double expected(const struct events_read *r, uint32_t candidate)
{
    for (uint32_t i = 0; i < r->decided; i++)
        if (r->rank[i] == candidate)
            return r->p[i];
    return r->tail_unit * (double)r->candidate[candidate].linear;
}

double events_p(const struct events *e, const void *block, const struct events_read *r,
                uint32_t id)
{
    const uint32_t candidate = events_find(r, id);
    double p;

    if (candidate != EVENTS_NONE)
        p = expected(r, candidate);
    else if (((const uint16_t *)at(block, e->popularity))[id])
        p = r->seen_unit * ((const uint16_t *)at(block, e->popularity))[id];
    else
        p = id == r->next ? r->next_p : r->unseen_p;
    return p * (1 - 0x1p-16) + 0x1p-16 / e->vocab;
}
