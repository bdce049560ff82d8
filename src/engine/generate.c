/* generate.c - tokens sampled from the state; the seed is the request's and decides everything.
 *
 * Without learn: one frozen view, each sampled token is fed to it. With learn, and where all of
 * the block is registers: a throw-away copy of the block learns the prefix and each sampled
 * token; nothing of it stays. Then a request with learn, which held its place as a barrier,
 * becomes an ordinary learn (learn.c) of the sampled tokens, with the prefix in front if
 * wanted, and its surprise is that learn's.
 *
 * r->logp holds bits until a token is `ready`: no stop string can take it back any more. */
#include "config.h"

#include "share.h"
#include "steps.h"

#include <stdlib.h>
#include <string.h>

#include "fastweight/clock.h"

#define LN2 0.69314718055994530942

enum { FEED, SAMPLE, LEARN };

static const struct fw_learner *learner_of(const struct fw_work *w)
{
    return w->s->recipe->learner;
}

static bool on_copy(const struct fw_work *w)
{
    return w->r->learn || learner_of(w)->kind->all_registers;
}

/* The i-th place of a tensor "tokens", as the learner reads tokens. */
static void put_token(struct fw_work *w, size_t i, uint32_t token)
{
    size_t size = learner_of(w)->token_bytes;
    unsigned char *at = (unsigned char *)w->own_tokens + i * size;
    size_t b;

    for (b = 0; b < size; b++)
        at[b] = (unsigned char)(token >> (8 * b));
}

static uint32_t get_token(const struct fw_work *w, const void *tokens, size_t i)
{
    size_t b, size = learner_of(w)->token_bytes;
    const unsigned char *at = (const unsigned char *)tokens + i * size;
    uint32_t token = 0;

    for (b = 0; b < size; b++)
        token |= (uint32_t)at[b] << (8 * b);
    return token;
}

static void own_tokens(struct fw_work *w, size_t count)
{
    static const enum fw_dtype dtype[] = { [1] = FW_U8, [2] = FW_U16, [4] = FW_U32 };
    size_t size = learner_of(w)->token_bytes;

    w->own_tensor = (struct fw_tensor){ .name = "tokens",
                                        .dtype = dtype[size],
                                        .ndim = 1,
                                        .shape = { count },
                                        .data = w->own_tokens,
                                        .bytes = count * size };
    w->own.item = &w->own_tensor;
    w->own.count = 1;
}

/* The prefix as the sampler and `own` need it. */
static void see_prefix(struct fw_work *w)
{
    const struct fw_tensor *prefix = fw_tensors_find(w->in, "tokens");
    size_t i = w->tokens > FW_SAMPLING_WINDOW_MAX ? w->tokens - FW_SAMPLING_WINDOW_MAX : 0;

    if (w->tokens == 0)
        return;
    if (w->lead > 0)
        memcpy(w->own_tokens, prefix->data, prefix->bytes);
    for (; w->sampler && i < w->tokens; i++)
        sampler_saw(w->sampler, get_token(w, prefix->data, i));
}

static int begin(struct fw_work *w, struct fw_err *err)
{
    struct fw_request *r = w->r;
    const struct fw_sampling *s = &r->sampling;
    size_t own;

    w->lead = r->learn && r->learn_prefix ? w->tokens : 0;
    own = w->lead + r->max_tokens;
    r->ids = malloc(r->max_tokens * sizeof *r->ids);
    r->logp = malloc(r->max_tokens * sizeof *r->logp);
    w->own_tokens = calloc(own, learner_of(w)->token_bytes);
    if (!r->ids || !r->logp || !w->own_tokens)
        return out_of_memory(err);
    if (((!sampling_is_plain(s) || learner_of(w)->kind->all_registers) &&
         sampler_new(&w->sampler, s, learner_of(w)->vocab, err) < 0) ||
        (s->stops > 0 && stops_init(&w->stops, s, r->max_tokens, err) < 0))
        return -1;
    w->rng = fw_hash64(&s->seed, sizeof s->seed) | 1; /* 0 is a dead state of many generators */
    own_tokens(w, own);
    see_prefix(w);
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

/* *logp: of the token, where the sampler draws it. */
static uint32_t draw(struct fw_work *w, double *logp)
{
    const struct fw_learner_kind *kind = learner_of(w)->kind;
    uint32_t token;

    if (!w->sampler)
        return kind->sample(w->view, w->r->sampling.temperature, &w->rng);
    kind->predict(w->view, sampler_logp(w->sampler));
    token = sampler_draw(w->sampler, &w->rng, logp);
    sampler_saw(w->sampler, token);
    return token;
}

/* The view or the copy goes on by the token that was picked. Where all of the block is
 * registers a learn would work out the surprise that the draw knows already, at the price of a
 * head. */
static struct fw_learner_part picked(struct fw_work *w)
{
    struct fw_request *r = w->r;

    return (struct fw_learner_part){ .block = w->copy,
                                     .in = &w->own,
                                     .from = w->lead + r->count,
                                     .n = 1,
                                     .surprise = learner_of(w)->kind->all_registers
                                                     ? NULL
                                                     : &r->logp[r->count] };
}

static void advance(struct fw_work *w)
{
    const struct fw_learner *l = learner_of(w);
    struct fw_learner_part p = picked(w);

    if (on_copy(w))
        l->kind->learn(l, p.block, p.in, p.from, 1, p.surprise, NULL);
    else
        l->kind->score(w->view, p.in, p.from, 1, p.surprise);
}

static bool is_stop(const struct fw_sampling *s, uint32_t token)
{
    size_t i;

    for (i = 0; i < s->stop_tokens && s->stop_token[i] != token; i++)
        ;
    return i < s->stop_tokens;
}

/* Tokens [.., count) are there for good. */
static void settle(struct fw_work *w, size_t count)
{
    struct fw_request *r = w->r;

    for (; w->ready < count; w->ready++) {
        r->total += r->logp[w->ready];
        r->logp[w->ready] *= -LN2;
    }
}

/* Bytes are their own text. */
static const unsigned char *text_of_last(const struct fw_work *w, size_t *ret_len)
{
    const struct fw_request *r = w->r;

    *ret_len = 1;
    if (learner_of(w)->token_bytes == 1)
        return (const unsigned char *)w->own_tokens + w->lead + r->count - 1;
    return fw_engine_token(w->s->e, w->s->recipe->model, r->ids[r->count - 1], ret_len);
}

/* 1: a stop string ends the text; what of it no token holds goes to r->bytes. */
static int look_for_stop(struct fw_work *w, struct fw_err *err)
{
    struct fw_request *r = w->r;
    struct stops *t = &w->stops;
    size_t len, from;
    const unsigned char *text = text_of_last(w, &len);
    int rc = stops_add(t, text, len, err);

    settle(w, rc < 0 ? 0 : t->kept);
    if (rc != 1)
        return rc;
    from = t->kept > 0 ? t->end[t->kept - 1] : 0;
    if (t->cut > from && fw_buf_append(&r->bytes, t->text.data + from, t->cut - from, err) < 0)
        return -1;
    r->count = t->kept;
    return 1;
}

/* The next token; 1: it is one that stops. */
static int pick(struct fw_work *w, struct fw_err *err)
{
    const struct fw_learner *l = learner_of(w);
    struct fw_request *r = w->r;
    size_t i = r->count, at = w->lead + i;
    double logp = 0;
    bool stop;

    if (on_copy(w) && l->kind->view_new(&w->view, l, w->copy, err) < 0)
        return -1;
    r->ids[i] = draw(w, &logp);
    put_token(w, at, r->ids[i]);
    stop = is_stop(&r->sampling, r->ids[i]);
    if (on_copy(w)) {
        l->kind->view_free(w->view);
        w->view = NULL;
    }
    if (l->kind->all_registers)
        r->logp[i] = -logp / LN2;
    return stop;
}

/* The picked one was learned or scored; 1: it was the last. */
static int keep(struct fw_work *w, struct fw_err *err)
{
    w->r->count++;
    if (w->r->sampling.stops > 0)
        return look_for_stop(w, err);
    settle(w, w->r->count);
    return 0;
}

static bool is_over(const struct fw_work *w)
{
    return w->r->finish == FW_FINISH_STOP || w->r->count == w->r->max_tokens;
}

static int sample_one(struct fw_work *w, struct fw_err *err)
{
    int end = pick(w, err);

    if (end == 0) {
        advance(w);
        end = keep(w, err);
    }
    if (end == 1)
        w->r->finish = FW_FINISH_STOP;
    return end < 0 ? -1 : 0;
}

static void tell(struct fw_work *w)
{
    if (w->r->progress && w->ready > w->told)
        w->r->progress(w->r, w->ready);
    w->told = w->ready;
    w->told_ns = fw_clock_mono_ns();
}

/* What became of a token in a pass that several share. */
static void note_end(struct fw_work *w, int end, const struct fw_err *err)
{
    struct fw_engine *e = w->s->e;

    if (end == 1)
        w->r->finish = FW_FINISH_STOP;
    if (end >= 0)
        return;
    pthread_mutex_lock(&e->lock);
    w->err = *err;
    pthread_mutex_unlock(&e->lock);
}

bool generate_samples(const struct fw_work *w)
{
    return w->r->verb == FW_GENERATE && w->started && w->phase == SAMPLE && on_copy(w) &&
           !is_over(w);
}

bool generate_offer(struct fw_work *w, struct fw_learner_part *ret)
{
    struct fw_err err;
    int end = pick(w, &err);

    note_end(w, end, &err);
    *ret = picked(w);
    return end == 0;
}

void generate_took(struct fw_work *w)
{
    struct fw_err err;

    note_end(w, keep(w, &err), &err);
    if (fw_clock_mono_ns() - w->told_ns >= SLICE_NS)
        tell(w);
}

/* 0: all are there; 1: the slice is over, or w->err says what went wrong. */
static int sample(struct fw_work *w, uint64_t deadline, struct fw_err *err)
{
    while (!is_over(w)) {
        if (share_wants(w))
            share_pass(w);
        else if (sample_one(w, err) < 0)
            return -1;
        if (w->err.code != FW_OK || fw_clock_mono_ns() >= deadline)
            break;
    }
    if (is_over(w))
        settle(w, w->r->count);
    tell(w);
    return !is_over(w) || w->err.code != FW_OK;
}

static void count_generated(struct fw_work *w)
{
    struct fw_engine *e = w->s->e;

    pthread_mutex_lock(&e->lock);
    e->stats.tokens_generated += w->r->count;
    pthread_mutex_unlock(&e->lock);
}

static void finish_read(struct fw_work *w)
{
    struct fw_request *r = w->r;

    r->tokens = r->count;
    r->mean = r->count ? r->total / (double)r->count : 0;
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
    w->tokens = w->lead + w->r->count;
    own_tokens(w, w->tokens);
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
    if (!w->own_tokens)
        rc = begin(w, &err);
    if (rc == 0 && w->phase == FEED && (rc = feed(w, deadline, &err)) == 0)
        w->phase = SAMPLE;
    if (rc == 0 && w->phase == SAMPLE && (rc = sample(w, deadline, &err)) == 0)
        count_generated(w);
    if (rc == 0 && w->r->learn && w->lead + w->r->count > 0 &&
        (rc = become_learn(w, &err)) == 0)
        w->phase = LEARN;
    else if (rc == 0)
        finish_read(w);
    if (rc < 0)
        work_fail(w, &err);
}
