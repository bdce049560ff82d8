/* recall.c - what one pass over pairs leaves behind: capacity, age, and the hard cases.
 *
 * d = 64, one head, keys and values random of length 1. Top-1: a key's read must have its
 * largest product with the key's own value, among all values of the stream. Hard cases: 48
 * independent keys; 48 keys with a cosine of 0.5; 24 keys bound four times, where the last
 * value counts among all 96; the newest 16 of 2048 pairs, among those 16. Drift: v = W'k +
 * noise of a hundredth of its power, W changes at token 300; relative squared error of the
 * prediction before each update. */
#include "config.h"

#include "lab.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define D     64
#define MOST  2048
#define DRIFT 600
#define UNIT                                                                                   \
    {                                                                                          \
        "key_norm", "l2", 0                                                                    \
    }

static const struct lab_rule rules[] = {
    { "Hebb", "linear", { UNIT }, 0 },
    { "Hebb, decay .99", "retention", { UNIT }, -0.01005 },
    { "delta, beta 1", "delta", { UNIT, { "beta", NULL, 1 } }, 0 },
    { "delta, beta .5", "delta", { UNIT, { "beta", NULL, .5 } }, 0 },
    { "gated delta, g .99", "gated_delta", { UNIT, { "beta", NULL, 1 } }, -0.01005 },
    { "longhorn", "longhorn", { UNIT }, 0 },
    { "momentum", "momentum", { UNIT, { "theta", NULL, .2 }, { "eta", NULL, .8 } }, 0 },
    { "Omega, c 8", "omega", { UNIT, { "window", NULL, 8 } }, 0 },
    { "Omega, c 16", "omega", { UNIT, { "window", NULL, 16 } }, 0 },
    { "Mesa, g 1", "mesa", { UNIT, { "lambda", NULL, .01 } }, 0 },
    { "Mesa, g .99", "mesa", { UNIT, { "lambda", NULL, .25 } }, -0.01005 },
    { "Hebb, DPFP-2", "linear", { UNIT, { "feature_map", "dpfp", 0 }, { "nu", NULL, 2 } }, 0 },
    { "delta, poly-2", "delta", { UNIT, { "feature_map", "poly2", 0 } }, 0 },
    { "titans, linear", "titans", { UNIT, { "theta", NULL, 16 }, { "eta", NULL, 0 } }, 0 },
    { "window 64", "window", { UNIT, { "window", NULL, 64 }, { "bandwidth", NULL, .05 } }, 0 },
    { "softmax",
      "softmax",
      { UNIT, { "max_pairs", NULL, MOST }, { "bandwidth", NULL, .05 } },
      0 },
};
#define RULES (sizeof rules / sizeof rules[0])

struct data { /* one stream; o: room for reads */
    float *k, *v, *o;
};

static struct data make(void)
{
    return (struct data){ lab_floats(MOST * D), lab_floats(MOST * D), lab_floats(MOST * D) };
}

static void done(struct data *d)
{
    free(d->k);
    free(d->v);
    free(d->o);
}

/* n keys with that cosine to each other, and n values. */
static void draw(struct data *d, size_t n, double cosine, uint64_t seed)
{
    float common[D];

    seed *= 1000003;
    lab_unit(common, D, &seed);
    lab_units(d->k, n, D, &seed);
    lab_units(d->v, n, D, &seed);
    for (size_t i = 0; i < n * D; i++)
        d->k[i] =
            (float)(sqrt(cosine) * (double)common[i % D] + sqrt(1 - cosine) * (double)d->k[i]);
}

/* Pairs [from, to) that are found among the values [first, first + count). */
static double found(struct lab *l, struct data *d, size_t from, size_t to, size_t first,
                    size_t count)
{
    size_t right = 0;

    lab_recall(l, to - from, d->k + from * D, d->o);
    for (size_t t = from; t < to; t++)
        right += lab_nearest(d->o + (t - from) * D, d->v + first * D, count, D) == t - first;
    return (double)right / (double)(to - from);
}

static double top_1(struct lab *l, struct data *d, size_t n, double cosine, uint64_t seeds)
{
    double sum = 0;

    for (uint64_t seed = 1; seed <= seeds; seed++) {
        draw(d, n, cosine, seed);
        lab_clear(l);
        lab_learn(l, n, d->k, d->v);
        sum += found(l, d, 0, n, 0, n);
    }
    return sum / (double)seeds;
}

static double overwritten(struct lab *l, struct data *d, uint64_t seeds)
{
    double sum = 0;

    for (uint64_t seed = 1; seed <= seeds; seed++) {
        draw(d, 96, 0, seed);
        for (size_t i = 1; i < 4; i++)
            memcpy(d->k + i * 24 * D, d->k, 24 * D * sizeof *d->k);
        lab_clear(l);
        lab_learn(l, 96, d->k, d->v);
        sum += found(l, d, 72, 96, 0, 96);
    }
    return sum / (double)seeds;
}

static double newest(struct lab *l, struct data *d, uint64_t seeds)
{
    double sum = 0;

    for (uint64_t seed = 1; seed <= seeds; seed++) {
        draw(d, MOST, 0, seed);
        lab_clear(l);
        lab_learn(l, MOST, d->k, d->v);
        sum += found(l, d, MOST - 16, MOST, MOST - 16, 16);
    }
    return sum / (double)seeds;
}

/* e[t]: mean over the seeds of the relative squared error before token t. */
static void drift(struct lab *l, struct data *d, uint64_t seeds, double *e)
{
    float *W = lab_floats(D * D);
    double residual[DRIFT];

    memset(e, 0, DRIFT * sizeof *e);
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        uint64_t s = seed * 7919;

        draw(d, DRIFT, 0, seed);
        for (size_t half = 0; half < 2; half++) {
            size_t from = half * DRIFT / 2 * D;

            for (size_t i = 0; i < D * D; i++)
                W[i] = (float)lab_normal(&s);
            lab_linear(&(struct lab_map){ W, D, D, .1 }, d->k + from, DRIFT / 2, d->v + from,
                       &s);
        }
        lab_clear(l);
        if (lab_try_learn(l, &(struct lab_pairs){ DRIFT, d->k, d->v, NULL, residual }) < 0)
            exit(1);
        for (size_t t = 0; t < DRIFT; t++) {
            double v = 0;

            for (size_t j = 0; j < D; j++)
                v += (double)d->v[t * D + j] * (double)d->v[t * D + j];
            e[t] += residual[t] * residual[t] / v / (double)seeds;
        }
    }
    free(W);
}

static double mean(const double *e, size_t from, size_t to)
{
    double sum = 0;

    for (size_t t = from; t < to; t++)
        sum += e[t];
    return sum / (double)(to - from);
}

static void age(struct lab *l, struct data *d, FILE *f)
{
    double sum[4] = { 0 };

    for (uint64_t seed = 1; seed <= 10; seed++) {
        draw(d, 128, 0, seed);
        lab_clear(l);
        lab_learn(l, 128, d->k, d->v);
        for (size_t q = 0; q < 4; q++)
            sum[q] += found(l, d, q * 32, q * 32 + 32, 0, 128) / 10;
    }
    fprintf(f, "%s\t%.2f\t%.2f\t%.2f\t%.2f\n", l->rule->name, sum[0], sum[1], sum[2], sum[3]);
}

void lab_capacity(const struct lab_out *out)
{
    FILE *f = lab_table(out, "capacity"), *g = lab_table(out, "age");
    struct data d = make();

    fprintf(f, "rule\tbytes\t16\t32\t64\t128\t256\t512\t1024\n");
    fprintf(g, "rule\toldest\tsecond\tthird\tnewest\n");
    for (size_t i = 0; i < RULES; i++) {
        struct lab l;

        if (lab_try_open(&l, &rules[i], 1, D, D) < 0)
            continue;
        fprintf(f, "%s\t%zu", rules[i].name, lab_bytes(&l));
        for (size_t n = 16; n <= 1024; n *= 2)
            fprintf(f, "\t%.2f", top_1(&l, &d, n, 0, 3));
        fprintf(f, "\n");
        age(&l, &d, g);
        lab_close(&l);
    }
    fclose(f);
    fclose(g);
    done(&d);
}

void lab_hard(const struct lab_out *out)
{
    FILE *f = lab_table(out, "hard"), *g = lab_table(out, "drift");
    struct data d = make();
    double(*e)[DRIFT] = calloc(RULES, sizeof *e);

    if (!e)
        lab_fail("hard", "out of memory");
    fprintf(f, "rule\tiid48\tcorr48\toverwritten\tnewest16\te<300\te310\te<600\n");
    for (size_t i = 0; i < RULES; i++) {
        struct lab l;

        if (lab_try_open(&l, &rules[i], 1, D, D) < 0)
            continue;
        drift(&l, &d, 3, e[i]);
        fprintf(f, "%s\t%.2f\t%.2f\t%.2f\t%.2f\t%.3f\t%.3f\t%.3f\n", rules[i].name,
                top_1(&l, &d, 48, 0, 10), top_1(&l, &d, 48, .5, 10), overwritten(&l, &d, 10),
                newest(&l, &d, 10), mean(e[i], 250, 300), mean(e[i], 310, 340),
                mean(e[i], 550, 600));
        lab_close(&l);
    }
    fprintf(g, "token");
    for (size_t i = 0; i < RULES; i++)
        fprintf(g, "\t%s", rules[i].name);
    for (size_t t = 0; t < DRIFT; t += 10) {
        fprintf(g, "\n%zu", t);
        for (size_t i = 0; i < RULES; i++)
            fprintf(g, "\t%.4f", mean(e[i], t, t + 10));
    }
    fprintf(g, "\n");
    free(e);
    fclose(f);
    fclose(g);
    done(&d);
}

/* ---- numbers that an independent program found (3 to 10 seeds), within 0.05 */

enum kind { CAPACITY, CORRELATED, OVERWRITTEN };
static const struct named {
    enum kind kind;
    const char *rule;
    double low, high; /* the number, or its range */
} named[] = {
    { CAPACITY, "Hebb", .98, .98 },
    { CAPACITY, "delta, beta .5", .86, .86 },
    { CAPACITY, "Mesa, g 1", 1, 1 },
    { CORRELATED, "Hebb", .14, .14 },
    { CORRELATED, "delta, beta 1", .35, .50 },
    { CORRELATED, "delta, beta .5", .35, .50 },
    { CORRELATED, "momentum", .83, .83 },
    { CORRELATED, "Omega, c 16", .97, .97 },
    { CORRELATED, "Mesa, g 1", 1, 1 },
    { OVERWRITTEN, "delta, beta 1", 1, 1 },
    { OVERWRITTEN, "gated delta, g .99", 1, 1 },
    { OVERWRITTEN, "Hebb", .26, .26 },
};

static double measure(const struct named *x, struct data *d)
{
    struct lab l;
    size_t i = 0;
    double r;

    while (strcmp(rules[i].name, x->rule) != 0)
        i++;
    lab_open(&l, &rules[i], 1, D, D);
    r = x->kind == CAPACITY     ? top_1(&l, d, 128, 0, 40)
        : x->kind == CORRELATED ? top_1(&l, d, 48, .5, 20)
                                : overwritten(&l, d, 20);
    lab_close(&l);
    return r;
}

void lab_named(const struct lab_out *out)
{
    static const char *const kind[] = { "128 pairs", "48 keys of cosine .5",
                                        "24 keys, 4 times" };
    FILE *f = out->dir ? lab_table(out, "named") : stdout;
    struct data d = make();
    int off = 0;

    fprintf(f, "case\trule\tfrom\tto\tmeasured\n");
    for (size_t i = 0; i < sizeof named / sizeof named[0]; i++) {
        const struct named *x = &named[i];
        double r = measure(x, &d);

        off += r < x->low - .05 || r > x->high + .05;
        fprintf(f, "%s\t%s\t%.2f\t%.2f\t%.3f\n", kind[x->kind], x->rule, x->low, x->high, r);
    }
    if (out->dir)
        fclose(f);
    done(&d);
    if (off)
        lab_fail("named", "a number is further than 0.05 from its reference");
}
