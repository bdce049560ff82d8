/* events_row.c - rows of candidates: where they lie, how they learn, who dies for whom.
 *
 * A context's candidates fill a chain of rows: row j lies in the line that hash(context, j)
 * names, so a context takes only as many rows as it has successors. The rule of every visited
 * row is w += eta (onehot(id) - w), eta = max(1 / (visits + 1.5), 1/200): a mean of the visits
 * at first, an exponential window later. w has 16 bits and is rounded by chance, which keeps
 * small decrements true on average. Rows are inserted only after all rows of the token have
 * learned, because an insertion may take the place of one of them. */
#include "config.h"

#include <string.h>

#include "events.h"

#define ETA_MIN     328u /* 65536 / 200 */
#define VISITS_MAX  60000u
#define AGE_CHANCE  2 /* one replacement in two ages the line */
#define WORTH_SCALE 2.0F
#define WORTH_FLOOR (1.0F / 64)
#define PARENT_MIN  2 /* visits of the shorter context before a longer one gets a row */

static const int parent[EVENTS_HEADS] = { -1, 0, 1, -1, -1, 3, 0 };

static uint16_t check_of(uint32_t hash)
{
    uint16_t check = (uint16_t)(hash * 0x9E3779B1u >> 16);

    return check ? check : 1; /* 0 marks a free row */
}

static uint32_t line_of(const struct events *e, uint32_t hash)
{
    return (uint32_t)((uint64_t)hash * e->lines >> 32) * EVENTS_LINE;
}

void events_row_expect(const struct events *e, const void *block, uint32_t hash)
{
    __builtin_prefetch((const struct events_row *)at(block, e->rows) + line_of(e, hash));
}

uint32_t events_row_find(const struct events *e, const void *block, uint32_t hash)
{
    const struct events_row *row = at(block, e->rows);
    const uint32_t first = line_of(e, hash);
    const uint16_t check = check_of(hash);

    for (uint32_t i = first; i < first + EVENTS_LINE; i++)
        if (row[i].check == check)
            return i;
    return EVENTS_NONE;
}

static uint32_t draw(struct events_unseen *u)
{
    u->rng = u->rng * 1664525u + 1013904223u;
    return u->rng >> 16;
}

static uint32_t eta_of(const struct events *e, uint32_t visits)
{
    uint32_t eta = visits < MAP_N_MAX ? e->tables->rate[visits] : 0;

    return eta < ETA_MIN ? ETA_MIN : eta;
}

/* Over the rows of others a head inserts as often as the linear mix heeds it. */
static int may_replace(const struct events *e, const void *block, int head, uint32_t chance)
{
    const float worth = ((const float *)at(block, e->worth))[head];

    return (float)chance < 65536 * (WORTH_SCALE * worth + WORTH_FLOOR);
}

static void insert(const struct events *e, void *block, int head, uint32_t hash,
                   uint32_t visits, uint32_t id, uint32_t eta)
{
    struct events_row *line = (struct events_row *)at_mut(block, e->rows) + line_of(e, hash);
    struct events_row *victim = line;
    struct events_counters *n = at_mut(block, e->counters);

    for (int i = 1; i < EVENTS_LINE; i++)
        if (line[i].visits < victim->visits)
            victim = line + i;
    if (victim->check) {
        if (!may_replace(e, block, head, draw(at_mut(block, e->unseen))))
            return;
        n->replaced[head]++;
        if (draw(at_mut(block, e->unseen)) % AGE_CHANCE == 0)
            for (int i = 0; i < EVENTS_LINE; i++)
                if (line[i].visits > 1)
                    line[i].visits -= (uint16_t)((line[i].visits + 7) / 8);
    } else {
        n->used[head]++;
    }
    memset(victim, 0, sizeof *victim);
    victim->check = check_of(hash);
    victim->visits = (uint16_t)(visits > UINT16_MAX ? UINT16_MAX : visits); /* never 0 */
    victim->slot[0].id = (uint16_t)id;
    victim->slot[0].w = (uint16_t)(eta > 65535 ? 65535 : eta);
}

static void reward(struct events_row *row, int slot, uint32_t id, uint32_t eta)
{
    uint32_t w = row->slot[slot].w;

    if (row->slot[slot].id != id)
        w = 0;
    w += eta;
    row->slot[slot].id = (uint16_t)id;
    row->slot[slot].w = (uint16_t)(w > 65535 ? 65535 : w);
}

/* Learns in the rows a context has; 1 when the id found no place and wants a further row. */
static int chain_update(const struct events *e, void *block, const struct events_source *s,
                        uint32_t id, uint32_t eta, int may_grow)
{
    struct events_unseen *u = at_mut(block, e->unseen);
    struct events_row *rows = at_mut(block, e->rows), *found = NULL, *least = NULL;
    int found_slot = 0, least_slot = 0;

    for (uint32_t j = 0; j < s->rows; j++) {
        struct events_row *row = rows + s->row[j];

        for (int k = 0; k < EVENTS_SLOTS; k++) {
            uint32_t w = row->slot[k].w;
            const int mine = w && row->slot[k].id == id;

            if (w)
                row->slot[k].w = (uint16_t)(w -= (w * eta + draw(u)) >> 16); /* eta < 2/3 */
            if (mine && !found) {
                found = row;
                found_slot = k;
            }
            if (!least || w < least->slot[least_slot].w) {
                least = row;
                least_slot = k;
            }
        }
        row->visits = (uint16_t)(s->visits < VISITS_MAX ? s->visits + 1 : VISITS_MAX);
    }
    if (!found && may_grow && least->slot[least_slot].w > 0)
        return 1;
    if (found)
        reward(found, found_slot, id, eta);
    else
        reward(least, least_slot, id, eta);
    return 0;
}

void events_rows_update(const struct events *e, void *block, const struct events_read *r,
                        uint32_t id)
{
    int grow[EVENTS_HEADS];

    for (int h = 0; h < EVENTS_HEADS; h++) {
        const struct events_source *s = &r->source[h];
        const uint32_t most = h == 0 ? EVENTS_CHAIN : EVENTS_CHAIN_LONG;
        const int p = parent[h];

        grow[h] = s->rows == 0 && (p < 0 || r->source[p].visits >= PARENT_MIN);
        if (s->rows)
            grow[h] =
                chain_update(e, block, s, id, eta_of(e, s->visits), s->full && s->rows < most);
    }
    for (int h = 0; h < EVENTS_HEADS; h++) {
        const struct events_source *s = &r->source[h];

        if (grow[h])
            insert(e, block, h, mix(s->hash, s->rows), s->rows ? s->visits + 1 : 1, id,
                   eta_of(e, s->visits));
    }
}
