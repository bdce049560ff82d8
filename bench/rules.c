/* rules.c - what one pair costs under every rule of the table.
 *
 *     bench/rules [--json]
 *
 * heads = 4, d_k = d_v = 64, the defaults of each rule, batches of 256 tokens on the thread's
 * CPU clock, median of 9 rounds: ns to learn a pair, ns to learn a token and read one query
 * beside it, ns of a recall. `flops` is the part of the core's multiply-add peak, the best
 * seen in this process, that the step's formula needs (work, below, in products of rows x d_v;
 * a decay counts as one); reads are not in it. Rules that only store pairs, and those that work
 * at reads, have little to multiply: "-" where the table below has no number. The last line is
 * the smallest fraction of the rules that need one pass and no solver. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "fastweight/num.h"
#include "pair_stream.h"

#define HEADS  4
#define D      64
#define TOKENS 256
#define ROUNDS 9
#define WORK_S 4e-3 /* of one measurement */

static const struct work { /* multiply-adds of one token and head, over D * D */
    const char *rule;
    double work;
    int pass; /* counts for the last line */
} works[] = {
    { "linear", 1, 1 },
    { "linear_norm", 1, 1 },
    { "retention", 2, 1 },
    { "gla", 2, 1 },
    { "mamba2", 2, 1 },
    { "delta", 2, 1 },
    { "gated_delta", 3, 1 },
    { "kda", 3, 1 },
    { "comba", 3, 1 },
    { "longhorn", 3, 1 },
    { "delta_product", 4, 1 },       /* two pairs */
    { "gated_delta_product", 5, 1 }, /* two pairs, one decay */
    { "wkv7", 4, 1 },
    { "dplr", 4, 1 },
    { "iplr", 3, 1 },
    { "momentum", 4, 1 },
    { "huber", 3, 1 },
    { "mesa", 4, 1 },              /* H and G, a decay each; the solve is a read's */
    { "ttt_linear", 2, 0 },        /* f(k) and its gradient */
    { "titans", 4, 0 },            /* and momentum and weights */
    { "ttt_mlp", 20, 0 },          /* hidden 4 d: forward 8, back 4, gradients 8 */
    { "omega", 33, 0 },            /* S'k and k e' of 16 pairs, a decay */
    { "omega_muon", 35 + 960, 0 }, /* and five Newton-Schulz steps of three products */
};

static const struct work *work_of(const char *rule)
{
    for (size_t i = 0; i < sizeof works / sizeof works[0]; i++)
        if (strcmp(works[i].rule, rule) == 0)
            return &works[i];
    return NULL;
}

enum { LEARN, BOTH, RECALL, KINDS };

static void go(struct bench_stream *s, int kind)
{
    struct fw_tensors body = s->body, *in = &body;

    if (kind == RECALL) {
        for (size_t i = 0; i < s->body.count; i++)
            if (strcmp(s->item[i].name, "queries") == 0)
                fw_memory_recall(s->memory, s->block, &(struct fw_tensors){ 1, &s->item[i] }, 0,
                                 s->n, s->values);
        return;
    }
    fw_memory_learn(s->memory, s->block, in, 0, s->n, NULL, kind == BOTH ? s->values : NULL);
}

/* ns per token; *peak becomes the best of itself and the peaks beside it. */
static double measure(struct bench_stream *s, int kind, double *peak)
{
    double ns[ROUNDS], start = bench_cpu_s(), once;
    int times;

    go(s, kind);
    once = bench_cpu_s() - start;
    times = once > WORK_S ? 1 : 1 + (int)(WORK_S / (once + 1e-9));
    for (int r = 0; r < ROUNDS; r++) {
        double now = bench_peak();

        *peak = now > *peak ? now : *peak;
        start = bench_cpu_s();
        for (int i = 0; i < times; i++)
            go(s, kind);
        ns[r] = 1e9 * (bench_cpu_s() - start) / (times * (double)s->n);
    }
    return bench_median(ns, ROUNDS);
}

/* Returns the rule's fraction of the peak when it counts for the last line, else 1. */
static double run(const char *rule, double *peak, int json)
{
    const struct work *w = work_of(rule);
    struct bench_stream s;
    double ns[KINDS], fraction = 0;
    char flops[16] = "-";

    if (bench_open(&s, rule, HEADS, D, TOKENS, 0) < 0) {
        fprintf(stderr, "bench/rules: %s: %s\n", rule, s.skipped);
        return 1;
    }
    for (int kind = 0; kind < KINDS; kind++)
        ns[kind] = measure(&s, kind, peak);
    if (w && *peak > 0) {
        fraction = w->work * HEADS * D * D / (ns[LEARN] * 1e-9 * *peak);
        snprintf(flops, sizeof flops, "%.3f", fraction);
    }
    printf(json ? "{\"bench\": \"rules\", \"rule\": \"%s\", \"state_bytes\": %zu, "
                  "\"learn_ns\": %.1f, \"learn_read_ns\": %.1f, \"recall_ns\": %.1f, "
                  "\"flops\": \"%s\"}\n"
                : "%-20s bytes %9zu  learn %9.1f ns  learn+read %9.1f ns  recall %9.1f ns  "
                  "flops %s\n",
           rule, fw_memory_layout(s.memory)->block_bytes, ns[LEARN], ns[BOTH], ns[RECALL],
           flops);
    fflush(stdout);
    bench_close(&s);
    return w && w->pass && fraction > 0 ? fraction : 1;
}

int main(int argc, char **argv)
{
    int json = argc == 2 && strcmp(argv[1], "--json") == 0;
    double worst = 1, peak = 0;

    if (argc > 1 && !json)
        bench_fail("usage: bench/rules [--json]");
    fw_num_init();
    fw_num_thread();
    for (size_t i = 0; fw_memory_rule(i); i++) {
        double r = run(fw_memory_rule(i), &peak, json);

        worst = r < worst ? r : worst;
    }
    printf("rules ratio=%.3f\n", worst);
    return 0;
}
