/* settings.h - config.json of a checkpoint, as far as anybody reads it. */
#ifndef SETTINGS_H
#define SETTINGS_H

#include <stdbool.h>
#include <stddef.h>

#include "fastweight/buf.h"

struct fw_settings { /* 0 or "": not said */
    char architecture[32], tokenizer[32], activation[32];
    size_t vocab, d_model, layers, heads, v_heads, head_dim, d_ff, conv_size, max_context;
    double expand_k, expand_v, eps;
    bool gate, no_gate, no_conv, untied, double_beta;
};

/* Appends a whole file of a directory to out, whose max bounds it. FW_EINVAL "bad_model". */
int fw_model_file(struct fw_buf *out, const char *dir, const char *name, struct fw_err *err);
int fw_settings_read(struct fw_settings *ret, const char *dir, struct fw_err *err);

#endif
