/* generate.c - tokens sampled from the state; the seed is the request's and decides everything.
 *
 * Without learn: one frozen view, each sampled token is fed to it. With learn, and where all of
 * the block is registers: a throw-away copy of the block learns the prefix and each sampled
 * token; nothing of it stays. Then a request with learn, which held its place as a barrier,
 * becomes an ordinary learn of the sampled tokens (learn.c), and its surprise is that learn's.
 */
#include "config.h"

#include "steps.h"

#include <stdlib.h>
#include <string.h>

#include "fastweight/clock.h"

enum { FEED, SAMPLE, LEARN };

static const struct fw_learner *learner_of(const struct fw_work *w)
{
    return w->s->recipe->learner;
}

static bool on_copy(const struct fw_work *w)
{
    return w->r->learn || learner_of(w)->kind->all_registers;
}

/* The place that the i-th sampled token has, as the learner reads tokens. */
static void put_token(struct fw_work *w, size_t i, uint32_t token)
{
    size_t size = learner_of(w)->token_bytes;
    unsigned char *at = (unsigned char *)w->own_tokens + i * size;
    size_t b;

    for (b = 0; b < size; b++)
        at[b] = (unsigned char)(token >> (8 * b));
}

static int begin(struct fw_work *w, struct fw_err *err)
{
    static const enum fw_dtype dtype[] = { [1] = FW_U8, [2] = FW_U16, [4] = FW_U32 };
    struct fw_request *r = w->r;
    size_t size = learner_of(w)->token_bytes;

    r->ids = malloc(r->max_tokens * sizeof *r->ids);
    r->logp = malloc(r->max_tokens * sizeof *r->logp);
    w->own_tokens = calloc(r->max_tokens, size);
    if (!r->ids || !r->logp || !w->own_tokens)
        return out_of_memory(err);
    w->rng = fw_hash64(&r->seed, sizeof r->seed) | 1; /* 0 is a dead state of many generators */
    w->own_tensor = (struct fw_tensor){ .name = "tokens",
                                        .dtype = dtype[size],
                                        .ndim = 1,
                                        .shape = { r->max_tokens },
                                        .data = w->own_tokens,
                                        .bytes = r->max_tokens * size };
    w->own.item = &w->own_tensor;
    w->own.count = 1;
    return 0;
}

/* Feeds the prefix to the view, or lets the copy learn it. */
static int feed(struct fw_work *w, uint64_t deadline, struct fw_err *err)
{
    int rc;

    if (!on_copy(w))
        return prefix_feed(w, deadline, err);
    rc = copy_take(w, err);
    if (rc != 0)
        return rc;
    if (!w->pass.l &&
        pass_init(&w->pass, learner_of(w), w->in, w->tokens, FW_DETAIL_NONE, err) < 0)
        return -1;
    return pass_learn(&w->pass, w->copy, deadline) ? 0 : 1;
}

static int sample_one(struct fw_work *w, struct fw_err *err)
{
    const struct fw_learner *l = learner_of(w);
    struct fw_request *r = w->r;
    size_t i = r->count;
    double bits;

    if (on_copy(w) && l->kind->view_new(&w->view, l, w->copy, err) < 0)
        return -1;
    r->ids[i] = l->kind->sample(w->view, r->temperature, &w->rng);
    put_token(w, i, r->ids[i]);
    if (on_copy(w)) {
        l->kind->view_free(w->view);
        w->view = NULL;
        l->kind->learn(l, w->copy, &w->own, i, 1, &bits, NULL);
    } else {
        l->kind->score(w->view, &w->own, i, 1, &bits);
    }
    r->logp[i] = -bits * 0.69314718055994530942; /* ln 2 */
    r->total += bits;
    r->count = i + 1;
    return 0;
}

/* 0: all are there; 1: the slice is over. */
static int sample(struct fw_work *w, uint64_t deadline, struct fw_err *err)
{
    while (w->r->count < w->r->max_tokens) {
        if (sample_one(w, err) < 0)
            return -1;
        if (fw_clock_mono_ns() >= deadline)
            return w->r->count < w->r->max_tokens;
    }
    return 0;
}

static void finish_read(struct fw_work *w)
{
    w->r->tokens = w->r->count;
    w->r->mean = w->r->total / (double)w->r->count;
    work_finish(w);
}

/* The barrier falls: from here on it is the learn at the head of its queue. */
static int become_learn(struct fw_work *w, struct fw_err *err)
{
    struct session *s = w->s;

    room_give(s->e, w->copy, block_bytes(s));
    w->copy = NULL;
    pass_done(&w->pass);
    w->in = &w->own;
    w->tokens = w->r->count;
    if (pass_init(&w->pass, learner_of(w), w->in, w->tokens,
                  w->r->detail ? w->r->detail : FW_DETAIL_MEAN, err) < 0 ||
        row_new(w, err) < 0)
        return -1;
    pthread_mutex_lock(&s->e->lock);
    w->started = false;
    w->barrier = false;
    w->learns = true;
    pthread_mutex_unlock(&s->e->lock);
    return 0;
}

void step_generate(struct fw_work *w, uint64_t deadline)
{
    struct fw_err err;
    int rc = 0;

    if (w->phase == LEARN) {
        step_learn(w, deadline);
        return;
    }
    if (!w->r->ids)
        rc = begin(w, &err);
    if (rc == 0 && w->phase == FEED && (rc = feed(w, deadline, &err)) == 0)
        w->phase = SAMPLE;
    if (rc == 0 && w->phase == SAMPLE)
        rc = sample(w, deadline, &err);
    if (rc == 0 && w->r->learn && (rc = become_learn(w, &err)) == 0)
        w->phase = LEARN;
    else if (rc == 0)
        finish_read(w);
    if (rc < 0)
        work_fail(w, &err);
}
