/* stats.c - what `inspect` tells about the core, from counters and weights in the block. */
#include "config.h"

#include <string.h>

#include "core.h"
#include "stream_int.h"

/* Mean over the decisions of |p - share of ones| within buckets of stretch(p). */
static double calibration(const struct core_counters *n)
{
    double all = 0, gap = 0;

    for (int i = 0; i < CORE_PLACES; i++) {
        all += (double)n->decisions[i];
        gap += n->miss[i] < 0 ? -n->miss[i] : n->miss[i];
    }
    return all > 0 ? gap / all : 0;
}

static double mean_weight(const struct core *c, const void *block, uint32_t source)
{
    double sum = 0;
    uint64_t count = 0;

    for (int k = 0; k < CORE_GATES; k++) {
        const float *w = at(block, c->gate[k]);

        for (uint32_t r = 0; r < core_gate_rows(&c->config, k); r++) {
            float a = w[r * CORE_INPUTS + source], b = w[r * CORE_INPUTS + 16 + source];

            sum += (double)(a < 0 ? -a : a) + (double)(b < 0 ? -b : b);
            count += 2;
        }
    }
    return sum / (double)count;
}

static uint64_t nonfinite(const float *w, size_t count)
{
    uint64_t bad = 0;

    for (size_t i = 0; i < count; i++)
        bad += !(w[i] - w[i] == 0);
    return bad;
}

void core_stats(const struct core *c, const void *block, const char *const *names,
                struct fw_stream_stats *ret)
{
    const struct core_counters *n = at(block, c->counters);
    const struct core_config *f = &c->config;

    ret->calibration_error = calibration(n);
    ret->nonfinite = nonfinite(at(block, c->final), (size_t)256 * CORE_GATES);
    for (int k = 0; k < CORE_GATES; k++)
        ret->nonfinite +=
            nonfinite(at(block, c->gate[k]), (size_t)core_gate_rows(f, k) * CORE_INPUTS);
    ret->heads = f->heads + f->runs + f->copies + f->experts;
    for (uint32_t i = 0; i < ret->heads; i++) {
        memcpy(ret->head_name[i], names[i], strlen(names[i]) + 1);
        if (i < f->heads)
            ret->rows[i] = (uint64_t)c->lines * (CORE_LINE / CORE_BUCKET);
        else if (i < f->heads + f->runs)
            ret->rows[i] = (uint64_t)f->run_lines * 8;
        ret->used[i] = n->used[i];
        ret->replaced[i] = n->replaced[i];
        ret->weight[i] = mean_weight(c, block, i);
    }
}
