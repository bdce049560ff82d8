/* bytes.c - the model `bytes`: a byte stream through the core.
 *
 * The block: registers, ring, match table, the core's fields, the expert's, cells (all that is
 * left). Each token: contexts from the registers, read its path, update, advance. A view does
 * the same with its own registers and its own copy of the ring (and of an outside expert's
 * block), and writes neither table nor weights. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "fastweight/fmath.h"

#include "context.h"
#include "expert.h"
#include "stream_int.h"
#include "tally.h"

struct bytes {
    const struct size *size;
    struct core core;
    struct expert expert;
    size_t regs, tally, ring, table; /* offsets */
    uint32_t ring_bytes, table_slots;
};

struct bytes_view {
    struct regs regs;
    uint8_t *ring; /* own copies, made at the first feed */
    void *outside; /* the outside expert's block; NULL: there is none */
    int fed;
    struct expert_reading reading;
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

/* The smallest block has room for some sources and few gate rows only. */
static const struct size {
    size_t bytes;
    uint32_t ring_part, run_part; /* one part of the block in so many; ring: a power of two */
    int small;
    const char *expert; /* the default */
} sizes[] = {
    { (size_t)256 << 10, 16, 8, 1, "none" },
    { (size_t)1 << 20, 8, 6, 0, "none" },
    { (size_t)4 << 20, 8, 6, 0, "none" },
    { (size_t)16 << 20, 8, 6, 0, "dense" },
};

static const struct size *size_of(size_t state_bytes, struct fw_err *err)
{
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        if (sizes[i].bytes == state_bytes)
            return &sizes[i];
    fw_fail_param(err, FW_EINVAL, "bad_value", "config.state_bytes",
                  "%zu is none of 262144, 1048576, 4194304, 16777216", state_bytes);
    return NULL;
}

static int plan_fields(struct fw_stream *s, struct bytes *b, const struct preset *preset,
                       const char *expert, struct fw_err *err)
{
    const struct size *size = b->size;
    const uint64_t regs = sizeof(struct regs), tally = sizeof(struct tally);
    const uint64_t ring = b->ring_bytes = (uint32_t)(size->bytes / size->ring_part);
    const uint64_t slots = b->table_slots = b->ring_bytes / 8;
    const struct core_config config = {
        .heads = size->small ? CONTEXT_SMALL_HEADS : CONTEXT_HEADS,
        .runs = size->small ? CONTEXT_SMALL_RUNS : CONTEXT_RUNS,
        .copies = CONTEXT_COPIES,
        .experts = strcmp(expert, "none") != 0,
        .classes = size->small ? CONTEXT_SMALL_CLASSES : CONTEXT_CLASSES,
        .kinds = size->small ? CONTEXT_SMALL_KINDS : CONTEXT_KINDS,
        .run_lines = (uint32_t)(size->bytes / size->run_part / 32),
        .eta = preset->eta,
        .eta_start = preset->eta_start,
        .eta_warm = 4000,
        .eta_final = 0.002F,
        .weight = 0.2F,
        .expert_weight = strcmp(expert, "dense") == 0 ? 0.2F : 0.6F,
        .map_limit = 1023,
        .age = 64,
    };
    struct fw_layout *l = &s->layout;

    if (fw_layout_add(l, "registers", FW_U8, 1, &regs, &b->regs, err) != 0 ||
        fw_layout_add(l, "tally", FW_U8, 1, &tally, &b->tally, err) != 0 ||
        fw_layout_add(l, "ring", FW_U8, 1, &ring, &b->ring, err) != 0 ||
        fw_layout_add(l, "match_table", FW_U32, 1, &slots, &b->table, err) != 0 ||
        core_plan(&b->core, &config, s->tables, l, err) != 0 ||
        expert_plan(&b->expert, expert, s->expert, size->bytes, l, err) != 0)
        return -1;
    return core_plan_cells(&b->core, size->bytes - l->block_bytes, l, err);
}

static int bytes_plan(struct fw_stream *s, const struct fw_params *config,
                      struct fw_params *resolved, struct fw_err *err)
{
    static const char *const known[] = { "expert", "preset", "state_bytes", NULL };
    const char *name = "auto", *expert;
    size_t state_bytes = (size_t)4 << 20;
    const struct preset *preset;
    const struct size *size;
    struct bytes *b;

    if (fw_params_only(config, known, err) != 0 ||
        fw_params_get_string(config, "preset", &name, err) != 0 ||
        fw_params_get_size(config, "state_bytes", 1, SIZE_MAX >> 12, &state_bytes, err) != 0 ||
        !(preset = preset_named(name, err)) || !(size = size_of(state_bytes, err)))
        return -1;
    expert = size->expert;
    if (fw_params_get_string(config, "expert", &expert, err) != 0 ||
        fw_params_set_string(resolved, "expert", expert, err) != 0 ||
        fw_params_set_string(resolved, "preset", name, err) != 0 ||
        fw_params_set_number(resolved, "state_bytes", (double)state_bytes, err) != 0)
        return -1;
    if (!(b = calloc(1, sizeof *b)))
        return fw_fail(err, FW_ENOMEM, "out_of_memory", "a bytes plan");
    b->size = size;
    s->own = b;
    s->token_bytes = 1;
    s->vocab = 256;
    return plan_fields(s, b, preset, expert, err) != 0
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
    expert_init(&b->expert, block);
}

static int bytes_validate(const struct fw_stream *s, const void *block, struct fw_err *err)
{
    const struct bytes *b = s->own;

    if (context_validate(at(block, b->regs), err) != 0 ||
        tally_validate(at(block, b->tally), err) != 0 ||
        expert_validate(&b->expert, block, err) != 0)
        return -1;
    return core_validate(&b->core, block, err);
}

/* ---- learning */

static struct history history_of(const struct bytes *b, const void *block, const uint8_t *ring)
{
    return (struct history){ ring, b->ring_bytes - 1, at(block, b->table), b->table_slots - 1 };
}

static void read_context(const struct bytes *b, const struct regs *regs,
                         const struct history *h, struct core_context *in)
{
    context_read(regs, h, in);
    if (b->size->small)
        context_small(in);
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
    struct expert_reading reading;
    struct core_context in;
    struct core_path path;

    for (size_t i = 0; i < n; i++) {
        double lp;

        expert_ahead(&b->expert, at_mut(block, b->expert.at_outside), byte, n, i, &reading);
        read_context(b, regs, &h, &in);
        expert_read(&b->expert, block, &in, i, &reading);
        lp = fw_log(fns->read(&b->core, block, &in, byte[i], &path));
        if (logp)
            logp[i] = lp;
        fns->update(&b->core, block, byte[i], &path);
        expert_update(&b->expert, block, byte[i], &reading);
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
    const char *name[CORE_SOURCES];
    size_t count = b->size->small ? context_small_names(name) : context_all_names(name);

    tally_stats(at(block, b->tally), ret);
    name[count] = b->expert.source;
    core_stats(&b->core, block, name, ret);
    if (b->expert.source)
        ret->rows[count] = expert_rows(&b->expert);
}

/* ---- frozen reading */

static int bytes_view_new(struct fw_stream_view *v, struct fw_err *err)
{
    const struct bytes *b = v->s->own;
    struct bytes_view *own = aligned_alloc(_Alignof(struct bytes_view), sizeof *own);

    if (!own)
        return fw_fail(err, FW_ENOMEM, "out_of_memory", "a view of a bytes state");
    memset(own, 0, sizeof *own);
    v->own = own;
    if (!(own->ring = malloc(b->ring_bytes)) ||
        (b->expert.outside && !(own->outside = aligned_alloc(64, b->expert.outside_bytes))))
        return fw_fail(err, FW_ENOMEM, "out_of_memory", "a view of a bytes state");
    memcpy(&own->regs, at(v->block, b->regs), sizeof own->regs);
    return 0;
}

static void bytes_view_free(struct fw_stream_view *v)
{
    struct bytes_view *own = v->own;

    if (own) {
        free(own->ring);
        free(own->outside);
    }
    free(own);
}

static struct history view_history(const struct fw_stream_view *v)
{
    const struct bytes *b = v->s->own;
    const struct bytes_view *own = v->own;

    return history_of(b, v->block, own->fed ? own->ring : at(v->block, b->ring));
}

/* Before the first feed a view reads the block's own ring and expert. */
static void view_own(struct fw_stream_view *v)
{
    const struct bytes *b = v->s->own;
    struct bytes_view *own = v->own;

    if (own->fed)
        return;
    memcpy(own->ring, at(v->block, b->ring), b->ring_bytes);
    if (own->outside)
        memcpy(own->outside, at(v->block, b->expert.at_outside), b->expert.outside_bytes);
    own->fed = 1;
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

    view_own(v);
    h = view_history(v);
    for (size_t i = 0; i < n; i++) {
        expert_ahead(&b->expert, own->outside, byte, n, i, &own->reading);
        if (logp) {
            read_context(b, &own->regs, &h, &in);
            expert_read(&b->expert, v->block, &in, i, &own->reading);
            logp[i] = fw_log(fns->read(&b->core, v->block, &in, byte[i], &path));
        }
        own->ring[own->regs.pos & h.mask] = byte[i];
        context_advance(&own->regs, &h);
    }
}

static void bytes_predict(struct fw_stream_view *v, double *logp)
{
    const struct bytes *b = v->s->own;
    struct bytes_view *own = v->own;
    const struct history h = view_history(v);
    struct core_context in;

    read_context(b, &own->regs, &h, &in);
    expert_peek(&b->expert, v->block,
                own->fed ? own->outside : at(v->block, b->expert.at_outside), &in,
                &own->reading);
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
