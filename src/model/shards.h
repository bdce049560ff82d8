/* shards.h - the files of a checkpoint, each mapped whole. */
#ifndef SHARDS_H
#define SHARDS_H

#include <stddef.h>

#include "fastweight/safetensors.h"

struct fw_part { /* one mapped file */
    void *map;
    size_t len;
    struct fw_safetensors file; /* views into map */
};

struct fw_weight_row {
    const struct fw_tensor *tensor; /* lent by its part */
    int taken;
};

/* model.safetensors, or what its index names: every tensor in the file the index says, none
 * besides. *ret and *ret_count also count what was opened before a failure. */
int fw_parts_open(struct fw_part **ret, size_t *ret_count, const char *dir, struct fw_err *err);
void fw_part_close(struct fw_part *p);

#endif
