/* expert.h - who else joins the gates of a byte stream: nobody, the dense expert, or one from
 * outside (fastweight/stream.h). An expert is something that yields 256 logits. */
#ifndef EXPERT_H
#define EXPERT_H

#include "dense.h"

#define EXPERT_AHEAD 32 /* bytes that an outside expert takes at once */

struct expert { /* part of a plan */
    struct dense dense;
    const struct fw_expert *outside; /* NULL: none */
    size_t at_outside, outside_bytes;
    const char *source; /* as the statistics name it; NULL: nobody */
};

struct expert_reading {
    _Alignas(32) float tree[512];
    _Alignas(32) float logits[EXPERT_AHEAD][256];
    struct dense_step step;
};

/* name: none, dense, or whatever outside is called. Adds its fields. */
int expert_plan(struct expert *e, const char *name, const struct fw_expert *outside,
                size_t state_bytes, struct fw_layout *l, struct fw_err *err);
void expert_init(const struct expert *e, void *block);
int expert_validate(const struct expert *e, const void *block, struct fw_err *err);
uint64_t expert_rows(const struct expert *e);

/* A stretch of bytes is read i = 0, 1, ... n - 1: expert_ahead, then expert_read, then
 * expert_update when it is learned. `own` is the outside expert's block: in the stream's, or a
 * view's copy; it advances up to EXPERT_AHEAD bytes before the rest does. */
void expert_ahead(const struct expert *e, void *own, const uint8_t *bytes, size_t n, size_t i,
                  struct expert_reading *r);
/* Points in->expert at the tree, or at NULL. */
void expert_read(const struct expert *e, const void *block, struct core_context *in, size_t i,
                 struct expert_reading *r);
/* The same for one byte to come, which nobody feeds. */
void expert_peek(const struct expert *e, const void *block, const void *own,
                 struct core_context *in, struct expert_reading *r);
void expert_update(const struct expert *e, void *block, uint32_t symbol,
                   const struct expert_reading *r);

#endif
