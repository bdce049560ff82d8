/* share.c - sixteen sessions of one checkpoint at work together against one after the other.
 *
 *     bench/share CHECKPOINT
 *
 * One worker. "learn": every session has single-token learns waiting (async, so that the disk
 * does not set the pace); "generate": every session samples tokens. Together, the engine lets
 * them share passes over the weights; one after the other it cannot. Both take turns and the
 * median of the ratios of their tokens a second of processor time counts. The last line is the
 * smaller ratio. */
#include "config.h"

#include "engine_calls.h"

#include <time.h>

#include "fastweight/models.h"

enum { SESSIONS = 16, LEARNS = 48, GENERATED = 100, ROUNDS = 5 };

static uint32_t lesson[LEARNS];

static double cpu_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void wait_call(struct call *c)
{
    pthread_mutex_lock(&c->mutex);
    while (!c->done)
        pthread_cond_wait(&c->cond, &c->mutex);
    pthread_mutex_unlock(&c->mutex);
    if (c->r.failed)
        die(c->r.id, c->r.err.msg);
    call_free(c);
}

static struct call *send_learn(struct bench *b, const char *id, size_t at)
{
    struct call *c = call_new(FW_LEARN, id);

    c->item[0] = (struct fw_tensor){ .name = "tokens",
                                     .dtype = FW_U32,
                                     .ndim = 1,
                                     .shape = { 1 },
                                     .data = lesson + at,
                                     .bytes = sizeof lesson[0] };
    c->r.in.count = 1;
    c->r.detail = FW_DETAIL_MEAN;
    c->r.async = true;
    fw_engine_submit(b->engine, &c->r);
    return c;
}

static struct call *send_generate(struct bench *b, const char *id, uint64_t seed)
{
    struct call *c = call_new(FW_GENERATE, id);

    c->r.max_tokens = GENERATED;
    c->r.sampling.temperature = 1;
    c->r.sampling.seed = seed;
    fw_engine_submit(b->engine, &c->r);
    return c;
}

/* Tokens a second of all sessions; together: nobody waits for the one before. */
static double learn(struct bench *b, char id[][8], int together)
{
    static struct call *call[SESSIONS][LEARNS];
    double start = cpu_s();

    for (size_t t = 0; t < LEARNS && together; t++)
        for (size_t i = 0; i < SESSIONS; i++)
            call[i][t] = send_learn(b, id[i], t);
    for (size_t i = 0; i < SESSIONS; i++) {
        for (size_t t = 0; t < LEARNS && !together; t++)
            call[i][t] = send_learn(b, id[i], t);
        for (size_t t = 0; t < LEARNS; t++)
            wait_call(call[i][t]);
    }
    return SESSIONS * LEARNS / (cpu_s() - start);
}

static double generate(struct bench *b, char id[][8], int together)
{
    struct call *call[SESSIONS];
    double start = cpu_s();

    for (size_t i = 0; i < SESSIONS && together; i++)
        call[i] = send_generate(b, id[i], i);
    for (size_t i = 0; i < SESSIONS; i++)
        wait_call(together ? call[i] : send_generate(b, id[i], i));
    return SESSIONS * GENERATED / (cpu_s() - start);
}

static int compare(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

static double run(const char *what, double (*rate)(struct bench *, char[][8], int),
                  struct bench *b, char id[][8])
{
    double ratio[ROUNDS], alone = 0, together = 0;

    rate(b, id, 1);
    for (int r = 0; r < ROUNDS; r++) {
        alone = rate(b, id, 0);
        together = rate(b, id, 1);
        ratio[r] = together / alone;
    }
    qsort(ratio, ROUNDS, sizeof *ratio, compare);
    printf("%-8s  one after the other %.0f tokens/s  together %.0f tokens/s  ratio %.2f\n",
           what, alone, together, ratio[ROUNDS / 2]);
    fflush(stdout);
    return ratio[ROUNDS / 2];
}

/* The directory above and the name in it. */
static const char *split(char *path)
{
    char *at = strrchr(path, '/');

    if (!at || at == path || !at[1])
        die(path, "give it as DIRECTORY/NAME");
    *at = 0;
    return at + 1;
}

int main(int argc, char **argv)
{
    char id[SESSIONS][8];
    struct fw_models *models;
    struct fw_engine_stats st;
    struct bench b;
    struct fw_err err;
    const char *model;
    double worst, other;

    if (argc != 2)
        die("usage", "bench/share CHECKPOINT");
    model = split(argv[1]);
    if (fw_models_open(&models, argv[1], &err) < 0)
        die(argv[1], err.msg);
    bench_open_with(&b, "/tmp", (size_t)1 << 30, models);
    for (size_t i = 0; i < SESSIONS; i++) {
        struct call *c;

        snprintf(id[i], sizeof id[i], "s%u", (unsigned)(i % SESSIONS));
        c = call_new(FW_CREATE, id[i]);
        snprintf(c->r.model, sizeof c->r.model, "%.63s", model);
        call_free(call_run(&b, c));
    }
    for (size_t t = 0; t < LEARNS; t++)
        lesson[t] = (uint32_t)(t * t % 16);
    worst = run("learn", learn, &b, id);
    other = run("generate", generate, &b, id);
    fw_engine_stats(b.engine, &st);
    printf("%llu passes were shared\n", (unsigned long long)st.shared_passes);
    bench_close(&b);
    fw_models_close(models);
    printf("share ratio=%.3f\n", other < worst ? other : worst);
    return 0;
}
