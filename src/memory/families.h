/* families.h - the rules of each family's file, for the table in rule.c. */
#ifndef FAMILIES_H
#define FAMILIES_H

#include "rule.h"

/* delta.c */
extern const struct fw_rule fw_rule_delta, fw_rule_gated_delta, fw_rule_delta_product,
    fw_rule_gated_delta_product;
/* linear.c */
extern const struct fw_rule fw_rule_linear, fw_rule_linear_norm, fw_rule_retention, fw_rule_gla;
/* mamba2.c */
extern const struct fw_rule fw_rule_mamba2;
/* erase.c */
extern const struct fw_rule fw_rule_kda, fw_rule_comba, fw_rule_wkv7, fw_rule_dplr,
    fw_rule_iplr;
/* longhorn.c */
extern const struct fw_rule fw_rule_longhorn;
/* omega.c, omega_muon.c, momentum.c, huber.c, mesa.c */
extern const struct fw_rule fw_rule_omega, fw_rule_omega_muon, fw_rule_momentum, fw_rule_huber,
    fw_rule_mesa;
/* ttt.c, titans.c */
extern const struct fw_rule fw_rule_ttt_linear, fw_rule_ttt_mlp, fw_rule_titans;
/* log_linear.c */
extern const struct fw_rule fw_rule_log_linear;
/* attention.c */
extern const struct fw_rule fw_rule_softmax, fw_rule_window, fw_rule_sinks,
    fw_rule_heavy_hitter;

#endif
