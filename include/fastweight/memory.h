/* fastweight/memory.h - test-time regression on vectors: the associative memories.
 *
 * docs/associative.md lists rules, configurations and inputs. Per head S (rows, d_v), read
 * o = S' (query_scale phi(q)); one file per rule family, one row per rule in a table. Of rules
 * of the form S + k e' the last pair stays pending: the block keeps S_{t-1}, k', e' and a valid
 * flag; S_t[i][j] = fma(k'_i, e'_j, S_ij) wherever it is formed. A plan
 * is immutable and shared between threads; a block is used by one thread at a time, which has
 * called fw_num_thread(). */
#ifndef FW_MEMORY_H
#define FW_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include "fastweight/buf.h"
#include "fastweight/params.h"
#include "fastweight/tensor.h"

struct fw_memory; /* a plan: rule, shapes, layout */
struct fw_pool;

/* config: rule (delta), heads (4), d_k (64), d_v (64), query_scale (1), key_norm none|l2
 * (none), feature_map (identity), and what the rule reads, e.g. beta (1). l2 divides keys and
 * queries by max(|x|, 1e-12), in double, rounded once; then they are mapped, then queries are
 * scaled. *resolved gets the full configuration. FW_EINVAL naming config.KEY. */
int fw_memory_new(struct fw_memory **ret, const struct fw_params *config,
                  struct fw_params *resolved, struct fw_err *err);
void fw_memory_free(struct fw_memory *m);
const struct fw_layout *fw_memory_layout(const struct fw_memory *m);
uint32_t fw_memory_heads(const struct fw_memory *m);
uint32_t fw_memory_d_k(const struct fw_memory *m);
uint32_t fw_memory_d_v(const struct fw_memory *m);
/* Rows of S: the size of a mapped key (d_k without a feature map); 0 where a rule has no S. */
uint32_t fw_memory_rows(const struct fw_memory *m);

void fw_memory_init(const struct fw_memory *m, void *block);
int fw_memory_validate(const struct fw_memory *m, const void *block, struct fw_err *err);

/* The names of all tensors that some rule takes in a learn, each once; lent for ever. Returns
 * how many (at most max). */
size_t fw_memory_inputs(const char **ret, size_t max);

/* The name of row i of the table of rules, or NULL past its end; lent for ever. */
const char *fw_memory_rule(size_t i);

struct fw_memory_input { /* a tensor that a learn may carry */
    const char *name;    /* lent for ever */
    uint32_t ndim;
    uint64_t shape[FW_MAX_DIMS]; /* of one token: shape[0] = 1 */
    int required;
    float min, max; /* of an element, inclusive */
};
/* Input i of this plan: keys, values, queries, then the rule's own. -1 past the last. */
int fw_memory_input(const struct fw_memory *m, size_t i, struct fw_memory_input *ret);

/* The body of a learn or score, checked whole: F32 `keys` (n, heads, d_k), `values`
 * (n, heads, d_v); optional `queries` (n, heads, d_k); the rule's own inputs. n counts tokens;
 * with pairs_per_token p > 1 keys, values and inputs of each pair are (n, p, heads, ...). With
 * one head the heads axis may be left out. FW_EINVAL names tensor, pair and head: shapes, names
 * the rule does not take, non-finite, |x| > 1e6 or longer than 1e6, out of the input's range,
 * beta |k|^2 >= 2, no pair. That bounds every state for ever (state.c). */
int fw_memory_check(const struct fw_memory *m, const struct fw_tensors *in, size_t *ret_pairs,
                    struct fw_err *err);
/* `queries` (n, heads, d_k) of a recall; the same checks. */
int fw_memory_check_queries(const struct fw_memory *m, const struct fw_tensors *in,
                            size_t *ret_queries, struct fw_err *err);

/* Learns tokens [from, from + n) of a checked body. residual: (n, heads) |v - m(k)| before the
 * update (after the decay where the rule decays first; over a token's pairs the root of the sum
 * of squares), or NULL. values: (n, heads, d_v) read by the body's queries after each token, or
 * NULL. Cannot fail. */
void fw_memory_learn(const struct fw_memory *m, void *block, const struct fw_tensors *in,
                     size_t from, size_t n, double *residual, float *values);
struct fw_memory_learning { /* what fw_memory_learn takes */
    const struct fw_tensors *in;
    size_t from, n;
    double *residual;
    float *values;
};
/* The same bits, the heads spread over this thread and idle workers of a pool, whose threads
 * have called fw_num_thread(). It pays from about 100 us of learning on. */
void fw_memory_learn_spread(const struct fw_memory *m, void *block,
                            const struct fw_memory_learning *what, struct fw_pool *pool);
/* The residuals of pairs [from, from + n) against the memory as it stands; no decay. */
void fw_memory_score(const struct fw_memory *m, const void *block, const struct fw_tensors *in,
                     size_t from, size_t n, double *residual);
/* Reads queries [from, from + n) into values (n, heads, d_v). */
void fw_memory_recall(const struct fw_memory *m, const void *block, const struct fw_tensors *in,
                      size_t from, size_t n, float *values);
/* S_t of all heads, (heads, rows, d_v), the pending pair folded in. */
void fw_memory_state(const struct fw_memory *m, const void *block, float *ret);

/* An edit's body: F32 `edit.key` (heads, d_k) and `edit.value` (heads, d_v): makes m(key) read
 * value, changing the rest least (edit.c); or `forget.key`, which then reads zero, and with
 * `forget.value`, where the rule keeps sums over pairs, that pair's share is taken out of them.
 * With one head the heads axis may be left out. FW_EINVAL "not_supported" naming the rule. */
int fw_memory_check_edit(const struct fw_memory *m, const struct fw_tensors *in,
                         struct fw_err *err);
struct fw_memory_edited {
    float *before, *after; /* (heads, d_v), the caller's: what the key read */
    double change_norm;    /* |change of S|_F over all heads */
    double disturbed;      /* RMS change of what the probes read, or the key learned last */
};
/* Cannot fail. probes: keys (n, heads, d_k), checked as queries, or NULL. ret may be NULL. */
void fw_memory_edit(const struct fw_memory *m, void *block, const struct fw_tensors *in,
                    const struct fw_tensor *probes, struct fw_memory_edited *ret);

/* The factors of S_block - diag(gamma) S_base as a safetensors file (patch.c): F32 `U` (heads,
 * rows, R), `s` (heads, R), `V` (heads, d_v, R), zero beyond each head's U32 `rank` (heads,);
 * F64 `gamma` (heads,) or (heads, rows). LAPACK. FW_EINVAL "not_supported"; FW_ENOMEM. */
int fw_memory_patch(const struct fw_memory *m, const void *base, const void *block,
                    struct fw_buf *out, struct fw_err *err);

struct fw_memory_about { /* what the rule is, in words; lent for ever */
    const char *rule, *memory, *objective, *retention, *optimiser, *horizon, *feature_map;
    uint32_t pairs_per_token;
    uint64_t saturated;  /* elements of this block that were ever cut (state.c) */
    uint64_t kept_pairs; /* per head, as they are; 0 for rules that fit and forget */
    uint64_t used_bytes; /* of the block: without places that hold nothing yet */
};
void fw_memory_about(const struct fw_memory *m, const void *block, struct fw_memory_about *ret);

struct fw_memory_head_stats {               /* `inspect`, per head */
    double norm;                            /* |S|_F */
    double residual_before, residual_after; /* of the last pair written; 0 when none */
    double effective_rank;                  /* exp of the entropy of sigma_i / sum sigma */
    double log_g_sum;                       /* sum of log g since the start; mean of rows */
    double capacity_used; /* in [0, 1]: pairs kept / places, or effective rank / its most */
    double covariance_condition; /* of mesa or config covariance; else NAN */
    uint64_t nonfinite;
};
/* spectrum: (min(rows, d_v),) singular values, descending, or NULL. LAPACK; FW_ENOMEM. */
int fw_memory_head_stats(const struct fw_memory *m, const void *block, uint32_t head,
                         struct fw_memory_head_stats *ret, double *spectrum,
                         struct fw_err *err);

struct fw_memory_probe {  /* a pair of the past, and what its key reads now: o */
    uint64_t age;         /* pairs learned since, itself included */
    double error, cosine; /* |v - o| / |v|, o.v / |o||v|; NAN for v = 0 */
};
/* Places per head of config `probes`; 0: none are kept. */
size_t fw_memory_probes(const struct fw_memory *m);
/* The probes of a head by age, at most fw_memory_probes; returns how many. */
size_t fw_memory_read_probes(const struct fw_memory *m, const void *block, uint32_t head,
                             struct fw_memory_probe *ret);

#endif
