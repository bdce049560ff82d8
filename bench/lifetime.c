/* lifetime.c - does a token cost the same after a long life?
 *
 *     bench/lifetime [--json] [DIR]
 *
 * One session learns 10 MB. Then, in turn, a fresh session and the old one learn the same new
 * text; the fresh one is made anew for every round and its first 64 KiB do not count. Time is
 * the engine's own time of learning (one worker). ratio = old / fresh, the median of the
 * rounds. */
#include "config.h"

#include "engine_calls.h"

#include <time.h>

enum { LIFE = 10000000, CHUNK = 16384, SKIP = 4, CHUNKS = 20, ROUNDS = 7, STATE = 4 << 20 };

static uint64_t cpu_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* What learning these bytes took. */
static uint64_t time_learn(struct bench *b, const char *id, const char *text, size_t n)
{
    uint64_t from = cpu_ns();

    learn_bytes(b, id, text, n);
    return cpu_ns() - from;
}

static double one_round(struct bench *b, uint64_t *x)
{
    char *text = malloc(CHUNKS * (size_t)CHUNK);
    uint64_t fresh = 0, old = 0;
    int i;

    if (!text)
        die("round", "out of memory");
    fill_text(text, CHUNKS * (size_t)CHUNK, x);
    create_bytes(b, "fresh", STATE);
    for (i = 0; i < CHUNKS; i++) {
        uint64_t f = time_learn(b, "fresh", text + i * (size_t)CHUNK, CHUNK);
        uint64_t o = time_learn(b, "old", text + i * (size_t)CHUNK, CHUNK);

        fresh += i < SKIP ? 0 : f;
        old += i < SKIP ? 0 : o;
    }
    call_free(call_run(b, call_new(FW_DELETE, "fresh")));
    free(text);
    return (double)old / (double)fresh;
}

static int by_value(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

int main(int argc, char **argv)
{
    bool json = argc > 1 && strcmp(argv[1], "--json") == 0;
    const char *dir = argc > 1 + json ? argv[1 + json] : ".";
    char *text = malloc(CHUNK);
    double ratio[ROUNDS];
    uint64_t x = 1, before, ns;
    struct bench b;
    size_t at;
    int i;

    if (!text)
        die("text", "out of memory");
    bench_open(&b, dir, (size_t)64 << 20);
    create_bytes(&b, "old", STATE);
    before = cpu_ns();
    for (at = 0; at < LIFE; at += CHUNK) {
        fill_text(text, CHUNK, &x);
        learn_bytes(&b, "old", text, CHUNK);
    }
    ns = cpu_ns() - before;
    for (i = 0; i < ROUNDS; i++)
        ratio[i] = one_round(&b, &x);
    qsort(ratio, ROUNDS, sizeof ratio[0], by_value);
    if (json)
        printf("{\"bench\": \"lifetime\", \"bytes\": %zu, \"kb_per_s\": %.0f, "
               "\"ratio_min\": %.4f, \"ratio\": %.4f, \"ratio_max\": %.4f}\n",
               at, (double)at * 1e6 / (double)ns, ratio[0], ratio[ROUNDS / 2],
               ratio[ROUNDS - 1]);
    else
        printf("after %zu bytes (%.0f KB/s): a token costs %.3f .. %.3f of an early one\n", at,
               (double)at * 1e6 / (double)ns, ratio[0], ratio[ROUNDS - 1]);
    printf("lifetime ratio=%.4f\n", ratio[ROUNDS / 2]);
    bench_close(&b);
    free(text);
    return 0;
}
