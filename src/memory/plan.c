/* plan.c - a plan: the rule and shapes a configuration names, and the block they ask for.
 *
 * Block, every matrix rule's (heads H):
 *     S             F32 (H, d_k, d_v)  before the pending pair, after the last decay
 *     pending_k     F32 (H, d_k)       the last pair: S_t = fma(k, e, S) element by element
 *     pending_e     F32 (H, d_v)
 *     pending_valid U8  (H)            0: skip it (nothing learned yet)
 *     log_g_sum     F64 (H)            sum of log_g since the start
 *     last_residual F64 (H)            |v - S'k| of the last pair before its update
 *     counters      U64 (2)            pairs learned; elements saturated (state.c)
 * A plan is immutable. */
#include "config.h"

#include "rule.h"

#include <stdlib.h>
#include <string.h>

#define MAX_STATE_BYTES ((size_t)1 << 30)

struct config {
    const char *rule, *key_norm;
    size_t heads, d_k, d_v;
    double query_scale, beta;
};

static int read_config(struct config *c, const struct fw_params *p, struct fw_err *err)
{
    static const char *const known[] = { "rule",        "heads",    "d_k",  "d_v",
                                         "query_scale", "key_norm", "beta", NULL };

    if (fw_params_only(p, known, err) < 0 ||
        fw_params_get_string(p, "rule", &c->rule, err) < 0 ||
        fw_params_get_string(p, "key_norm", &c->key_norm, err) < 0 ||
        fw_params_get_size(p, "heads", 1, FW_MAX_DIM, &c->heads, err) < 0 ||
        fw_params_get_size(p, "d_k", 1, FW_MAX_DIM, &c->d_k, err) < 0 ||
        fw_params_get_size(p, "d_v", 1, FW_MAX_DIM, &c->d_v, err) < 0 ||
        fw_params_get_number(p, "query_scale", 0, 1e6, &c->query_scale, err) < 0 ||
        fw_params_get_number(p, "beta", 0, 1e6, &c->beta, err) < 0)
        return -1;
    if (!fw_rule_find(c->rule))
        return fw_fail_param(err, FW_EINVAL, "bad_value", "config.rule", "no rule '%s'",
                             c->rule);
    if (strcmp(c->key_norm, "none") != 0 && strcmp(c->key_norm, "l2") != 0)
        return fw_fail_param(err, FW_EINVAL, "bad_value", "config.key_norm",
                             "config.key_norm must be none or l2");
    if (strcmp(c->key_norm, "l2") == 0 && c->beta >= 2)
        return fw_fail_param(err, FW_EINVAL, "unstable_step", "config.beta",
                             "config.beta must be below 2 for keys of length 1");
    return 0;
}

static int resolve(struct fw_params *ret, const struct config *c, struct fw_err *err)
{
    struct fw_params p = { 0 };

    if (fw_params_set_string(&p, "rule", c->rule, err) < 0 ||
        fw_params_set_string(&p, "key_norm", c->key_norm, err) < 0 ||
        fw_params_set_number(&p, "heads", (double)c->heads, err) < 0 ||
        fw_params_set_number(&p, "d_k", (double)c->d_k, err) < 0 ||
        fw_params_set_number(&p, "d_v", (double)c->d_v, err) < 0 ||
        fw_params_set_number(&p, "query_scale", c->query_scale, err) < 0 ||
        fw_params_set_number(&p, "beta", c->beta, err) < 0)
        return -1;
    *ret = p;
    return 0;
}

static int lay_out(struct fw_memory *m, struct fw_err *err)
{
    const uint64_t S[3] = { m->heads, m->d_k, m->d_v }, k[2] = { m->heads, m->d_k },
                   e[2] = { m->heads, m->d_v }, counters[1] = { FW_COUNTERS };
    struct fw_layout *l = &m->layout;

    if (fw_layout_add(l, "S", FW_F32, 3, S, &m->at_S, err) < 0 ||
        fw_layout_add(l, "pending_k", FW_F32, 2, k, &m->at_k, err) < 0 ||
        fw_layout_add(l, "pending_e", FW_F32, 2, e, &m->at_e, err) < 0 ||
        fw_layout_add(l, "pending_valid", FW_U8, 1, S, &m->at_valid, err) < 0 ||
        fw_layout_add(l, "log_g_sum", FW_F64, 1, S, &m->at_log_g, err) < 0 ||
        fw_layout_add(l, "last_residual", FW_F64, 1, S, &m->at_residual, err) < 0 ||
        fw_layout_add(l, "counters", FW_U64, 1, counters, &m->at_counters, err) < 0 ||
        fw_layout_seal(l, 0, err) < 0)
        return -1;
    if (l->block_bytes > MAX_STATE_BYTES)
        return fw_fail_param(
            err, FW_EINVAL, "state_too_large", "config.heads",
            "heads * d_k * d_v need %zu bytes of state, at most %zu are allowed",
            l->block_bytes, MAX_STATE_BYTES);
    return 0;
}

int fw_memory_new(struct fw_memory **ret, const struct fw_params *config,
                  struct fw_params *resolved, struct fw_err *err)
{
    struct config c = { "delta", "none", 4, 64, 64, 1, 1 };
    struct fw_params full;
    struct fw_memory *m;

    if (read_config(&c, config, err) < 0 || resolve(&full, &c, err) < 0)
        return -1;
    m = calloc(1, sizeof *m);
    if (!m)
        return fw_fail(err, FW_ENOMEM, "out_of_memory", "no memory for a plan");
    m->rule = fw_rule_find(c.rule);
    m->heads = c.heads;
    m->d_k = c.d_k;
    m->d_v = c.d_v;
    m->query_scale = (float)c.query_scale;
    m->beta = (float)c.beta;
    m->l2 = strcmp(c.key_norm, "l2") == 0;
    fw_layout_init(&m->layout);
    if (lay_out(m, err) < 0) {
        fw_memory_free(m);
        return -1;
    }
    *ret = m;
    *resolved = full;
    return 0;
}

void fw_memory_free(struct fw_memory *m)
{
    if (!m)
        return;
    fw_layout_done(&m->layout);
    free(m);
}

const struct fw_layout *fw_memory_layout(const struct fw_memory *m)
{
    return &m->layout;
}

uint32_t fw_memory_heads(const struct fw_memory *m)
{
    return (uint32_t)m->heads;
}

uint32_t fw_memory_d_k(const struct fw_memory *m)
{
    return (uint32_t)m->d_k;
}

uint32_t fw_memory_d_v(const struct fw_memory *m)
{
    return (uint32_t)m->d_v;
}

void fw_memory_init(const struct fw_memory *m, void *block)
{
    memset(block, 0, m->layout.block_bytes);
}
