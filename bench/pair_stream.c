/* pair_stream.c - sessions and bodies for benchmarks that know no rule by name.
 *
 * Elements: keys and other vectors around 0 have a length below 1, so that no step lengthens a
 * state; gates (log_g, at most 0) are about -0.01; all else lies in [0, 1] where its range
 * allows. Inputs that are not required are left out, but for gates: a rule with a gate shall
 * pay for it. */
#include "config.h"

#include "pair_stream.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define PEAK_RUNS 20000

void bench_fail(const char *what)
{
    fprintf(stderr, "bench: %s\n", what);
    exit(1);
}

void *bench_alloc(size_t bytes)
{
    size_t whole = (bytes + 63) / 64 * 64;
    void *x = aligned_alloc(64, whole);

    if (!x)
        bench_fail("out of memory");
    return memset(x, 0, whole);
}

double bench_cpu_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#if defined(__x86_64__)
/* Twelve chains of 8-lane fma: more than latency times units, so the units are the limit.
 * Each has a name: gcc -O2 kept an array of them in memory, at half the speed. */
__attribute__((target("avx2,fma"), noinline)) double bench_peak(void)
{
    __m256 a = _mm256_set1_ps(1), b = a, c = a, d = a, e = a, f = a, g = a, h = a, i = a, j = a,
           k = a, l = a;
    const __m256 x = _mm256_set1_ps(0.999f), y = _mm256_set1_ps(1e-3f);
    double start = bench_cpu_s();

#define STEP(r)                                                                                \
    r = _mm256_fmadd_ps(r, x, y);                                                              \
    __asm__ volatile("" : "+x"(r))
    for (int n = 0; n < PEAK_RUNS; n++) {
        STEP(a);
        STEP(b);
        STEP(c);
        STEP(d);
        STEP(e);
        STEP(f);
        STEP(g);
        STEP(h);
        STEP(i);
        STEP(j);
        STEP(k);
        STEP(l);
    }
#undef STEP
    return 12.0 * 8 * PEAK_RUNS / (bench_cpu_s() - start);
}
#else
double bench_peak(void)
{
    return 0;
}
#endif

static int compare(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

double bench_median(double *x, size_t n)
{
    qsort(x, n, sizeof *x, compare);
    return x[n / 2];
}

static void fill(float *x, size_t n, const struct fw_memory_input *in, uint32_t *u)
{
    size_t inner = (size_t)in->shape[in->ndim - 1];
    int vector = in->min < 0 && in->max > 0, gate = in->min < 0 && !vector;

    for (size_t i = 0; i < n; i++) {
        float r;

        *u = *u * 1664525u + 1013904223u;
        r = (float)(*u >> 8) * 0x1p-24f;
        if (gate)
            x[i] = -0.02f * r;
        else if (vector)
            x[i] = (2 * r - 1) / (float)inner;
        else
            x[i] = in->max < 1 ? r * in->max : r;
    }
}

static void add_tensors(struct bench_stream *s)
{
    struct fw_memory_input in;
    uint32_t u = 1;

    for (size_t i = 0; fw_memory_input(s->memory, i, &in) == 0; i++) {
        struct fw_tensor *t = &s->item[s->body.count];
        size_t count = s->n;
        float *x;

        if (i > 2 && !in.required && strcmp(in.name, "log_g") != 0)
            continue;
        *t = (struct fw_tensor){ .dtype = FW_F32, .ndim = in.ndim };
        snprintf(t->name, sizeof t->name, "%s", in.name);
        memcpy(t->shape, in.shape, sizeof t->shape);
        t->shape[0] = s->n;
        for (uint32_t d = 1; d < in.ndim; d++)
            count *= (size_t)in.shape[d];
        x = bench_alloc(count * sizeof *x);
        fill(x, count, &in, &u);
        t->data = x;
        t->bytes = count * sizeof *x;
        s->body.count++;
    }
    s->body.item = s->item;
}

static int plan(struct bench_stream *s, const char *rule, size_t heads, size_t d,
                size_t max_pairs, struct fw_err *err)
{
    struct fw_params p = { 0 }, full;

    if (fw_params_set_string(&p, "rule", rule, err) < 0 ||
        fw_params_set_number(&p, "heads", (double)heads, err) < 0 ||
        fw_params_set_number(&p, "d_k", (double)d, err) < 0 ||
        fw_params_set_number(&p, "d_v", (double)d, err) < 0)
        return -1;
    if (max_pairs > 0 && fw_params_set_number(&p, "max_pairs", (double)max_pairs, err) < 0)
        return -1;
    return fw_memory_new(&s->memory, &p, &full, err);
}

int bench_open(struct bench_stream *s, const char *rule, size_t heads, size_t d, size_t n,
               size_t max_pairs)
{
    struct fw_err err = { .msg = "" };
    size_t checked;

    *s = (struct bench_stream){ .n = n };
    if (plan(s, rule, heads, d, max_pairs, &err) < 0) {
        snprintf(s->skipped, sizeof s->skipped, "%s", err.msg);
        return -1;
    }
    add_tensors(s);
    if (fw_memory_check(s->memory, &s->body, &checked, &err) < 0) {
        snprintf(s->skipped, sizeof s->skipped, "%s", err.msg);
        bench_close(s);
        return -1;
    }
    s->block = bench_alloc(fw_memory_layout(s->memory)->block_bytes);
    fw_memory_init(s->memory, s->block);
    s->values = bench_alloc(n * heads * d * sizeof *s->values);
    return 0;
}

void bench_close(struct bench_stream *s)
{
    for (size_t i = 0; i < s->body.count; i++)
        free((void *)(uintptr_t)s->item[i].data);
    s->body.count = 0;
    free(s->values);
    free(s->block);
    fw_memory_free(s->memory);
}
