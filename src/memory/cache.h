/* cache.h - config `cache`: beside any rule, the pairs that surprised it most. */
#ifndef CACHE_H
#define CACHE_H

#include "rule.h"

/* Reads the configuration; with a cache sets m->cache and appends its fields. */
int fw_cache_plan(struct fw_memory *m, struct fw_config *c, struct fw_err *err);
/* After the rule learned a span of one token. */
void fw_cache_note(const struct fw_memory *m, void *block, size_t head,
                   const struct fw_span *s);
/* Adds what the cache knows to what the rule read. */
void fw_cache_read(const struct fw_memory *m, const void *block, size_t head,
                   const struct fw_reads *r);
/* Forgets the pairs that would be heard at key k, (rows,) mapped. */
void fw_cache_drop(const struct fw_memory *m, void *block, size_t head, const float *k);
int fw_cache_validate(const struct fw_memory *m, const void *block, size_t head,
                      struct fw_err *err);
void fw_cache_usage(const struct fw_memory *m, const void *block, struct fw_usage *u);

#endif
