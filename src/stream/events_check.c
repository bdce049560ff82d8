/* events_check.c - what a foreign block may hold, and what `inspect` tells.
 *
 * Every index is below its bound, every float within the range an honest block keeps, and the
 * sums of popularity are true; then reading and updating stay defined and finite. Weights are
 * bounded by 2^22: one step adds less than a quarter, which rounding drops there. */
#include "config.h"

#include <string.h>

#include "events.h"

#define WEIGHT_MAX 4194304.0F

static const char *const names[EVENTS_SOURCES] = { "x1", "x1x2", "x1x2x3", "x2",
                                                   "x3", "x2x3", "x1x3",   "copy" };

static int bad(struct fw_err *err, const char *field, const char *why)
{
    return fw_fail_param(err, FW_EINVAL, "bad_state", field, "%s", why);
}

static int within(const void *block, size_t offset, size_t count, float low, float high)
{
    const float *x = at(block, offset);

    for (size_t i = 0; i < count; i++)
        if (!(x[i] >= low && x[i] <= high))
            return 0;
    return 1;
}

static int check_registers(const struct events *e, const void *block, struct fw_err *err)
{
    const struct events_regs *regs = at(block, e->regs);
    const struct events_counters *n = at(block, e->counters);
    const uint16_t *ring = at(block, e->ring);

    if (regs->match_len > UINT16_MAX || regs->zero)
        return bad(err, "registers", "the length of the match is out of range");
    for (uint32_t i = 0; i <= e->ring_mask; i++)
        if (ring[i] >= e->vocab)
            return bad(err, "ring", "an id is not below vocab");
    for (int i = 0; i < EVENTS_PLACES; i++)
        if (!(n->miss[i] >= -1e18 && n->miss[i] <= 1e18))
            return bad(err, "counters", "a sum is out of range");
    return tally_validate(at(block, e->tally), err);
}

static int check_popularity(const struct events *e, const void *block, struct fw_err *err)
{
    const struct events_unseen *u = at(block, e->unseen);
    const uint16_t *popularity = at(block, e->popularity);
    uint32_t total = 0, seen = 0;

    for (uint32_t i = 0; i < e->vocab; i++) {
        total += popularity[i]; /* at most 2^32 - 2^16 */
        seen += popularity[i] > 0;
    }
    if (total != u->total || seen != u->seen)
        return bad(err, "popularity", "its sums are not those of `unseen`");
    if (!(u->nu >= 1e-5F && u->nu <= 0.999F && u->next >= 0.001F && u->next <= 0.99F) ||
        u->last > e->vocab || u->zero)
        return bad(err, "unseen", "a value is out of range");
    return 0;
}

static int check_weights(const struct events *e, const void *block, struct fw_err *err)
{
    if (!within(block, e->gates, (size_t)EVENTS_SOURCES * 64, -4, 4))
        return bad(err, "gates", "a gate is out of range");
    if (!within(block, e->worth, EVENTS_SOURCES, 0, 1))
        return bad(err, "worth", "a share is not within 0 and 1");
    if (!within(block, e->copy_hit, EVENTS_CLASSES, 0, 1))
        return bad(err, "copy_hit", "a share is not within 0 and 1");
    if (!within(block, e->set_weights, (size_t)256 * EVENTS_INPUTS, -WEIGHT_MAX, WEIGHT_MAX) ||
        !within(block, e->rank_weights, EVENTS_RANKS * EVENTS_INPUTS, -WEIGHT_MAX,
                WEIGHT_MAX) ||
        !within(block, e->escape, 256 * 2, -WEIGHT_MAX, WEIGHT_MAX))
        return bad(err, "weights", "a weight is out of range");
    return 0;
}

static int check_rows(const struct events *e, const void *block, struct fw_err *err)
{
    static const struct events_row free_row;
    const struct events_row *row = at(block, e->rows);

    for (size_t i = 0; i < (size_t)e->lines * EVENTS_LINE; i++) {
        if (!row[i].check || !row[i].visits) {
            if (memcmp(&row[i], &free_row, sizeof free_row) != 0)
                return bad(err, "rows", "a free row is not zero");
            continue;
        }
        for (int k = 0; k < EVENTS_SLOTS; k++)
            if (row[i].slot[k].id >= e->vocab)
                return bad(err, "rows", "an id is not below vocab");
    }
    return 0;
}

int events_check(const struct events *e, const void *block, struct fw_err *err)
{
    if (check_registers(e, block, err) != 0 || check_popularity(e, block, err) != 0 ||
        check_weights(e, block, err) != 0)
        return -1;
    return check_rows(e, block, err);
}

static double calibration(const struct events_counters *n)
{
    double all = 0, gap = 0;

    for (int i = 0; i < EVENTS_PLACES; i++) {
        all += (double)n->decisions[i];
        gap += n->miss[i] < 0 ? -n->miss[i] : n->miss[i];
    }
    return all > 0 ? gap / all : 0;
}

static double mean_weight(const float *w, size_t rows, uint32_t source)
{
    double sum = 0;

    for (size_t i = 0; i < rows; i++) {
        const float x = w[i * EVENTS_INPUTS + source];

        sum += (double)(x < 0 ? -x : x);
    }
    return sum / (double)rows;
}

static uint64_t nonfinite(const float *w, size_t count)
{
    uint64_t n = 0;

    for (size_t i = 0; i < count; i++)
        n += !(w[i] - w[i] == 0);
    return n;
}

void events_report(const struct events *e, const void *block, struct fw_stream_stats *ret)
{
    const struct events_counters *n = at(block, e->counters);
    const float *sets = at(block, e->set_weights), *ranks = at(block, e->rank_weights);

    tally_stats(at(block, e->tally), ret);
    ret->calibration_error = calibration(n);
    ret->nonfinite = nonfinite(sets, (size_t)256 * EVENTS_INPUTS) +
                     nonfinite(ranks, EVENTS_RANKS * EVENTS_INPUTS) +
                     nonfinite(at(block, e->gates), (size_t)EVENTS_SOURCES * 64) +
                     nonfinite(at(block, e->escape), 256 * 2);
    ret->heads = EVENTS_SOURCES;
    for (uint32_t h = 0; h < EVENTS_SOURCES; h++) {
        memcpy(ret->head_name[h], names[h], strlen(names[h]) + 1);
        ret->weight[h] = (mean_weight(sets, 256, h) + mean_weight(ranks, EVENTS_RANKS, h)) / 2;
        if (h == EVENTS_COPY)
            continue;
        ret->rows[h] = (uint64_t)e->lines * EVENTS_LINE;
        ret->used[h] = n->used[h];
        ret->replaced[h] = n->replaced[h];
    }
}
