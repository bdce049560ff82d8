/* expert.c - one more voice at the gates of a byte stream.
 *
 * The dense expert's weights are fields of the block, and its contexts are those of the heads;
 * in a frozen reading they stand still. An outside expert owns a nested block, the fields
 * "expert.*" with their relative offsets kept; what it has read is all it has, so in a view it
 * advances wholly, on the view's copy. Either yields 256 logits; dense_fns folds them into a
 * tree from which each decision takes its p. */
#include "config.h"

#include "expert.h"

#include <stdio.h>
#include <string.h>

#include "fastweight/num.h"

#include "context.h"
#include "stream_int.h"

#define DENSE_SHARE   8 /* of the block, one part in so many is dense rows */
#define VALUE_MAX     0x1p26F
#define SUM_MAX       0x1p100F
#define OUTSIDE_SHARE 2

const struct dense_fns *dense_fns(void)
{
#if defined(HAVE_V3)
    if (fw_num_level() == FW_LEVEL_X86_64_V3)
        return &dense_fns_v3;
#endif
    return &dense_fns_base;
}

/* ---- the dense expert's fields */

int dense_plan(struct dense *d, uint32_t rows, struct fw_layout *l, struct fw_err *err)
{
    const uint64_t row_shape[2] = { rows, DENSE_RANK }, out_shape[2] = { DENSE_RANK, 256 };

    d->rows = rows;
    if (fw_layout_add(l, "dense.rows", FW_F32, 2, row_shape, &d->at_rows, err) != 0 ||
        fw_layout_add(l, "dense.sums", FW_F32, 1, row_shape, &d->at_sums, err) != 0 ||
        fw_layout_add(l, "dense.out", FW_F32, 2, out_shape, &d->at_out, err) != 0)
        return -1;
    return fw_layout_add(l, "dense.bias", FW_F32, 1, out_shape + 1, &d->at_bias, err);
}

/* O starts with values even in +-sqrt(3)/4: their deviation is 1/4. */
void dense_init(const struct dense *d, void *block)
{
    float *out = at_mut(block, d->at_out);

    for (uint32_t i = 0; i < DENSE_RANK * 256; i++)
        out[i] = (float)((int32_t)(mix(77, i) >> 8) - (1 << 23)) * (0.4330127F / (1 << 23));
}

static int check_floats(const float *x, size_t n, float min, float max, const char *name,
                        struct fw_err *err)
{
    for (size_t i = 0; i < n; i++)
        if (!(x[i] >= min && x[i] <= max))
            return fw_fail_param(err, FW_EINVAL, "bad_state", name, "value %zu is out of range",
                                 i);
    return 0;
}

/* Within these bounds every step stays within them: |a| <= 64 and |e| <= 1, so a step of O is
 * below 1.3 and one of a row below 0.3, which rounding stops at 2^25; |g|^2 is below 2^73. */
int dense_validate(const struct dense *d, const void *block, struct fw_err *err)
{
    const size_t values = (size_t)d->rows * DENSE_RANK;

    if (check_floats(at(block, d->at_rows), values, -VALUE_MAX, VALUE_MAX, "dense.rows", err) ||
        check_floats(at(block, d->at_sums), d->rows, 0, SUM_MAX, "dense.sums", err) ||
        check_floats(at(block, d->at_out), (size_t)DENSE_RANK * 256, -VALUE_MAX, VALUE_MAX,
                     "dense.out", err))
        return -1;
    return check_floats(at(block, d->at_bias), 256, -VALUE_MAX, VALUE_MAX, "dense.bias", err);
}

/* ---- whoever it is */

static int outside_plan(struct expert *e, size_t state_bytes, struct fw_layout *l,
                        struct fw_err *err)
{
    const struct fw_layout *own = e->outside->layout;

    e->at_outside = (l->block_bytes + 63) / 64 * 64;
    e->outside_bytes = own->block_bytes;
    if (e->outside_bytes > state_bytes / OUTSIDE_SHARE)
        return fw_fail_param(err, FW_EINVAL, "bad_value", "config.expert",
                             "%s needs %zu bytes, more than half of state_bytes",
                             e->outside->name, e->outside_bytes);
    for (size_t i = 0; i < own->count; i++) {
        const struct fw_field *f = &own->field[i];
        char name[FW_NAME_MAX];
        size_t offset;

        snprintf(name, sizeof name, "expert.%.56s", f->name);
        if (fw_layout_add(l, name, f->dtype, f->ndim, f->shape, &offset, err) != 0)
            return -1;
        if (offset != e->at_outside + f->offset)
            return fw_fail(err, FW_EINTERNAL, "bad_layout", "%s moved in its block", name);
    }
    return 0;
}

int expert_plan(struct expert *e, const char *name, const struct fw_expert *outside,
                size_t state_bytes, struct fw_layout *l, struct fw_err *err)
{
    if (strcmp(name, "none") == 0)
        return 0;
    if (strcmp(name, "dense") == 0) {
        e->source = "dense";
        return dense_plan(&e->dense,
                          (uint32_t)(state_bytes / DENSE_SHARE / (4 * DENSE_RANK + 4)), l, err);
    }
    if (!outside || strcmp(outside->name, name) != 0)
        return fw_fail_param(err, FW_EINVAL, "bad_value", "config.expert",
                             "neither none nor dense, and no model of bytes: %s", name);
    e->source = "expert";
    e->outside = outside;
    return outside_plan(e, state_bytes, l, err);
}

void expert_init(const struct expert *e, void *block)
{
    if (e->outside)
        e->outside->init(e->outside->context, at_mut(block, e->at_outside));
    else if (e->dense.rows)
        dense_init(&e->dense, block);
}

int expert_validate(const struct expert *e, const void *block, struct fw_err *err)
{
    if (e->outside)
        return e->outside->validate(e->outside->context, at(block, e->at_outside), err);
    return e->dense.rows ? dense_validate(&e->dense, block, err) : 0;
}

uint64_t expert_rows(const struct expert *e)
{
    return e->dense.rows;
}

void expert_ahead(const struct expert *e, void *own, const uint8_t *bytes, size_t n, size_t i,
                  struct expert_reading *r)
{
    size_t count = n - i < EXPERT_AHEAD ? n - i : EXPERT_AHEAD;

    if (e->outside && i % EXPERT_AHEAD == 0)
        e->outside->learn(e->outside->context, own, bytes + i, count, r->logits[0]);
}

static void dense_keys(const struct core_context *in, uint32_t *key)
{
    for (int j = 0; j < 5; j++) /* order1 to order4, word */
        key[j] = in->head[j];
    key[5] = in->run[0]; /* order5 */
    key[6] = in->run[1]; /* skip; shape in the smallest block */
}

static void read_tree(const struct expert *e, const void *block, struct core_context *in,
                      float *logits, struct expert_reading *r)
{
    in->expert = NULL;
    if (!e->source)
        return;
    if (e->dense.rows) {
        dense_keys(in, r->step.row);
        dense_fns()->read(&e->dense, block, &r->step, logits);
    }
    dense_fns()->tree(logits, r->tree);
    in->expert = r->tree;
}

void expert_read(const struct expert *e, const void *block, struct core_context *in, size_t i,
                 struct expert_reading *r)
{
    read_tree(e, block, in, r->logits[i % EXPERT_AHEAD], r);
}

void expert_peek(const struct expert *e, const void *block, const void *own,
                 struct core_context *in, struct expert_reading *r)
{
    if (e->outside)
        e->outside->logits(e->outside->context, own, r->logits[0]);
    read_tree(e, block, in, r->logits[0], r);
}

void expert_update(const struct expert *e, void *block, uint32_t symbol,
                   const struct expert_reading *r)
{
    if (e->dense.rows)
        dense_fns()->update(&e->dense, block, symbol, &r->step, r->tree);
}
