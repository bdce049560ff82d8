/* evict.c - eviction cannot form sufficient statistics.
 *
 * Linear regression, v = W'k + noise of a hundredth of v's power, keys random of length 1 in 16
 * dimensions, from a stream of up to 64 times the pairs that the evicting memories keep; these
 * have the bytes of a Mesa layer. Held-out keys tell regression from recall: `kept` is the
 * error at the newest pair's key, which any copy can repeat. Copies read with the bandwidth, of
 * seven, that is best for the number shown: no honest user could choose so well. The noise
 * floor is 0.01; predicting 0 costs 1. */
#include "config.h"

#include "lab.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define D      16
#define WINDOW 16
#define MOST   (64 * WINDOW)
#define HELD   256
#define SEEDS  10

#define COPIES 4 /* the first rows keep pairs as they are */
static const struct lab_rule rules[] = {
    { "window", "window", { { "window", NULL, WINDOW } }, 0 },
    { "sinks", "sinks", { { "window", NULL, WINDOW - 2 }, { "sinks", NULL, 2 } }, 0 },
    { "heavy_hitter",
      "heavy_hitter",
      { { "max_pairs", NULL, WINDOW }, { "recent", NULL, 8 } },
      0 },
    { "softmax, all pairs", "softmax", { { "max_pairs", NULL, MOST } }, 0 },
    { "Hebb", "linear", { { NULL, NULL, 0 } }, 0 },
    { "delta, beta .2", "delta", { { "beta", NULL, .2 } }, 0 },
    { "Omega, c 16", "omega", { { "window", NULL, 16 } }, 0 },
    { "Mesa", "mesa", { { "lambda", NULL, .01 } }, 0 },
};
#define RULES (sizeof rules / sizeof rules[0])

struct task { /* one seed's */
    float *k, *v, *q, *truth, *o;
};

static void draw(struct task *x, uint64_t seed)
{
    float W[D * D];
    const struct lab_map f = { W, D, D, .1 };

    seed *= 1000003;
    for (size_t i = 0; i < D * D; i++)
        W[i] = (float)lab_normal(&seed);
    lab_units(x->k, MOST, D, &seed);
    lab_units(x->q, HELD, D, &seed);
    lab_linear(&f, x->k, MOST, x->v, &seed);
    lab_linear(&f, x->q, HELD, x->truth, &seed);
}

/* error[i], kept[i] += after WINDOW << i pairs. Returns the bytes of the block. */
static size_t stream(const struct lab_rule *r, struct task *x, double *error, double *kept)
{
    struct lab l;
    size_t at = 0, i = 0, bytes;

    lab_open(&l, r, 1, D, D);
    for (size_t n = WINDOW; n <= MOST; n *= 2, i++) {
        lab_learn(&l, n - at, x->k + at * D, x->v + at * D);
        at = n;
        lab_recall(&l, HELD, x->q, x->o);
        error[i] += lab_relative(x->o, x->truth, HELD * D);
        lab_recall(&l, 1, x->k + (n - 1) * D, x->o);
        kept[i] += lab_relative(x->o, x->v + (n - 1) * D, D);
    }
    bytes = lab_bytes(&l);
    lab_close(&l);
    return bytes;
}

static void line(const struct lab_rule *r, int copies, struct task *x, FILE *f)
{
    static const double bandwidths[] = { .02, .05, .1, .2, .5, 1, 2 };
    double best[7], kept = (double)INFINITY;
    size_t bytes = 0;

    for (size_t b = 0; b < (copies ? 7 : 1); b++) {
        struct lab_rule tuned = *r;
        double error[7] = { 0 }, near[7] = { 0 };
        size_t i = 0;

        while (tuned.config[i].key)
            i++;
        if (copies) {
            tuned.config[i].key = "bandwidth";
            tuned.config[i].number = bandwidths[b];
        }
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
            draw(x, seed);
            bytes = stream(&tuned, x, error, near);
        }
        for (i = 0; i < 7; i++)
            best[i] = b == 0 || error[i] < best[i] ? error[i] : best[i];
        kept = near[6] < kept ? near[6] : kept;
    }
    fprintf(f, "%s\t%zu", r->name, bytes);
    for (size_t i = 0; i < 7; i++)
        fprintf(f, "\t%.3f", best[i] / SEEDS);
    fprintf(f, "\t%.3f\n", kept / SEEDS);
}

void lab_evict(const struct lab_out *out)
{
    FILE *f = lab_table(out, "evict");
    struct task x = { lab_floats(MOST * D), lab_floats(MOST * D), lab_floats(HELD * D),
                      lab_floats(HELD * D), lab_floats(HELD * D) };

    fprintf(f, "rule\tbytes\t16\t32\t64\t128\t256\t512\t1024\tkept\n");
    for (size_t i = 0; i < RULES; i++)
        line(&rules[i], i < COPIES, &x, f);
    fclose(f);
    free(x.k);
    free(x.v);
    free(x.q);
    free(x.truth);
    free(x.o);
}
