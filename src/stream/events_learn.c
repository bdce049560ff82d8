/* events_learn.c - the one update of a token, from what was read before it.
 *
 * Every question asked trains its two weight rows by (outcome - p) x, and the maps it read; the
 * last question its own pair; each source's gate follows the gradient of ln P in the linear
 * mix, g/Z (P_h / P - 1), clipped at 1. Popularity is counted where it is used: an id that some
 * source expected adds 2, one that nobody expected 32, so it becomes the distribution of the
 * unexpected ("update exclusion", Moffat 1990). nu is learned on the unexpected alone. */
#include "config.h"

#include "fastweight/fmath.h"

#include "events.h"

#define ETA            0.002F
#define ETA_START      0.01F
#define ETA_WARM       3000.0F
#define ETA_GATES      0.02F
#define GATE_MAX       4.0F
#define MAP_LIMIT      255u
#define MAP_ONE        ((1u << MAP_P_BITS) - 1)
#define MAP_EDGE       (1u << (MAP_P_BITS - 13))
#define EXPECTED       2u
#define UNEXPECTED     32u
#define POPULARITY_MAX 4000000u
#define NU_WINDOW      1000u
#define COPY_ETA       0.005F
#define WORTH_ETA      0.001F
#define MATCH_LONG     32u
#define MATCH_HASHED   4
#define LINEAR_MIN     1e-30F /* an honest block is never below 1e-18, a foreign one may be 0 */
#define MATCH_KEEP     16u    /* a match that long is not given up for another */

static float clamp(float x, float low, float high)
{
    return x < low ? low : x > high ? high : x;
}

static void map_learn(const struct events *e, uint32_t *entry, int yes)
{
    const uint32_t n = *entry & MAP_N_MAX;
    const uint64_t rate = e->tables->rate[n];
    uint32_t p = *entry >> 10;

    if (yes)
        p += (uint32_t)((MAP_ONE - p) * rate >> 16);
    else
        p -= (uint32_t)(p * rate >> 16);
    p = p < MAP_EDGE ? MAP_EDGE : p > MAP_ONE - MAP_EDGE ? MAP_ONE - MAP_EDGE : p;
    *entry = p << 10 | (n + (n < MAP_LIMIT));
}

static void decisions_learn(const struct events *e, void *block, const struct events_read *r,
                            uint32_t id, float eta)
{
    float *sets = at_mut(block, e->set_weights), *ranks = at_mut(block, e->rank_weights);
    uint32_t *maps = at_mut(block, e->maps);
    struct events_counters *n = at_mut(block, e->counters);

    for (uint32_t i = 0; i < r->decided; i++) {
        const struct events_decision *d = &r->decision[i];
        const struct events_candidate *c = &r->candidate[d->candidate];
        const int yes = c->id == id;
        const float error = (float)yes - d->p, step = eta * error;
        const uint32_t place =
            (uint32_t)clamp((d->z + 12) * (EVENTS_PLACES / 24.0F), 0, EVENTS_PLACES - 1);
        float *set = sets + c->set * EVENTS_INPUTS, *rank = ranks + i * EVENTS_INPUTS;

        for (int k = 0; k < EVENTS_INPUTS; k++) {
            set[k] += step * d->x[k];
            rank[k] += step * d->x[k];
        }
        for (int h = 0; h < EVENTS_SOURCES; h++)
            if (d->map[h] != EVENTS_NONE)
                map_learn(e, maps + d->map[h], yes);
        n->decisions[place]++;
        n->miss[place] += (double)error;
    }
}

static void escape_learn(const struct events *e, void *block, const struct events_read *r,
                         int unexpected, float eta)
{
    float *w = (float *)at_mut(block, e->escape) + r->known * 2;
    const float step = eta * ((float)unexpected - r->escape_p);

    w[0] += step * r->escape_x;
    w[1] += step;
}

/* P_h / P: of an id nobody expects it is rest_h / base, whatever its popularity. */
static void gates_learn(const struct events *e, void *block, const struct events_read *r,
                        uint32_t candidate)
{
    float *gates = at_mut(block, e->gates);

    for (int h = 0; h < EVENTS_SOURCES; h++) {
        const struct events_source *s = &r->source[h];
        float better, *gate = gates + s->gate;

        if (!s->known)
            continue;
        if (candidate == EVENTS_NONE) {
            better = s->rest / r->base;
        } else {
            const struct events_candidate *c = &r->candidate[candidate];

            better = (c->w[h] + s->rest * c->prior) /
                     (c->linear > LINEAR_MIN ? c->linear : LINEAR_MIN);
        }
        better = s->share * (better - 1);
        *gate = clamp(*gate + ETA_GATES * (better > 1 ? 1 : better), -GATE_MAX, GATE_MAX);
    }
}

static void worth_learn(const struct events *e, void *block, const struct events_read *r)
{
    float *worth = at_mut(block, e->worth);

    for (int h = 0; h < EVENTS_SOURCES; h++)
        if (r->source[h].known)
            worth[h] += WORTH_ETA * (r->source[h].share - worth[h]);
}

static void copy_learn(const struct events *e, void *block, const struct events_read *r,
                       uint32_t candidate)
{
    const struct events_source *s = &r->source[EVENTS_COPY];
    float *hit = (float *)at_mut(block, e->copy_hit) + s->visits_class;
    const int yes = candidate != EVENTS_NONE && r->candidate[candidate].set >> EVENTS_COPY & 1;

    *hit += COPY_ETA * ((float)yes - *hit);
}

static void halve(const struct events *e, uint16_t *popularity, struct events_unseen *u)
{
    u->total = 0;
    for (uint32_t i = 0; i < e->vocab; i++)
        u->total += popularity[i] = (uint16_t)((popularity[i] + 1) / 2);
}

static void unseen_learn(const struct events *e, void *block, const struct events_read *r,
                         uint32_t id, int unexpected)
{
    uint16_t *popularity = at_mut(block, e->popularity);
    struct events_unseen *u = at_mut(block, e->unseen);
    const uint32_t more = unexpected ? UNEXPECTED : EXPECTED;
    const int is_new = popularity[id] == 0;

    if (unexpected) {
        u->escapes += u->escapes < NU_WINDOW;
        u->nu += ((float)is_new - u->nu) / (float)(u->escapes + 1);
        u->nu = clamp(u->nu, 1e-5F, 0.999F);
    }
    if (is_new) {
        if (r->next != EVENTS_NONE)
            u->next =
                clamp(u->next + 0.05F * ((float)(id == r->next) - u->next), 0.001F, 0.99F);
        u->last = id;
        u->seen++;
    }
    if (popularity[id] + more > UINT16_MAX || u->total + more > POPULARITY_MAX)
        halve(e, popularity, u);
    popularity[id] = (uint16_t)(popularity[id] + more);
    u->total += more;
}

void events_update(const struct events *e, void *block, struct events_read *r, uint32_t id)
{
    const struct tally *tally = at(block, e->tally);
    const float eta = ETA + ETA_START / (1 + (float)tally->tokens / ETA_WARM);
    const uint32_t candidate = events_find(r, id);
    const int unexpected = candidate == EVENTS_NONE;
    const int refused = !r->decided || r->candidate[r->rank[r->decided - 1]].id != id;

    decisions_learn(e, block, r, id, eta);
    if (r->escape_asked && refused)
        escape_learn(e, block, r, unexpected, eta);
    gates_learn(e, block, r, candidate);
    worth_learn(e, block, r);
    if (r->source[EVENTS_COPY].known)
        copy_learn(e, block, r, candidate);
    events_rows_update(e, block, r, id);
    unseen_learn(e, block, r, id, unexpected);
}

static uint32_t recent_hash(const uint16_t *ring, uint32_t mask, uint32_t pos)
{
    uint32_t h = 0;

    for (uint32_t k = 1; k <= MATCH_HASHED; k++)
        h = mix(h, ring[(pos - k) & mask]);
    return h;
}

/* Follows the match, or looks for a longer one: verified backwards, so a stale or foreign table
 * costs bits and nothing else. */
uint32_t events_advance(const struct events *e, struct events_regs *regs,
                        const struct events_history *h, uint32_t id)
{
    const uint32_t mask = e->ring_mask;
    uint32_t slot, from, len = 0;

    if (regs->match_len && h->ring[regs->match & mask] == id)
        regs->match_len += regs->match_len < UINT16_MAX;
    else
        regs->match_len = 0;
    regs->match++;
    h->ring[regs->pos & mask] = (uint16_t)id;
    regs->pos++;
    slot = recent_hash(h->ring, mask, regs->pos) & e->match_mask;
    from = h->table[slot];
    if (regs->match_len >= MATCH_KEEP || !from || regs->pos - from > mask - 2 * MATCH_LONG)
        return slot;
    while (len < MATCH_LONG &&
           h->ring[(from - 1 - len) & mask] == h->ring[(regs->pos - 1 - len) & mask])
        len++;
    if (len > regs->match_len) {
        regs->match_len = len;
        regs->match = from;
    }
    return slot;
}
