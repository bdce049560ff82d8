/* delta.c - the delta rule against the machine: multiply-adds a second as a fraction of what
 * the core's vector units can do, measured in the same process, in turn.
 *
 *     bench/delta [--json]
 *
 * For d = d_k = d_v and heads: pairs learned one a call and 256 a call through fw_memory_learn,
 * as the daemon does, and OpenBLAS sgemv + sger, plain C and torch (if python3 has it: token by
 * token and chunkwise) beside them. A pair counts 2 d^2
 * multiply-adds a head (S'k and S += k e'). `stream` is the bound that memory sets for pairs
 * one a call: the state read and written once a pair, in order, without arithmetic, in the same
 * unit. Rounds of both sides alternate on the thread's CPU clock and the median of their ratios
 * counts. The last line is the smallest fraction over its goal among states up to 1 MiB and d
 * up to 128: goals 0.85 in batches, 0.78 singly (d = 32: 0.80, 0.75). */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cblas.h>

#include "fastweight/num.h"
#include "pair_stream.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define PAIRS  256
#define ROUNDS 15

struct cell { /* one shape, with its numbers */
    size_t d, heads;
    struct fw_memory *memory;
    void *block;
    struct fw_tensor item[2];
    struct fw_tensors body;
    float *k, *v, *S, *e; /* k, v (PAIRS, heads, d); S, e are the rival's */
    double state_bytes;
};

static float *numbers(size_t n, float scale)
{
    float *x = aligned_alloc(64, (n * sizeof *x + 63) / 64 * 64);
    uint32_t u = 1;

    if (!x)
        bench_fail("out of memory");
    for (size_t i = 0; i < n; i++) {
        u = u * 1664525u + 1013904223u;
        x[i] = scale * ((float)(u >> 8) * 0x1p-23f - 1);
    }
    return x;
}

static struct fw_tensor tensor(const char *name, const struct cell *c, const float *x)
{
    struct fw_tensor t = { .dtype = FW_F32,
                           .ndim = 3,
                           .shape = { PAIRS, c->heads, c->d },
                           .data = x,
                           .bytes = PAIRS * c->heads * c->d * sizeof *x };

    snprintf(t.name, sizeof t.name, "%s", name);
    return t;
}

static void open_cell(struct cell *c, size_t d, size_t heads)
{
    struct fw_params p = { 0 }, full;
    struct fw_err err;
    size_t n;

    *c = (struct cell){ .d = d, .heads = heads };
    if (fw_params_set_number(&p, "heads", (double)heads, &err) < 0 ||
        fw_params_set_number(&p, "d_k", (double)d, &err) < 0 ||
        fw_params_set_number(&p, "d_v", (double)d, &err) < 0 ||
        fw_memory_new(&c->memory, &p, &full, &err) < 0)
        bench_fail(err.msg);
    c->k = numbers(PAIRS * heads * d, 1 / (float)d);
    c->v = numbers(PAIRS * heads * d, 1);
    c->S = numbers(heads * d * d, 0);
    c->e = numbers(d, 0);
    c->block = numbers(fw_memory_layout(c->memory)->block_bytes / sizeof(float), 0);
    fw_memory_init(c->memory, c->block);
    c->state_bytes = (double)(heads * d * d * sizeof(float));
    c->item[0] = tensor("keys", c, c->k);
    c->item[1] = tensor("values", c, c->v);
    c->body = (struct fw_tensors){ 2, c->item };
    if (fw_memory_check(c->memory, &c->body, &n, &err) < 0)
        bench_fail(err.msg);
}

static void close_cell(struct cell *c)
{
    fw_memory_free(c->memory);
    free(c->block);
    free(c->k);
    free(c->v);
    free(c->S);
    free(c->e);
}

static void learn_singly(struct cell *c)
{
    for (size_t t = 0; t < PAIRS; t++)
        fw_memory_learn(c->memory, c->block, &c->body, t, 1, NULL, NULL);
}

static void learn_batch(struct cell *c)
{
    fw_memory_learn(c->memory, c->block, &c->body, 0, PAIRS, NULL, NULL);
}

static void learn_blas(struct cell *c)
{
    int d = (int)c->d;

    for (size_t t = 0; t < PAIRS; t++)
        for (size_t h = 0; h < c->heads; h++) {
            const float *k = c->k + (t * c->heads + h) * c->d;
            float *S = c->S + h * c->d * c->d;

            memcpy(c->e, c->v + (t * c->heads + h) * c->d, c->d * sizeof *c->e);
            cblas_sgemv(CblasRowMajor, CblasTrans, d, d, -1, S, d, k, 1, 1, c->e, 1);
            cblas_sger(CblasRowMajor, d, d, 1, k, 1, c->e, 1, S, d);
        }
}

/* As one would write it down, for the compiler to do what it can. */
static void learn_plain(struct cell *c)
{
    size_t d = c->d;

    for (size_t t = 0; t < PAIRS; t++)
        for (size_t h = 0; h < c->heads; h++) {
            const float *k = c->k + (t * c->heads + h) * d;
            float *S = c->S + h * d * d;

            memcpy(c->e, c->v + (t * c->heads + h) * d, d * sizeof *c->e);
            for (size_t i = 0; i < d; i++)
                for (size_t j = 0; j < d; j++)
                    c->e[j] -= k[i] * S[i * d + j];
            for (size_t i = 0; i < d; i++)
                for (size_t j = 0; j < d; j++)
                    S[i * d + j] += k[i] * c->e[j];
        }
}

#if defined(__x86_64__)
/* Reads and writes what a pair has to, and nothing else. */
__attribute__((target("avx2"))) static void stream_state(struct cell *c)
{
    for (size_t t = 0; t < PAIRS; t++)
        for (float *x = c->S, *end = x + c->heads * c->d * c->d; x < end; x += 32) {
            __m256 v[4];

            for (int i = 0; i < 4; i++)
                v[i] = _mm256_loadu_ps(x + 8 * i);
            __asm__ volatile("" : "+x"(v[0]), "+x"(v[1]), "+x"(v[2]), "+x"(v[3]));
            for (int i = 0; i < 4; i++)
                _mm256_storeu_ps(x + 8 * i, v[i]);
        }
}
#else
static void stream_state(struct cell *c)
{
    (void)c;
}
#endif

/* Median over the rounds of (multiply-adds a second of f) / (of the peak beside it). */
static double fraction(struct cell *c, void (*f)(struct cell *c))
{
    double ratio[ROUNDS], work = 2.0 * PAIRS * (double)(c->heads * c->d * c->d);
    int times = 1 + (int)(8e6 / work);

    f(c);
    for (int r = 0; r < ROUNDS; r++) {
        double before = bench_peak(), start = bench_cpu_s(), rate, after;

        for (int i = 0; i < times; i++)
            f(c);
        rate = work * times / (bench_cpu_s() - start);
        after = bench_peak();
        ratio[r] = rate / (before > after ? before : after);
    }
    return bench_median(ratio, ROUNDS);
}

/* Prints one shape; returns its smallest fraction over its goal. */
static double run(size_t d, size_t heads, int json)
{
    struct cell c;
    double single, batch, blas, plain, stream, goal_single = d == 32 ? 0.75 : 0.78;
    double goal_batch = d == 32 ? 0.80 : 0.85, a, b;

    open_cell(&c, d, heads);
    single = fraction(&c, learn_singly);
    batch = fraction(&c, learn_batch);
    blas = fraction(&c, learn_blas);
    plain = fraction(&c, learn_plain);
    stream = fraction(&c, stream_state);
    if (json)
        printf("{\"bench\": \"delta\", \"d\": %zu, \"heads\": %zu, \"state_bytes\": %.0f, "
               "\"single\": %.3f, \"batch\": %.3f, \"openblas\": %.3f, \"plain\": %.3f, "
               "\"stream\": %.3f}\n",
               d, heads, c.state_bytes, single, batch, blas, plain, stream);
    else
        printf(
            "d %3zu heads %2zu  single %.3f  batch %.3f  openblas %.3f  batch/openblas %.2f  "
            "plain C %.3f  stream %.3f\n",
            d, heads, single, batch, blas, batch / blas, plain, stream);
    fflush(stdout);
    a = single / goal_single;
    b = batch / goal_batch;
    close_cell(&c);
    if (d > 128 || c.state_bytes > 1048576)
        return 1e9; /* no goal */
    return a < b ? a : b;
}

/* The same in torch, where python3 (or $PYTHON) has it. */
static void run_torch(int json)
{
    const char *python = getenv("PYTHON");
    char command[1024];
    size_t d, heads;
    double loop, chunks;
    FILE *p;

    snprintf(command, sizeof command, "'%.400s' '%s' 2>/dev/null",
             python && *python ? python : "python3", DELTA_TORCH);
    p = popen(command, "r");
    if (!p)
        return;
    while (fscanf(p, "%zu %zu %lf %lf", &d, &heads, &loop, &chunks) == 4) {
        double work = 2.0 * (double)(heads * d * d) / bench_peak();

        printf(json ? "{\"bench\": \"delta\", \"d\": %zu, \"heads\": %zu, "
                      "\"torch_loop\": %.4f, \"torch_chunkwise\": %.4f}\n"
                    : "d %3zu heads %2zu  torch loop %.4f  torch chunkwise %.4f\n",
               d, heads, work / loop, work / chunks);
        fflush(stdout);
    }
    pclose(p);
}

int main(int argc, char **argv)
{
    static const size_t d[] = { 32, 64, 128, 256 }, heads[] = { 1, 4, 8, 16 };
    int json = argc == 2 && strcmp(argv[1], "--json") == 0;
    double worst = 1e9;

    if (argc > 1 && !json)
        bench_fail("usage: bench/delta [--json]");
    fw_num_init();
    fw_num_thread();
    if (fw_num_level() != FW_LEVEL_X86_64_V3)
        bench_fail("the peak is measured on x86-64-v3 only");
    for (size_t i = 0; i < 4; i++)
        for (size_t j = 0; j < 4; j++) {
            double r = run(d[i], heads[j], json);

            worst = r < worst ? r : worst;
        }
    run_torch(json);
    printf("delta ratio=%.3f\n", worst);
    return 0;
}
