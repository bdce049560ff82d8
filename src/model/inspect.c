/* inspect.c - a foreign block checked whole, and a head's health. */
#include "config.h"

#include "inside.h"

#include <stdio.h>
#include <string.h>

#include "fastweight/fmath.h"
#include "fastweight/num.h"

static int bad_state(struct fw_err *err, const char *name, const char *what)
{
    return fw_fail_param(err, FW_EINVAL, "bad_state", name, "%s %s", name, what);
}

/* Every float of a field in [-limit, limit]; false for what is no number. */
static bool within(const struct fw_field *f, const void *block, float limit)
{
    const float *x = (const float *)(const void *)((const char *)block + f->offset);
    bool ok = true;

    for (size_t i = 0; i < f->bytes / sizeof *x; i++)
        ok &= x[i] <= limit && x[i] >= -limit;
    return ok;
}

/* Tokens that a layer's memory has seen when the block has seen `tokens`. */
static uint64_t seen(const struct fw_model *m, uint64_t tokens)
{
    return m->max_context && tokens ? (tokens - 1) % m->max_context + 1 : tokens;
}

static int check_memory(const struct fw_model *m, const void *block, size_t layer,
                        uint64_t tokens, struct fw_err *err)
{
    const char *at = (const char *)block + layer * m->layer_bytes;
    struct fw_err why = { .code = FW_OK };
    char name[FW_NAME_MAX];
    uint64_t pairs;

    memcpy(&pairs, at + m->at_pairs, sizeof pairs);
    snprintf(name, sizeof name, "blocks.%zu.counters", layer);
    if (pairs != seen(m, tokens))
        return bad_state(err, name, "disagrees with `tokens`");
    if (fw_memory_validate(m->memory, at, &why) == 0)
        return 0;
    snprintf(name, sizeof name, "blocks.%zu.%.40s", layer, why.param);
    return fw_fail_param(err, why.code, why.reason, name, "layer %zu: %s", layer, why.msg);
}

int fw_model_validate(const struct fw_model *m, const void *block, struct fw_err *err)
{
    const struct fw_field *hidden = fw_layout_find(&m->layout, "hidden");
    uint64_t tokens;

    memcpy(&tokens, (const char *)block + m->at_tokens, sizeof tokens);
    if (tokens > UINT64_MAX / 2)
        return bad_state(err, "tokens", "is no count");
    if (!within(hidden, block, tokens ? FW_LIMIT : 0))
        return bad_state(err, "hidden", "is out of bounds");
    for (size_t i = 0; i < m->c->shape.layers; i++)
        if (check_memory(m, block, i, tokens, err) < 0)
            return -1;
    for (size_t i = 0; i < m->layout.count; i++) {
        const struct fw_field *f = &m->layout.field[i];

        if (f->offset < m->c->shape.layers * m->layer_bytes &&
            f->offset % m->layer_bytes >= m->at_kept[0] && m->at_kept[0] &&
            !within(f, block, tokens ? FW_LIMIT : 0))
            return bad_state(err, f->name, "is out of bounds");
    }
    return fw_layout_check_padding(&m->layout, block, err);
}

void fw_model_show(const struct fw_model *m, const void *block, const struct fw_field *f,
                   void *out)
{
    size_t layer = f->offset / m->layer_bytes;
    const struct fw_field *S = fw_layout_find(fw_memory_layout(m->memory), "S");

    if (S && layer < m->c->shape.layers && f->offset % m->layer_bytes == S->offset)
        fw_memory_state(m->memory, (const char *)block + layer * m->layer_bytes, out);
    else
        memcpy(out, (const char *)block + f->offset, f->bytes);
}

/* The norm of a head's row of a field of floats, 0 where there is none. */
static double row_norm(const struct fw_model *m, const char *block, const char *name,
                       uint32_t head)
{
    const struct fw_field *f = fw_layout_find(fw_memory_layout(m->memory), name);
    size_t width;

    if (!f)
        return 0;
    width = f->bytes / sizeof(float) / m->c->shape.heads;
    return fw_sqrt(
        fw_sum_squares((const float *)(const void *)(block + f->offset) + head * width, width));
}

int fw_model_layer_stats(const struct fw_model *m, const void *block, uint32_t layer,
                         uint32_t head, struct fw_model_layer_stats *ret, struct fw_err *err)
{
    const char *at = (const char *)block + layer * m->layer_bytes;
    struct fw_memory_head_stats s;

    if (layer >= m->c->shape.layers || head >= m->c->shape.heads)
        return fw_fail(err, FW_EINVAL, "bad_value", "no layer %u with a head %u",
                       (unsigned)layer, (unsigned)head);
    if (fw_memory_head_stats(m->memory, at, head, &s, NULL, err) < 0)
        return -1;
    *ret = (struct fw_model_layer_stats){ .norm = s.norm,
                                          .effective_rank = s.effective_rank,
                                          .nonfinite = s.nonfinite };
    ret->update_norm =
        fw_layout_find(fw_memory_layout(m->memory), "pending_e")
            ? row_norm(m, at, "pending_k", head) * row_norm(m, at, "pending_e", head)
            : row_norm(m, at, "last_k", head) * row_norm(m, at, "last_v", head);
    return 0;
}
