/* learn.c - the learn at the head of its queue: from the journal's answer to the reply.
 *
 * Before it was handed over it may need memory or a checkpoint (journal full, or rows lost).
 * Handed over and written (async: or not yet), it cannot fail any more: it is learned in slices
 * and only its end is seen by others. A generate with learn comes here with its own tokens, an
 * edit with one association instead of tokens. */
#include "config.h"

#include "share.h"
#include "steps.h"

#include "fastweight/clock.h"

static bool begin(struct fw_work *w)
{
    struct session *s = w->s;
    bool ok;

    pthread_mutex_lock(&s->e->lock);
    ok = row_take(w);
    w->started = ok;
    resident_touch(s);
    pthread_mutex_unlock(&s->e->lock);
    return ok;
}

/* An edit is one step, however large. */
static void edit(struct fw_work *w)
{
    const struct fw_learner *l = w->s->recipe->learner;
    struct fw_request *r = w->r;

    l->kind->edit(l, w->s->block, w->in, &r->probes, r->values, &r->change_norm, &r->disturbed);
    r->values_shape[0] = 2;
    r->values_shape[1] = l->values[0];
    r->values_shape[2] = l->values[1];
    r->values_count = 2 * l->values[0] * l->values[1];
}

static void finish(struct fw_work *w)
{
    struct session *s = w->s;
    struct fw_request *r = w->r;

    if (r->verb == FW_EDIT)
        edit(w);
    else
        pass_take(&w->pass, r);
    w->mean = r->mean;
    if (r->want_hash) {
        r->facts.hash = fw_hash128(s->block, block_bytes(s));
        r->facts.has_hash = true;
    }
    pthread_mutex_lock(&s->e->lock);
    s->version = w->version;
    s->tokens_seen += w->tokens;
    s->unlearned_bytes -= w->row->cost;
    s->e->stats.tokens_learned += w->tokens;
    pthread_mutex_unlock(&s->e->lock);
    work_finish(w);
}

static void count_time(struct fw_engine *e, uint64_t from_ns)
{
    uint64_t ns = fw_clock_mono_ns() - from_ns;

    pthread_mutex_lock(&e->lock);
    e->stats.learn_ns += ns;
    pthread_mutex_unlock(&e->lock);
}

/* (runner) Holds hand-over back; false: the head was handed over in the meantime. */
static bool hold(struct fw_work *w)
{
    struct session *s = w->s;

    pthread_mutex_lock(&s->e->lock);
    s->preparing = !w->handed;
    pthread_mutex_unlock(&s->e->lock);
    return s->preparing;
}

/* The journal is full or lacks rows: a checkpoint first; when it fails nothing is learned. */
void learn_prepare(struct fw_work *w)
{
    struct session *s = w->s;
    struct fw_err err;
    int rc = 0;

    if (s->checkpoint)
        rc = checkpoint_end(s, &err);
    else if (hold(w) && (rc = checkpoint_of(s, &err)) < 0)
        checkpoint_cancel(s);
    if (rc < 0)
        work_fail(w, &err);
}

bool learn_offer(struct fw_work *w, struct fw_learner_part *ret)
{
    if (!w->started && !begin(w))
        return false;
    pass_rest(&w->pass, w->s->block, ret);
    return true;
}

void learn_took(struct fw_work *w)
{
    pass_end(&w->pass);
    finish(w);
}

void step_learn(struct fw_work *w, uint64_t deadline)
{
    struct session *s = w->s;
    uint64_t from_ns = fw_clock_mono_ns();
    bool end;

    if (!w->started && !begin(w)) {
        work_finish(w);
        return;
    }
    if (share_wants(w)) {
        share_pass(w);
        return;
    }
    end = w->r->verb == FW_EDIT || pass_learn(&w->pass, s->block, deadline);
    count_time(s->e, from_ns);
    if (end)
        finish(w);
}
