/* solve.h - solving (H + diag(lambda)) x = q the same way everywhere, at both levels.
 *
 * No LAPACK: its order of sums depends on the library's build and the CPU. All in double, every
 * element one chain in a fixed order. */
#ifndef SOLVE_H
#define SOLVE_H

#include <stddef.h>

#include "fastweight/level.h"

#define FW_FACTOR_MAX 256  /* unknowns of a factorisation */
#define FW_CG_MAX     4096 /* unknowns of conjugate gradients */

struct fw_system {
    const float *H, *lambda; /* (n, n) symmetric, (n,) > 0 */
    size_t n;
};

struct fw_factor {
    size_t n, width; /* width: n up to a multiple of 4 */
    double
        A[FW_FACTOR_MAX * FW_FACTOR_MAX]; /* (n, width): what is left of row i at its pivot */
    double d[FW_FACTOR_MAX];              /* 1 / pivot */
};

struct fw_solvers {
    /* H + diag(lambda) = U' D U. */
    void (*factor)(const struct fw_system *s, struct fw_factor *f);
    /* x (n,): q in, the solution out. */
    void (*solve)(const struct fw_factor *f, double *x);
    /* `steps` steps of conjugate gradients from x = q / diag. */
    void (*cg)(const struct fw_system *s, const float *q, size_t steps, double *x);
    /* o_j = sum_i x_i G_ij, cut into [-1e30, 1e30]; 0 for what is not a number. */
    void (*values)(const float *G, size_t rows, size_t cols, const double *x, float *o);
};

extern const struct fw_solvers fw_solvers_base;
extern const struct fw_solvers fw_solvers_v3; /* where HAVE_V3 */
const struct fw_solvers *fw_solvers(void);    /* of the level chosen by fw_num_init */

#endif
