/* words.c - the word problem of S3: can a memory follow swaps of three things?
 *
 * The state is S, (3, 3), which starts as the identity; each token is one of the six elements
 * of S3. Keys are made by hand, nothing is trained: swapping i and j is the reflection I - beta
 * k k' with k = (e_i - e_j) / sqrt 2, a delta step towards 0 with beta just below 2. Every
 * element is at most two swaps, so two pairs a token suffice; one pair a token has only one of
 * them. With beta at most 1 no eigenvalue is negative: a step projects, and forgets which was
 * which. Read: which thing is in each of the three places; right when all three are. */
#include "config.h"

#include "lab.h"

#include <math.h>
#include <string.h>

#define LONGEST 1024
#define WORDS   200

static const int swaps[6][2][2] = { /* pairs of places; {0, 0}: none */
                                    { { 0, 0 }, { 0, 0 } }, { { 0, 1 }, { 0, 0 } },
                                    { { 1, 2 }, { 0, 0 } }, { { 0, 2 }, { 0, 0 } },
                                    { { 0, 1 }, { 1, 2 } }, { { 1, 2 }, { 0, 1 } }
};

static const struct lab_rule one = { "one pair", "delta", { { NULL, NULL, 0 } }, 0 };
static const struct lab_rule two = {
    "two pairs", "delta_product", { { "pairs_per_token", NULL, 2 } }, 0
};

static void set_key(float *k, const int swap[2])
{
    memset(k, 0, 3 * sizeof *k);
    if (swap[0] == swap[1])
        return;
    k[swap[0]] = (float)sqrt(.5);
    k[swap[1]] = -(float)sqrt(.5);
}

/* S = I: e_i is shown with the value e_i. */
static void start(struct lab *l, size_t pairs)
{
    float k[3 * 2 * 3] = { 0 }, v[3 * 2 * 3] = { 0 }, beta[3 * 2] = { 1, 1, 1, 1, 1, 1 };

    for (size_t i = 0; i < 3; i++)
        k[i * pairs * 3 + i] = v[i * pairs * 3 + i] = 1;
    lab_clear(l);
    lab_try_learn(l, &(struct lab_pairs){ 3, k, v, beta, NULL });
}

static int right(struct lab *l, const int truth[3])
{
    static const float q[9] = { 1, 0, 0, 0, 1, 0, 0, 0, 1 };
    float o[9];
    int all = 1;

    lab_recall(l, 3, q, o);
    for (size_t i = 0; i < 3; i++)
        all = all && lab_nearest(o + i * 3, q, 3, 3) == (size_t)truth[i];
    return all;
}

/* Words of n tokens that end in the right state. */
static double followed(struct lab *l, size_t pairs, float beta_of_all, size_t n)
{
    static const float v[LONGEST * 2 * 3];
    float k[LONGEST * 2 * 3], beta[LONGEST * 2];
    size_t good = 0;

    for (uint64_t seed = 1; seed <= WORDS; seed++) {
        uint64_t s = seed * 1000003;
        int truth[3] = { 0, 1, 2 };

        for (size_t t = 0; t < n; t++) {
            size_t x = lab_below(&s, 6);

            for (size_t p = 0; p < 2; p++) {
                const int *swap = swaps[x][p];
                int was = truth[swap[0]];

                truth[swap[0]] = truth[swap[1]];
                truth[swap[1]] = was;
                if (p < pairs)
                    set_key(k + (t * pairs + p) * 3, swap);
            }
        }
        for (size_t i = 0; i < n * pairs; i++)
            beta[i] = beta_of_all;
        start(l, pairs);
        lab_try_learn(l, &(struct lab_pairs){ n, k, v, beta, NULL });
        good += (size_t)right(l, truth);
    }
    return (double)good / WORDS;
}

void lab_words(const struct lab_out *out)
{
    FILE *f = lab_table(out, "words");

    fprintf(f, "pairs a token\tbeta\t1\t4\t16\t64\t256\t1024\n");
    for (size_t i = 0; i < 4; i++) {
        size_t pairs = 1 + i / 2;
        float beta = i % 2 ? 1.999999f : 1;
        struct lab l;

        lab_open(&l, pairs == 1 ? &one : &two, 1, 3, 3);
        fprintf(f, "%zu\t%g", pairs, (double)beta);
        for (size_t n = 1; n <= LONGEST; n *= 4)
            fprintf(f, "\t%.2f", followed(&l, pairs, beta, n));
        fprintf(f, "\n");
        lab_close(&l);
    }
    fclose(f);
}
