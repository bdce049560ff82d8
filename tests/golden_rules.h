/* golden_rules.h - how a case's rule and tensors are called here; golden_check.c runs them. */
#ifndef GOLDEN_RULES_H
#define GOLDEN_RULES_H

#include <stdbool.h>

#define MAX_NAMES 12

struct golden_name { /* the case's name, and the body's, the block's or the configuration's */
    const char *json, *ours;
};

/* One row per `rule` of the JSON. Several rows may share one; the first whose `when` (a JSON
 * field, its value as text) fits is taken. Lists end with a NULL. */
struct golden_rule {
    const char *json, *config;
    struct golden_name when;
    struct golden_name fixed[MAX_NAMES];   /* config key = text or number */
    struct golden_name fields[MAX_NAMES];  /* JSON fields that become config keys */
    struct golden_name inputs[MAX_NAMES];  /* besides q k v beta g; whatever their role is */
    bool only_named;                       /* other inputs belong to a layer around the rule */
    struct golden_name initial[MAX_NAMES]; /* tensors that become fields of the first block */
    struct golden_name final[MAX_NAMES];   /* and those compared with the last block's */
    const char *out;                       /* values read after each token; NULL: "out" */
};

extern const struct golden_rule golden_rules[]; /* ends with json NULL */

#endif
