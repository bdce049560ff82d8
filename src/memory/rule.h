/* rule.h - the room's inside: a plan, a body's tensors, and the table of update rules.
 *
 * To add a rule: one row in rule.c, its functions in its family's file, one golden case. What a
 * pair may carry is one list for all rules (enum fw_in, check.c says its shape and limits); a
 * row says which of it the rule takes. State that a rule needs beside S and the pending pair is
 * a further field that the plan appends to the layout, so the blocks of the others stay. */
#ifndef RULE_H
#define RULE_H

#include <stdbool.h>

#include "fastweight/kernel.h"
#include "fastweight/memory.h"

#define FW_SPAN 64 /* pairs that a rule gets at a time, at most */

/* Bounds that keep every state finite for ever; state.c explains them. */
#define FW_ELEMENT_MAX    1e6f  /* of a body */
#define FW_SATURATE_AT    1e17f /* |S_ij| after the check that runs every FW_SATURATE_EVERY */
#define FW_STATE_MAX      1e21f /* |S_ij| and |k_i e_j| of a block, at any time */
#define FW_ERROR_MAX      1e25f /* |e_j| of a block */
#define FW_SATURATE_EVERY 4096  /* pairs */
#define FW_MAX_DIM        4096  /* d_k, d_v, heads */

enum fw_in { FW_IN_KEYS, FW_IN_VALUES, FW_IN_QUERIES, FW_IN_BETA, FW_IN_LOG_G, FW_IN_COUNT };

#define FW_BIT(in) (1u << (in))

struct fw_body { /* a checked body; NULL: not there */
    size_t n;
    const float *in[FW_IN_COUNT]; /* (n, heads, inner) */
};

struct fw_span {            /* n pairs of one head, as a rule sees them */
    size_t n;               /* 1..FW_SPAN */
    const float *k, *v, *q; /* keys normalised, queries too and scaled; q NULL: no reads */
    size_t k_stride, v_stride, q_stride;
    const float *beta, *log_g; /* (n,); log_g NULL: no decay */
    float *err, *o;            /* (n, d_v): written; o when q */
    size_t o_stride;
};

struct fw_rule {
    const char *name;
    unsigned takes, needs; /* FW_BIT() of what a body may and must carry */
    /* Updates one head; err = v - m(k) before each update. */
    void (*learn)(const struct fw_memory *m, void *block, size_t head, const struct fw_span *s);
    /* m(q) of a head that stands still. */
    void (*read)(const struct fw_memory *m, const void *block, size_t head,
                 const struct fw_reads *r);
};

struct fw_memory {
    const struct fw_rule *rule;
    size_t heads, d_k, d_v;
    float query_scale, beta;
    bool l2; /* key_norm */
    struct fw_layout layout;
    size_t at_S, at_k, at_e, at_valid, at_log_g, at_residual, at_counters;
};

enum { FW_COUNT_PAIRS, FW_COUNT_SATURATED, FW_COUNTERS };

const struct fw_rule *fw_rule_find(const char *name); /* or NULL */
extern const struct fw_rule fw_rule_delta, fw_rule_gated_delta;

/* A view of one head, to be written only by who may write the block. */
struct fw_head fw_memory_head(const struct fw_memory *m, const void *block, size_t head);
void fw_memory_set_valid(const struct fw_memory *m, void *block, size_t head, bool valid);
/* Folds the pending pair and cuts |S_ij| at FW_SATURATE_AT. Returns how many it cut. */
uint64_t fw_memory_saturate(const struct fw_memory *m, void *block, size_t head);

struct fw_body fw_body_open(const struct fw_memory *m, const struct fw_tensors *in);
size_t fw_input_inner(const struct fw_memory *m, enum fw_in in); /* floats per pair and head */

#endif
