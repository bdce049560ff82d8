/* events.c - the model `events`: integer ids below vocab.
 *
 * One learner: rows of candidates under hashed contexts, mixed linearly, the likeliest few of
 * them judged by gated binary decisions (events_gather.c, events_read.c, events_learn.c). The
 * block: registers, tally, counters, what is known of unseen ids, popularity (u16, vocab), ring
 * and match table, gates and weights, and rows (all that is left). A view reads the same block
 * with its own registers and, once fed, its own copy of the ring. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "fastweight/fmath.h"

#include "events.h"

struct events_view {
    struct events_regs regs;
    uint16_t *ring; /* own copy, made at the first feed */
    int fed;
    struct events_read read;
};

/* ---- the plan */

struct plan_field {
    const char *name;
    enum fw_dtype dtype;
    uint32_t ndim;
    uint64_t shape[3];
    size_t *offset;
};

static int plan_fields(struct events *e, struct fw_layout *l, size_t state_bytes,
                       struct fw_err *err)
{
    const uint64_t ring = (uint64_t)e->ring_mask + 1;
    const struct plan_field field[] = {
        { "registers", FW_U8, 1, { sizeof(struct events_regs) }, &e->regs },
        { "tally", FW_U8, 1, { sizeof(struct tally) }, &e->tally },
        { "counters", FW_U8, 1, { sizeof(struct events_counters) }, &e->counters },
        { "unseen", FW_U8, 1, { sizeof(struct events_unseen) }, &e->unseen },
        { "popularity", FW_U16, 1, { e->vocab }, &e->popularity },
        { "ring", FW_U16, 1, { ring }, &e->ring },
        { "match_table", FW_U32, 1, { (uint64_t)e->match_mask + 1 }, &e->match_table },
        { "gates", FW_F32, 2, { EVENTS_SOURCES, 64 }, &e->gates },
        { "worth", FW_F32, 1, { EVENTS_SOURCES }, &e->worth },
        { "copy_hit", FW_F32, 1, { EVENTS_CLASSES }, &e->copy_hit },
        { "maps", FW_U32, 3, { EVENTS_SOURCES, EVENTS_CLASSES, 32 }, &e->maps },
        { "set_weights", FW_F32, 2, { 256, EVENTS_INPUTS }, &e->set_weights },
        { "rank_weights", FW_F32, 2, { EVENTS_RANKS, EVENTS_INPUTS }, &e->rank_weights },
        { "escape_weights", FW_F32, 2, { 256, 2 }, &e->escape },
    };
    uint64_t lines[3];

    for (size_t i = 0; i < sizeof field / sizeof field[0]; i++)
        if (fw_layout_add(l, field[i].name, field[i].dtype, field[i].ndim, field[i].shape,
                          field[i].offset, err) != 0)
            return -1;
    e->lines = (uint32_t)((state_bytes - (l->block_bytes + 63) / 64 * 64) / 64);
    lines[0] = e->lines;
    lines[1] = EVENTS_LINE;
    lines[2] = sizeof(struct events_row) / 2;
    return fw_layout_add(l, "rows", FW_U16, 3, lines, &e->rows, err);
}

static int events_plan(struct fw_stream *s, const struct fw_params *config,
                       struct fw_params *resolved, struct fw_err *err)
{
    static const char *const known[] = { "state_bytes", "vocab", NULL };
    size_t state_bytes = (size_t)4 << 20, vocab = 65536;
    struct events *e;

    if (fw_params_only(config, known, err) != 0 ||
        fw_params_get_size(config, "vocab", 2, 65536, &vocab, err) != 0 ||
        fw_params_get_size(config, "state_bytes", 1, SIZE_MAX >> 12, &state_bytes, err) != 0)
        return -1;
    if (state_bytes != (size_t)1 << 20 && state_bytes != (size_t)4 << 20)
        return fw_fail_param(err, FW_EINVAL, "bad_value", "config.state_bytes",
                             "%zu is neither 1048576 nor 4194304", state_bytes);
    if (fw_params_set_number(resolved, "vocab", (double)vocab, err) != 0 ||
        fw_params_set_number(resolved, "state_bytes", (double)state_bytes, err) != 0)
        return -1;
    if (!(e = calloc(1, sizeof *e)))
        return fw_fail(err, FW_ENOMEM, "out_of_memory", "an events plan");
    s->own = e;
    s->token_bytes = 2;
    s->vocab = e->vocab = (uint32_t)vocab;
    e->tables = s->tables;
    e->ring_mask = (uint32_t)(state_bytes / 64 - 1); /* 65,536 ids of 4 MiB */
    e->match_mask = (e->ring_mask + 1) / 4 - 1;
    return plan_fields(e, &s->layout, state_bytes, err) != 0
               ? -1
               : fw_layout_seal(&s->layout, state_bytes, err);
}

static void events_free(struct fw_stream *s)
{
    free(s->own);
}

/* A gate starts the higher the surer its rows, and the longer its context. */
static void init_gates(float *gates)
{
    static const float first[EVENTS_SOURCES] = { -1, -0.7F, -0.4F, -1, -1, -1, -1, -1 };

    for (int h = 0; h < EVENTS_SOURCES; h++)
        for (int i = 0; i < 64; i++)
            gates[h * 64 + i] = first[h] + 0.15F * (float)(i % 8);
}

/* A map first believes what it reads; a source that does not expect an id speaks against it. */
static void init_maps(uint32_t *maps)
{
    for (int i = 0; i < EVENTS_SOURCES * EVENTS_CLASSES * 32; i++) {
        const float z = ((float)(i % 32) + 0.5F) * (18.6F / 16) - 9.3F;
        const float p = i % 32 < 16 ? 1 / (1 + fw_expf(-z)) : 0.01F;

        maps[i] = (uint32_t)(p * (1 << MAP_P_BITS)) << 10;
    }
}

static void events_init(const struct fw_stream *s, void *block)
{
    static const float copy_hit[EVENTS_CLASSES] = { 0.3F, 0.5F, 0.6F,  0.7F,
                                                    0.8F, 0.9F, 0.95F, 0.98F };
    const struct events *e = s->own;
    struct events_unseen *u = at_mut(block, e->unseen);
    float *sets = at_mut(block, e->set_weights);

    init_gates(at_mut(block, e->gates));
    for (int h = 0; h < EVENTS_SOURCES; h++)
        ((float *)at_mut(block, e->worth))[h] = 1;
    memcpy(at_mut(block, e->copy_hit), copy_hit, sizeof copy_hit);
    init_maps(at_mut(block, e->maps));
    for (int i = 0; i < 256; i++)
        sets[i * EVENTS_INPUTS + EVENTS_SOURCES] = 1; /* at first: the linear mix */
    u->nu = 0.5F;
    u->next = 0.1F;
    u->last = e->vocab;
    u->rng = 12345;
}

static int events_validate(const struct fw_stream *s, const void *block, struct fw_err *err)
{
    return events_check(s->own, block, err);
}

/* ---- learning */

static void events_learn(const struct fw_stream *s, void *block, const void *tokens, size_t n,
                         double *logp)
{
    const struct events *e = s->own;
    const uint16_t *id = tokens;
    struct events_regs *regs = at_mut(block, e->regs);
    uint32_t *table = at_mut(block, e->match_table), slot;
    const struct events_history h = { at_mut(block, e->ring), table };
    struct events_read r;

    for (size_t i = 0; i < n; i++) {
        double lp;

        events_read(e, block, regs, h.ring, id[i], &r);
        lp = fw_log(events_p(e, block, &r, id[i]));
        if (logp)
            logp[i] = lp;
        events_update(e, block, &r, id[i]);
        tally_token(at_mut(block, e->tally), lp);
        slot = events_advance(e, regs, &h, id[i]);
        table[slot] = regs->pos;
    }
}

static void events_stats(const struct fw_stream *s, const void *block,
                         struct fw_stream_stats *ret)
{
    events_report(s->own, block, ret);
}

/* ---- frozen reading */

static int events_view_new(struct fw_stream_view *v, struct fw_err *err)
{
    const struct events *e = v->s->own;
    struct events_view *own = calloc(1, sizeof *own);

    v->own = own;
    if (!own || !(own->ring = malloc(((size_t)e->ring_mask + 1) * sizeof *own->ring)))
        return fw_fail(err, FW_ENOMEM, "out_of_memory", "a view of an events state");
    memcpy(&own->regs, at(v->block, e->regs), sizeof own->regs);
    return 0;
}

static void events_view_free(struct fw_stream_view *v)
{
    struct events_view *own = v->own;

    if (own)
        free(own->ring);
    free(own);
}

static const uint16_t *view_ring(const struct fw_stream_view *v)
{
    const struct events *e = v->s->own;
    const struct events_view *own = v->own;

    return own->fed ? own->ring : at(v->block, e->ring);
}

static void events_feed(struct fw_stream_view *v, const void *tokens, size_t n, double *logp)
{
    const struct events *e = v->s->own;
    struct events_view *own = v->own;
    const struct events_history h = { own->ring, at(v->block, e->match_table) };
    const uint16_t *id = tokens;

    if (n && !own->fed) {
        memcpy(own->ring, view_ring(v), ((size_t)e->ring_mask + 1) * sizeof *own->ring);
        own->fed = 1;
    }
    for (size_t i = 0; i < n; i++) {
        if (logp) {
            events_read(e, v->block, &own->regs, own->ring, id[i], &own->read);
            logp[i] = fw_log(events_p(e, v->block, &own->read, id[i]));
        }
        events_advance(e, &own->regs, &h, id[i]);
    }
}

static void events_predict(struct fw_stream_view *v, double *logp)
{
    const struct events *e = v->s->own;
    struct events_view *own = v->own;

    events_read(e, v->block, &own->regs, view_ring(v), EVENTS_NONE, &own->read);
    events_full(e, v->block, &own->read, logp);
}

static size_t events_view_top(struct fw_stream_view *v, size_t k, uint32_t *ids, double *logp)
{
    const struct events *e = v->s->own;
    struct events_view *own = v->own;

    if (k > e->vocab)
        k = e->vocab;
    if (k == 0 || k > EVENTS_TOP)
        return view_rank(v, k, ids, logp);
    events_read(e, v->block, &own->regs, view_ring(v), EVENTS_NONE, &own->read);
    if (events_top(e, v->block, &own->read, k, v->ranked) == 0)
        return view_rank(v, k, ids, logp);
    for (size_t i = 0; i < k; i++) {
        ids[i] = v->ranked[i].id;
        logp[i] = v->ranked[i].logp;
    }
    return k;
}

const struct stream_ops stream_events = {
    .model = "events",
    .plan = events_plan,
    .free = events_free,
    .init = events_init,
    .validate = events_validate,
    .learn = events_learn,
    .stats = events_stats,
    .view_new = events_view_new,
    .view_free = events_view_free,
    .feed = events_feed,
    .predict = events_predict,
    .top = events_view_top,
};
