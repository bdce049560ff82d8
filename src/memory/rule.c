/* rule.c - the table of update rules. */
#include "config.h"

#include "rule.h"

#include <string.h>

static const struct fw_rule *const rules[] = { &fw_rule_delta, &fw_rule_gated_delta };

const struct fw_rule *fw_rule_find(const char *name)
{
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        if (strcmp(rules[i]->name, name) == 0)
            return rules[i];
    return NULL;
}
