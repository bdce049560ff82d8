/* core.h - the gated binary decisions the bytes model is made of.
 *
 * A symbol is 8 binary decisions, the nodes of two nibble trees. Each decision reads up to 15
 * sources: heads (one hashed row of cells each, through the head's map) and guesses (a symbol
 * someone expects, through a map of how sure it is). Gates chosen by context mix them.
 * Predicting never writes; core_update is the one update of a symbol's path. */
#ifndef CORE_H
#define CORE_H

#include <stddef.h>
#include <stdint.h>

#include "fastweight/level.h"
#include "fastweight/stream.h"

#include "tables.h"

#define CORE_SOURCES 15 /* heads + runs + copies + experts, at most */
#define CORE_INPUTS  32 /* stretch(p) of each, bias, p - 1/2 of each, one spare */
#define CORE_BIAS    15
#define CORE_GATES   3
#define CORE_BUCKET  16 /* bytes: a check and the 15 cells of one nibble */
#define CORE_LINE    64 /* bytes: four buckets, or eight pairs of run slots */
#define CORE_LEVELS  64 /* how sure a guess can be */
#define CORE_PLACES  16 /* buckets of the calibration counters */

struct core_config {
    uint32_t heads, runs, copies;
    uint32_t experts;          /* 0 or 1 */
    uint32_t classes;          /* of the first gate */
    uint32_t kinds;            /* of the third */
    uint32_t run_lines;        /* each 8 slots of 4 bytes */
    float eta, eta_start;      /* the gates' rate: eta + eta_start / (1 + symbols / warm) */
    float eta_warm, eta_final; /* eta_final: rate of the last mixing */
    float weight;              /* first weight of heads and runs */
    float expert_weight;       /* first weight of the expert */
    uint32_t map_limit;        /* an average over at most this many */
    uint32_t age;              /* chance / 256 that a full line ages when a row wants in */
};

struct core { /* part of a plan */
    struct core_config config;
    const struct tables *tables; /* borrowed */
    uint32_t lines;
    size_t counters, gate[CORE_GATES], final, head_maps, guess_maps, runs, cells; /* offsets */
};

struct core_counters { /* lies in the block */
    uint64_t symbols;
    uint64_t used[CORE_SOURCES], replaced[CORE_SOURCES];
    uint64_t decisions[CORE_PLACES]; /* by stretch(p) */
    double miss[CORE_PLACES];        /* sum of bit - p */
    uint32_t rng, zero;
};

struct core_guess {
    uint32_t symbol; /* 256 | symbol, or 0: none */
    uint32_t level;  /* < CORE_LEVELS */
    uint32_t weight; /* what it adds to the first gate's class while it is not refuted */
};

struct core_context {            /* what a front computes before each symbol */
    uint32_t head[CORE_SOURCES]; /* hashes */
    uint32_t run[CORE_SOURCES];
    struct core_guess copy[CORE_SOURCES];
    uint32_t kind;       /* row of the third gate */
    const float *expert; /* tree of sums (512,): leaf 256 + i; NULL: none */
};

struct core_node { /* one decision: all its update needs */
    _Alignas(32) float x[CORE_INPUTS];
    float d[CORE_GATES], s, p;
    uint32_t row[CORE_GATES];
    uint32_t prefix; /* 1, then the bits so far; also the row of the last mixing */
};

struct core_path {
    const struct core_context *in;
    uint32_t hash[2][CORE_SOURCES];
    const uint8_t *bucket[2][CORE_SOURCES]; /* never NULL: a miss reads an empty one */
    struct core_guess guess[CORE_SOURCES];  /* runs, then copies */
    struct core_node node[8];
};

/* Adds all fields but the cells, which core_plan_cells gives the rest. */
int core_plan(struct core *c, const struct core_config *config, const struct tables *tables,
              struct fw_layout *l, struct fw_err *err);
int core_plan_cells(struct core *c, size_t bytes, struct fw_layout *l, struct fw_err *err);
uint32_t core_gate_rows(const struct core_config *f, int gate);
void core_init(const struct core *c, void *block);
int core_validate(const struct core *c, const void *block, struct fw_err *err);
/* The core's part of the statistics; names lists heads, runs, copies in order. */
void core_stats(const struct core *c, const void *block, const char *const *names,
                struct fw_stream_stats *ret);

/* The hot functions, one table per CPU level. */
struct core_fns {
    /* Reads the path of `symbol`; returns the product of its 8 probabilities. */
    double (*read)(const struct core *c, const void *block, const struct core_context *in,
                   uint32_t symbol, struct core_path *path);
    /* The one update after read, with the same symbol and the block unchanged since. */
    void (*update)(const struct core *c, void *block, uint32_t symbol, struct core_path *path);
    /* The product for every symbol: p (256,); p[i] equals what read returns for i. */
    void (*full)(const struct core *c, const void *block, const struct core_context *in,
                 double *p);
};
extern const struct core_fns core_fns_base, core_fns_v3;
const struct core_fns *core_fns(void);

#endif
