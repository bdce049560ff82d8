/* run.c - whose turn it is: sessions as tasks on the worker pool.
 *
 * A session that can do something is one task (s->scheduled), and what it does is decided anew
 * before every step: leave memory, its head's verb, or its own end. A slice lasts SLICE_NS,
 * then the task goes to the pool's tail. A session that waits (for a store op, memory, a key
 * look-up) is simply not scheduled; whatever ends the wait calls session_kick. The invariant:
 * whenever the lock is free, a turn other than REST implies s->scheduled. */
#include "config.h"

#include "share.h"
#include "steps.h"

#include <stddef.h>
#include <stdlib.h>

#include "fastweight/clock.h"

struct verb {
    void (*step)(struct fw_work *w, uint64_t deadline);
    bool state; /* needs the block in memory */
    bool read;  /* writes nothing: a delete ends it between two slices */
};

static const struct verb verbs[] = {
    [FW_CREATE] = { step_fork, true, false },
    [FW_DELETE] = { NULL, false, false },
    [FW_LABEL] = { step_label, false, false },
    [FW_FACTS] = { step_facts, true, true },
    [FW_LEARN] = { step_learn, true, false },
    [FW_EDIT] = { step_learn, true, false },
    [FW_SCORE] = { step_score, true, true },
    [FW_PREDICT] = { step_predict, true, true },
    [FW_RECALL] = { step_recall, true, true },
    [FW_GENERATE] = { step_generate, true, true },
    [FW_INSPECT] = { step_inspect, true, true },
    [FW_TENSOR] = { step_tensor, true, true },
    [FW_SNAPSHOT] = { step_snapshot, true, false },
    [FW_SNAPSHOT_LIST] = { step_snapshot_list, false, true },
    [FW_SNAPSHOT_GET] = { step_snapshot_get, false, true },
    [FW_SNAPSHOT_DROP] = { step_snapshot_drop, false, false },
    [FW_RESTORE] = { step_restore, false, false },
    [FW_EXPORT] = { step_export, true, true },
    [FW_IMPORT] = { step_import, false, false },
    [FW_FORK] = { step_fork, true, false },
    [FW_CHECKPOINT] = { step_checkpoint, true, false },
};

static bool needs_state(const struct fw_work *w)
{
    const struct fw_request *r = w->r;

    if (r->verb == FW_CREATE) /* from a session as it is, or from its snapshot */
        return !r->name[0];
    return verbs[r->verb].state;
}

bool session_boundary(const struct session *s)
{
    return s->handed == 0 && !(s->head && s->head->work->started);
}

/* What a session does next. */
enum turn {
    REST,    /* nothing, until something changes */
    EVICT,   /* leave memory */
    ANSWER,  /* the head's answer is known */
    MISSING, /* the session is deleted, and the head with it */
    OVER,    /* the head only reads, and the server goes down or its client went */
    REPEAT,  /* answer the repeat of an idempotency key */
    LOAD,    /* come into memory for the head */
    PREPARE, /* a checkpoint, so that the head can be handed over */
    STEP,    /* the head's verb */
    END      /* the queue is empty and the session deleted, or only passing */
};

/* (locked) The head is a learn that hand-over has not passed. */
static enum turn turn_unhanded(struct session *s, struct fw_work *w)
{
    switch (hand_over_stop(s, w)) {
    case HAND_STATE:
        return LOAD;
    case HAND_CHECKPOINT:
        return PREPARE;
    default:
        return REST;
    }
}

/* (locked) */
static bool reads_are_over(const struct fw_engine *e)
{
    return e->reads_end_ns && fw_clock_mono_ns() >= e->reads_end_ns;
}

/* (locked) */
static enum turn turn_head(struct session *s)
{
    struct fw_work *w = s->head->work;

    if (w->key_pending)
        return REST;
    if (w->err.code != FW_OK)
        return ANSWER;
    if (s->deleted && !w->handed && (!w->started || verbs[w->r->verb].read))
        return MISSING;
    if (verbs[w->r->verb].read && !w->handed && (s->head->cancelled || reads_are_over(s->e)))
        return OVER;
    if (w->repeat)
        return w->r->async || s->durable >= w->version || s->rows == 0 ? REPEAT : REST;
    if (w->learns && !w->handed)
        return turn_unhanded(s, w);
    if (w->handed && !w->started && !w->r->async && !w->row->written)
        return REST;
    return needs_state(w) && !s->block ? LOAD : STEP;
}

/* (locked) */
static enum turn turn_of(struct session *s)
{
    if (s->writes > 0 || s->room_wait)
        return REST;
    if (s->want_evict && session_boundary(s))
        return EVICT;
    if (s->head)
        return turn_head(s);
    return s->passing || (s->deleter && s->rows == 0) ? END : REST;
}

bool session_steps(struct session *s)
{
    return turn_of(s) == STEP;
}

/* (locked) */
static void submit(struct session *s)
{
    line_join(s);
    fw_pool_submit(s->e->c.pool, &s->task);
}

void session_kick(struct session *s)
{
    hand_over(s);
    if (s->scheduled || turn_of(s) == REST)
        return;
    s->scheduled = true;
    s->e->tasks++;
    submit(s);
}

void session_enqueue(struct session *s, struct fw_request *r)
{
    struct fw_engine *e = s->e;

    r->next = NULL;
    if (s->head)
        s->tail->next = r;
    else
        s->head = r;
    s->tail = r;
    if (!s->unhanded)
        s->unhanded = r;
    s->queued++;
    e->stats.queued++;
    e->active++;
    session_kick(s);
}

void fw_engine_cancel(struct fw_engine *e, struct fw_request *r)
{
    pthread_mutex_lock(&e->lock);
    r->cancelled = true;
    pthread_mutex_unlock(&e->lock);
}

void task_submit(struct fw_engine *e, struct fw_task *task)
{
    pthread_mutex_lock(&e->lock);
    e->tasks++;
    pthread_mutex_unlock(&e->lock);
    fw_pool_submit(e->c.pool, task);
}

void task_ended(struct fw_engine *e)
{
    e->tasks--;
    pthread_cond_broadcast(&e->quiet);
}

/* ---- one step */

static void start(struct fw_work *w)
{
    struct session *s = w->s;

    pthread_mutex_lock(&s->e->lock);
    w->started = true;
    resident_touch(s);
    pthread_mutex_unlock(&s->e->lock);
}

static int match(const struct fw_work *w, struct fw_err *err)
{
    const struct session *s = w->s;
    const struct fw_request *r = w->r;

    if (!r->has_match || (r->match_uid == s->uid && r->match_version == s->version))
        return 0;
    return fw_fail(err, FW_EVERSION, "version_mismatch", "the session is at \"%lld-%llu\"",
                   (long long)s->uid, (unsigned long long)s->version);
}

static void step_verb(struct fw_work *w, uint64_t deadline)
{
    struct fw_err err;

    if (!w->learns && !w->started) {
        if (match(w, &err) < 0) {
            work_fail(w, &err);
            return;
        }
        start(w);
    }
    verbs[w->r->verb].step(w, deadline);
}

static void step_over(struct fw_work *w)
{
    struct session *s = w->s;
    struct fw_err err;

    bool cancelled;

    if (s->checkpoint) /* a generate with learn wanted one to be handed over */
        checkpoint_end(s, NULL);
    pthread_mutex_lock(&s->e->lock);
    cancelled = w->r->cancelled;
    s->e->stats.cancelled += cancelled;
    pthread_mutex_unlock(&s->e->lock);
    if (cancelled)
        fw_fail(&err, FW_EAGAIN, "cancelled", "nobody waits for it any more");
    else
        fw_fail(&err, FW_EAGAIN, "draining", "the server is going down");
    work_fail(w, &err);
}

static void step_missing(struct fw_work *w)
{
    struct fw_err err;

    if (w->s->checkpoint) /* it wanted one to be handed over */
        checkpoint_end(w->s, NULL);
    session_missing(w->s->id, &err);
    work_fail(w, &err);
}

/* False: the session is gone. */
static bool step(struct session *s, enum turn turn, uint64_t deadline)
{
    /* Otherwise the head may just be coming in. */
    struct fw_work *w = turn == EVICT || turn == END ? NULL : s->head->work;

    switch (turn) {
    case REST:
        break;
    case EVICT:
        step_evict(s);
        break;
    case ANSWER:
        work_finish(w);
        break;
    case MISSING:
        step_missing(w);
        break;
    case OVER:
        step_over(w);
        break;
    case REPEAT:
        step_repeat(w, deadline);
        break;
    case LOAD:
        step_load(w, deadline);
        break;
    case PREPARE:
        learn_prepare(w);
        break;
    case STEP:
        step_verb(w, deadline);
        break;
    case END:
        if (!s->passing)
            return step_delete(s);
        session_forget(s);
        return false;
    }
    return true;
}

void session_run(struct fw_task *task)
{
    struct session *s = (struct session *)task;
    struct fw_engine *e = s->e;
    uint64_t deadline = fw_clock_mono_ns() + SLICE_NS;
    bool gone = false;
    enum turn turn;

    pthread_mutex_lock(&e->lock);
    if (!line_leave(s)) { /* who has it puts it back */
        s->came = true;
        pthread_mutex_unlock(&e->lock);
        return;
    }
    room_expire(e);
    hand_over(s);
    while (!gone && (turn = turn_of(s)) != REST) {
        if (fw_clock_mono_ns() >= deadline) {
            submit(s);
            pthread_mutex_unlock(&e->lock);
            return;
        }
        pthread_mutex_unlock(&e->lock);
        gone = !step(s, turn, deadline);
        pthread_mutex_lock(&e->lock);
        if (!gone)
            hand_over(s);
    }
    if (!gone)
        s->scheduled = false;
    task_ended(e);
    pthread_mutex_unlock(&e->lock);
}

/* ---- ends and writes */

/* (locked) Takes the head off its queue and fills in what every answer has. */
static void answer(struct session *s, struct fw_work *w)
{
    struct fw_engine *e = s->e;
    struct fw_request *r = w->r;

    s->head = r->next;
    if (s->unhanded == r)
        s->unhanded = r->next;
    s->queued--;
    e->stats.queued--;
    e->stats.requests[r->verb]++;
    if (w->handed)
        s->handed--;
    key_leave(w, w->err.code == FW_OK);
    row_release(w->row);
    w->row = NULL;
    r->failed = w->err.code != FW_OK;
    if (r->failed) {
        r->err = w->err;
        e->stats.failed[r->verb]++;
        return;
    }
    session_facts(w->child ? w->child : s, &r->facts);
    if (!w->repeat)
        r->version = r->facts.version;
}

void work_finish(struct fw_work *w)
{
    struct session *s = w->s;
    struct fw_engine *e = s->e;
    struct fw_request *r = w->r;

    pthread_mutex_lock(&e->lock);
    answer(s, w);
    pthread_mutex_unlock(&e->lock);
    work_free(e, w);
    r->done(r);
    pthread_mutex_lock(&e->lock);
    e->active--;
    pthread_cond_broadcast(&e->quiet);
    pthread_mutex_unlock(&e->lock);
}

int work_fail(struct fw_work *w, const struct fw_err *err)
{
    w->err = *err;
    work_finish(w);
    return -1;
}

static void written(struct fw_store_op *op)
{
    struct fw_work *w = (struct fw_work *)((char *)op - offsetof(struct fw_work, op));
    struct session *s = w->s;
    struct fw_engine *e = s->e;

    pthread_mutex_lock(&e->lock);
    disk_note(e, op);
    s->writes--;
    session_kick(s);
    pthread_mutex_unlock(&e->lock);
}

void work_write(struct fw_work *w)
{
    struct session *s = w->s;

    w->op.done = written;
    pthread_mutex_lock(&s->e->lock);
    s->writes++;
    pthread_mutex_unlock(&s->e->lock);
    fw_store_submit(s->e->store, &w->op);
}
