/* four.c - what a memory for a lifetime needs, as one table over all rules.
 *
 *   expressive   error on held-out keys of a target that is not linear (a network of 32 relu
 *                units), d = 8, after 4,096 pairs
 *   poly2        the same with the feature map poly2, for rules that take a map
 *   constant     ns of a token with its read at 32,768 pairs over that at 2,048; the state's
 *                bytes are constant by construction
 *   parallel     ns a token when learned one a call over 256 a call
 *   merges       error on held-out keys of linear regression with noise .01, d = 16, after
 *                1,024 pairs: only what merged the whole past comes near .01
 *   oldest       of 32 pairs (d = 64), how many of the oldest 8 are found
 *
 * Every rule as its table row has it, by name alone,
 * with keys of length 1; longer steps or better windows would move single numbers (the other
 * tables tune). */
#include "config.h"

#include "lab.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST 4096
#define HELD 256

struct room {
    float *k, *v, *q, *truth, *o;
};

/* v = B' relu(A' k), both random. */
static void relu_net(const float *k, size_t n, size_t d, float *v, uint64_t seed)
{
    float A[16 * 32], B[32 * 16], h[32];
    const struct lab_map first = { A, d, 32, 0 }, second = { B, 32, d, 0 };

    for (size_t i = 0; i < d * 32; i++) {
        A[i] = (float)lab_normal(&seed);
        B[i] = (float)lab_normal(&seed) / 4;
    }
    for (size_t t = 0; t < n; t++) {
        lab_linear(&first, k + t * d, 1, h, &seed);
        for (size_t i = 0; i < 32; i++)
            h[i] = h[i] > 0 ? h[i] : 0;
        lab_linear(&second, h, 1, v + t * d, &seed);
    }
}

static double scaled_error(const float *o, const float *v, size_t n)
{
    double ov = 0, oo = 0, vv = 0;

    for (size_t i = 0; i < n; i++) {
        ov += (double)o[i] * (double)v[i];
        oo += (double)o[i] * (double)o[i];
        vv += (double)v[i] * (double)v[i];
    }
    return oo > 0 ? 1 - ov * ov / (oo * vv) : 1;
}

static int learn(struct lab *l, size_t n, const struct room *x)
{
    return lab_try_learn(l, &(struct lab_pairs){ .n = n, .k = x->k, .v = x->v });
}

static double held_out(const struct lab_rule *r, struct room *x, size_t d, size_t n, int net)
{
    float W[16 * 16];
    uint64_t seed = 12345;
    struct lab l;
    double error = (double)NAN;

    if (lab_try_open(&l, r, 1, d, d) < 0)
        return (double)NAN;
    lab_units(x->k, n, d, &seed);
    lab_units(x->q, HELD, d, &seed);
    for (size_t i = 0; i < d * d; i++)
        W[i] = (float)lab_normal(&seed);
    if (net) {
        relu_net(x->k, n, d, x->v, 99);
        relu_net(x->q, HELD, d, x->truth, 99);
    } else {
        lab_linear(&(struct lab_map){ W, d, d, .1 }, x->k, n, x->v, &seed);
        lab_linear(&(struct lab_map){ W, d, d, .1 }, x->q, HELD, x->truth, &seed);
    }
    if (learn(&l, n, x) == 0) {
        lab_recall(&l, HELD, x->q, x->o);
        error = scaled_error(x->o, x->truth, HELD * d);
    }
    lab_close(&l);
    return error;
}

static double oldest(const struct lab_rule *r, struct room *x)
{
    uint64_t seed = 777;
    struct lab l;
    size_t found = 0, all = 0;

    if (lab_try_open(&l, r, 1, 64, 64) < 0)
        return (double)NAN;
    for (int turn = 0; turn < 10; turn++) {
        lab_clear(&l);
        lab_units(x->k, 32, 64, &seed);
        lab_units(x->v, 32, 64, &seed);
        if (learn(&l, 32, x) < 0)
            break;
        lab_recall(&l, 8, x->k, x->o);
        for (size_t t = 0; t < 8; t++, all++)
            found += lab_nearest(x->o + t * 64, x->v, 32, 64) == t;
    }
    lab_close(&l);
    return all ? (double)found / (double)all : (double)NAN;
}

/* The least ns of a token with its read, of several rounds: what else runs only adds. */
static double token_ns(struct lab *l, struct room *x, size_t calls, size_t n)
{
    double least = (double)INFINITY;

    for (int round = 0; round < 15; round++) {
        double start = lab_cpu_s(), ns;

        for (size_t c = 0; c < calls; c++)
            learn(l, n, x);
        lab_recall(l, calls * n, x->q, x->o);
        ns = 1e9 * (lab_cpu_s() - start) / (double)(calls * n);
        least = ns < least ? ns : least;
    }
    return least;
}

static void costs(const struct lab_rule *r, struct room *x, double *constant, double *parallel)
{
    uint64_t seed = 31;
    struct lab l;
    double early, single;

    *constant = *parallel = (double)NAN;
    if (lab_try_open(&l, r, 1, 32, 32) < 0)
        return;
    lab_units(x->k, 2048, 32, &seed);
    lab_units(x->v, 2048, 32, &seed);
    lab_units(x->q, HELD, 32, &seed);
    if (learn(&l, 2048, x) == 0) {
        early = token_ns(&l, x, 1, HELD);
        single = token_ns(&l, x, HELD, 1);
        for (size_t n = 2048; n < 32768; n += 2048)
            learn(&l, 2048, x);
        *constant = token_ns(&l, x, 1, HELD) / early;
        *parallel = single / early;
    }
    lab_close(&l);
}

/* A rule by its name, with what it cannot be judged without. */
static void set_up(struct lab_rule *r, const char *name)
{
    static const char *const copies[] = { "softmax", "window", "sinks", "heavy_hitter" };

    *r = (struct lab_rule){ name, name, { { "key_norm", "l2", 0 } }, 0 };
    for (size_t i = 0; i < 4; i++)
        if (strcmp(name, copies[i]) == 0) {
            r->config[1].key = "bandwidth";
            r->config[1].number = .05;
        }
    if (strstr(name, "product")) {
        r->config[1].key = "pairs_per_token";
        r->config[1].number = 1;
    } else if (strcmp(name, "linear_norm") == 0) {
        r->config[1].key = "feature_map";
        r->config[1].word = "elu+1";
    }
}

static void line(const char *name, struct room *x, FILE *f)
{
    struct lab_rule r, mapped;
    double constant, parallel, poly2;

    set_up(&r, name);
    mapped = r;
    mapped.config[strcmp(name, "linear_norm") == 0 ? 1 : 2].key = "feature_map";
    mapped.config[strcmp(name, "linear_norm") == 0 ? 1 : 2].word = "poly2";
    if (!mapped.config[1].key)
        mapped.config[1] = mapped.config[2];
    costs(&r, x, &constant, &parallel);
    poly2 = held_out(&mapped, x, 8, MOST, 1);
    fprintf(f, "%s\t%.3f", name, held_out(&r, x, 8, MOST, 1));
    if (poly2 == poly2)
        fprintf(f, "\t%.3f", poly2);
    else
        fprintf(f, "\t-");
    fprintf(f, "\t%.2f\t%.1f\t%.3f\t%.2f\n", constant, parallel, held_out(&r, x, 16, 1024, 0),
            oldest(&r, x));
    fflush(f);
}

void lab_four(const struct lab_out *out)
{
    FILE *f = lab_table(out, "four");
    struct room x = { lab_floats(MOST * 64), lab_floats(MOST * 64), lab_floats(HELD * 64),
                      lab_floats(HELD * 64), lab_floats(HELD * 64) };

    fprintf(f, "rule\texpressive\tpoly2\tconstant\tparallel\tmerges\toldest\n");
    for (size_t i = 0; fw_memory_rule(i); i++)
        line(fw_memory_rule(i), &x, f);
    fclose(f);
    free(x.k);
    free(x.v);
    free(x.q);
    free(x.truth);
    free(x.o);
}
