/* self.c - how many pairs a token should teach, and which.
 *
 * A stream x_t of length 1 in 32 dimensions: x_{t+1} is x_t turned a little (a fixed rotation
 * near the identity) plus noise, so neighbours are alike, as tokens of text or readings of a
 * sensor are. The memory shall say x_{t+1} from x_t; error before each update, relative and
 * squared, over tokens 1,000 to 2,000. `last` predicts that nothing changes. Each token teaches
 * one to four pairs with `delta_product` (one pair: delta):
 *
 *   next      x_{t-1} -> x_t
 *   again     next, given so many times
 *   replay    next and the pairs of the tokens before, oldest first
 *   copy      next after x_t -> x_t, another task in the same memory
 *   skip      next after x_{t-2} -> x_t, a longer step from another key */
#include "config.h"

#include "lab.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define D     32
#define T     2000
#define SEEDS 3

enum kind { LAST, NEXT, AGAIN, REPLAY, COPY, SKIP };
static const struct line {
    const char *name;
    enum kind kind;
    size_t pairs;
} lines[] = {
    { "last", LAST, 1 },     { "next", NEXT, 1 },     { "again", AGAIN, 2 },
    { "replay", REPLAY, 2 }, { "replay", REPLAY, 3 }, { "replay", REPLAY, 4 },
    { "copy", COPY, 2 },     { "skip", SKIP, 2 },
};

/* x (T, D): x_{t+1} = unit(R x_t + noise), R turns planes (2i, 2i + 1) by up to 0.3. */
static void draw(float *x, double noise, uint64_t seed)
{
    double angle[D / 2];

    seed *= 1000003;
    for (size_t i = 0; i < D / 2; i++)
        angle[i] = .3 * lab_uniform(&seed);
    lab_unit(x, D, &seed);
    for (size_t t = 1; t < T; t++) {
        const float *was = x + (t - 1) * D;
        float *is = x + t * D;
        double sum = 0;

        for (size_t i = 0; i < D; i++) {
            double c = cos(angle[i / 2]), s = sin(angle[i / 2]);
            double turned = i % 2 ? s * (double)was[i - 1] + c * (double)was[i]
                                  : c * (double)was[i] - s * (double)was[i + 1];

            turned += noise * lab_normal(&seed) / sqrt(D);
            is[i] = (float)turned;
            sum += turned * turned;
        }
        for (size_t i = 0; i < D; i++)
            is[i] = (float)((double)is[i] / sqrt(sum));
    }
}

/* Pair p of the pairs that token t teaches; the last is always x_{t-1} -> x_t. */
static void teach(const struct line *line, const float *x, size_t t, size_t p, float *k,
                  float *v)
{
    size_t left = line->pairs - 1 - p, from = t - 1, to = t;

    if (line->kind == REPLAY) {
        from -= left;
        to -= left;
    } else if (left > 0 && line->kind != AGAIN) {
        from = line->kind == COPY ? t : t - 2;
    }
    memcpy(k, x + from * D, D * sizeof *k);
    memcpy(v, x + to * D, D * sizeof *v);
}

static double error(const struct line *line, float beta, double noise, uint64_t seed)
{
    static const struct lab_rule one = { "delta", "delta", { { NULL, NULL, 0 } }, 0 };
    struct lab_rule many = {
        "delta_product", "delta_product", { { "pairs_per_token", NULL, 0 } }, 0
    };
    float *x = lab_floats(T * D), k[4 * D], v[4 * D], o[D] = { 0 }, betas[4];
    double sum = 0;
    struct lab l;

    draw(x, noise, seed);
    many.config[0].number = (double)line->pairs;
    lab_open(&l, line->pairs > 1 ? &many : &one, 1, D, D);
    for (size_t t = 8; t + 1 < T; t++) {
        for (size_t p = 0; p < line->pairs; p++) {
            teach(line, x, t, p, k + p * D, v + p * D);
            betas[p] = beta;
        }
        if (lab_try_learn(&l, &(struct lab_pairs){ 1, k, v, betas, NULL }) < 0)
            exit(1);
        lab_recall(&l, 1, x + t * D, o);
        if (t >= T / 2)
            sum += lab_relative(line->kind == LAST ? x + t * D : o, x + (t + 1) * D, D);
    }
    lab_close(&l);
    free(x);
    return sum / (T / 2);
}

void lab_self(const struct lab_out *out)
{
    static const double noises[] = { 0.05, 0.5 };
    FILE *f = lab_table(out, "self");

    fprintf(
        f, "pairs\ta token\tnoise .05, beta 1\tnoise .05, beta .3\tnoise .5, beta 1\tnoise .5, "
           "beta .3\n");
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        fprintf(f, "%s\t%zu", lines[i].name, lines[i].pairs);
        for (size_t j = 0; j < 4; j++) {
            double sum = 0;

            for (uint64_t seed = 1; seed <= SEEDS; seed++)
                sum += error(&lines[i], j % 2 ? .3f : .999999f, noises[j / 2], seed) / SEEDS;
            fprintf(f, "\t%.4f", sum);
        }
        fprintf(f, "\n");
    }
    fclose(f);
}
