/* golden_rules.c - the table of golden_rules.h. */
#include "config.h"

#include "golden_rules.h"

#include <stddef.h>

#define STATE .initial = { { "initial_state", "S" } }, .final = { { "final_state", "S" } }

#define SSM                                                                                    \
    { "X", "values" }, { "B", "keys" }, { "C", "queries" },                                    \
    {                                                                                          \
        "A", "A"                                                                               \
    }

const struct golden_rule golden_rules[] = {
    { .json = "linear_attention",
      .config = "linear_norm",
      .when = { "normalised", "true" },
      .fields = { { "feature_map", "feature_map" }, { "eps", "eps" } },
      .final = { { "final_state", "S" }, { "final_z", "z" } } },
    { .json = "linear_attention",
      .config = "linear",
      .fields = { { "feature_map", "feature_map" } },
      STATE },
    { .json = "scalar_decay", .config = "retention", STATE },
    { .json = "gla", .config = "gla", STATE },
    { .json = "mamba2_ssd", .config = "mamba2", .inputs = { SSM, { "dt", "dt" } }, STATE },
    { .json = "mamba2_step",
      .config = "mamba2",
      .fixed = { { "form", "step" } },
      .inputs = { SSM,
                  { "dt_raw", "dt_raw" },
                  { "dt_bias", "dt_bias" },
                  { "D", "D" },
                  { "z", "z" } },
      STATE },
    { .json = "delta_rule", .config = "delta", STATE },
    { .json = "gated_delta_rule", .config = "gated_delta", STATE },
    { .json = "delta_product", .config = "delta_product", STATE },
    { .json = "gated_delta_product", .config = "gated_delta_product", STATE },
    { .json = "wkv7",
      .config = "wkv7",
      .inputs = { { "r", "queries" }, { "w_raw", "w" }, { "a", "a" }, { "b", "b" } },
      STATE },
    { .json = "dplr",
      .config = "dplr",
      .inputs = { { "alpha", "a" }, { "beta", "b" } },
      STATE },
    { .json = "iplr",
      .config = "iplr",
      .inputs = { { "alpha", "a" }, { "beta", "b" } },
      STATE },
    { .json = "kda", .config = "kda", STATE },
    { .json = "comba", .config = "comba", .inputs = { { "p", "p" } }, STATE },
    { .json = "longhorn",
      .config = "longhorn",
      .inputs = { { "u", "values" },
                  { "dt", "dt" },
                  { "t_bias", "dt_bias" },
                  { "D", "D" },
                  { "z", "z" } } },
    { .json = "poly", .config = "delta", .fixed = { { "feature_map", "poly2" } }, STATE },
    { .json = "dpfp",
      .config = "delta",
      .fixed = { { "feature_map", "dpfp" } },
      .fields = { { "nu", "nu" } },
      STATE },
    { .json = NULL },
};
