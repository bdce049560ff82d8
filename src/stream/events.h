/* events.h - the parts of the model `events`: rows of candidates, one reading, one update.
 *
 * Eight sources expect ids: seven heads, each a hashed context with its chain of rows, and the
 * copy of the longest earlier match. A reading gathers their candidates, mixes them linearly,
 * and asks of the likeliest EVENTS_RANKS of them, in order, "is it this one?" (a gated binary
 * decision); what is refused everywhere falls to the other candidates or to popularity. */
#ifndef EVENTS_H
#define EVENTS_H

#include <stddef.h>
#include <stdint.h>

#include "stream_int.h"
#include "tally.h"

enum { EVENTS_HEADS = 7, EVENTS_COPY = EVENTS_HEADS, EVENTS_SOURCES };
#define EVENTS_SLOTS      3  /* candidates of a row */
#define EVENTS_LINE       4  /* rows of a 64-byte line: where a row may lie */
#define EVENTS_CHAIN      24 /* rows of one context, at most: of the first head */
#define EVENTS_CHAIN_LONG 4  /* and of each other */
#define EVENTS_RANKS      8
#define EVENTS_INPUTS     16 /* stretch(p) of each source, of the linear mix, bias, spare */
#define EVENTS_CANDIDATES (3 * EVENTS_CHAIN + 6 * 3 * EVENTS_CHAIN_LONG + 1)
#define EVENTS_CLASSES    8  /* how often a row was visited, how long a match is */
#define EVENTS_PLACES     16 /* buckets of the calibration counters */
#define EVENTS_NONE       UINT32_MAX

struct events_row { /* 16 bytes; all zero when free */
    uint16_t check, visits;
    struct {
        uint16_t id, w; /* w / 65536: share of the visits, recent ones count more */
    } slot[EVENTS_SLOTS];
};

struct events_regs { /* lies in the block; a view has its own */
    uint32_t pos;    /* tokens, modulo 2^32 */
    uint32_t match;  /* where the copied one is expected in the ring */
    uint32_t match_len, zero;
};

struct events_unseen { /* lies in the block: what is known of ids nobody expects */
    float nu;          /* share of never seen ids among the unexpected */
    float next;        /* how often a new id is the one after the last new id */
    uint32_t last;     /* last new id; vocab: none yet */
    uint32_t total;    /* sum of popularity */
    uint32_t seen;     /* ids with popularity */
    uint32_t escapes;  /* times nobody expected the id, saturated */
    uint32_t rng, zero;
};

struct events_counters { /* lies in the block, for `inspect` */
    uint64_t used[EVENTS_HEADS], replaced[EVENTS_HEADS];
    uint64_t decisions[EVENTS_PLACES];
    double miss[EVENTS_PLACES]; /* sum of outcome - p */
};

struct events { /* the model's part of a plan: sizes and offsets */
    uint32_t vocab, ring_mask, match_mask, lines;
    const struct tables *tables; /* borrowed */
    size_t regs, tally, counters, unseen, popularity, ring, match_table;
    size_t gates;    /* (sources, 64) linear: ln gate / 4, by visits and largest w */
    size_t worth;    /* (sources) mean share in the linear mix, when known */
    size_t copy_hit; /* (8) how often the copy was right, by length */
    size_t maps;     /* (sources, 8, 32) u32: visits class; ratio if it expects, rest if not */
    size_t set_weights;  /* (256, inputs) by the set of sources that expect the candidate */
    size_t rank_weights; /* (ranks, inputs) */
    size_t escape;       /* (256, 2) by the set of sources that know anything */
    size_t rows;
};

struct events_history { /* the block's, or a view's ring with the block's table */
    uint16_t *ring;
    const uint32_t *table;
};

struct events_source {
    uint32_t known;              /* 0: it says nothing here */
    uint32_t rows, full;         /* rows of the chain; no free slot in it */
    uint32_t row[EVENTS_CHAIN];  /* their indices */
    uint32_t hash, visits;       /* of the context; of its first row */
    uint32_t visits_class, gate; /* gate: index into gates */
    float rest, share;           /* 1 - sum w; weight in the linear mix */
};

struct events_candidate {
    uint32_t id, set; /* set: bit h when source h expects it */
    float prior;      /* popularity's share */
    float linear;     /* the linear mix */
    float w[EVENTS_SOURCES];
};

struct events_decision {
    float x[EVENTS_INPUTS];
    float z, p;
    uint32_t map[EVENTS_SOURCES]; /* index into maps, or EVENTS_NONE */
    uint32_t candidate;
};

struct events_read { /* a pure function of block and history */
    struct events_source source[EVENTS_SOURCES];
    struct events_candidate candidate[EVENTS_CANDIDATES];
    uint32_t count, known;
    uint8_t index[512]; /* hash of id -> candidate + 1 */
    float base;         /* what the linear mix leaves to popularity */
    struct events_decision decision[EVENTS_RANKS];
    uint32_t rank[EVENTS_CANDIDATES]; /* candidates, the first `ranks` in order */
    uint32_t ranks, decided;          /* decisions asked: up to the one that was it */
    double p[EVENTS_RANKS];           /* of the candidate at that rank */
    float escape_x, escape_p;         /* the last question: is it none of them? */
    uint32_t escape_asked;            /* 0: the answer was certain */
    double tail_unit, seen_unit, unseen_p, next_p; /* times linear; times popularity; of one */
    uint32_t next;                                 /* the id next_p is for, or EVENTS_NONE */
};

void events_row_expect(const struct events *e, const void *block, uint32_t hash); /* soon */
uint32_t events_row_find(const struct events *e, const void *block, uint32_t hash);
void events_rows_update(const struct events *e, void *block, const struct events_read *r,
                        uint32_t id);

/* events_gather.c: sources, candidates, linear mix. */
void events_gather(const struct events *e, const void *block, const struct events_regs *regs,
                   const uint16_t *ring, struct events_read *r);
/* Its candidate of that id, or EVENTS_NONE. */
uint32_t events_find(const struct events_read *r, uint32_t id);

/* events_read.c: stop is the id after whose decision no more is needed, or EVENTS_NONE. */
void events_read(const struct events *e, const void *block, const struct events_regs *regs,
                 const uint16_t *ring, uint32_t stop, struct events_read *r);
/* The one function that yields p, of every id (of `stop` only, when there was one). */
double events_p(const struct events *e, const void *block, const struct events_read *r,
                uint32_t id);

/* events_learn.c: the one update after events_read(stop = id); but the registers. */
void events_update(const struct events *e, void *block, struct events_read *r, uint32_t id);
/* Returns the slot of the match table that learning sets to regs->pos. */
uint32_t events_advance(const struct events *e, struct events_regs *regs,
                        const struct events_history *h, uint32_t id);

/* events_top.c */
void events_full(const struct events *e, const void *block, const struct events_read *r,
                 double *logp);
#define EVENTS_TOP 64 /* longer heads are cut from the full distribution */
/* The first k <= EVENTS_TOP of the full distribution, or 0: not exactly known without it. */
size_t events_top(const struct events *e, const void *block, const struct events_read *r,
                  size_t k, struct ranked *ret);

int events_check(const struct events *e, const void *block, struct fw_err *err);
void events_report(const struct events *e, const void *block, struct fw_stream_stats *ret);

#endif
