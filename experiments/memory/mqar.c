/* mqar.c - multi-query associative recall on random embeddings, and its forgetting form.
 *
 * zoology's MQAR without trained projections: each key id and each of 4,096 value ids has a
 * random embedding of length 1 (d = 64); n pairs with keys and values drawn without replacement
 * are written, then every key is asked once and the answer is the value id with the largest
 * product. forgetting: half of the n keys get a new value after all n were written; the last
 * value counts, and all keys are asked. */
#include "config.h"

#include "lab.h"

#include <stdlib.h>
#include <string.h>

#define D      64
#define VALUES 4096
#define MOST   256
#define SEEDS  5

static const struct lab_rule rules[] = {
    { "Hebb", "linear", { { NULL, NULL, 0 } }, 0 },
    { "Hebb, decay .99", "retention", { { NULL, NULL, 0 } }, -0.01005 },
    { "delta, beta 1", "delta", { { "beta", NULL, 1 } }, 0 },
    { "delta, beta .5", "delta", { { "beta", NULL, .5 } }, 0 },
    { "gated delta, g .99", "gated_delta", { { "beta", NULL, 1 } }, -0.01005 },
    { "momentum", "momentum", { { "theta", NULL, .2 }, { "eta", NULL, .8 } }, 0 },
    { "Omega, c 16", "omega", { { "window", NULL, 16 } }, 0 },
    { "Mesa, g 1", "mesa", { { "lambda", NULL, .01 } }, 0 },
    { "Mesa, g .99", "mesa", { { "lambda", NULL, .25 } }, -0.01005 },
    { "delta, poly-2", "delta", { { "feature_map", "poly2", 0 } }, 0 },
    { "window 64", "window", { { "window", NULL, 64 }, { "bandwidth", NULL, .05 } }, 0 },
    { "softmax", "softmax", { { "max_pairs", NULL, 1024 }, { "bandwidth", NULL, .05 } }, 0 },
};

struct table {            /* embeddings, and one sequence */
    float *keys, *values; /* (MOST, D), (VALUES, D) */
    float *k, *v, *o;     /* (2 MOST, D) */
    size_t value[MOST];   /* the id that counts, by key */
    size_t deck[VALUES];  /* value ids, the first ones drawn */
};

/* Writes n pairs, then `updates` again with new values. Returns the tokens. */
static size_t draw(struct table *x, size_t n, size_t updates, uint64_t seed)
{
    seed *= 1000003;
    lab_units(x->keys, n, D, &seed);
    lab_units(x->values, VALUES, D, &seed);
    for (size_t i = 0; i < VALUES; i++)
        x->deck[i] = i;
    for (size_t t = 0; t < n + updates; t++) {
        size_t key = t % n, at = t + lab_below(&seed, VALUES - t), id = x->deck[at];

        x->deck[at] = x->deck[t];
        x->value[key] = id;
        memcpy(x->k + t * D, x->keys + key * D, D * sizeof *x->k);
        memcpy(x->v + t * D, x->values + id * D, D * sizeof *x->v);
    }
    return n + updates;
}

static double accuracy(struct lab *l, struct table *x, size_t n, size_t updates)
{
    size_t right = 0;

    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        size_t tokens = draw(x, n, updates, seed);

        lab_clear(l);
        lab_learn(l, tokens, x->k, x->v);
        lab_recall(l, n, x->keys, x->o);
        for (size_t i = 0; i < n; i++)
            right += lab_nearest(x->o + i * D, x->values, VALUES, D) == x->value[i];
    }
    return (double)right / (double)(SEEDS * n);
}

static void table(const struct lab_out *out, const char *name, size_t updates_of_4,
                  struct table *x)
{
    FILE *f = lab_table(out, name);

    fprintf(f, "rule\t8\t16\t32\t64\t128\t256\n");
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        struct lab l;

        lab_open(&l, &rules[i], 1, D, D);
        fprintf(f, "%s", rules[i].name);
        for (size_t n = 8; n <= MOST; n *= 2)
            fprintf(f, "\t%.2f", accuracy(&l, x, n, n * updates_of_4 / 4));
        fprintf(f, "\n");
        lab_close(&l);
    }
    fclose(f);
}

void lab_mqar(const struct lab_out *out)
{
    struct table *x = calloc(1, sizeof *x);

    if (!x)
        lab_fail("mqar", "out of memory");
    x->keys = lab_floats(MOST * D);
    x->values = lab_floats(VALUES * D);
    x->k = lab_floats(2 * MOST * D);
    x->v = lab_floats(2 * MOST * D);
    x->o = lab_floats(2 * MOST * D);
    table(out, "mqar", 0, x);
    table(out, "mqar_forgetting", 2, x);
    free(x->keys);
    free(x->values);
    free(x->k);
    free(x->v);
    free(x->o);
    free(x);
}
