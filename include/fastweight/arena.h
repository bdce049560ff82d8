/* fastweight/arena.h - where state blocks live: mmap, huge pages advised, under one limit.
 *
 * A block is 64-byte aligned and zeroed when handed out; a freed block is dropped with
 * MADV_DONTNEED or unmapped, so the resident overhead stays under 2%. Small blocks of one size
 * share a slab; large ones have their own mapping. Any thread (one mutex inside, never held
 * across a page fault of more than one block). */
#ifndef FW_ARENA_H
#define FW_ARENA_H

#include <stddef.h>

#include "fastweight/err.h"

struct fw_arena;

int fw_arena_new(struct fw_arena **ret, size_t limit_bytes, struct fw_err *err);
void fw_arena_free(struct fw_arena *a); /* all blocks must be back; NULL is allowed */
/* FW_EAGAIN "memory_full" when the limit would be passed; never waits. The caller owns it. */
int fw_arena_take(struct fw_arena *a, size_t bytes, void **ret, struct fw_err *err);
void fw_arena_give(struct fw_arena *a, void *block, size_t bytes); /* NULL is allowed */
size_t fw_arena_room(const struct fw_arena *a, size_t bytes); /* of the limit, for one block */
size_t fw_arena_used(const struct fw_arena *a);               /* bytes handed out */
size_t fw_arena_limit(const struct fw_arena *a);

#endif
