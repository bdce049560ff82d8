/* plan.c - a plan: the rule and shapes a configuration names, and the block they ask for.
 *
 * Block (heads H; rows: the size of a mapped key), in this order, as far as a rule's traits
 * say:
 *
 *     S              F32 (H, rows, d_v)    before the pending pair, after the last decay
 *     pending_k      F32 (H, rows)         the last pair: S_t = fma(k, e, S), each element
 *     pending_e      F32 (H, d_v)
 *     pending_valid  U8  (H)               0: skip it (nothing learned yet)
 *     log_g_sum      F64 (H) or (H, rows)  sum of log_g since the start
 *     last_residual  F64 (H)               |v - m(k)| of the last token before its update
 *     counters       U64 (2)               tokens learned; elements saturated (state.c)
 *     last_k         F32 (H, rows)         the last pair, of rules without FW_DELTA_STEP
 *     last_v         F32 (H, d_v)
 *
 * and then the rule's own fields, the cache's, the covariance and the probes. A plan is
 * immutable. */
#include "config.h"

#include "inside.h"

#include <stdlib.h>
#include <string.h>

#include "cache.h"
#include "covariance.h"
#include "probe.h"

#define MAX_STATE_BYTES ((size_t)1 << 30)

static int read_rule(struct fw_memory *m, struct fw_config *c, struct fw_err *err)
{
    const char *names[64] = { NULL };
    size_t at = 0, n = 0;

    for (; fw_rules[n]; n++) {
        names[n] = fw_rules[n]->name;
        if (strcmp(names[n], "delta") == 0)
            at = n;
    }
    if (fw_config_word(c, "rule", names, &at, err) < 0)
        return -1;
    m->rule = fw_rules[at];
    return 0;
}

static int read_shapes(struct fw_memory *m, struct fw_config *c, struct fw_err *err)
{
    static const char *const norms[] = { "none", "l2", NULL };
    double scale = 1;
    size_t norm = 0;

    m->heads = 4;
    m->d_k = m->d_v = 64;
    m->pairs = 1;
    if (fw_config_word(c, "key_norm", norms, &norm, err) < 0 ||
        fw_config_size(c, "heads", 1, FW_MAX_DIM, &m->heads, err) < 0 ||
        fw_config_size(c, "d_k", 1, FW_MAX_DIM, &m->d_k, err) < 0 ||
        fw_config_size(c, "d_v", 1, FW_MAX_DIM, &m->d_v, err) < 0 ||
        fw_config_number(c, "query_scale", 0, 1e6, &scale, err) < 0)
        return -1;
    m->query_scale = (float)scale;
    m->l2 = norm == 1;
    m->pairs = m->rule->traits & FW_MULTI ? 2 : 1;
    if (m->rule->traits & FW_MULTI &&
        fw_config_size(c, "pairs_per_token", 1, FW_MAX_PAIRS, &m->pairs, err) < 0)
        return -1;
    if (fw_map_plan(m, c, err) < 0)
        return -1;
    if (m->pairs * (m->rows > m->d_v ? m->rows : m->d_v) > FW_BUFFER)
        return fw_fail_param(err, FW_EINVAL, "bad_value", "config.pairs_per_token",
                             "the pairs of one token must have at most %d floats a head",
                             FW_BUFFER);
    return 0;
}

/* The fallbacks of inputs, which a configuration may set where the rule says so. */
static int read_fallbacks(struct fw_memory *m, struct fw_config *c, struct fw_err *err)
{
    const struct fw_rule *r = m->rule;

    m->widest = FW_DIRECT_HEADS;
    for (size_t i = 0; i < r->input_count; i++) {
        size_t inner = fw_input_inner(m, FW_IN_OWN + i);

        m->widest = inner > m->widest ? inner : m->widest;
    }
    m->fallback = calloc(r->input_count * m->widest + 1, sizeof *m->fallback);
    if (!m->fallback)
        return fw_fail(err, FW_ENOMEM, "out_of_memory", "no memory for a plan");
    for (size_t i = 0; i < r->input_count; i++) {
        const struct fw_input *in = &r->inputs[i];
        double x = in->fallback;

        if (in->flags & FW_CONFIG && m->takes >> i & 1 &&
            fw_config_number(c, in->name, (double)in->min, (double)in->max, &x, err) < 0)
            return -1;
        for (size_t j = 0; j < m->widest; j++)
            m->fallback[i * m->widest + j] = (float)x;
        if (r->traits & FW_DELTA_STEP && strcmp(in->name, "beta") == 0 && fw_map_is_unit(m) &&
            x >= 2)
            return fw_fail_param(err, FW_EINVAL, "unstable_step", "config.beta",
                                 "config.beta must be below 2 for keys of length 1");
    }
    return 0;
}

static int add(struct fw_memory *m, const char *name, enum fw_dtype type, size_t inner,
               size_t *ret, struct fw_err *err)
{
    const uint64_t shape[2] = { m->heads, inner };

    return fw_layout_add(&m->layout, name, type, inner ? 2 : 1, shape, ret, err);
}

/* Can the residual after the update be told from what the block keeps anyway (inspect.c)? */
static bool keeps_residual(unsigned traits)
{
    return traits & FW_DELTA_STEP && !(traits & FW_MULTI);
}

static int lay_out(struct fw_memory *m, struct fw_err *err)
{
    const uint64_t S[3] = { m->heads, m->rows, m->d_v }, counters[1] = { FW_COUNTERS };
    struct fw_layout *l = &m->layout;
    unsigned traits = m->rule->traits;

    if (traits & FW_MATRIX && fw_layout_add(l, "S", FW_F32, 3, S, &m->at_S, err) < 0)
        return -1;
    if (traits & FW_PENDING && (add(m, "pending_k", FW_F32, m->rows, &m->at_k, err) < 0 ||
                                add(m, "pending_e", FW_F32, m->d_v, &m->at_e, err) < 0 ||
                                add(m, "pending_valid", FW_U8, 0, &m->at_valid, err) < 0))
        return -1;
    if (add(m, "log_g_sum", FW_F64, traits & FW_CHANNELS ? m->rows : 0, &m->at_log_g, err) <
            0 ||
        add(m, "last_residual", FW_F64, 0, &m->at_residual, err) < 0 ||
        fw_layout_add(l, "counters", FW_U64, 1, counters, &m->at_counters, err) < 0)
        return -1;
    if (!keeps_residual(traits) && (add(m, "last_k", FW_F32, m->rows, &m->at_last_k, err) < 0 ||
                                    add(m, "last_v", FW_F32, m->d_v, &m->at_last_v, err) < 0))
        return -1;
    return 0;
}

/* The NUL is a byte of the name, too. Of what is not taken, first and of_first fit no name. */
static void place_name(struct fw_place *p, const char *name)
{
    size_t n = name ? strlen(name) + 1 : 0;

    p->name = name;
    p->first = 1;
    if (!name)
        return;
    n = n < sizeof p->first ? n : sizeof p->first;
    p->first = 0;
    memcpy(&p->first, name, n);
    memset(&p->of_first, 0xff, n);
}

/* What would otherwise be worked out again for every pair. */
static void place_inputs(struct fw_memory *m)
{
    size_t rows = FW_BUFFER / (m->rows > m->d_v ? m->rows : m->d_v);

    for (size_t i = 0; i < fw_input_count(m); i++) {
        place_name(&m->place[i], fw_input_taken(m, i) ? fw_input_of(m, i)->name : NULL);
        m->place[i].inner = fw_input_inner(m, i);
        m->place[i].row = m->heads * m->place[i].inner;
        m->place[i].each = fw_input_of(m, i)->flags & FW_EACH ? m->pairs : 1;
    }
    m->span = m->cache ? 1 : (rows < FW_SPAN ? rows : FW_SPAN) / m->pairs;
    m->kernels = fw_num_kernels();
    m->direct = m->rule->learn_token && !m->cache && !m->probes &&
                m->at_covariance == FW_NOWHERE && m->at_last_k == FW_NOWHERE && m->pairs == 1 &&
                !m->l2 && fw_map_is_identity(m) && m->heads <= FW_DIRECT_HEADS &&
                m->d_v <= FW_TOKEN_COLUMNS;
}

static int seal(struct fw_memory *m, struct fw_err *err)
{
    struct fw_layout *l = &m->layout;

    if (fw_layout_seal(l, 0, err) < 0)
        return -1;
    if (l->block_bytes > MAX_STATE_BYTES)
        return fw_fail_param(err, FW_EINVAL, "state_too_large", "config.heads",
                             "this needs %zu bytes of state, at most %zu are allowed",
                             l->block_bytes, MAX_STATE_BYTES);
    return 0;
}

int fw_memory_new(struct fw_memory **ret, const struct fw_params *config,
                  struct fw_params *resolved, struct fw_err *err)
{
    struct fw_config c = { .given = config };
    struct fw_memory *m = calloc(1, sizeof *m);

    if (!m)
        return fw_fail(err, FW_ENOMEM, "out_of_memory", "no memory for a plan");
    fw_layout_init(&m->layout);
    m->at_S = m->at_k = m->at_e = m->at_valid = m->at_last_k = m->at_last_v = FW_NOWHERE;
    m->at_covariance = m->at_probe_k = m->at_probe_v = m->at_probe_number = FW_NOWHERE;
    if (read_rule(m, &c, err) < 0)
        goto fail;
    m->takes = ~0u;
    if (read_shapes(m, &c, err) < 0 || lay_out(m, err) < 0 ||
        (m->rule->plan && m->rule->plan(m, &c, err) < 0) || fw_cache_plan(m, &c, err) < 0 ||
        fw_covariance_plan(m, &c, err) < 0 || fw_probe_plan(m, &c, err) < 0 ||
        read_fallbacks(m, &c, err) < 0 || fw_config_only(&c, err) < 0 || seal(m, err) < 0)
        goto fail;
    place_inputs(m);
    *ret = m;
    *resolved = c.resolved;
    return 0;
fail:
    fw_memory_free(m);
    return -1;
}

void fw_memory_free(struct fw_memory *m)
{
    if (!m)
        return;
    fw_layout_done(&m->layout);
    free(m->fallback);
    free(m->frequency);
    free(m->own);
    free(m->cache);
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

uint32_t fw_memory_rows(const struct fw_memory *m)
{
    return m->at_S != FW_NOWHERE || m->rule->state ? (uint32_t)m->rows : 0;
}

void fw_memory_init(const struct fw_memory *m, void *block)
{
    memset(block, 0, m->layout.block_bytes);
    if (m->rule->init)
        m->rule->init(m, block);
}
