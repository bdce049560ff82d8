/* arena.c - where state blocks live: mapped memory under one limit, resident only while used.
 *
 * A request is rounded up to 64 bytes, from 256 KiB on to whole pages, never to a power of two.
 * Blocks of one size come from slabs: mappings cut into equal blocks, with their bookkeeping
 * (a bitmap of free blocks) on the heap; a large block is a slab of its own. Two trees lead
 * from a size to its class and from an address to its slab.
 *
 * Invariant: a free block reads as zeros. A freed one's whole pages are dropped, the rest is
 * zeroed, and a page shared by several blocks goes when the last of them is free; an empty
 * slab is unmapped. Huge pages are advised only where every byte below them is handed out at
 * once; in a shared slab they would make the neighbours' free places resident.
 *
 * Slabs grow with the limit, so that a full arena has some 16,000 mappings (the kernel's usual
 * bound is 65,530). One mutex, any thread; pages are dropped and faulted outside it, but for
 * the two at a block's edges. */
#include "config.h"

#include "fastweight/arena.h"

#include <assert.h>
#include <pthread.h>
#include <search.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    ALIGN = 64,
    PAGED_FROM = 256 << 10, /* bytes: a whole page costs at most 1.6% from here on */
    HUGE_PAGE = 2 << 20,
    SLAB_MIN = 1 << 20,
    SLAB_MAX = 64 << 20,
    MAX_SLABS = 16384, /* of a full arena, about */
    MAX_BLOCKS = 16384 /* in one slab */
};

struct slab {
    unsigned char *base;
    size_t map_bytes;
    struct size_class *class;
    struct slab *prev, *next; /* in class->open, while a block is free */
    size_t used;              /* blocks handed out */
    size_t hint;              /* no word of `free` before it has a bit */
    uint64_t free[];          /* bit i: block i is free */
};

struct size_class {
    size_t size;  /* of a block */
    size_t count; /* blocks in a slab */
    size_t slabs;
    struct slab *open; /* those with a free block */
};

struct fw_arena {
    pthread_mutex_t lock;
    size_t limit, page;
    _Atomic size_t used; /* written under the lock, read by anyone */
    void *slabs;         /* tsearch trees: by address, */
    void *classes;       /* and by size */
};

static size_t round_up(size_t n, size_t to)
{
    return (n + to - 1) / to * to;
}

static size_t block_size(const struct fw_arena *a, size_t bytes)
{
    if (bytes >= PAGED_FROM)
        return round_up(bytes, a->page);
    return round_up(bytes ? bytes : 1, ALIGN);
}

static int by_address(const void *pa, const void *pb)
{
    const struct slab *a = pa, *b = pb;

    if (a->base + a->map_bytes <= b->base)
        return -1;
    return b->base + b->map_bytes <= a->base;
}

static int by_size(const void *pa, const void *pb)
{
    const struct size_class *a = pa, *b = pb;

    return a->size < b->size ? -1 : a->size > b->size;
}

static void link_open(struct slab *s)
{
    s->prev = NULL;
    s->next = s->class->open;
    if (s->next)
        s->next->prev = s;
    s->class->open = s;
}

static void unlink_open(struct slab *s)
{
    if (s->next)
        s->next->prev = s->prev;
    if (s->prev)
        s->prev->next = s->next;
    else
        s->class->open = s->next;
}

/* ---- mappings */

static unsigned char *map_aligned(size_t bytes, size_t align)
{
    size_t extra, front;
    unsigned char *p = mmap(NULL, bytes + align, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (p == MAP_FAILED)
        return NULL;
    front = (align - (uintptr_t)p % align) % align;
    extra = align - front;
    /* At the bound of mappings a trim may fail: it then costs addresses, not memory. */
    if (front > 0)
        munmap(p, front);
    if (extra > 0)
        munmap(p + front + bytes, extra);
    return p + front;
}

static unsigned char *map_slab(const struct fw_arena *a, const struct size_class *c,
                               size_t bytes)
{
    int whole = c->count == 1 || c->size % HUGE_PAGE == 0;
    unsigned char *p;

    if (whole && c->size >= HUGE_PAGE) {
        p = map_aligned(bytes, HUGE_PAGE);
        if (p)
            madvise(p, bytes, MADV_HUGEPAGE); /* advice: without it we are merely slower */
        return p;
    }
    p = mmap(NULL, round_up(bytes, a->page), PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
        return NULL;
    if (!whole)
        madvise(p, bytes, MADV_NOHUGEPAGE);
    return p;
}

/* Makes [from, to) read as zeros; whole pages stop being resident. */
static void scrub(const struct fw_arena *a, unsigned char *from, unsigned char *to)
{
    unsigned char *first = from + (a->page - (uintptr_t)from % a->page) % a->page;
    unsigned char *last = to - (uintptr_t)to % a->page;

    if (first >= last || madvise(first, (size_t)(last - first), MADV_DONTNEED) != 0) {
        memset(from, 0, (size_t)(to - from)); /* no whole page, or locked in memory */
        return;
    }
    memset(from, 0, (size_t)(first - from));
    memset(last, 0, (size_t)(to - last));
}

/* ---- classes and slabs; under the lock */

static struct size_class *class_of(struct fw_arena *a, size_t size)
{
    struct size_class key = { .size = size }, *c;
    struct size_class **found = tfind(&key, &a->classes, by_size);
    size_t slab_bytes = a->limit / MAX_SLABS;

    if (found)
        return *found;
    c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    slab_bytes = slab_bytes < SLAB_MIN ? SLAB_MIN : slab_bytes;
    slab_bytes = slab_bytes > SLAB_MAX ? SLAB_MAX : slab_bytes;
    c->size = size;
    c->count = size > slab_bytes ? 1 : slab_bytes / size;
    if (c->count > MAX_BLOCKS)
        c->count = MAX_BLOCKS;
    if (!tsearch(c, &a->classes, by_size)) {
        free(c);
        return NULL;
    }
    return c;
}

static void drop_empty_class(struct fw_arena *a, struct size_class *c)
{
    if (c->slabs > 0)
        return;
    tdelete(c, &a->classes, by_size);
    free(c);
}

static struct slab *new_slab(struct fw_arena *a, struct size_class *c)
{
    size_t i, words = (c->count + 63) / 64;
    struct slab *s = calloc(1, sizeof *s + words * sizeof s->free[0]);

    if (!s)
        return NULL;
    s->map_bytes = round_up(c->count * c->size, a->page);
    s->class = c;
    s->base = map_slab(a, c, s->map_bytes);
    if (!s->base) {
        free(s);
        return NULL;
    }
    if (!tsearch(s, &a->slabs, by_address)) {
        munmap(s->base, s->map_bytes);
        free(s);
        return NULL;
    }
    for (i = 0; i < c->count; i++)
        s->free[i / 64] |= UINT64_C(1) << i % 64;
    c->slabs++;
    link_open(s);
    return s;
}

/* Unmaps an empty slab. Splitting a mapping may fail at the kernel's bound; it is kept then. */
static void drop_slab(struct fw_arena *a, struct slab *s)
{
    if (munmap(s->base, s->map_bytes) != 0)
        return;
    tdelete(s, &a->slabs, by_address);
    unlink_open(s);
    s->class->slabs--;
    drop_empty_class(a, s->class);
    free(s);
}

static struct slab *slab_at(struct fw_arena *a, void *block)
{
    struct slab key = { .base = block, .map_bytes = 1 };
    struct slab **found = tfind(&key, &a->slabs, by_address);

    assert(found);
    return *found;
}

/* ---- blocks; under the lock */

static unsigned char *take_block(struct slab *s)
{
    size_t index;

    while (s->free[s->hint] == 0)
        s->hint++;
    index = 64 * s->hint + (size_t)__builtin_ctzll(s->free[s->hint]);
    s->free[s->hint] &= s->free[s->hint] - 1;
    if (++s->used == s->class->count)
        unlink_open(s);
    return s->base + index * s->class->size;
}

static void put_block(struct slab *s, size_t index)
{
    assert(!(s->free[index / 64] >> index % 64 & 1));
    s->free[index / 64] |= UINT64_C(1) << index % 64;
    if (s->hint > index / 64)
        s->hint = index / 64;
    if (s->used-- == s->class->count)
        link_open(s);
}

/* Drops the page around byte `at` of the slab when all blocks that touch it are free. */
static void drop_shared_page(const struct fw_arena *a, const struct slab *s, size_t at)
{
    size_t from = at - at % a->page;
    size_t i = from / s->class->size, end = (from + a->page - 1) / s->class->size;

    for (; i <= end && i < s->class->count; i++) {
        if (!(s->free[i / 64] >> i % 64 & 1))
            return;
    }
    madvise(s->base + from, a->page, MADV_DONTNEED); /* zeros already: failure is harmless */
}

/* ---- the front door */

int fw_arena_new(struct fw_arena **ret, size_t limit_bytes, struct fw_err *err)
{
    struct fw_arena *a = calloc(1, sizeof *a);

    if (!a)
        return fw_fail(err, FW_ENOMEM, "out_of_memory", "no memory for an arena");
    pthread_mutex_init(&a->lock, NULL);
    a->limit = limit_bytes < SIZE_MAX / 2 ? limit_bytes : SIZE_MAX / 2; /* sums never wrap */
    a->page = (size_t)sysconf(_SC_PAGESIZE);
    *ret = a;
    return 0;
}

void fw_arena_free(struct fw_arena *a)
{
    struct slab *s;

    if (!a)
        return;
    assert(a->used == 0);
    while (a->slabs) { /* empty ones that could not be unmapped; a node begins with its key */
        s = *(struct slab **)a->slabs;
        munmap(s->base, s->map_bytes);
        tdelete(s, &a->slabs, by_address);
        s->class->slabs--;
        drop_empty_class(a, s->class);
        free(s);
    }
    pthread_mutex_destroy(&a->lock);
    free(a);
}

int fw_arena_take(struct fw_arena *a, size_t bytes, void **ret, struct fw_err *err)
{
    size_t size;
    struct size_class *c;
    struct slab *s = NULL;
    int full;

    if (bytes > a->limit)
        return fw_fail(err, FW_EAGAIN, "memory_full", "%zu bytes are over the limit of %zu",
                       bytes, a->limit);
    size = block_size(a, bytes);
    pthread_mutex_lock(&a->lock);
    full = a->used + size > a->limit;
    c = full ? NULL : class_of(a, size);
    if (c) {
        s = c->open ? c->open : new_slab(a, c);
        if (s) {
            *ret = take_block(s);
            a->used += size;
        } else {
            drop_empty_class(a, c);
        }
    }
    pthread_mutex_unlock(&a->lock);
    if (full)
        return fw_fail(err, FW_EAGAIN, "memory_full", "the limit of %zu bytes is reached",
                       a->limit);
    if (!s)
        return fw_fail(err, FW_ENOMEM, "out_of_memory", "no memory for %zu bytes", size);
    return 0;
}

size_t fw_arena_room(const struct fw_arena *a, size_t bytes)
{
    return block_size(a, bytes);
}

void fw_arena_give(struct fw_arena *a, void *block, size_t bytes)
{
    size_t size = block_size(a, bytes), at;
    unsigned char *p = block;
    struct slab *s;

    if (!block)
        return;
    scrub(a, p, p + size);
    pthread_mutex_lock(&a->lock);
    s = slab_at(a, block);
    at = (size_t)(p - s->base);
    assert(s->class->size == size && at % size == 0);
    put_block(s, at / size);
    a->used -= size;
    if (s->used == 0) {
        drop_slab(a, s);
    } else if (size % a->page != 0) {
        drop_shared_page(a, s, at);
        drop_shared_page(a, s, at + size - 1);
    }
    pthread_mutex_unlock(&a->lock);
}

size_t fw_arena_used(const struct fw_arena *a)
{
    return a->used;
}

size_t fw_arena_limit(const struct fw_arena *a)
{
    return a->limit;
}
