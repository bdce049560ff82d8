/* memory_testing.h - what the room's tests share: sessions, and bodies of random pairs. */
#ifndef MEMORY_TESTING_H
#define MEMORY_TESTING_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fastweight/memory.h"
#include "fastweight/num.h"

struct shape {
    const char *rule, *key_norm;
    size_t heads, d_k, d_v;
    double query_scale;
};

static inline struct fw_memory *make_memory(const struct shape *s)
{
    struct fw_params p = { 0 }, full;
    struct fw_memory *m = NULL;
    struct fw_err err = { .msg = "" };

    fw_params_set_string(&p, "rule", s->rule, NULL);
    fw_params_set_string(&p, "key_norm", s->key_norm, NULL);
    fw_params_set_number(&p, "heads", (double)s->heads, NULL);
    fw_params_set_number(&p, "d_k", (double)s->d_k, NULL);
    fw_params_set_number(&p, "d_v", (double)s->d_v, NULL);
    fw_params_set_number(&p, "query_scale", s->query_scale, NULL);
    ck_assert_msg(fw_memory_new(&m, &p, &full, &err) == 0, "%s", err.msg);
    return m;
}

static inline void *make_block(const struct fw_memory *m)
{
    void *block = aligned_alloc(64, fw_memory_layout(m)->block_bytes);

    fw_memory_init(m, block);
    return block;
}

/* The data of one field of a block. */
static inline void *field(const struct fw_memory *m, void *block, const char *name)
{
    return (char *)block + fw_layout_find(fw_memory_layout(m), name)->offset;
}

static inline float next_float(uint64_t *s) /* (-1, 1) */
{
    uint64_t z = *s += 0x9e3779b97f4a7c15u;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    return (float)((int64_t)z >> 40) * 0x1p-23f;
}

#define BODY_TENSORS 5

struct body { /* keys values queries beta log_g; data owned */
    size_t n;
    struct fw_tensors in;
    struct fw_tensor item[BODY_TENSORS];
    float *data[BODY_TENSORS];
};

static inline float *add_tensor(struct body *b, const char *name, size_t heads, size_t inner)
{
    struct fw_tensor *t = &b->item[b->in.count];
    size_t count = b->n * heads * (inner ? inner : 1);
    float *x = malloc(count * sizeof *x);

    *t = (struct fw_tensor){ .dtype = FW_F32,
                             .ndim = inner ? 3 : 2,
                             .shape = { b->n, heads, inner },
                             .data = x,
                             .bytes = count * sizeof *x };
    snprintf(t->name, sizeof t->name, "%s", name);
    b->data[b->in.count++] = x;
    b->in.item = b->item;
    return x;
}

/* n random admissible pairs: |k| about 1, beta in (0, 1), log_g in (-1, 0] for gated rules. */
static inline void make_body(struct body *b, const struct shape *s, size_t n, uint64_t seed)
{
    size_t rows = n * s->heads;
    float *x;

    *b = (struct body){ .n = n };
    x = add_tensor(b, "keys", s->heads, s->d_k);
    for (size_t i = 0; i < rows * s->d_k; i++)
        x[i] = next_float(&seed) / (float)s->d_k;
    x = add_tensor(b, "values", s->heads, s->d_v);
    for (size_t i = 0; i < rows * s->d_v; i++)
        x[i] = next_float(&seed);
    x = add_tensor(b, "queries", s->heads, s->d_k);
    for (size_t i = 0; i < rows * s->d_k; i++)
        x[i] = next_float(&seed);
    x = add_tensor(b, "beta", s->heads, 0);
    for (size_t i = 0; i < rows; i++)
        x[i] = 0.5f + 0.49f * next_float(&seed);
    if (strcmp(s->rule, "gated_delta") != 0)
        return;
    x = add_tensor(b, "log_g", s->heads, 0);
    for (size_t i = 0; i < rows; i++)
        x[i] = i % 3 ? -0.5f + 0.5f * next_float(&seed) : 0;
}

static inline void free_body(struct body *b)
{
    for (size_t i = 0; i < BODY_TENSORS; i++)
        free(b->data[i]);
}

#endif
