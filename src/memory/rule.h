/* rule.h - the room's inside: what an update rule is, a plan, and what a rule may call.
 *
 * To add a rule: one row in the table of rule.c, its functions in its family's file, one golden
 * case. The row says what the rule is and what a body may carry; memory.c cuts bodies into
 * spans, maps keys and queries (feature.c) and fills in what is absent; check.c refuses. All
 * that the next pair depends on lies in the block: a rule with a window or a mini-batch appends
 * its own fields. learn gives the same bits however a stream is cut into spans and touches its
 * own head alone (threads share them); read never writes. Hot loops: kernel.h and loops.h. */
#ifndef RULE_H
#define RULE_H

#include "span.h"

/* ---- a rule */

#define FW_MATRIX     1u  /* S (heads, rows, d_v) */
#define FW_PENDING    2u  /* with a pending pair: S_t = S + k e' */
#define FW_CHANNELS   4u  /* log_g_sum has one number per row of S, not per head */
#define FW_DELTA_STEP 8u  /* input `beta`: beta |k|^2 < 2 is checked, e = beta err */
#define FW_MULTI      16u /* config pairs_per_token */
#define FW_NO_MAP     32u /* refuses config feature_map */
#define FW_UNDIAGONAL 64u /* its decay is no diagonal matrix */

struct fw_memory;
struct fw_config;

struct fw_usage {
    uint64_t pairs, places; /* kept as they are, and room for them, per head */
    uint64_t empty_bytes;   /* of the block: places that hold nothing yet */
};

typedef void fw_edit_function(const struct fw_memory *m, void *block, size_t head,
                              struct fw_change *c);

struct fw_rule {
    const char *name;
    const char *memory, *objective, *retention, *optimiser, *horizon; /* for people */
    unsigned traits;
    const struct fw_input *inputs; /* its own */
    size_t input_count;
    /* Updates one head. */
    void (*learn)(const struct fw_memory *m, void *block, size_t head, const struct fw_span *s);
    /* m(q) of a head that stands still. */
    void (*read)(const struct fw_memory *m, const void *block, size_t head,
                 const struct fw_reads *r);
    /* All below may be NULL. */
    /* Token `at` of all heads, as learn does it, when m->direct (plan.c); residual (heads,). */
    void (*learn_token)(const struct fw_memory *m, void *block, const struct fw_tensors *in,
                        size_t at, double *residual);
    /* Reads its config keys (fw_config_*), appends its fields to m->layout, may set m->own. */
    int (*plan)(struct fw_memory *m, struct fw_config *c, struct fw_err *err);
    void (*init)(const struct fw_memory *m, void *block); /* of a zeroed block */
    /* Its own fields of one head; called after the common ones were found well. */
    int (*validate)(const struct fw_memory *m, const void *block, size_t head,
                    struct fw_err *err);
    /* Further limits of a body whose tensors are each in range. */
    int (*check)(const struct fw_memory *m, const struct fw_body *b, struct fw_err *err);
    /* S as people see it, (rows, d_v); without it, S with the pending pair folded in. */
    void (*state)(const struct fw_memory *m, const void *block, size_t head, float *out);
    /* Cuts its own fields; how many elements it cut. Called every FW_SATURATE_EVERY pairs. */
    uint64_t (*saturate)(const struct fw_memory *m, void *block, size_t head);
    /* Adds what it keeps and what of its fields is empty. */
    void (*usage)(const struct fw_memory *m, const void *block, struct fw_usage *u);
    /* The matrix over keys that it solves, (rows, rows). */
    void (*covariance)(const struct fw_memory *m, const void *block, size_t head, double *out);
    /* Makes m(k) = v. Without it, S is changed where m is S'k, and else edits are refused. */
    fw_edit_function *edit;
    /* Takes the pair (k, v) out of the sums that the rule keeps; without it that is refused. */
    fw_edit_function *take_out;
};

/* ---- a plan */

#define FW_DIRECT_HEADS 64           /* limit of m->direct */
#define FW_NOWHERE      ((size_t)-1) /* offset of a field that the rule has not */

struct fw_map;                /* feature.c */
struct fw_cache;              /* cache.c */
struct fw_place {             /* of an input in a body */
    const char *name;         /* NULL: not taken */
    uint64_t first, of_first; /* the name's first 8 bytes, and which of them are its own */
    size_t inner, row;        /* floats per row and head, and per row: heads * inner */
    size_t each;              /* rows per token and head */
};

struct fw_memory {
    const struct fw_rule *rule;
    size_t heads, d_k, d_v;
    size_t rows;    /* of S: the size of a mapped key */
    size_t pairs;   /* per token */
    size_t own_dim; /* of FW_OWN inputs; set by plan */
    unsigned takes; /* bit i: inputs[i] is taken; plan may clear some */
    struct fw_place place[FW_IN_OWN + FW_MAX_INPUTS];
    size_t span; /* tokens in one span, at most */
    bool direct; /* learn_token may be used */
    const struct fw_kernels *kernels;
    float query_scale;
    bool l2; /* key_norm */
    const struct fw_map *map;
    size_t nu;              /* of dpfp */
    float *frequency;       /* owned; (rows / 2, d_k) of rff */
    float *fallback;        /* owned; (input_count, widest) */
    size_t widest;          /* at least FW_DIRECT_HEADS */
    void *own;              /* owned, from malloc; the rule's parsed config and offsets */
    struct fw_cache *cache; /* owned; NULL: none */
    struct fw_layout layout;
    size_t at_S, at_k, at_e, at_valid, at_log_g, at_residual, at_counters, at_last_k, at_last_v;
    size_t at_covariance, probes, at_probe_k, at_probe_v, at_probe_number; /* probe.c */
};

enum { FW_COUNT_PAIRS, FW_COUNT_SATURATED, FW_COUNTERS };

extern const struct fw_rule *const fw_rules[];        /* ends with NULL */
const struct fw_rule *fw_rule_find(const char *name); /* or NULL */

/* ---- for plans: config keys. Each call reads one key, whose default is *ret, and notes it in
 * the resolved config; what nobody read is refused. */
int fw_config_size(struct fw_config *c, const char *key, size_t min, size_t max, size_t *ret,
                   struct fw_err *err);
int fw_config_number(struct fw_config *c, const char *key, double min, double max, double *ret,
                     struct fw_err *err);
/* One of `words` (NULL-terminated); *ret is the place of the word. */
int fw_config_word(struct fw_config *c, const char *key, const char *const *words, size_t *ret,
                   struct fw_err *err);
int fw_config_bool(struct fw_config *c, const char *key, bool *ret, struct fw_err *err);

/* ---- for rules */

/* Field at `offset` of a block: through an integer, as one view serves readers and writers. */
static inline void *fw_memory_at(const void *block, size_t offset)
{
    return (char *)(uintptr_t)block + offset;
}
/* A view of one head's S and pending pair (k, e NULL when the rule has none). */
struct fw_head fw_memory_head(const struct fw_memory *m, const void *block, size_t head);
void fw_memory_set_valid(const struct fw_memory *m, void *block, size_t head, bool valid);
/* Adds log g of n tokens to log_g_sum, in order: (n,), or (n, rows) with FW_CHANNELS. */
void fw_memory_add_gates(const struct fw_memory *m, void *block, size_t head, struct fw_rows g,
                         size_t n);
/* Cuts |x_i| at `limit`; returns how many were cut. */
uint64_t fw_cut(float *x, size_t n, float limit);
/* The largest |x_i|; infinite when one is not a number. */
float fw_largest(const float *x, size_t n);
/* FW_EINVAL "bad_state" naming tensor and head. Returns -1. */
int fw_bad_state(struct fw_err *err, const char *tensor, size_t head, const char *what);
/* beta |phi(k)|^2 < 2 for every pair; `beta` is the place of the step's input in the rule's. */
int fw_check_step(const struct fw_memory *m, const struct fw_body *b, size_t beta,
                  struct fw_err *err);

#endif
