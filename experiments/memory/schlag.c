/* schlag.c - the capacity and update tests of Schlag et al. (2102.11174), without training.
 *
 * S keys of 64 dimensions with one-hot values; all are asked; loss 1/2 |m(k) - v|^2 averaged
 * over the keys, 0.5 where nothing was learned. update: the sequence is 2 S long, keys drawn
 * with replacement, the last value of a key counts. In the paper keys are trained end to end;
 * here they are random and of length 1, so losses are larger, and the order of rules and maps
 * is what can be compared. `linear_norm` is the paper's sum rule with attention normalisation.
 */
#include "config.h"

#include "lab.h"

#include <stdlib.h>
#include <string.h>

#define D     64
#define MOST  600
#define SEEDS 2

static const struct lab_rule rules[] = {
    { "sum, elu+1", "linear_norm", { { "feature_map", "elu+1", 0 } }, 0 },
    { "sum, DPFP-1", "linear_norm", { { "feature_map", "dpfp", 0 }, { "nu", NULL, 1 } }, 0 },
    { "sum, DPFP-3", "linear_norm", { { "feature_map", "dpfp", 0 }, { "nu", NULL, 3 } }, 0 },
    { "delta, identity", "delta", { { "beta", NULL, 1 } }, 0 },
    { "delta, elu+1", "delta", { { "feature_map", "elu+1", 0 }, { "beta", NULL, .01 } }, 0 },
    { "delta, DPFP-1", "delta", { { "feature_map", "dpfp", 0 }, { "nu", NULL, 1 } }, 0 },
    { "delta, poly-2", "delta", { { "feature_map", "poly2", 0 } }, 0 },
    { "Mesa, identity", "mesa", { { "lambda", NULL, .01 } }, 0 },
    { "softmax",
      "softmax",
      { { "max_pairs", NULL, 2 * MOST }, { "bandwidth", NULL, .05 } },
      0 },
};

struct room {
    float *keys, *k, *v, *o;
    size_t value[MOST];
};

static double loss(struct lab *l, size_t S, int update, struct room *x)
{
    double sum = 0;

    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        uint64_t s = seed * 1000003;
        size_t tokens = update ? 2 * S : S, asked = 0;
        double one = 0;

        lab_units(x->keys, S, D, &s);
        memset(x->v, 0, tokens * S * sizeof *x->v);
        for (size_t i = 0; i < S; i++)
            x->value[i] = S; /* not shown yet */
        for (size_t t = 0; t < tokens; t++) {
            size_t key = update ? lab_below(&s, S) : t;

            x->value[key] = update ? lab_below(&s, S) : t;
            x->v[t * S + x->value[key]] = 1;
            memcpy(x->k + t * D, x->keys + key * D, D * sizeof *x->k);
        }
        lab_clear(l);
        lab_learn(l, tokens, x->k, x->v);
        lab_recall(l, S, x->keys, x->o);
        for (size_t i = 0; i < S; i++) {
            if (x->value[i] == S)
                continue;
            x->o[i * S + x->value[i]] -= 1;
            for (size_t j = 0; j < S; j++)
                one += .5 * (double)x->o[i * S + j] * (double)x->o[i * S + j];
            asked++;
        }
        sum += one / (double)asked / SEEDS;
    }
    return sum;
}

static void table(const struct lab_out *out, const char *name, int update, struct room *x)
{
    static const size_t S[] = { 20, 40, 60, 80, 120, 200, 400, 600 };
    FILE *f = lab_table(out, name);

    fprintf(f, "rule\t20\t40\t60\t80\t120\t200\t400\t600\n");
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        fprintf(f, "%s", rules[i].name);
        for (size_t j = 0; j < 8; j++) {
            struct lab l;

            lab_open(&l, &rules[i], 1, D, S[j]);
            fprintf(f, "\t%.3f", loss(&l, S[j], update, x));
            lab_close(&l);
        }
        fprintf(f, "\n");
    }
    fclose(f);
}

void lab_schlag(const struct lab_out *out)
{
    struct room x = { lab_floats(MOST * D),
                      lab_floats(2 * MOST * D),
                      lab_floats(2 * MOST * MOST),
                      lab_floats(MOST * MOST),
                      { 0 } };

    table(out, "schlag_capacity", 0, &x);
    table(out, "schlag_update", 1, &x);
    free(x.keys);
    free(x.k);
    free(x.v);
    free(x.o);
}
