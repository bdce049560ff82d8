/* length.c - does a pair cost the same after ten million pairs? And does the state stay so big?
 *
 *     bench/length [--json] [LAST]     LAST pairs instead of 1e7
 *
 * One head of 32 x 32 learns a stream; at 10^3, 10^4 ... 10^7 pairs its block is kept. Then
 * from each of these blocks in turn, round after round, the next 256 pairs are learned, each
 * with one query read after it, on the thread's CPU clock: whatever else the machine does meets
 * all lengths alike. Rules over 20 us a pair, and softmax, which keeps every pair, stop at
 * 10^5. used: bytes without empty places at the first and the last length. ratio: the longest
 * over that at 10^4 pairs, when windows are full; the last line is the ratio furthest from 1 of
 * the rules whose cost shall not depend on the length. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fastweight/num.h"
#include "pair_stream.h"

#define D       32
#define TOKENS  256
#define BATCH   1024 /* tokens of the stream, round and round */
#define ROUNDS  31
#define LENGTHS 5 /* 10^3 ... 10^7 */
#define SLOW_NS 20e3
#define SLOW_AT 100000

static const char *const growing[] = { "softmax", "log_linear" };

struct line { /* one rule at its lengths */
    struct bench_stream s;
    void *kept[LENGTHS], *block;                 /* block: what a round works on */
    size_t pairs[LENGTHS], used[LENGTHS], count; /* used: bytes, without empty places */
    double ns[LENGTHS];
};

static int grows(const char *rule)
{
    for (size_t i = 0; i < sizeof growing / sizeof growing[0]; i++)
        if (strcmp(growing[i], rule) == 0)
            return 1;
    return 0;
}

static size_t block_bytes(const struct line *l)
{
    return fw_memory_layout(l->s.memory)->block_bytes;
}

static size_t used_bytes(const struct line *l)
{
    struct fw_memory_about about;

    fw_memory_about(l->s.memory, l->s.block, &about);
    return (size_t)about.used_bytes;
}

static double round_ns(struct line *l, size_t i)
{
    double start;

    memcpy(l->block, l->kept[i], block_bytes(l));
    start = bench_cpu_s();
    fw_memory_learn(l->s.memory, l->block, &l->s.body, 0, TOKENS, NULL, l->s.values);
    return 1e9 * (bench_cpu_s() - start) / TOKENS;
}

/* Learns on until `pairs`, without reads: they leave no trace. */
static void advance(struct line *l, size_t from, size_t pairs)
{
    for (size_t t = from; t < pairs;) {
        size_t at = t % BATCH, n = BATCH - at < pairs - t ? BATCH - at : pairs - t;

        fw_memory_learn(l->s.memory, l->s.block, &l->s.body, at, n, NULL, NULL);
        t += n;
    }
}

static void grow(struct line *l, const char *rule, size_t last)
{
    size_t at = 0, bytes = block_bytes(l);

    l->block = bench_alloc(bytes);
    for (size_t pairs = 1000; pairs <= last && l->count < LENGTHS; pairs *= 10) {
        if (pairs > SLOW_AT && (strcmp(rule, "softmax") == 0 || round_ns(l, 1) > SLOW_NS))
            break;
        advance(l, at, pairs);
        at = pairs;
        l->kept[l->count] = bench_alloc(bytes);
        memcpy(l->kept[l->count], l->s.block, bytes);
        l->used[l->count] = used_bytes(l);
        l->pairs[l->count++] = pairs;
    }
}

static void measure(struct line *l)
{
    double ns[LENGTHS][ROUNDS];
    int rounds = round_ns(l, l->count - 1) > SLOW_NS ? 5 : ROUNDS;

    for (int r = 0; r < rounds; r++)
        for (size_t i = 0; i < l->count; i++)
            ns[i][r] = round_ns(l, i);
    for (size_t i = 0; i < l->count; i++)
        l->ns[i] = bench_median(ns[i], (size_t)rounds);
}

static void print(const struct line *l, const char *rule, double ratio, int json)
{
    printf(json ? "{\"bench\": \"length\", \"rule\": \"%s\"" : "%-20s", rule);
    printf(json ? ", \"bytes\": %zu, \"used\": [%zu, %zu]" : " bytes %9zu used %zu-%zu ",
           block_bytes(l), l->used[0], l->used[l->count - 1]);
    for (size_t i = 0; i < l->count; i++)
        printf(json ? ", \"%zu\": %.1f" : " %zu: %.1f ns", l->pairs[i], l->ns[i]);
    printf(json ? ", \"ratio\": %.3f}\n" : "  ratio %.3f", ratio);
    if (!json)
        printf("%s\n", grows(rule) ? " (grows)" : "");
    fflush(stdout);
}

static double run(const char *rule, size_t last, int json)
{
    struct line l = { .count = 0 };
    double ratio;

    if (bench_open(&l.s, rule, 1, D, BATCH, strcmp(rule, "softmax") == 0 ? SLOW_AT : 0) < 0) {
        fprintf(stderr, "bench/length: %s: %s\n", rule, l.s.skipped);
        return 1;
    }
    grow(&l, rule, last);
    measure(&l);
    ratio = l.ns[l.count - 1] / l.ns[l.count > 1];
    print(&l, rule, ratio, json);
    for (size_t i = 0; i < l.count; i++)
        free(l.kept[i]);
    free(l.block);
    bench_close(&l.s);
    return grows(rule) ? 1 : ratio;
}

static double off(double ratio)
{
    return ratio < 1 ? 1 / ratio : ratio;
}

int main(int argc, char **argv)
{
    int json = argc > 1 && strcmp(argv[1], "--json") == 0;
    double worst = 1, last = argc > 1 + json ? strtod(argv[1 + json], NULL) : 1e7;

    if (argc > 2 + json || last < 1e4 || last > 1e7)
        bench_fail("usage: bench/length [--json] [LAST], LAST from 1e4 to 1e7");
    fw_num_init();
    fw_num_thread();
    for (size_t i = 0; fw_memory_rule(i); i++) {
        double r = run(fw_memory_rule(i), (size_t)last, json);

        worst = off(r) > off(worst) ? r : worst;
    }
    printf("length ratio=%.3f\n", worst);
    return 0;
}
