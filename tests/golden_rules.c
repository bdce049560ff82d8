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

/* The recurrence alone; q, k, v, rates and the read come from inside the layer. */
#define TTT                                                                                    \
    { "core_XQ", "queries" }, { "core_XK", "keys" }, { "core_XV", "values" },                  \
        { "core_lr", "lr" }, { "core_token_eta", "tau" }, { "ttt_norm_weight", "ln_weight" },  \
    {                                                                                          \
        "ttt_norm_bias", "ln_bias"                                                             \
    }
#define TTT_LAYER                                                                              \
    .fields = { { "mini_batch_size", "mini_batch" } }, .only_named = true, .out = "core_out"
#define TITANS                                                                                 \
    .fields = { { "depth", "depth" },                                                          \
                { "chunk", "chunk" },                                                          \
                { "batch", "batch" },                                                          \
                { "layer_norm", "layer_norm" } },                                              \
    .inputs = { { "core_queries", "queries" }, { "core_keys", "keys" },                        \
                { "core_values", "values" },   { "core_lr", "theta" },                         \
                { "core_momentum", "eta" },    { "core_decay", "alpha" } },                    \
    .only_named = true

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
    { .json = "ttt_linear_ln_fla",
      .config = "ttt_linear",
      .fixed = { { "variant", "fla" } },
      .fields = { { "mini_batch_size", "mini_batch" } },
      .inputs = { { "w", "ln_weight" }, { "b", "ln_bias" }, { "eta", "eta" } },
      .initial = { { "initial_state", "S" },
                   { "initial_state", "start_S" },
                   { "initial_state_bias", "b1" },
                   { "initial_state_bias", "start_b1" } },
      .final = { { "final_state", "S" }, { "final_state_bias", "b1" } } },
    { .json = "ttt_linear_official",
      .config = "ttt_linear",
      .inputs = { TTT },
      TTT_LAYER,
      .initial = { { "W1", "S" }, { "W1", "start_S" }, { "b1", "b1" }, { "b1", "start_b1" } },
      .final = { { "final_W1", "S" }, { "final_b1", "b1" } } },
    { .json = "ttt_mlp_official",
      .config = "ttt_mlp",
      .inputs = { TTT },
      TTT_LAYER,
      .initial = { { "W1", "W1" },
                   { "W1", "start_W1" },
                   { "b1", "b1" },
                   { "b1", "start_b1" },
                   { "W2", "W2" },
                   { "W2", "start_W2" },
                   { "b2", "b2" },
                   { "b2", "start_b2" } },
      .final = { { "final_W1", "W1" },
                 { "final_b1", "b1" },
                 { "final_W2", "W2" },
                 { "final_b2", "b2" } } },
    { .json = "titans",
      .config = "titans",
      .when = { "depth", "1" },
      TITANS,
      .initial = { { "core_init_W0", "S" },
                   { "core_init_W0", "start_S" },
                   { "core_init_gamma", "gamma" },
                   { "core_init_gamma", "start_gamma" } },
      .final = { { "final_W0", "S" },
                 { "final_momentum_W0", "momentum_S" },
                 { "final_gamma", "gamma" },
                 { "final_momentum_gamma", "momentum_gamma" } } },
    { .json = "titans",
      .config = "titans",
      .when = { "depth", "2" },
      TITANS,
      .initial = { { "core_init_W0", "W1" },
                   { "core_init_W0", "start_W1" },
                   { "core_init_W1", "W2" },
                   { "core_init_W1", "start_W2" },
                   { "core_init_gamma", "gamma" },
                   { "core_init_gamma", "start_gamma" } },
      .final = { { "final_W0", "W1" },
                 { "final_momentum_W0", "momentum_W1" },
                 { "final_W1", "W2" },
                 { "final_momentum_W1", "momentum_W2" },
                 { "final_gamma", "gamma" },
                 { "final_momentum_gamma", "momentum_gamma" } } },
    { .json = "log_linear_attention",
      .config = "log_linear",
      .fields = { { "levels", "levels" } },
      .inputs = { { "level_scales", "level_scales" } } },
    { .json = "softmax_attention",
      .config = "softmax",
      .when = { "window", "null" },
      .fixed = { { "bandwidth", "1" } } },
    { .json = "softmax_attention",
      .config = "window",
      .fixed = { { "bandwidth", "1" } },
      .fields = { { "window", "window" } } },
    { .json = NULL },
};
