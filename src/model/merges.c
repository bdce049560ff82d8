/* merges.c - byte pair encoding (Sennrich, Haddow, Birch 2016) of one word, in n log n.
 *
 * The word is a chain of symbols, at first one a byte. Of all pairs of neighbours that have a
 * merge, that of the lowest rank, and of equal ranks the leftmost, becomes one symbol, until
 * none is left. A heap holds rank << 32 | place of every pair that arose; one that is gone when
 * its turn comes (another rank is there now, or nothing) is passed over: no two pairs have the
 * same rank. Each merge takes one pair off the heap and adds two at most. */
#include "config.h"

#include "merges.h"

#include <stdlib.h>

#define EMPTY UINT64_MAX
#define NONE  UINT32_MAX

struct symbol {
    uint32_t id, before, after; /* places in the word; NONE: the end, or merged away */
};

struct merges_work {
    struct symbol *symbol;
    uint64_t *heap;
    size_t cap, heaped;
};

int merges_init(struct merges *m, size_t count, struct fw_err *err)
{
    size_t size = 16;

    while (size < 2 * count)
        size *= 2;
    m->slot = malloc(size * sizeof *m->slot);
    if (!m->slot)
        return fw_fail(err, FW_ENOMEM, "out_of_memory", "no memory for merges");
    for (size_t i = 0; i < size; i++)
        m->slot[i].pair = EMPTY;
    m->size = size;
    return 0;
}

void merges_done(struct merges *m)
{
    free(m->slot);
    *m = (struct merges){ .size = 0 };
}

static struct merge *place(const struct merges *m, uint64_t pair)
{
    size_t i = (pair ^ pair >> 29) * 0x9e3779b97f4a7c15u >> 32 & (m->size - 1);

    while (m->slot[i].pair != EMPTY && m->slot[i].pair != pair)
        i = (i + 1) & (m->size - 1);
    return &m->slot[i];
}

void merges_add(struct merges *m, uint32_t left, uint32_t right, uint32_t rank, uint32_t id)
{
    const uint64_t pair = (uint64_t)left << 32 | right;

    *place(m, pair) = (struct merge){ pair, rank, id };
}

struct merges_work *merges_work_new(struct fw_err *err)
{
    struct merges_work *w = calloc(1, sizeof *w);

    if (!w)
        fw_fail(err, FW_ENOMEM, "out_of_memory", "no memory to encode");
    return w;
}

void merges_work_free(struct merges_work *w)
{
    if (!w)
        return;
    free(w->symbol);
    free(w->heap);
    free(w);
}

/* Room for a word: n symbols, and never more than 2 n pairs that wait. */
static int reserve(struct merges_work *w, size_t n, struct fw_err *err)
{
    const size_t cap = n < 64 ? 64 : n + n / 2;

    if (n <= w->cap)
        return 0;
    free(w->symbol);
    free(w->heap);
    w->cap = 0;
    w->symbol = malloc(cap * sizeof *w->symbol);
    w->heap = malloc(2 * cap * sizeof *w->heap);
    if (!w->symbol || !w->heap)
        return fw_fail(err, FW_ENOMEM, "out_of_memory", "no memory to encode a word");
    w->cap = cap;
    return 0;
}

static void push(struct merges_work *w, uint64_t x)
{
    size_t i = w->heaped++;

    for (; i > 0 && w->heap[(i - 1) / 2] > x; i = (i - 1) / 2)
        w->heap[i] = w->heap[(i - 1) / 2];
    w->heap[i] = x;
}

static uint64_t pop(struct merges_work *w)
{
    const uint64_t top = w->heap[0], x = w->heap[--w->heaped];
    size_t i = 0;

    for (size_t child; (child = 2 * i + 1) < w->heaped; i = child) {
        if (child + 1 < w->heaped && w->heap[child + 1] < w->heap[child])
            child++;
        if (w->heap[child] >= x)
            break;
        w->heap[i] = w->heap[child];
    }
    w->heap[i] = x;
    return top;
}

/* The merge of the symbol at a place with the next, or NULL. */
static const struct merge *merge_at(const struct merges *m, const struct merges_work *w,
                                    uint32_t at)
{
    const struct symbol *s = &w->symbol[at];
    const struct merge *found;

    if (s->id == NONE || s->after == NONE)
        return NULL;
    found = place(m, (uint64_t)s->id << 32 | w->symbol[s->after].id);
    return found->pair == EMPTY ? NULL : found;
}

static void offer(const struct merges *m, struct merges_work *w, uint32_t at)
{
    const struct merge *found = at == NONE ? NULL : merge_at(m, w, at);

    if (found)
        push(w, (uint64_t)found->rank << 32 | at);
}

static void join(const struct merges *m, struct merges_work *w, uint32_t at, uint32_t id)
{
    struct symbol *s = &w->symbol[at], *gone = &w->symbol[s->after];

    s->id = id;
    s->after = gone->after;
    gone->id = NONE;
    if (s->after != NONE)
        w->symbol[s->after].before = at;
    offer(m, w, s->before);
    offer(m, w, at);
}

int merges_encode(const struct merges *m, struct merges_work *w, const uint32_t byte_id[256],
                  const unsigned char *word, size_t len, struct fw_buf *out, struct fw_err *err)
{
    const uint32_t n = (uint32_t)len;

    if (reserve(w, len, err) < 0)
        return -1;
    w->heaped = 0;
    for (uint32_t i = 0; i < n; i++)
        w->symbol[i] =
            (struct symbol){ byte_id[word[i]], i > 0 ? i - 1 : NONE, i + 1 < n ? i + 1 : NONE };
    for (uint32_t i = 0; i < n; i++)
        offer(m, w, i);
    while (w->heaped > 0) {
        const uint64_t top = pop(w);
        const struct merge *found = merge_at(m, w, (uint32_t)top);

        if (found && found->rank == top >> 32)
            join(m, w, (uint32_t)top, found->id);
    }
    for (uint32_t i = 0; i != NONE && n > 0; i = w->symbol[i].after)
        if (fw_buf_append(out, &w->symbol[i].id, sizeof(uint32_t), err) < 0)
            return -1;
    return 0;
}
