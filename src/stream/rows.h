/* rows.h - where a context's memory lies: rows of cells in lines, and run slots.
 *
 * A line is 64 bytes, four rows; a row is a check and the 15 cells of one nibble. A new row
 * takes a free place, else that of the row whose first cell has seen least. A slot holds the
 * symbol that followed a context last and how often in a row; eight slots share 32 bytes.
 * Included by node.c only, once per CPU level. */
#ifndef ROWS_H
#define ROWS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "core.h"

static const uint8_t empty[CORE_BUCKET];

static inline uint32_t row_hash(uint32_t context, uint32_t nibble)
{
    uint32_t h = (context + nibble * 0x3D4D51CBu) * 0x9E3779B1u;

    h ^= h >> 15;
    return h * 0x85EBCA6Bu;
}

static inline uint8_t row_check(uint32_t hash)
{
    uint8_t check = (uint8_t)(hash * 0x9E3779B1u >> 24);

    return check ? check : 1; /* 0 marks a free row */
}

static inline size_t line_of(uint32_t hash, uint32_t lines)
{
    return (size_t)((uint64_t)hash * lines >> 32);
}

static inline const uint8_t *row_find(const uint8_t *line, uint8_t check)
{
    for (int i = 0; i < 4; i++)
        if (line[i * CORE_BUCKET] == check)
            return line + i * CORE_BUCKET;
    return empty;
}

/* How dear a row is: the count of its first cell; -1 when free. */
static inline int row_worth(const struct tables *t, const uint8_t *row)
{
    return row[0] ? t->total[row[1]] : -1;
}

static inline uint8_t *row_insert(const struct core *c, uint8_t *line, uint8_t check,
                                  uint32_t head, struct core_counters *n)
{
    const struct tables *t = c->tables;
    uint8_t *victim = line;

    for (int i = 1; i < 4; i++)
        if (row_worth(t, line + i * CORE_BUCKET) < row_worth(t, victim))
            victim = line + i * CORE_BUCKET;
    if (victim[0]) {
        n->replaced[head]++;
        n->rng = n->rng * 1664525u + 1013904223u;
        if (n->rng >> 24 < c->config.age)
            for (int i = 0; i < 4; i++)
                line[i * CORE_BUCKET + 1] = t->aged[line[i * CORE_BUCKET + 1]];
    } else {
        n->used[head]++;
    }
    memset(victim, 0, CORE_BUCKET);
    victim[0] = check;
    return victim;
}

/* ---- run slots */

struct slot {
    uint16_t check;
    uint8_t symbol, count; /* count | missed << 4 */
};

static inline uint16_t slot_check(uint32_t hash)
{
    uint16_t check = (uint16_t)(hash * 0x9E3779B1u >> 16);

    return check ? check : 1;
}

static inline const struct slot *slot_find(const struct slot *line, uint16_t check)
{
    for (int i = 0; i < 8; i++)
        if (line[i].check == check)
            return line + i;
    return NULL;
}

static inline struct slot *slot_insert(struct slot *line, uint16_t check, uint32_t source,
                                       struct core_counters *n)
{
    struct slot *victim = line;

    for (int i = 0; i < 8 && victim->check; i++)
        if (!line[i].check || (line[i].count & 15) < (victim->count & 15))
            victim = line + i;
    if (victim->check)
        n->replaced[source]++;
    else
        n->used[source]++;
    *victim = (struct slot){ check, 0, 0 };
    return victim;
}

static inline void slot_learn(struct slot *slot, uint32_t symbol)
{
    if (slot->count & 15 && slot->symbol != symbol) {
        slot->symbol = (uint8_t)symbol;
        slot->count = 16 | 1;
    } else if ((slot->count & 15) < 15) {
        slot->symbol = (uint8_t)symbol;
        slot->count++;
    }
}

#endif
