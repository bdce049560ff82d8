/* families.h - the rules of each family's file, for the table in rule.c. */
#ifndef FAMILIES_H
#define FAMILIES_H

#include "rule.h"

extern const struct fw_rule fw_rule_delta, fw_rule_gated_delta; /* delta.c */

#endif
