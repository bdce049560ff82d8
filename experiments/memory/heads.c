/* heads.c - heads as a regulariser: fit of what was learned against error on what was not.
 *
 * Regression from 64 to 64 dimensions with noise of a quarter of the signal's power. With H
 * heads each sees 64 / H elements of the key and predicts 64 / H of the value, so the state
 * shrinks as 1 / H. The truth is either dense, or made of 8 blocks that heads up to 8 can
 * express. The memory is a Mesa layer with almost no ridge (lambda 1e-3), which without heads
 * can fit any 64 pairs: what regularises is the heads alone. */
#include "config.h"

#include "lab.h"

#include <math.h>
#include <stdlib.h>

#define D     64
#define HELD  256
#define SEEDS 5

static const struct lab_rule mesa = { "Mesa", "mesa", { { "lambda", NULL, 1e-3 } }, 0 };

struct room {
    float *k, *v, *q, *truth, *o;
};

static void draw(struct room *x, size_t n, size_t blocks, uint64_t seed)
{
    static const size_t most = D * D;
    float *W = lab_floats(most);
    size_t width = D / blocks;
    double scale = sqrt((double)blocks), noise = 1. / 2;

    seed *= 1000003;
    for (size_t i = 0; i < D; i++)
        for (size_t j = 0; j < D; j++)
            W[i * D + j] = i / width == j / width ? (float)(scale * lab_normal(&seed)) : 0;
    lab_units(x->k, n, D, &seed);
    lab_units(x->q, HELD, D, &seed);
    lab_linear(&(struct lab_map){ W, D, D, noise }, x->k, n, x->v, &seed);
    lab_linear(&(struct lab_map){ W, D, D, 0 }, x->q, HELD, x->truth, &seed);
    free(W);
}

void lab_heads(const struct lab_out *out)
{
    static const size_t pairs[] = { 64, 128, 512 };
    FILE *f = lab_table(out, "heads");
    struct room x = { lab_floats(512 * D), lab_floats(512 * D), lab_floats(HELD * D),
                      lab_floats(HELD * D), lab_floats(512 * D) };

    fprintf(f, "truth\tpairs\theads\tbytes\tfit\theld-out\n");
    for (size_t blocks = 1; blocks <= 8; blocks += 7)
        for (size_t p = 0; p < 3; p++)
            for (size_t heads = 1; heads <= 32; heads *= 2) {
                double fit = 0, held = 0;
                struct lab l;

                lab_open(&l, &mesa, heads, D / heads, D / heads);
                for (uint64_t seed = 1; seed <= SEEDS; seed++) {
                    draw(&x, pairs[p], blocks, seed);
                    lab_clear(&l);
                    lab_learn(&l, pairs[p], x.k, x.v);
                    lab_recall(&l, pairs[p], x.k, x.o);
                    fit += lab_relative(x.o, x.v, pairs[p] * D) / SEEDS;
                    lab_recall(&l, HELD, x.q, x.o);
                    held += lab_relative(x.o, x.truth, HELD * D) / SEEDS;
                }
                fprintf(f, "%s\t%zu\t%zu\t%zu\t%.3f\t%.3f\n", blocks > 1 ? "8 blocks" : "dense",
                        pairs[p], heads, lab_bytes(&l), fit, held);
                lab_close(&l);
            }
    fclose(f);
    free(x.k);
    free(x.v);
    free(x.q);
    free(x.truth);
    free(x.o);
}
