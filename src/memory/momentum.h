/* momentum.h - the matrix Z beside S that rules with momentum keep in the block. */
#ifndef MOMENTUM_H
#define MOMENTUM_H

#include "rule.h"

/* Appends `momentum` (H, rows, d_v). */
int fw_momentum_plan(struct fw_memory *m, size_t *ret_at, struct fw_err *err);
float *fw_momentum_of(const struct fw_memory *m, const void *block, size_t at, size_t head);
int fw_momentum_validate(const struct fw_memory *m, const void *block, size_t at, size_t head,
                         struct fw_err *err);
uint64_t fw_momentum_saturate(const struct fw_memory *m, void *block, size_t at, size_t head);

#endif
