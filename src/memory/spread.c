/* spread.c - a learn whose heads are shared out among the workers of a pool.
 *
 * Heads never touch each other's bytes, so who learns which of them when changes no bit; what
 * belongs to all, the counters, is written when the last one is through. A part is some heads
 * that lie together. It is wide enough for the pool's lock to cost nothing, and there are
 * enough parts that a worker which comes late or is slow does not hold up the rest. */
#include "config.h"

#include "inside.h"

#include <stdatomic.h>

#include "fastweight/pool.h"

#define MOST_PARTS 32

struct spread {            /* one learn */
    struct fw_parts parts; /* first: a parts pointer is a spread pointer */
    const struct fw_memory *m;
    void *block;
    const struct fw_memory_learning *what;
    _Atomic uint64_t cut;
};

static void run(struct fw_parts *parts, size_t i)
{
    struct spread *s = (struct spread *)parts;
    size_t heads = s->m->heads, n = parts->count;
    uint64_t cut =
        fw_memory_learn_heads(s->m, s->block, s->what, i * heads / n, (i + 1) * heads / n);

    atomic_fetch_add(&s->cut, cut);
}

void fw_memory_learn_spread(const struct fw_memory *m, void *block,
                            const struct fw_memory_learning *what, struct fw_pool *pool)
{
    struct spread s = { .parts = { .run = run,
                                   .count = m->heads < MOST_PARTS ? m->heads : MOST_PARTS },
                        .m = m,
                        .block = block,
                        .what = what };

    if (m->heads == 1 || (m->cache && what->values)) {
        fw_memory_learn(m, block, what->in, what->from, what->n, what->residual, what->values);
        return;
    }
    fw_pool_spread(pool, &s.parts);
    fw_memory_learned(m, block, what->n, s.cut);
}
