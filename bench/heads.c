/* heads.c - what a second worker is worth to one long learn.
 *
 *     bench/heads [--json] [HEADS D]     HEADS of D x D instead of 4 of 64 x 64
 *
 * For every rule: the pairs a worker of the daemon learns at a stretch (src/engine/pass.c),
 * with their residuals, by this thread alone and spread over it and one worker of a pool.
 * Rounds of both alternate on the clock of the wall; medians count, and speedup is one over the
 * other. 2 is all there is, and less where other work has the cores. The last line is the
 * median over the rules. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fastweight/clock.h"
#include "fastweight/num.h"
#include "fastweight/pool.h"
#include "pair_stream.h"

#define ROUNDS     41
#define RULES      64
#define STRETCH    8192      /* residuals */
#define TOKENS     1024      /* at most in a stretch */
#define STRETCH_NS 1000000.0 /* a shorter stretch becomes a longer one */

struct cell { /* one rule */
    struct bench_stream s;
    struct fw_pool *pool;
    struct fw_memory_learning what;
    double alone_ns, spread_ns; /* a stretch */
};

static double learn_ns(struct cell *c, int spread)
{
    const struct fw_memory_learning *w = &c->what;
    uint64_t start = fw_clock_mono_ns();

    if (spread)
        fw_memory_learn_spread(c->s.memory, c->s.block, w, c->pool);
    else
        fw_memory_learn(c->s.memory, c->s.block, w->in, w->from, w->n, w->residual, w->values);
    return (double)(fw_clock_mono_ns() - start);
}

static void measure(struct cell *c)
{
    double alone[ROUNDS], spread[ROUNDS];
    size_t most = STRETCH / fw_memory_heads(c->s.memory);

    most = most > TOKENS ? TOKENS : most < 1 ? 1 : most;
    c->what.n = most;
    learn_ns(c, 0); /* windows fill */
    for (c->what.n = 1; c->what.n < most && learn_ns(c, 0) < STRETCH_NS;)
        c->what.n *= 2;
    for (int r = 0; r < ROUNDS; r++) {
        alone[r] = learn_ns(c, 0);
        spread[r] = learn_ns(c, 1);
    }
    c->alone_ns = bench_median(alone, ROUNDS);
    c->spread_ns = bench_median(spread, ROUNDS);
}

static double run(const char *rule, size_t heads, size_t d, struct fw_pool *pool, int json)
{
    struct cell c = { .pool = pool };

    if (bench_open(&c.s, rule, heads, d, TOKENS, 0) < 0)
        bench_fail(c.s.skipped);
    c.what.in = &c.s.body;
    c.what.residual = bench_alloc(TOKENS * heads * sizeof *c.what.residual);
    measure(&c);
    printf(json ? "{\"bench\": \"heads\", \"rule\": \"%s\", \"heads\": %zu, \"d\": %zu, "
                  "\"pairs\": %zu, \"alone_us\": %.1f, \"spread_us\": %.1f, "
                  "\"speedup\": %.3f}\n"
                : "%-20s heads %zu d %zu  pairs %4zu  alone %8.1f us  two workers %8.1f us  "
                  "speedup %.2f\n",
           rule, heads, d, c.what.n, c.alone_ns / 1e3, c.spread_ns / 1e3,
           c.alone_ns / c.spread_ns);
    fflush(stdout);
    free(c.what.residual);
    bench_close(&c.s);
    return c.alone_ns / c.spread_ns;
}

int main(int argc, char **argv)
{
    int json = argc > 1 && strcmp(argv[1], "--json") == 0;
    size_t heads = 4, d = 64, count = 0;
    double speedup[RULES];
    struct fw_pool *pool;

    if (argc == 3 + json) {
        heads = strtoul(argv[1 + json], NULL, 10);
        d = strtoul(argv[2 + json], NULL, 10);
    } else if (argc != 1 + json) {
        bench_fail("usage: bench/heads [--json] [HEADS D]");
    }
    fw_num_init();
    fw_num_thread();
    if (fw_pool_new(&pool, 1, fw_num_thread, NULL) < 0)
        bench_fail("no pool");
    for (; count < RULES && fw_memory_rule(count); count++)
        speedup[count] = run(fw_memory_rule(count), heads, d, pool, json);
    fw_pool_free(pool);
    printf("heads ratio=%.3f\n", bench_median(speedup, count));
    return 0;
}
