/* merges.h - byte pair encoding of one word. */
#ifndef MERGES_H
#define MERGES_H

#include <stddef.h>
#include <stdint.h>

#include "fastweight/buf.h"

struct merge {
    uint64_t pair; /* left << 32 | right; all ones: no merge */
    uint32_t rank, id;
};

struct merges {
    struct merge *slot; /* owned; (size,), open addressing */
    size_t size;        /* a power of two; 0: no merges */
};

struct merges_work; /* what encoding a word needs; one thread */

int merges_init(struct merges *m, size_t count, struct fw_err *err);
void merges_done(struct merges *m);
/* Left and right become id; of equal pairs the last counts. At most count times. */
void merges_add(struct merges *m, uint32_t left, uint32_t right, uint32_t rank, uint32_t id);

struct merges_work *merges_work_new(struct fw_err *err);
void merges_work_free(struct merges_work *w);
/* Appends the ids of the word; byte_id says what each byte begins as. */
int merges_encode(const struct merges *m, struct merges_work *w, const uint32_t byte_id[256],
                  const unsigned char *word, size_t len, struct fw_buf *out,
                  struct fw_err *err);

#endif
