/* rule.c - the table of update rules, and the loops of the CPU level. */
#include "config.h"

#include "rule.h"

#include <string.h>

#include "families.h"
#include "fastweight/num.h"
#include "loops.h"
#include "net.h"
#include "solve.h"
#include "steps.h"

const struct fw_rule *const fw_rules[] = {
    &fw_rule_linear,
    &fw_rule_linear_norm,
    &fw_rule_retention,
    &fw_rule_gla,
    &fw_rule_mamba2,
    &fw_rule_delta,
    &fw_rule_gated_delta,
    &fw_rule_kda,
    &fw_rule_comba,
    &fw_rule_longhorn,
    &fw_rule_delta_product,
    &fw_rule_gated_delta_product,
    &fw_rule_wkv7,
    &fw_rule_dplr,
    &fw_rule_iplr,
    &fw_rule_omega,
    &fw_rule_omega_muon,
    &fw_rule_momentum,
    &fw_rule_huber,
    &fw_rule_mesa,
    &fw_rule_ttt_linear,
    &fw_rule_ttt_mlp,
    &fw_rule_titans,
    &fw_rule_log_linear,
    &fw_rule_softmax,
    &fw_rule_window,
    &fw_rule_sinks,
    &fw_rule_heavy_hitter,
    NULL,
};

const struct fw_rule *fw_rule_find(const char *name)
{
    for (size_t i = 0; fw_rules[i]; i++)
        if (strcmp(fw_rules[i]->name, name) == 0)
            return fw_rules[i];
    return NULL;
}

const struct fw_loops *fw_loops(void)
{
#ifdef HAVE_V3
    if (fw_num_level() == FW_LEVEL_X86_64_V3)
        return &fw_loops_v3;
#endif
    return &fw_loops_base;
}

const struct fw_steps *fw_steps(void)
{
#ifdef HAVE_V3
    if (fw_num_level() == FW_LEVEL_X86_64_V3)
        return &fw_steps_v3;
#endif
    return &fw_steps_base;
}

const struct fw_solvers *fw_solvers(void)
{
#ifdef HAVE_V3
    if (fw_num_level() == FW_LEVEL_X86_64_V3)
        return &fw_solvers_v3;
#endif
    return &fw_solvers_base;
}

const struct fw_gelus *fw_gelus(void)
{
#ifdef HAVE_V3
    if (fw_num_level() == FW_LEVEL_X86_64_V3)
        return &fw_gelus_v3;
#endif
    return &fw_gelus_base;
}

const char *fw_memory_rule(size_t i)
{
    for (size_t j = 0; fw_rules[j]; j++)
        if (j == i)
            return fw_rules[j]->name;
    return NULL;
}

static size_t add_name(const char *name, const char **ret, size_t n, size_t max)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(ret[i], name) == 0)
            return n;
    if (n < max)
        ret[n++] = name;
    return n;
}

size_t fw_memory_inputs(const char **ret, size_t max)
{
    size_t n = add_name("keys", ret, 0, max);

    n = add_name("values", ret, n, max);
    n = add_name("queries", ret, n, max);
    for (size_t i = 0; fw_rules[i]; i++)
        for (size_t j = 0; j < fw_rules[i]->input_count; j++)
            n = add_name(fw_rules[i]->inputs[j].name, ret, n, max);
    return n;
}
