/* window.h - the window of the Omega rules: the last pairs, kept in the block.
 *
 * window_k (H, c - 1, rows), window_v (H, c - 1, d_v), window_u (H, c - 1): the last c - 1
 * pairs and their weights, oldest first. Where there was no pair yet all is zero, and a pair of
 * weight zero changes nothing: so a window is always full, and the block needs no position. */
#ifndef WINDOW_H
#define WINDOW_H

#include "rule.h"

#define FW_WINDOW_MAX 128

struct fw_window_plan {
    size_t window; /* c */
    size_t at_k, at_v, at_u;
};

struct fw_window { /* the pairs of one step, oldest first; borrowed */
    size_t n;
    const float *k[FW_WINDOW_MAX], *v[FW_WINDOW_MAX];
    float u[FW_WINDOW_MAX];
    bool known;                                /* gram is that of the window one pair ago */
    float gram[FW_WINDOW_MAX * FW_WINDOW_MAX]; /* |k_i.k_j| */
};

struct fw_descent {
    float *S; /* (rows, d_v), where the gradient is taken, after S = decay S */
    float decay;
    float *to; /* to = keep to + rate sum_i u_i k_i (v_i - S'k_i)' */
    float keep, rate;
};

/* Reads config `window` (16) and appends the fields. */
int fw_window_plan(struct fw_memory *m, struct fw_config *c, struct fw_window_plan *p,
                   struct fw_err *err);
int fw_window_validate(const struct fw_memory *m, const struct fw_window_plan *p,
                       const void *block, size_t head, struct fw_err *err);
/* Once, before the first pair of a span. */
void fw_window_start(struct fw_window *w);
/* The window with one more pair at its end. */
void fw_window_open(const struct fw_memory *m, const struct fw_window_plan *p,
                    const void *block, size_t head, struct fw_window *w);
void fw_window_add(struct fw_window *w, const float *k, const float *v, float u);
/* Drops the oldest pair for the newest one. */
void fw_window_push(const struct fw_memory *m, const struct fw_window_plan *p, void *block,
                    size_t head, const struct fw_window *w);
/* min(cap, 1 / L), L an upper bound of the largest eigenvalue of sum_i u_i k_i k_i'. For every
 * pair of a span, or for none. */
float fw_window_safe_step(struct fw_window *w, size_t rows, float cap);
/* One gradient step; err (d_v,): v - S'k of the newest pair. */
void fw_window_descend(const struct fw_memory *m, const struct fw_window *w,
                       const struct fw_descent *d, float *err);

#endif
