/* lab.c - sessions and numbers for the experiments, through the library a user links.
 *
 * Randomness is a 64-bit mix of a counter, so a table is the same wherever log and cos are.
 * What a rule requires beside keys and values is filled in here with the values that make it a
 * plain memory: gates of 0.99, a = -k and b = k (then dplr, iplr and wkv7 are delta rules with
 * a step of 1 for keys of length 1). */
#include "config.h"

#include "lab.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TENSORS 16
#define GATE    (-0.01005033585350145) /* log 0.99 */

void lab_fail(const char *what, const char *why)
{
    fprintf(stderr, "experiments: %s: %s\n", what, why);
    exit(1);
}

float *lab_floats(size_t n)
{
    float *x = calloc(n ? n : 1, sizeof *x);

    if (!x)
        lab_fail("lab", "out of memory");
    return x;
}

double lab_cpu_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

FILE *lab_table(const struct lab_out *out, const char *name)
{
    char path[512];
    FILE *f;

    snprintf(path, sizeof path, "%s/%s.tsv", out->dir, name);
    f = fopen(path, "w");
    if (!f)
        lab_fail(path, "cannot be written");
    return f;
}

/* ---- random numbers */

static uint64_t mix(uint64_t *seed)
{
    uint64_t z = *seed += 0x9e3779b97f4a7c15u;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

double lab_uniform(uint64_t *seed)
{
    return (double)(mix(seed) >> 11) * 0x1p-53;
}

size_t lab_below(uint64_t *seed, size_t n)
{
    return (size_t)(lab_uniform(seed) * (double)n);
}

double lab_normal(uint64_t *seed)
{
    double u = 1 - lab_uniform(seed), angle = 6.283185307179586 * lab_uniform(seed);

    return sqrt(-2 * log(u)) * cos(angle);
}

void lab_unit(float *x, size_t n, uint64_t *seed)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++) {
        x[i] = (float)lab_normal(seed);
        sum += (double)x[i] * (double)x[i];
    }
    for (size_t i = 0; i < n; i++)
        x[i] = (float)((double)x[i] / sqrt(sum));
}

void lab_units(float *x, size_t rows, size_t n, uint64_t *seed)
{
    for (size_t i = 0; i < rows; i++)
        lab_unit(x + i * n, n, seed);
}

void lab_linear(const struct lab_map *f, const float *x, size_t rows, float *y, uint64_t *seed)
{
    for (size_t t = 0; t < rows; t++)
        for (size_t j = 0; j < f->d_v; j++) {
            double sum = f->noise > 0 ? f->noise * lab_normal(seed) : 0;

            for (size_t i = 0; i < f->d_k; i++)
                sum += (double)x[t * f->d_k + i] * (double)f->W[i * f->d_v + j];
            y[t * f->d_v + j] = (float)sum;
        }
}

size_t lab_nearest(const float *o, const float *c, size_t count, size_t d)
{
    size_t best = 0;
    float top = -INFINITY;

    for (size_t i = 0; i < count; i++) {
        float sum = 0;

        for (size_t j = 0; j < d; j++)
            sum += o[j] * c[i * d + j];
        best = sum > top ? i : best;
        top = sum > top ? sum : top;
    }
    return best;
}

double lab_relative(const float *o, const float *v, size_t n)
{
    double off = 0, all = 0;

    for (size_t i = 0; i < n; i++) {
        double d = (double)o[i] - (double)v[i];

        off += d * d;
        all += (double)v[i] * (double)v[i];
    }
    return off / all;
}

/* ---- sessions */

int lab_try_open(struct lab *l, const struct lab_rule *r, size_t heads, size_t d_k, size_t d_v)
{
    struct fw_params p = { 0 }, full;
    struct fw_err err = { .msg = "" };

    *l = (struct lab){ .rule = r, .heads = heads, .d_k = d_k, .d_v = d_v };
    fw_params_set_string(&p, "rule", r->rule, NULL);
    fw_params_set_number(&p, "heads", (double)heads, NULL);
    fw_params_set_number(&p, "d_k", (double)d_k, NULL);
    fw_params_set_number(&p, "d_v", (double)d_v, NULL);
    for (size_t i = 0; i < 6 && r->config[i].key; i++)
        if (r->config[i].word)
            fw_params_set_string(&p, r->config[i].key, r->config[i].word, NULL);
        else
            fw_params_set_number(&p, r->config[i].key, r->config[i].number, NULL);
    if (fw_memory_new(&l->memory, &p, &full, &err) < 0) {
        fprintf(stderr, "experiments: %s: %s\n", r->name, err.msg);
        return -1;
    }
    l->block = aligned_alloc(64, fw_memory_layout(l->memory)->block_bytes);
    if (!l->block)
        lab_fail(r->name, "out of memory");
    lab_clear(l);
    return 0;
}

void lab_open(struct lab *l, const struct lab_rule *r, size_t heads, size_t d_k, size_t d_v)
{
    if (lab_try_open(l, r, heads, d_k, d_v) < 0)
        exit(1);
}

void lab_close(struct lab *l)
{
    free(l->block);
    fw_memory_free(l->memory);
}

void lab_clear(struct lab *l)
{
    fw_memory_init(l->memory, l->block);
}

size_t lab_bytes(const struct lab *l)
{
    return fw_memory_layout(l->memory)->block_bytes;
}

/* An input that is neither keys nor values, (n, ...); NULL: leave it out. */
static float *fill(const struct lab *l, const struct fw_memory_input *in,
                   const struct lab_pairs *p, size_t count)
{
    int gate = strcmp(in->name, "log_g") == 0, beta = strcmp(in->name, "beta") == 0;
    float *x, value;

    if (strcmp(in->name, "queries") == 0 ||
        !(in->required || (gate && l->rule->log_g < 0) || (beta && p->beta)))
        return NULL;
    x = lab_floats(count);
    if (strcmp(in->name, "a") == 0 || strcmp(in->name, "b") == 0) {
        if (count != p->n * l->heads * l->d_k) { /* of a mapped key: not known here */
            free(x);
            return NULL;
        }
        for (size_t i = 0; i < count; i++)
            x[i] = in->name[0] == 'a' ? -p->k[i] : p->k[i];
        return x;
    }
    value = (float)(l->rule->log_g < 0 ? l->rule->log_g : GATE);
    if (strcmp(in->name, "w") == 0)
        value = logf(-value); /* the gate is exp(-exp(w)) */
    else if (strcmp(in->name, "dt") == 0)
        value = in->ndim == 2 ? 1 : 4; /* mamba2; longhorn, through a sigmoid */
    else if (!gate && !beta) {
        free(x);
        return NULL;
    }
    for (size_t i = 0; i < count; i++)
        x[i] = beta ? p->beta[i] : value;
    return x;
}

static size_t count_of(const struct fw_memory_input *in, size_t n)
{
    for (uint32_t d = 1; d < in->ndim; d++)
        n *= (size_t)in->shape[d];
    return n;
}

int lab_try_learn(struct lab *l, const struct lab_pairs *p)
{
    struct fw_tensor item[TENSORS];
    float *own[TENSORS] = { NULL };
    struct fw_tensors body = { 0, item };
    struct fw_memory_input in;
    struct fw_err err = { .msg = "" };
    size_t n;
    int rc;

    for (size_t i = 0; i < TENSORS && fw_memory_input(l->memory, i, &in) == 0; i++) {
        size_t count = count_of(&in, p->n);
        const float *x = i == 0 ? p->k : i == 1 ? p->v : (own[i] = fill(l, &in, p, count));

        if (!x)
            continue;
        item[body.count] = (struct fw_tensor){
            .dtype = FW_F32, .ndim = in.ndim, .data = x, .bytes = count * sizeof *x
        };
        memcpy(item[body.count].shape, in.shape, sizeof in.shape);
        item[body.count].shape[0] = p->n;
        snprintf(item[body.count++].name, FW_NAME_MAX, "%s", in.name);
    }
    rc = fw_memory_check(l->memory, &body, &n, &err);
    if (rc == 0)
        fw_memory_learn(l->memory, l->block, &body, 0, p->n, p->residual, NULL);
    else
        fprintf(stderr, "experiments: %s: %s\n", l->rule->name, err.msg);
    for (size_t i = 0; i < TENSORS; i++)
        free(own[i]);
    return rc;
}

void lab_learn(struct lab *l, size_t n, const float *k, const float *v)
{
    if (n > 0 && lab_try_learn(l, &(struct lab_pairs){ .n = n, .k = k, .v = v }) < 0)
        exit(1);
}

void lab_recall(struct lab *l, size_t n, const float *q, float *o)
{
    struct fw_tensor t = { "queries", FW_F32,
                           3,         { n, l->heads, l->d_k },
                           q,         n * l->heads * l->d_k * sizeof *q };
    struct fw_tensors body = { 1, &t };
    struct fw_err err = { .msg = "" };
    size_t checked;

    if (fw_memory_check_queries(l->memory, &body, &checked, &err) < 0)
        lab_fail(l->rule->name, err.msg);
    fw_memory_recall(l->memory, l->block, &body, 0, n, o);
}
