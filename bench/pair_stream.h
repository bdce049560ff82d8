/* pair_stream.h - what the benchmarks of rules share: a session of any rule with a body of
 * random pairs, made from the inputs its plan names, the thread's CPU clock, and the peak. */
#ifndef BENCH_PAIR_STREAM_H
#define BENCH_PAIR_STREAM_H

#include "fastweight/memory.h"

#define BENCH_TENSORS 16

struct bench_stream {
    struct fw_memory *memory;
    void *block;
    size_t n; /* tokens of the body */
    struct fw_tensors body;
    struct fw_tensor item[BENCH_TENSORS];
    float *values;     /* (n, heads, d_v): room for reads */
    char skipped[256]; /* why open failed */
};

/* heads memories of d x d; max_pairs > 0: a key of that name is set where the rule has it. The
 * body has keys, values, queries, what is required, and gates. -1 with s->skipped. */
int bench_open(struct bench_stream *s, const char *rule, size_t heads, size_t d, size_t n,
               size_t max_pairs);
void bench_close(struct bench_stream *s);

void *bench_alloc(size_t bytes); /* 64-byte aligned, zero; exits when there is none */
void bench_fail(const char *what);
double bench_cpu_s(void);
double bench_peak(void); /* multiply-adds a second of one core; 0 where unknown */
double bench_median(double *x, size_t n);

#endif
