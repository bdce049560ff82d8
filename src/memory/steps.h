/* steps.h - loops of the rules that descend on several pairs or with momentum, at both levels.
 *
 * A panel is columns [at, at + cols) of a matrix: columns of a least-squares gradient do not
 * see each other, so a step runs panel by panel and its errors stay in the first-level cache.
 * Every element is one chain of operations in a fixed order, whatever the panel. */
#ifndef STEPS_H
#define STEPS_H

#include <stddef.h>

#include "fastweight/level.h"

#define FW_PANEL 64 /* columns, at most */

struct fw_panel {
    float *A; /* (rows, width) */
    size_t rows, width, at, cols;
};

struct fw_heavy_ball {
    size_t rows, cols;
    float *S, *Z;       /* (rows, cols) */
    const float *k, *w; /* (rows,), (cols,) */
    float eta, keep, limit;
};

struct fw_steps {
    /* S = decay S, e_i = v_i - S'k_i for n pairs; e (n, FW_PANEL). */
    void (*look)(const struct fw_panel *S, float decay, const float *const *k,
                 const float *const *v, size_t n, float *e);
    /* A = decay A + sum_i k_i e_i', i in order, cut into [-limit, limit]. */
    void (*write)(const struct fw_panel *A, float decay, const float *const *k, const float *e,
                  size_t n, float limit);
    /* Z = eta Z + k w', S = keep S + Z, both cut into [-limit, limit]. */
    void (*heavy_ball)(const struct fw_heavy_ball *b);
    /* H_ij = g H_ij + beta (k_i k_j): symmetric to the bit. Cut into [-limit, limit]. */
    void (*square)(float *H, size_t n, float g, float beta, const float *k, float limit);
    /* A_ij = g A_ij + k_i v_j, cut into [-limit, limit]. */
    void (*cross)(float *A, size_t rows, size_t cols, float g, const float *k, const float *v,
                  float limit);
};

extern const struct fw_steps fw_steps_base;
extern const struct fw_steps fw_steps_v3; /* where HAVE_V3 */
const struct fw_steps *fw_steps(void);    /* of the level chosen by fw_num_init */

#endif
