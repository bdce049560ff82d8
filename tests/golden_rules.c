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

#define WINDOW                                                                                 \
    { "final_window_k", "window_k" }, { "final_window_v", "window_v" },                        \
    {                                                                                          \
        "final_window_u", "window_u"                                                           \
    }
#define COVARIANCES                                                                            \
    .initial = { { "initial_h_kk", "H_kk" }, { "initial_h_kv", "H_kv" } },                     \
    .final = { { "final_h_kk", "H_kk" }, { "final_h_kv", "H_kv" } }

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
    { .json = "omega",
      .config = "omega",
      .fields = { { "window", "window" } },
      .inputs = { { "u", "u" }, { "alpha", "alpha" }, { "eta", "eta" } },
      .initial = { { "initial_state", "S" } },
      .final = { { "final_state", "S" }, WINDOW } },
    { .json = "omega_momentum_muon",
      .config = "omega_muon",
      .fields = { { "window", "window" } },
      .inputs = { { "u", "u" }, { "theta", "theta" }, { "alpha", "alpha" }, { "eta", "eta" } },
      .initial = { { "initial_state", "S" }, { "initial_momentum", "momentum" } },
      .final = { { "final_state", "S" }, { "final_momentum", "momentum" }, WINDOW } },
    { .json = "momentum",
      .config = "momentum",
      .inputs = { { "eta", "eta" }, { "theta", "theta" }, { "alpha", "alpha" } },
      .initial = { { "initial_state", "S" }, { "initial_momentum", "momentum" } },
      .final = { { "final_state", "S" }, { "final_momentum", "momentum" } } },
    { .json = "huber",
      .config = "huber",
      .inputs = { { "alpha", "alpha" }, { "eta", "eta" }, { "delta", "delta" } },
      STATE },
    { .json = "mesa_exact", .config = "mesa", .inputs = { { "lamb", "lambda" } }, COVARIANCES },
    { .json = "mesa_cg",
      .config = "mesa",
      .fixed = { { "solver", "cg" } },
      .fields = { { "cg_iterations", "cg_iterations" } },
      .inputs = { { "lamb", "lambda" } },
      COVARIANCES },
    { .json = NULL },
};
