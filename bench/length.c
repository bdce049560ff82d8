/* length.c - does a pair cost the same after ten million pairs? And does the state stay so big?
 *
 *     bench/length [--json] [LAST [RULE]]     LAST pairs instead of 1e7; one rule alone
 *
 * One head of 32 x 32 learns a stream; at 10^3, 10^4 ... 10^7 pairs its block is kept. Then
 * from each of these blocks in turn, round after round, the next 256 pairs are learned, each
 * with one query read after it, on the thread's CPU clock: whatever else the machine does meets
 * all lengths alike. Rules over 20 us a pair, and softmax, which keeps every pair, stop at
 * 10^5. used: bytes without empty places at the first and the last length. ratio: the longest
 * over that at 10^4 pairs, when windows are full; the last line is the ratio furthest from 1 of
 * the rules whose cost shall not depend on the length.
 *
 * For the two that grow by design the line says how: the nearest a + b t, or a + b log2 t, and
 * how far the worst length is from it. log_linear reads a matrix for every one in the binary
 * number of pairs, so its lengths are the 256 pairs before 2^10, 2^13, 2^17, 2^20 and 2^23,
 * where these are all ones and a read is as slow as it gets; and its gates are 1, since a read
 * skips a level that has decayed to nothing. */
#include "config.h"

#include <stdint.h>
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

static const struct growth {
    const char *rule, *as;
    int is_log;
} growing[] = { { "softmax", "t", 0 }, { "log_linear", "log2 t", 1 } };

struct line { /* one rule at its lengths */
    struct bench_stream s;
    void *kept[LENGTHS], *block;                 /* block: what a round works on */
    size_t pairs[LENGTHS], used[LENGTHS], count; /* used: bytes, without empty places */
    double ns[LENGTHS];
};

/* NULL: its cost shall not depend on the length. */
static const struct growth *growth_of(const char *rule)
{
    for (size_t i = 0; i < sizeof growing / sizeof growing[0]; i++)
        if (strcmp(growing[i].rule, rule) == 0)
            return &growing[i];
    return NULL;
}

static size_t length_at(const struct growth *g, size_t i)
{
    static const size_t plain[LENGTHS] = { 1000, 10000, 100000, 1000000, 10000000 };
    static const size_t bits[LENGTHS] = { 10, 13, 17, 20, 23 };

    return g && g->is_log ? ((size_t)1 << bits[i]) - TOKENS : plain[i];
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
    for (size_t i = 0; i < LENGTHS; i++) {
        size_t pairs = length_at(growth_of(rule), i);

        if (length_at(NULL, i) > last ||
            (pairs > SLOW_AT && (strcmp(rule, "softmax") == 0 || round_ns(l, 1) > SLOW_NS)))
            break;
        advance(l, at, pairs);
        at = pairs;
        l->kept[i] = bench_alloc(bytes);
        memcpy(l->kept[i], l->s.block, bytes);
        l->used[i] = used_bytes(l);
        l->pairs[i] = pairs;
        l->count = i + 1;
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

/* log2 of the pairs at the end of a round: a power of two. */
static double log2_of(size_t pairs)
{
    double bits = 0;

    for (size_t n = pairs + TOKENS; n > 1; n /= 2)
        bits++;
    return bits;
}

/* ns = a + b x by least squares of relative errors; the largest of them. */
static double fit(const struct line *l, int is_log, double *a, double *b)
{
    double n = 0, x1 = 0, x2 = 0, y1 = 0, xy = 0, worst = 0;
    double x[LENGTHS];

    for (size_t i = 0; i < l->count; i++) {
        double w = 1 / (l->ns[i] * l->ns[i]);

        x[i] = is_log ? log2_of(l->pairs[i]) : (double)l->pairs[i];
        n += w;
        x1 += w * x[i];
        x2 += w * x[i] * x[i];
        y1 += w * l->ns[i];
        xy += w * x[i] * l->ns[i];
    }
    *b = (n * xy - x1 * y1) / (n * x2 - x1 * x1);
    *a = (y1 - *b * x1) / n;
    for (size_t i = 0; i < l->count; i++) {
        double off = (*a + *b * x[i]) / l->ns[i] - 1;

        worst = off > worst ? off : -off > worst ? -off : worst;
    }
    return worst;
}

static void print_growth(const struct line *l, const struct growth *g, int json)
{
    double a, b, off = fit(l, g->is_log, &a, &b);

    if (json)
        printf(", \"grows\": \"%s\", \"a\": %.1f, \"b\": %.3f, \"off\": %.3f", g->as, a, b,
               off);
    else
        printf(" grows as %s: %.0f + %.1f %s ns, within %.1f%%", g->as, a, b, g->as, 100 * off);
}

static void print(const struct line *l, const char *rule, double ratio, int json)
{
    const struct growth *g = growth_of(rule);

    printf(json ? "{\"bench\": \"length\", \"rule\": \"%s\"" : "%-20s", rule);
    printf(json ? ", \"bytes\": %zu, \"used\": [%zu, %zu]" : " bytes %9zu used %zu-%zu ",
           block_bytes(l), l->used[0], l->used[l->count - 1]);
    for (size_t i = 0; i < l->count; i++)
        printf(json ? ", \"%zu\": %.1f" : " %zu: %.1f ns", l->pairs[i], l->ns[i]);
    printf(json ? ", \"ratio\": %.3f" : "  ratio %.3f", ratio);
    if (g && l->count > 2)
        print_growth(l, g, json);
    puts(json ? "}" : "");
    fflush(stdout);
}

static void stop_decay(struct bench_stream *s)
{
    for (size_t i = 0; i < s->body.count; i++)
        if (strcmp(s->item[i].name, "log_g") == 0)
            memset((void *)(uintptr_t)s->item[i].data, 0, s->item[i].bytes);
}

static double run(const char *rule, size_t last, int json)
{
    struct line l = { .count = 0 };
    double ratio;

    if (bench_open(&l.s, rule, 1, D, BATCH, strcmp(rule, "softmax") == 0 ? SLOW_AT : 0) < 0) {
        fprintf(stderr, "bench/length: %s: %s\n", rule, l.s.skipped);
        return 1;
    }
    if (growth_of(rule) && growth_of(rule)->is_log)
        stop_decay(&l.s);
    grow(&l, rule, last);
    measure(&l);
    ratio = l.ns[l.count - 1] / l.ns[l.count > 1];
    print(&l, rule, ratio, json);
    for (size_t i = 0; i < l.count; i++)
        free(l.kept[i]);
    free(l.block);
    bench_close(&l.s);
    return growth_of(rule) ? 1 : ratio;
}

static double off(double ratio)
{
    return ratio < 1 ? 1 / ratio : ratio;
}

int main(int argc, char **argv)
{
    int json = argc > 1 && strcmp(argv[1], "--json") == 0;
    const char *only = argc > 2 + json ? argv[2 + json] : NULL;
    size_t ran = 0;
    double worst = 1, last = argc > 1 + json ? strtod(argv[1 + json], NULL) : 1e7;

    if (argc > 3 + json || !(last >= 1e4 && last <= 1e7))
        bench_fail("usage: bench/length [--json] [LAST [RULE]], LAST from 1e4 to 1e7");
    fw_num_init();
    fw_num_thread();
    for (size_t i = 0; fw_memory_rule(i); i++) {
        double r;

        if (only && strcmp(only, fw_memory_rule(i)) != 0)
            continue;
        r = run(fw_memory_rule(i), (size_t)last, json);
        worst = off(r) > off(worst) ? r : worst;
        ran++;
    }
    if (ran == 0)
        bench_fail("no such rule");
    printf("length ratio=%.3f\n", worst);
    return 0;
}
