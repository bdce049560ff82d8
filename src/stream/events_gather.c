/* events_gather.c - who expects which id: contexts, rows, copy, and their linear mix.
 *
 * The contexts are the last id x1, the pairs and triples around it, and x2, x3 alone: when one
 * id of a regular stream is foreign, the next is still known by those that skip it. With
 * w_h(c) what source h gives to c, rest_h = 1 - sum w_h, and gates g_h = exp(4 G[h][state]),
 *   P(c) = sum_h g_h/Z w_h(c) + base prior(c), Z = 1 + sum g_h,
 *   base = (1 + sum_h g_h rest_h) / Z,
 * where prior(c) is c's share of popularity. Only candidates get a P here. */
#include "config.h"

#include <string.h>

#include "fastweight/fmath.h"

#include "events.h"

#define REST_MIN  0.002F
#define MATCH_MIN 3

static void contexts(const struct events *e, const struct events_regs *regs,
                     const uint16_t *ring, struct events_read *r)
{
    const uint32_t m = e->ring_mask, p = regs->pos;
    const uint32_t x1 = ring[(p - 1) & m], x2 = ring[(p - 2) & m], x3 = ring[(p - 3) & m];
    const uint32_t hash[EVENTS_HEADS] = {
        mix(1, x1), mix(2, x1 | x2 << 16), mix(mix(3, x1 | x2 << 16), x3), mix(4, x2),
        mix(5, x3), mix(6, x2 | x3 << 16), mix(7, x1 | x3 << 16),
    };

    for (int h = 0; h < EVENTS_HEADS; h++)
        r->source[h].hash = hash[h];
}

static uint32_t visits_class(uint32_t n)
{
    return n < 3 ? n : n < 5 ? 3 : n < 10 ? 4 : n < 30 ? 5 : n < 100 ? 6 : 7;
}

static uint32_t weight_class(uint32_t w)
{
    static const uint16_t from[7] = { 6553, 13107, 22937, 32768, 42598, 52428, 62259 };
    uint32_t i = 0;

    while (i < 7 && w >= from[i])
        i++;
    return i;
}

static uint32_t length_class(uint32_t n)
{
    return n < 4    ? 0
           : n < 6  ? 1
           : n < 8  ? 2
           : n < 12 ? 3
           : n < 16 ? 4
           : n < 24 ? 5
           : n < 32 ? 6
                    : 7;
}

static uint32_t place_of(const struct events_read *r, uint32_t id)
{
    uint32_t i = id * 0x9E3779B1u >> 23;

    while (r->index[i] && r->candidate[r->index[i] - 1].id != id)
        i = (i + 1) & 511;
    return i;
}

uint32_t events_find(const struct events_read *r, uint32_t id)
{
    return r->index[place_of(r, id)] - 1u; /* 0 - 1 is EVENTS_NONE */
}

static void expect(struct events_read *r, int source, uint32_t id, float w)
{
    const uint32_t place = place_of(r, id);
    struct events_candidate *c;

    if (!r->index[place]) {
        r->index[place] = (uint8_t)++r->count;
        r->candidate[r->count - 1] = (struct events_candidate){ .id = id };
    }
    c = &r->candidate[r->index[place] - 1];
    c->set |= 1u << source;
    c->w[source] += w;
}

/* A chain goes on while its rows are full. */
static void read_chain(const struct events *e, const void *block, int h, struct events_read *r)
{
    const struct events_row *rows = at(block, e->rows);
    const uint32_t most = h == 0 ? EVENTS_CHAIN : EVENTS_CHAIN_LONG;
    struct events_source *s = &r->source[h];
    uint32_t sum = 0, largest = 0, i;

    s->rows = s->visits = 0;
    s->full = 1;
    while (s->rows < most && s->full &&
           (i = events_row_find(e, block, mix(s->hash, s->rows))) != EVENTS_NONE) {
        s->row[s->rows++] = i;
        events_row_expect(e, block, mix(s->hash, s->rows + 1));
        for (int k = 0; k < EVENTS_SLOTS; k++) {
            const uint32_t w = rows[i].slot[k].w;

            if (!w) {
                s->full = 0;
                continue;
            }
            expect(r, h, rows[i].slot[k].id, (float)w * (1.0F / 65536));
            sum += w;
            largest = w > largest ? w : largest;
        }
    }
    if (!(s->known = s->rows > 0))
        return;
    s->visits = rows[s->row[0]].visits;
    s->visits_class = visits_class(s->visits);
    s->gate = (uint32_t)h * 64 + s->visits_class * 8 + weight_class(largest);
    s->rest = 1 - (float)sum * (1.0F / 65536);
}

static void read_copy(const struct events *e, const void *block, const struct events_regs *regs,
                      const uint16_t *ring, struct events_read *r)
{
    struct events_source *s = &r->source[EVENTS_COPY];
    float w;

    s->rows = s->full = s->visits = 0;
    if (!(s->known = regs->match_len >= MATCH_MIN))
        return;
    s->visits_class = length_class(regs->match_len);
    s->gate = EVENTS_COPY * 64 + s->visits_class * 8;
    w = ((const float *)at(block, e->copy_hit))[s->visits_class];
    s->rest = 1 - w;
    expect(r, EVENTS_COPY, ring[regs->match & e->ring_mask], w);
}

static void share_gates(const struct events *e, const void *block, struct events_read *r)
{
    const float *gates = at(block, e->gates);
    float z = 1, base = 1;

    r->known = 0;
    for (int h = 0; h < EVENTS_SOURCES; h++) {
        struct events_source *s = &r->source[h];

        s->share = 0;
        if (!s->known)
            continue;
        r->known |= 1u << h;
        s->rest = s->rest < REST_MIN ? REST_MIN : s->rest;
        s->share = fw_expf(4 * gates[s->gate]);
        z += s->share;
        base += s->share * s->rest;
    }
    r->base = base / z;
    for (int h = 0; h < EVENTS_SOURCES; h++)
        r->source[h].share /= z;
}

void events_gather(const struct events *e, const void *block, const struct events_regs *regs,
                   const uint16_t *ring, struct events_read *r)
{
    const uint16_t *popularity = at(block, e->popularity);
    const struct events_unseen *u = at(block, e->unseen);
    const float unit = (e->vocab > u->seen ? 1 - u->nu : 1) / (float)(u->total ? u->total : 1);

    memset(r->index, 0, sizeof r->index);
    r->count = 0;
    contexts(e, regs, ring, r);
    for (int h = 0; h < EVENTS_HEADS; h++)
        for (uint32_t j = 0; j < 2; j++)
            events_row_expect(e, block, mix(r->source[h].hash, j));
    for (int h = 0; h < EVENTS_HEADS; h++)
        read_chain(e, block, h, r);
    read_copy(e, block, regs, ring, r);
    share_gates(e, block, r);
    for (uint32_t i = 0; i < r->count; i++) {
        struct events_candidate *c = &r->candidate[i];
        float p = r->base * (c->prior = unit * (float)popularity[c->id]);

        for (int h = 0; h < EVENTS_SOURCES; h++)
            p += r->source[h].share * c->w[h];
        c->linear = p;
    }
}
