/* rule.c - the table of update rules, and the loops of the CPU level. */
#include "config.h"

#include "rule.h"

#include <string.h>

#include "families.h"
#include "fastweight/num.h"
#include "loops.h"

const struct fw_rule *const fw_rules[] = {
    &fw_rule_delta,
    &fw_rule_gated_delta,
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
