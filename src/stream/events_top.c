/* events_top.c - all ids, or the first few of them.
 *
 * The few are found without the rest: candidates have their own p; of the ids nobody expects,
 * p grows with popularity, and the never seen share one p. So the head of the full distribution
 * lies among the candidates, the k most popular others, and the k lowest never seen. Rounding
 * could only spoil that where less popular ids have the same ln p: then it says so. */
#include "config.h"

#include <stdlib.h>

#include "fastweight/fmath.h"

#include "events.h"

#define STRIDE 64

struct heap { /* the most popular so far, best first; ties keep the lower id first */
    size_t count, most;
    struct {
        uint32_t n, id;
    } item[EVENTS_TOP];
};

void events_full(const struct events *e, const void *block, const struct events_read *r,
                 double *logp)
{
    for (uint32_t id = 0; id < e->vocab; id++)
        logp[id] = fw_log(events_p(e, block, r, id));
}

static void offer(struct heap *h, uint32_t n, uint32_t id)
{
    size_t i;

    if (h->count == h->most && n <= h->item[h->count - 1].n)
        return;
    i = h->count < h->most ? h->count++ : h->count - 1;
    for (; i > 0 && h->item[i - 1].n < n; i--)
        h->item[i] = h->item[i - 1];
    h->item[i].n = n;
    h->item[i].id = id;
}

static uint16_t largest(const uint16_t *n, uint32_t count)
{
    uint16_t m = 0;

    for (uint32_t i = 0; i < count; i++)
        m = n[i] > m ? n[i] : m;
    return m;
}

static void most_popular(const struct events *e, const uint16_t *popularity,
                         const struct events_read *r, struct heap *h)
{
    for (uint32_t from = 0; from < e->vocab; from += STRIDE) {
        const uint32_t n = e->vocab - from < STRIDE ? e->vocab - from : STRIDE;
        const uint32_t floor = h->count == h->most ? h->item[h->count - 1].n : 0;

        if (largest(popularity + from, n) <= floor)
            continue;
        for (uint32_t id = from; id < from + n; id++)
            if (popularity[id] > floor && events_find(r, id) == EVENTS_NONE)
                offer(h, popularity[id], id);
    }
}

static double logp_of(const struct events *e, const void *block, const struct events_read *r,
                      uint32_t id)
{
    return fw_log(events_p(e, block, r, id));
}

/* Is an id with less than popularity n surely less likely? */
static int falls(const struct events_read *r, uint32_t n, const struct events *e)
{
    const double floor = 0x1p-16 / e->vocab, scale = r->seen_unit * (1 - 0x1p-16);

    return fw_log(scale * n + floor) - fw_log(scale * (n - 1) + floor) > 1e-12;
}

static size_t lowest_unseen(const struct events *e, const uint16_t *popularity,
                            const struct events_read *r, size_t k, uint32_t *id)
{
    size_t n = 0;

    for (uint32_t i = 0; i < e->vocab && n < k; i++)
        if (!popularity[i] && i != r->next && events_find(r, i) == EVENTS_NONE)
            id[n++] = i;
    return n;
}

static size_t add(const struct events *e, const void *block, const struct events_read *r,
                  uint32_t id, size_t n, struct ranked *all)
{
    all[n] = (struct ranked){ logp_of(e, block, r, id), id };
    return n + 1;
}

size_t events_top(const struct events *e, const void *block, const struct events_read *r,
                  size_t k, struct ranked *ret)
{
    const uint16_t *popularity = at(block, e->popularity);
    struct ranked all[EVENTS_CANDIDATES + 2 * EVENTS_TOP + 1];
    struct heap popular = { .most = k };
    uint32_t unseen[EVENTS_TOP];
    size_t n = 0, more;

    for (uint32_t i = 0; i < r->count; i++)
        n = add(e, block, r, r->candidate[i].id, n, all);
    most_popular(e, popularity, r, &popular);
    for (size_t i = 0; i < popular.count; i++)
        n = add(e, block, r, popular.item[i].id, n, all);
    if (r->next != EVENTS_NONE)
        n = add(e, block, r, r->next, n, all);
    qsort(all, n, sizeof all[0], ranked_likelier);
    if (n < k || fw_log(r->unseen_p * (1 - 0x1p-16) + 0x1p-16 / e->vocab) >= all[k - 1].logp) {
        more = lowest_unseen(e, popularity, r, k, unseen);
        for (size_t i = 0; i < more; i++)
            n = add(e, block, r, unseen[i], n, all);
        qsort(all, n, sizeof all[0], ranked_likelier);
    }
    if (popular.count == k && popular.item[k - 1].n > 1 &&
        !falls(r, popular.item[k - 1].n, e) &&
        all[k - 1].logp <= logp_of(e, block, r, popular.item[k - 1].id) + 1e-12)
        return 0;
    for (size_t i = 0; i < k; i++)
        ret[i] = all[i];
    return k;
}
