/* bytes.c - the model `bytes`: a byte stream through the core.
 *
 * The block: registers, ring, match table, the core's fields, cells (all that is left). Each
 * token: contexts from the registers, read its path, update, advance. A view does the same with
 * its own registers and its own copy of the ring, and writes neither table nor weights. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "fastweight/fmath.h"

#include "context.h"
#include "stream_int.h"
#include "tally.h"

struct bytes {
    struct core core;
    size_t regs, tally, ring, table; /* offsets */
    uint32_t ring_bytes, table_slots;
};

struct bytes_view {
    struct regs regs;
    uint8_t *ring; /* own copy, made at the first feed */
    int fed;
};

/* ---- the plan */

struct preset {
    const char *name;
    float eta, eta_start;
};

static const struct preset presets[] = {
    { "auto", 0.004F, 0.02F },
    { "text", 0.002F, 0.02F },
    { "log", 0.006F, 0.02F },
};

static const struct preset *preset_named(const char *name, struct fw_err *err)
{
    for (size_t i = 0; i < sizeof presets / sizeof presets[0]; i++)
        if (strcmp(presets[i].name, name) == 0)
            return &presets[i];
    fw_fail_param(err, FW_EINVAL, "bad_value", "config.preset", "not auto, text or log: %s",
                  name);
    return NULL;
}

static uint32_t power_below(size_t n)
{
    uint32_t p = 1;

    while ((size_t)p * 2 <= n)
        p *= 2;
    return p;
}

static int plan_fields(struct fw_stream *s, struct bytes *b, const struct preset *preset,
                       size_t state_bytes, struct fw_err *err)
{
    const uint64_t regs = sizeof(struct regs), tally = sizeof(struct tally);
    const uint64_t ring = b->ring_bytes = power_below(state_bytes / 8);
    const uint64_t slots = b->table_slots = b->ring_bytes / 8;
    const struct core_config config = {
        .heads = CONTEXT_HEADS,
        .runs = CONTEXT_RUNS,
        .copies = CONTEXT_COPIES,
        .classes = CONTEXT_CLASSES,
        .kinds = CONTEXT_KINDS,
        .run_lines = (uint32_t)(state_bytes / 6 / 32),
        .eta = preset->eta,
        .eta_start = preset->eta_start,
        .eta_warm = 4000,
        .eta_final = 0.002F,
        .weight = 0.2F,
        .map_limit = 1023,
        .age = 64,
    };
    struct fw_layout *l = &s->layout;

    if (fw_layout_add(l, "registers", FW_U8, 1, &regs, &b->regs, err) != 0 ||
        fw_layout_add(l, "tally", FW_U8, 1, &tally, &b->tally, err) != 0 ||
        fw_layout_add(l, "ring", FW_U8, 1, &ring, &b->ring, err) != 0 ||
        fw_layout_add(l, "match_table", FW_U32, 1, &slots, &b->table, err) != 0 ||
        core_plan(&b->core, &config, s->tables, l, err) != 0)
        return -1;
    return core_plan_cells(&b->core, state_bytes - l->block_bytes, l, err);
}

static int bytes_plan(struct fw_stream *s, const struct fw_params *config,
                      struct fw_params *resolved, struct fw_err *err)
{
    static const char *const known[] = { "preset", "state_bytes", NULL };
    const char *name = "auto";
    size_t state_bytes = (size_t)4 << 20;
    const struct preset *preset;
    struct bytes *b;

    if (fw_params_only(config, known, err) != 0 ||
        fw_params_get_string(config, "preset", &name, err) != 0 ||
        fw_params_get_size(config, "state_bytes", 1, SIZE_MAX >> 12, &state_bytes, err) != 0 ||
        !(preset = preset_named(name, err)))
        return -1;
    if (state_bytes != (size_t)1 << 20 && state_bytes != (size_t)4 << 20)
        return fw_fail_param(err, FW_EINVAL, "bad_value", "config.state_bytes",
                             "%zu is neither 1048576 nor 4194304", state_bytes);
    if (fw_params_set_string(resolved, "preset", name, err) != 0 ||
        fw_params_set_number(resolved, "state_bytes", (double)state_bytes, err) != 0)
        return -1;
    if (!(b = calloc(1, sizeof *b)))
        return fw_fail(err, FW_ENOMEM, "out_of_memory", "a bytes plan");
    s->own = b;
    s->token_bytes = 1;
    s->vocab = 256;
    return plan_fields(s, b, preset, state_bytes, err) != 0
               ? -1
               : fw_layout_seal(&s->layout, state_bytes, err);
}

static void bytes_free(struct fw_stream *s)
{
    free(s->own);
}

static void bytes_init(const struct fw_stream *s, void *block)
{
    const struct bytes *b = s->own;

    context_init(at_mut(block, b->regs));
    core_init(&b->core, block);
}

static int bytes_validate(const struct fw_stream *s, const void *block, struct fw_err *err)
{
    const struct bytes *b = s->own;

    if (context_validate(at(block, b->regs), err) != 0 ||
        tally_validate(at(block, b->tally), err) != 0)
        return -1;
    return core_validate(&b->core, block, err);
}

/* ---- learning */

static struct history history_of(const struct bytes *b, const void *block, const uint8_t *ring)
{
    return (struct history){ ring, b->ring_bytes - 1, at(block, b->table), b->table_slots - 1 };
}

static void bytes_learn(const struct fw_stream *s, void *block, const void *tokens, size_t n,
                        double *logp)
{
    const struct bytes *b = s->own;
    const struct core_fns *fns = core_fns();
    const uint8_t *byte = tokens;
    struct regs *regs = at_mut(block, b->regs);
    uint8_t *ring = at_mut(block, b->ring);
    uint32_t *table = at_mut(block, b->table), slot;
    const struct history h = history_of(b, block, ring);
    struct core_context in;
    struct core_path path;

    for (size_t i = 0; i < n; i++) {
        double lp;

        context_read(regs, &h, &in);
        lp = fw_log(fns->read(&b->core, block, &in, byte[i], &path));
        if (logp)
            logp[i] = lp;
        fns->update(&b->core, block, byte[i], &path);
        tally_token(at_mut(block, b->tally), lp);
        ring[regs->pos & h.mask] = byte[i];
        slot = context_advance(regs, &h);
        table[slot] = regs->pos;
    }
}

static void bytes_stats(const struct fw_stream *s, const void *block,
                        struct fw_stream_stats *ret)
{
    const struct bytes *b = s->own;

    tally_stats(at(block, b->tally), ret);
    core_stats(&b->core, block, context_names, ret);
}

/* ---- frozen reading */

static int bytes_view_new(struct fw_stream_view *v, struct fw_err *err)
{
    const struct bytes *b = v->s->own;
    struct bytes_view *own = calloc(1, sizeof *own);

    v->own = own;
    if (!own || !(own->ring = malloc(b->ring_bytes)))
        return fw_fail(err, FW_ENOMEM, "out_of_memory", "a view of a bytes state");
    memcpy(&own->regs, at(v->block, b->regs), sizeof own->regs);
    return 0;
}

static void bytes_view_free(struct fw_stream_view *v)
{
    struct bytes_view *own = v->own;

    if (own)
        free(own->ring);
    free(own);
}

static struct history view_history(const struct fw_stream_view *v)
{
    const struct bytes *b = v->s->own;
    const struct bytes_view *own = v->own;

    return history_of(b, v->block, own->fed ? own->ring : at(v->block, b->ring));
}

static void bytes_feed(struct fw_stream_view *v, const void *tokens, size_t n, double *logp)
{
    const struct bytes *b = v->s->own;
    const struct core_fns *fns = core_fns();
    struct bytes_view *own = v->own;
    const uint8_t *byte = tokens;
    struct core_context in;
    struct core_path path;
    struct history h;

    if (!own->fed)
        memcpy(own->ring, at(v->block, b->ring), b->ring_bytes);
    own->fed = 1;
    h = view_history(v);
    for (size_t i = 0; i < n; i++) {
        if (logp) {
            context_read(&own->regs, &h, &in);
            logp[i] = fw_log(fns->read(&b->core, v->block, &in, byte[i], &path));
        }
        own->ring[own->regs.pos & h.mask] = byte[i];
        context_advance(&own->regs, &h);
    }
}

static void bytes_predict(struct fw_stream_view *v, double *logp)
{
    const struct bytes *b = v->s->own;
    const struct bytes_view *own = v->own;
    const struct history h = view_history(v);
    struct core_context in;

    context_read(&own->regs, &h, &in);
    core_fns()->full(&b->core, v->block, &in, logp);
    for (int i = 0; i < 256; i++)
        logp[i] = fw_log(logp[i]);
}

const struct stream_ops stream_bytes = {
    .model = "bytes",
    .plan = bytes_plan,
    .free = bytes_free,
    .init = bytes_init,
    .validate = bytes_validate,
    .learn = bytes_learn,
    .stats = bytes_stats,
    .view_new = bytes_view_new,
    .view_free = bytes_view_free,
    .feed = bytes_feed,
    .predict = bytes_predict,
};
