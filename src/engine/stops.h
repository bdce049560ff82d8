/* stops.h - where a growing text ends: before the first stop string. Private to the engine; one
 * thread at a time. */
#ifndef ENGINE_STOPS_H
#define ENGINE_STOPS_H

#include <stdbool.h>

#include "fastweight/buf.h"
#include "fastweight/sampling.h"

struct stops {
    const struct fw_sampling *s;
    struct fw_buf text;
    size_t *end; /* (max_tokens,) owned: where each token's bytes end */
    size_t tokens;
    size_t kept; /* tokens that no stop string can reach any more */
    size_t cut;  /* once stopped: where the text ends */
};

int stops_init(struct stops *t, const struct fw_sampling *s, size_t max_tokens,
               struct fw_err *err);
void stops_done(struct stops *t); /* a zeroed one is fine */
/* One more token's bytes. 1: the text has ended at t->cut, and t->kept tokens lie whole before
 * it; 0: not yet; -1: no memory. */
int stops_add(struct stops *t, const void *bytes, size_t len, struct fw_err *err);

#endif
