/* span.h - what a body may carry, and what of it a rule gets at a time. */
#ifndef SPAN_H
#define SPAN_H

#include <stdbool.h>

#include "fastweight/kernel.h"
#include "fastweight/memory.h"

#define FW_SPAN       64   /* rows that a rule gets at a time, at most */
#define FW_MAX_DIM    4096 /* rows of S, d_k, d_v, heads */
#define FW_MAX_PAIRS  8    /* per token */
#define FW_MAX_INPUTS 12

/* Bounds that keep every state finite for ever; state.c explains them. */
#define FW_ELEMENT_MAX    1e6f  /* of a body, and of a mapped key */
#define FW_SATURATE_AT    1e17f /* |S_ij| after the check that runs every FW_SATURATE_EVERY */
#define FW_CLAMP_AT       1e20f /* |S_ij| after each pair, where a step may lengthen S */
#define FW_STATE_MAX      1e21f /* |S_ij| and |k_i e_j| of a block, at any time */
#define FW_ERROR_MAX      1e25f /* |e_j| of a block */
#define FW_SATURATE_EVERY 4096  /* pairs */

/* ---- what a body may carry */

enum fw_dim { FW_SCALAR, FW_D_K, FW_ROWS, FW_D_V, FW_OWN }; /* FW_OWN: m->own_dim */

#define FW_REQUIRED 1u /* else `fallback` fills it */
#define FW_EACH     2u /* one per pair of a token; else one per token */
#define FW_CONFIG   4u /* config.NAME is the session's fallback */

struct fw_input {
    const char *name;
    enum fw_dim inner; /* floats per row and head; shape (n, [pairs,] heads, inner) */
    unsigned flags;
    double fallback;
    float min, max;     /* inclusive; outside [-1e6, 1e6] it is too_large */
    const char *reason; /* inside that but outside [min, max] */
};

/* The first three of every rule; a rule's own follow from FW_IN_OWN on. */
enum { FW_IN_KEYS, FW_IN_VALUES, FW_IN_QUERIES, FW_IN_OWN };

struct fw_body { /* a checked body; NULL: not there */
    size_t n;    /* tokens */
    const float *in[FW_IN_OWN + FW_MAX_INPUTS];
};

struct fw_rows { /* row t is x + t * stride */
    const float *x;
    size_t stride;
};

struct fw_span {                      /* n tokens of one head, as a rule sees them */
    size_t n;                         /* n * pairs per token <= FW_SPAN */
    uint64_t at;                      /* tokens learned before this span since the start */
    struct fw_rows k, v, q;           /* k, v: n * pairs rows. k: (, rows) mapped, q mapped and
                                         scaled; q.x NULL: no reads */
    struct fw_rows in[FW_MAX_INPUTS]; /* the rule's own, by their place in its list; what the
                                         body lacks is the fallback, with stride 0 */
    float *err;                       /* (n * pairs, d_v), written: v - m(k) before each */
    size_t err_from;                  /* tokens before it need no err: nobody asked */
    float *o;                         /* (n, d_v), written when q.x */
    size_t o_stride;
};

struct fw_change {      /* of one head's memory by an edit: S + x w' */
    const float *k, *v; /* (rows,) mapped, (d_v,) */
    double *x, *w;      /* (rows,), (d_v,); zero before, written */
};

#endif
