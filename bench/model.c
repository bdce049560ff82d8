/* model.c - models against the machine: projections beside the core's peak and its memory, and
 * tokens a second of a checkpoint beside torch.
 *
 *     bench/model [--json] [CHECKPOINT [TEXT]]
 *
 * Projections (fw_project): with 16 and 32 rows, multiply-adds a second over what the core's
 * vector units can do; with one row, bytes of weights a second over what plain 32-byte loads of
 * the same bytes give; with one row of halves, weights a second over those of floats. Both
 * sides take turns in one process on the thread's CPU clock and the median of their ratios
 * counts. The last line is the smallest ratio over its goal: 0.90 of the peak in floats from
 * 256 inputs on, 0.85 of the reading speed, 1.2 times the weights in bf16 where they lie beyond
 * the second-level cache.
 *
 * A checkpoint whose tokens are bytes learns up to 100 KB of TEXT as one call, then 2,000 bytes
 * one by one, each predicted first. Where $PYTHON (or python3) has torch,
 * bench/model_torch.py does the same beside it, with one thread. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fastweight/model.h"
#include "fastweight/num.h"
#include "pair_stream.h"
#include "fastweight/project.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define ROUNDS      7
#define WORK        1e6 /* multiply-adds of a round, at least */
#define LEARN_BYTES 100000
#define STEPS       2000

static const char *const type_names[] = { "f32", "f16", "bf16" };

#if defined(__x86_64__)
/* Loads n bytes, 32 at a time, and does nothing with them. */
__attribute__((target("avx2"), noinline)) static void read_all(const char *p, size_t n)
{
#define LOAD(at)                                                                               \
    x = _mm256_loadu_ps((const float *)(const void *)(p + (at)));                              \
    __asm__ volatile("" : : "x"(x))
    for (size_t i = 0; i + 256 <= n; i += 256, p += 256) {
        __m256 x;

        LOAD(0);
        LOAD(32);
        LOAD(64);
        LOAD(96);
        LOAD(128);
        LOAD(160);
        LOAD(192);
        LOAD(224);
    }
#undef LOAD
}
#else
static void read_all(const char *p, size_t n)
{
    (void)p, (void)n;
}
#endif

static void fail(const char *what)
{
    fprintf(stderr, "bench/model: %s\n", what);
    exit(1);
}

static int compare(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

static double median(double *x)
{
    qsort(x, ROUNDS, sizeof *x, compare);
    return x[ROUNDS / 2];
}

struct cell { /* a matrix and its rows */
    struct fw_matrix W;
    float *x, *y;
    size_t bytes, rows;
};

static float number(uint32_t *u)
{
    *u = *u * 1664525u + 1013904223u;
    return (float)(*u >> 8) * 0x1p-23f - 1;
}

static void open_cell(struct cell *c, enum fw_weight type, size_t in, size_t out, size_t rows)
{
    uint32_t u = 1;
    void *w;

    *c = (struct cell){ .bytes = in * out * (type == FW_WEIGHT_F32 ? 4 : 2), .rows = rows };
    w = aligned_alloc(64, (c->bytes + 63) / 64 * 64);
    c->x = malloc(rows * in * sizeof *c->x);
    c->y = malloc(rows * out * sizeof *c->y);
    if (!w || !c->x || !c->y)
        fail("out of memory");
    for (size_t i = 0; i < in * out; i++)
        if (type == FW_WEIGHT_F32)
            ((float *)w)[i] = number(&u);
        else
            ((uint16_t *)w)[i] =
                type == FW_WEIGHT_F16 ? fw_to_f16(number(&u)) : fw_to_bf16(number(&u));
    for (size_t i = 0; i < rows * in; i++)
        c->x[i] = number(&u);
    c->W = (struct fw_matrix){ w, type, out, in };
}

static void close_cell(struct cell *c)
{
    free((void *)(uintptr_t)c->W.data);
    free(c->x);
    free(c->y);
}

static int times(const struct cell *c)
{
    return 1 + (int)(WORK / (double)(c->W.in * c->W.out * c->rows));
}

/* Seconds of one projection. */
static double project_s(const struct cell *c)
{
    int n = times(c);
    double start = bench_cpu_s();

    for (int i = 0; i < n; i++)
        fw_project(&c->W, c->x, c->W.in, c->rows, c->y, c->W.out);
    return (bench_cpu_s() - start) / n;
}

static double read_s(const struct cell *c)
{
    int n = times(c);
    double start = bench_cpu_s();

    for (int i = 0; i < n; i++)
        read_all(c->W.data, c->bytes);
    return (bench_cpu_s() - start) / n;
}

/* Multiply-adds a second over the peak beside it. */
static double of_peak(const struct cell *c)
{
    double ratio[ROUNDS], work = (double)(c->W.in * c->W.out * c->rows);

    project_s(c);
    for (int r = 0; r < ROUNDS; r++) {
        double before = bench_peak(), rate = work / project_s(c), after = bench_peak();

        ratio[r] = rate / (before > after ? before : after);
    }
    return median(ratio);
}

/* The time of reading the weights over that of projecting one row. */
static double of_reading(const struct cell *c)
{
    double ratio[ROUNDS];

    project_s(c);
    for (int r = 0; r < ROUNDS; r++) {
        double before = read_s(c), mine = project_s(c), after = read_s(c);

        ratio[r] = (before < after ? before : after) / mine;
    }
    return median(ratio);
}

/* How many times faster b is than a. */
static double faster(const struct cell *a, const struct cell *b)
{
    double ratio[ROUNDS];

    project_s(a);
    for (int r = 0; r < ROUNDS; r++) {
        double one = project_s(a);

        project_s(b);
        ratio[r] = one / project_s(b);
    }
    return median(ratio);
}

static double many_rows(size_t in, size_t out, int json)
{
    double worst = 1e9;

    for (int type = 0; type < 3; type++)
        for (size_t rows = 16; rows <= 32; rows += 16) {
            struct cell c;
            double f;

            open_cell(&c, (enum fw_weight)type, in, out, rows);
            f = of_peak(&c);
            close_cell(&c);
            printf(json ? "{\"bench\": \"model\", \"in\": %zu, \"out\": %zu, \"rows\": %zu, "
                          "\"weights\": \"%s\", \"of_peak\": %.3f}\n"
                        : "in %5zu out %5zu rows %zu  %-4s  %.3f of the peak\n",
                   in, out, rows, type_names[type], f);
            if (type == FW_WEIGHT_F32 && in >= 256 && f / 0.90 < worst)
                worst = f / 0.90;
        }
    return worst;
}

static double one_row(const char *where, size_t in, size_t out, int json)
{
    struct cell c[3];
    double f, half[3], worst;

    for (int type = 0; type < 3; type++)
        open_cell(&c[type], (enum fw_weight)type, in, out, 1);
    f = of_reading(&c[0]);
    for (int type = 1; type < 3; type++)
        half[type] = faster(&c[0], &c[type]);
    printf(json ? "{\"bench\": \"model\", \"in\": %zu, \"out\": %zu, \"rows\": 1, "
                  "\"lies_in\": \"%s\", \"of_reading\": %.3f, \"f16_over_f32\": %.2f, "
                  "\"bf16_over_f32\": %.2f}\n"
                : "in %5zu out %5zu rows 1  %-6s  f32 %.3f of reading  f16 / f32 %.2f  "
                  "bf16 / f32 %.2f\n",
           in, out, where, f, half[1], half[2]);
    fflush(stdout);
    for (int type = 0; type < 3; type++)
        close_cell(&c[type]);
    worst = f / 0.85;
    if (out * in * 4 > 2 << 20 && half[2] / 1.2 < worst)
        worst = half[2] / 1.2;
    return worst;
}

static double least(double a, double b)
{
    return a < b ? a : b;
}

static double projections(int json)
{
    double worst = 1e9;

    worst = least(worst, many_rows(128, 128, json));
    worst = least(worst, many_rows(160, 384, json));
    worst = least(worst, many_rows(256, 256, json));
    worst = least(worst, many_rows(512, 512, json));
    worst = least(worst, many_rows(1024, 1024, json));
    worst = least(worst, many_rows(2048, 512, json));
    worst = least(worst, one_row("L1", 256, 36, json));
    worst = least(worst, one_row("L2", 256, 768, json));
    worst = least(worst, one_row("L2", 512, 384, json));
    worst = least(worst, one_row("L3", 1024, 2048, json));
    return least(worst, one_row("memory", 4096, 16384, json));
}

/* ---- a whole model */

struct run { /* seconds a token, and what was predicted */
    double learn_s, step_s, bits;
};

static size_t read_text(const char *path, uint32_t *tokens, size_t max)
{
    unsigned char byte[4096];
    FILE *f = fopen(path, "rb");
    size_t n = 0, got;

    if (!f)
        fail("cannot read the text");
    while (n < max && (got = fread(byte, 1, sizeof byte, f)) > 0)
        for (size_t i = 0; i < got && n < max; i++)
            tokens[n++] = byte[i];
    fclose(f);
    return n;
}

static struct run run_model(const struct fw_model *m, const uint32_t *tokens, size_t n,
                            size_t steps)
{
    size_t bytes = fw_model_layout(m)->block_bytes;
    void *block = aligned_alloc(64, (bytes + 63) / 64 * 64);
    double *logp = malloc((n + fw_model_vocab(m)) * sizeof *logp), start, sum = 0;
    struct run ret;

    if (!block || !logp)
        fail("out of memory");
    memset(block, 0, bytes);
    fw_model_init(m, block);
    start = bench_cpu_s();
    fw_model_learn(m, block, tokens, n, logp);
    ret.learn_s = (bench_cpu_s() - start) / (double)n;
    for (size_t t = 0; t < n; t++)
        sum -= logp[t];
    ret.bits = sum / (double)n / 0.69314718055994531;
    start = bench_cpu_s();
    for (size_t t = 0; t < steps; t++) {
        fw_model_predict(m, block, logp);
        fw_model_learn(m, block, tokens + t, 1, NULL);
    }
    ret.step_s = (bench_cpu_s() - start) / (double)steps;
    free(block);
    free(logp);
    return ret;
}

/* The same by torch: 0 when there is none. */
static int run_torch(const char *dir, const char *text, size_t n, size_t steps, struct run *ret)
{
    const char *python = getenv("PYTHON");
    char command[4096];
    FILE *p;
    int got;

    got = snprintf(command, sizeof command, "'%s' '%s' '%s' '%s' %zu %zu",
                   python && *python ? python : "python3", MODEL_TORCH, dir, text, n, steps);
    if (got < 0 || (size_t)got >= sizeof command || strchr(dir, '\'') || strchr(text, '\''))
        return 0;
    p = popen(command, "r");
    if (!p)
        return 0;
    got = fscanf(p, "%lf %lf %lf", &ret->learn_s, &ret->step_s, &ret->bits);
    return pclose(p) == 0 && got == 3;
}

static void print_run(const char *who, const struct run *r, int json)
{
    printf(json ? "{\"bench\": \"model\", \"by\": \"%s\", \"learn_tokens_s\": %.0f, "
                  "\"single_tokens_s\": %.0f, \"bits_per_token\": %.4f}\n"
                : "%-10s  learn %.0f tokens/s  one by one %.0f tokens/s  %.4f bits a token\n",
           who, 1 / r->learn_s, 1 / r->step_s, r->bits);
    fflush(stdout);
}

static void whole_model(const char *dir, const char *text, int json)
{
    struct fw_checkpoint *c = NULL;
    struct fw_model *m = NULL;
    struct fw_params config = { 0 }, full;
    struct fw_err err;
    struct run mine, torch;
    uint32_t *tokens = malloc(LEARN_BYTES * sizeof *tokens);
    size_t n, steps;

    if (!tokens)
        fail("out of memory");
    if (fw_checkpoint_open(&c, dir, &err) < 0 || fw_model_new(&m, c, &config, &full, &err) < 0)
        fail(err.msg);
    if (fw_model_vocab(m) < 256)
        fail("the checkpoint's tokens are no bytes");
    n = read_text(text, tokens, LEARN_BYTES);
    steps = n < STEPS ? n : STEPS;
    mine = run_model(m, tokens, n, steps);
    print_run("fastweight", &mine, json);
    if (run_torch(dir, text, n, steps, &torch)) {
        print_run("torch", &torch, json);
        if (!json)
            printf("fastweight / torch  learn %.2f  one by one %.2f\n",
                   torch.learn_s / mine.learn_s, torch.step_s / mine.step_s);
    }
    fw_model_free(m);
    fw_checkpoint_close(c);
    free(tokens);
}

int main(int argc, char **argv)
{
    int json = argc > 1 && strcmp(argv[1], "--json") == 0, at = 1 + json;
    double worst;

    if (argc > at + 2)
        fail("usage: bench/model [--json] [CHECKPOINT [TEXT]]");
    fw_num_init();
    fw_num_thread();
    if (fw_num_level() != FW_LEVEL_X86_64_V3)
        fail("the peak is measured on x86-64-v3 only");
    if (argc > at)
        whole_model(argv[at], argc > at + 1 ? argv[at + 1] : MODEL_TEXT, json);
    worst = projections(json);
    printf("model ratio=%.3f\n", worst);
    return 0;
}
