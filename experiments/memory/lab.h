/* lab.h - what the experiments share: sessions of a rule, random numbers, tables.
 *
 * Experiments are not the daemon: whatever fails ends the program with a message. */
#ifndef LAB_H
#define LAB_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "fastweight/memory.h"

struct lab_rule { /* a rule with its settings, under the name that tables print */
    const char *name, *rule;
    struct {
        const char *key, *word; /* word NULL: a number; key NULL: the end */
        double number;
    } config[6];
    double log_g; /* given with every pair when not 0 */
};

struct lab { /* a session; one thread */
    const struct lab_rule *rule;
    struct fw_memory *memory;
    void *block;
    size_t heads, d_k, d_v;
};

/* -1 when the rule cannot be had in that shape; lab_open ends the program then. */
int lab_try_open(struct lab *l, const struct lab_rule *r, size_t heads, size_t d_k, size_t d_v);
void lab_open(struct lab *l, const struct lab_rule *r, size_t heads, size_t d_k, size_t d_v);
void lab_close(struct lab *l);
void lab_clear(struct lab *l); /* as if just opened */
size_t lab_bytes(const struct lab *l);

/* n tokens: k (n, pairs, heads, d_k), v (n, pairs, heads, d_v); beta (n, pairs, heads),
 * residual (n, heads) or NULL. */
struct lab_pairs {
    size_t n;
    const float *k, *v, *beta;
    double *residual;
};
int lab_try_learn(struct lab *l, const struct lab_pairs *p);
void lab_learn(struct lab *l, size_t n, const float *k, const float *v);
void lab_recall(struct lab *l, size_t n, const float *q, float *o); /* o (n, heads, d_v) */

double lab_uniform(uint64_t *seed); /* [0, 1) */
size_t lab_below(uint64_t *seed, size_t n);
double lab_normal(uint64_t *seed);
void lab_unit(float *x, size_t n, uint64_t *seed);
void lab_units(float *x, size_t rows, size_t n, uint64_t *seed);
struct lab_map {    /* y = W'x + noise * normal */
    const float *W; /* (d_k, d_v) */
    size_t d_k, d_v;
    double noise;
};
void lab_linear(const struct lab_map *f, const float *x, size_t rows, float *y, uint64_t *seed);
/* The row of c (count, d) with the largest product with o. */
size_t lab_nearest(const float *o, const float *c, size_t count, size_t d);
double lab_relative(const float *o, const float *v, size_t n); /* |o - v|^2 / |v|^2 */

float *lab_floats(size_t n); /* zero */
void lab_fail(const char *what, const char *why);
double lab_cpu_s(void);

/* ---- experiments: each writes out/NAME.tsv */
struct lab_out {
    const char *dir;
};
FILE *lab_table(const struct lab_out *out, const char *name);
void lab_named(const struct lab_out *out); /* ends the program where a number is off */
void lab_capacity(const struct lab_out *out);
void lab_hard(const struct lab_out *out);
void lab_mqar(const struct lab_out *out);
void lab_schlag(const struct lab_out *out);
void lab_words(const struct lab_out *out);
void lab_heads(const struct lab_out *out);
void lab_self(const struct lab_out *out);
void lab_evict(const struct lab_out *out);
void lab_four(const struct lab_out *out);

#endif
