/* context.h - what a byte stream has been so far: registers, history ring, match table. */
#ifndef CONTEXT_H
#define CONTEXT_H

#include <stdint.h>

#include "core.h"

#define MAX_FIELDS 64

struct regs {               /* lies in the block; a view keeps its own copy */
    uint64_t last8;         /* last byte lowest */
    uint32_t pos;           /* bytes so far, modulo 2^32; the ring is indexed with a mask */
    uint32_t word[3];       /* hash of this word's letters (0: none), the one before, ... */
    uint32_t shape;         /* hash of the line, digit runs collapsed */
    uint32_t shape8;        /* the same, of about the last 8 characters */
    uint32_t token;         /* hash of the token's bytes so far */
    uint32_t field, offset; /* which token of the line, which byte of it */
    uint32_t line_start;
    uint32_t fields, fields_above; /* starts known, <= MAX_FIELDS */
    uint32_t start[MAX_FIELDS], start_above[MAX_FIELDS];
    uint32_t match, match_len, match_missed; /* position copied from; 0: none */
    uint32_t above;               /* the same field and offset one line up; 0: none */
    uint32_t above_history;       /* one bit per byte: 1 = it was wrong */
    uint32_t last_masked, digits; /* last byte with digits as '0'; a bit per byte */
    uint32_t zero;
};

struct history { /* borrowed: the block's, or a view's own ring */
    const uint8_t *ring;
    uint32_t mask;
    const uint32_t *table; /* hash of six bytes -> position after them */
    uint32_t table_mask;
};

void context_init(struct regs *r); /* of zeroed registers */
/* Takes in the byte that the caller has put into the ring at r->pos. Returns where the match
 * table wants the new r->pos: learning writes it there. */
uint32_t context_advance(struct regs *r, const struct history *h);
/* The hashes, guesses and classes for the next byte. */
void context_read(const struct regs *r, const struct history *h, struct core_context *ret);
_Static_assert(sizeof(struct regs) == 8 + 148 * 4, "no hidden padding");
int context_validate(const struct regs *r, struct fw_err *err);

#define CONTEXT_HEADS   8
#define CONTEXT_RUNS    4
#define CONTEXT_COPIES  2
#define CONTEXT_CLASSES 40  /* 8 of the match x 5 of the copy from above */
#define CONTEXT_KINDS   512 /* of the last three bytes */
/* Writes the names of heads, runs and copies in order; returns how many. */
size_t context_all_names(const char **name);

/* What the smallest block has room for. */
#define CONTEXT_SMALL_HEADS   5
#define CONTEXT_SMALL_RUNS    2
#define CONTEXT_SMALL_CLASSES 8              /* of the match */
#define CONTEXT_SMALL_KINDS   64             /* of the last two bytes */
void context_small(struct core_context *in); /* picks from what context_read gave */
size_t context_small_names(const char **name);

#endif
