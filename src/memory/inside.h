/* inside.h - what the files of this room that are no rule share: bodies, maps, states. */
#ifndef INSIDE_H
#define INSIDE_H

#include "rule.h"

#define FW_BUFFER 8192 /* floats a buffer of memory.c holds: the pairs of a token must fit */

struct fw_config { /* while a plan is made */
    const struct fw_params *given;
    struct fw_params resolved;
    char known[FW_MAX_PARAMS][32]; /* keys that were read */
    size_t known_count;
};

/* FW_EINVAL naming the first given key that nothing read. */
int fw_config_only(const struct fw_config *c, struct fw_err *err);
/* Takes a key that is at its default out of the resolved configuration. */
void fw_config_forget(struct fw_config *c, const char *key);

size_t fw_input_count(const struct fw_memory *m);
bool fw_input_taken(const struct fw_memory *m, size_t in);
const struct fw_input *fw_input_of(const struct fw_memory *m, size_t in);
size_t fw_input_inner(const struct fw_memory *m, size_t in); /* floats per row and head */
void fw_body_open(const struct fw_memory *m, const struct fw_tensors *in, struct fw_body *ret);
/* Elements and norms of `rows` rows of an input; `name`: of an edit's tensor, NULL: a body's.
 */
int fw_check_rows(const struct fw_memory *m, size_t in, const char *name, const float *x,
                  size_t rows, struct fw_err *err);
/* splitmix64's hash of an integer. */
static inline uint64_t fw_mix(uint64_t z)
{
    z += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

int fw_map_plan(struct fw_memory *m, struct fw_config *c, struct fw_err *err);
const char *fw_map_name(const struct fw_memory *m);
bool fw_map_is_identity(const struct fw_memory *m);
/* Largest element of a key or query that the map takes. */
float fw_map_max(const struct fw_memory *m);
/* Is |phi|^2 <= 1 for every key (else it must be computed)? */
bool fw_map_is_unit(const struct fw_memory *m);
/* phi(x), (rows,), of one normalised key or query (d_k,). */
void fw_map_apply(const struct fw_memory *m, const float *x, float *phi);
/* key_norm, then the map: a key as the rule gets it, or a query before query_scale. */
void fw_map_key(const struct fw_memory *m, const float *x, float *phi);
/* y = x / max(|x|, 1e-12), (n,). */
void fw_l2(const float *x, size_t n, float *y);
/* fw_memory_learn in two steps: heads [head, behind), which may be at work at once with others
 * of the same body, each writing its own; when all are through, their count. Returns how many
 * elements it cut. Not with a cache that is read: its reads want the count of every token. */
uint64_t fw_memory_learn_heads(const struct fw_memory *m, void *block,
                               const struct fw_memory_learning *what, size_t head,
                               size_t behind);
void fw_memory_learned(const struct fw_memory *m, void *block, size_t n, uint64_t cut);
/* Cuts what lies in the block of one head. Returns how many elements it cut. */
uint64_t fw_memory_saturate(const struct fw_memory *m, void *block, size_t head);
void fw_memory_head_state(const struct fw_memory *m, const void *block, size_t head,
                          float *out);

#endif
