/* core.c - the core's place in a block: sizes, first values, checks, statistics.
 *
 * Fields, in order: counters; gates.0..2 (rows, 32) and final (rows, 3) F32; head_maps and
 * guess_maps (source, 256) U32 = probability << 10 | count; runs (slots) of 4 bytes
 * {u16 check, u8 symbol, u8 count | missed << 4}; cells (lines, 64): four buckets a line.
 * Weights are bounded by 2^22 in every honest block: one step adds less than 0.25, which is
 * half a unit in the last place there, so rounding stops them. */
#include "config.h"

#include "core.h"

#include <string.h>

#include "fastweight/num.h"

#include "stream_int.h"

#define WEIGHT_MAX 4194304.0F /* 2^22 */

typedef uint8_t row_bytes __attribute__((vector_size(CORE_BUCKET)));

static int add(struct fw_layout *l, const char *name, enum fw_dtype dtype, uint64_t rows,
               uint64_t columns, size_t *ret, struct fw_err *err)
{
    const uint64_t shape[2] = { rows, columns };

    return fw_layout_add(l, name, dtype, 2, shape, ret, err);
}

uint32_t core_gate_rows(const struct core_config *f, int gate)
{
    return gate == 0 ? f->classes * 8 : gate == 1 ? (f->heads + 1) * 8 : f->kinds;
}

static uint32_t guesses(const struct core_config *f)
{
    return f->runs + f->copies;
}

int core_plan(struct core *c, const struct core_config *config, const struct tables *tables,
              struct fw_layout *l, struct fw_err *err)
{
    static const char *const gate_name[CORE_GATES] = { "gates.0", "gates.1", "gates.2" };
    const uint64_t counters = sizeof(struct core_counters);

    c->config = *config;
    c->tables = tables;
    if (fw_layout_add(l, "counters", FW_U8, 1, &counters, &c->counters, err) != 0)
        return -1;
    for (int k = 0; k < CORE_GATES; k++)
        if (add(l, gate_name[k], FW_F32, core_gate_rows(config, k), CORE_INPUTS, &c->gate[k],
                err) != 0)
            return -1;
    if (add(l, "final", FW_F32, 256, CORE_GATES, &c->final, err) != 0 ||
        add(l, "head_maps", FW_U32, config->heads, 256, &c->head_maps, err) != 0)
        return -1;
    if (guesses(config) &&
        add(l, "guess_maps", FW_U32, guesses(config), 256, &c->guess_maps, err) != 0)
        return -1;
    if (config->runs && add(l, "runs", FW_U8, config->run_lines, 32, &c->runs, err) != 0)
        return -1;
    return 0;
}

int core_plan_cells(struct core *c, size_t bytes, struct fw_layout *l, struct fw_err *err)
{
    c->lines = (uint32_t)(bytes / CORE_LINE);
    return add(l, "cells", FW_U8, c->lines, CORE_LINE, &c->cells, err);
}

static void init_gates(const struct core *c, void *block)
{
    const uint32_t reading = c->config.heads + c->config.runs;

    const uint32_t expert = reading + c->config.copies;

    for (int k = 0; k < CORE_GATES; k++) {
        float *w = at_mut(block, c->gate[k]);

        for (uint32_t r = 0; r < core_gate_rows(&c->config, k); r++, w += CORE_INPUTS) {
            for (uint32_t i = 0; i < reading; i++)
                w[i] = c->config.weight;
            if (c->config.experts)
                w[expert] = c->config.expert_weight;
        }
    }
    for (uint32_t r = 0; r < 256; r++)
        for (uint32_t k = 0; k < CORE_GATES; k++)
            ((float *)at_mut(block, c->final))[r * CORE_GATES + k] = 1.0F / CORE_GATES;
}

/* A guess of a run seen n times is first taken to be right with (n + 1/2) / (n + 1), less
 * after a miss; a copy's with 3/4. */
static uint32_t guess_prior(const struct core_config *f, uint32_t g, uint32_t level)
{
    double n = level & 15, p = g < f->runs ? (n + 0.5) / (n + 1) : 0.75;

    if (g < f->runs && level & 16)
        p = 0.5 + (p - 0.5) * 0.6;
    return (uint32_t)(p * (1 << MAP_P_BITS)) << 10;
}

void core_init(const struct core *c, void *block)
{
    struct core_counters *n = at_mut(block, c->counters);
    uint32_t *map = at_mut(block, c->head_maps);

    n->rng = 12345;
    for (uint32_t h = 0; h < c->config.heads; h++)
        memcpy(map + h * 256, c->tables->prior, sizeof c->tables->prior);
    map = at_mut(block, c->guess_maps);
    for (uint32_t g = 0; g < guesses(&c->config); g++)
        for (uint32_t i = 0; i < 256; i++)
            map[g * 256 + i] = guess_prior(&c->config, g, i / 4);
    init_gates(c, block);
}

static int check_weights(const float *w, size_t count, const char *name, struct fw_err *err)
{
    for (size_t i = 0; i < count; i++)
        if (!(w[i] >= -WEIGHT_MAX && w[i] <= WEIGHT_MAX))
            return fw_fail_param(err, FW_EINVAL, "bad_state", name,
                                 "weight %zu is out of range", i);
    return 0;
}

static int check_counters(const struct core_counters *n, struct fw_err *err)
{
    for (int i = 0; i < CORE_PLACES; i++)
        if (!(n->miss[i] >= -1e18 && n->miss[i] <= 1e18))
            return fw_fail_param(err, FW_EINVAL, "bad_state", "counters", "sum %d is not sane",
                                 i);
    if (n->zero != 0)
        return fw_fail_param(err, FW_EINVAL, "bad_state", "counters", "padding is not zero");
    return 0;
}

/* A row at once; its first byte is the check, of which every value is valid. */
static int line_is_valid(const uint8_t *line, uint8_t last)
{
    const row_bytes *row = (const row_bytes *)line;
    const row_bytes most = { 255,  last, last, last, last, last, last, last,
                             last, last, last, last, last, last, last, last };
    row_bytes over = { 0 };
    uint64_t bad[2];

    for (int i = 0; i < CORE_LINE / CORE_BUCKET; i++)
        over |= (row_bytes)(row[i] > most);
    memcpy(bad, &over, sizeof bad);
    return (bad[0] | bad[1]) == 0;
}

/* Maps and run slots hold integers of which every value is valid. */
int core_validate(const struct core *c, const void *block, struct fw_err *err)
{
    const uint8_t *cells = at(block, c->cells);

    for (int k = 0; k < CORE_GATES; k++)
        if (check_weights(at(block, c->gate[k]),
                          (size_t)core_gate_rows(&c->config, k) * CORE_INPUTS, "gates",
                          err) != 0)
            return -1;
    if (check_weights(at(block, c->final), (size_t)256 * CORE_GATES, "final", err) != 0 ||
        check_counters(at(block, c->counters), err) != 0)
        return -1;
    for (uint32_t i = 0; i < c->lines; i++)
        if (!line_is_valid(cells + (size_t)i * CORE_LINE, (uint8_t)(c->tables->states - 1)))
            return fw_fail_param(err, FW_EINVAL, "bad_state", "cells",
                                 "a cell of line %u holds no state", i);
    return 0;
}

const struct core_fns *core_fns(void)
{
#if defined(HAVE_V3)
    if (fw_num_level() == FW_LEVEL_X86_64_V3)
        return &core_fns_v3;
#endif
    return &core_fns_base;
}
