/* golden_rules.c - the table of golden_rules.h. */
#include "config.h"

#include "golden_rules.h"

#include <stddef.h>

#define STATE .initial = { { "initial_state", "S" } }, .final = { { "final_state", "S" } }

const struct golden_rule golden_rules[] = {
    { .json = "delta_rule", .config = "delta", STATE },
    { .json = "gated_delta_rule", .config = "gated_delta", STATE },
    { .json = NULL },
};
