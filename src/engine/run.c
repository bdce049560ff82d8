/* run.c - whose turn it is: sessions as tasks on the worker pool.
 *
 * A session that can do something is one task (s->scheduled), and what it does is decided anew
 * before every step: leave memory, its head's verb, or its own end. A slice lasts SLICE_NS,
 * then the task goes to the pool's tail. A session that waits (for a store op, memory, a key
 * look-up) is simply not scheduled; whatever ends the wait calls session_kick. The invariant:
 * whenever the lock is free, runnable(s) implies s->scheduled. */
#include "config.h"

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

/* (locked) Can the head, a learn that hand-over has not passed, do anything? */
static bool unhanded_ready(struct session *s, struct fw_work *w)
{
    switch (hand_over_stop(s, w)) {
    case HAND_STATE:
    case HAND_CHECKPOINT:
        return true;
    default:
        return false;
    }
}

static bool head_ready(struct session *s)
{
    struct fw_work *w = s->head->work;

    if (w->key_pending)
        return false;
    if (w->err.code != FW_OK || (s->deleted && !w->handed && !w->started))
        return true;
    if (w->repeat)
        return w->r->async || s->durable >= w->version || s->rows == 0;
    if (w->learns && s->unhanded == s->head)
        return unhanded_ready(s, w);
    if (w->handed && !w->started)
        return w->r->async || w->row->written || w->row->err.code != FW_OK;
    return true;
}

static bool runnable(struct session *s)
{
    if (s->writes > 0 || s->room_wait)
        return false;
    if (s->want_evict && session_boundary(s))
        return true;
    if (s->head)
        return head_ready(s);
    return s->deleter && s->rows == 0;
}

void session_kick(struct session *s)
{
    hand_over(s);
    if (s->scheduled || !runnable(s))
        return;
    s->scheduled = true;
    s->e->tasks++;
    fw_pool_submit(s->e->c.pool, &s->task);
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

static void step_head(struct session *s, uint64_t deadline)
{
    struct fw_work *w = s->head->work;
    struct fw_err err;

    if (w->err.code != FW_OK) {
        work_finish(w);
    } else if (s->deleted && !w->handed && (!w->started || verbs[w->r->verb].read)) {
        session_missing(s->id, &err);
        work_fail(w, &err);
    } else if (w->repeat) {
        step_repeat(w, deadline);
    } else if (!w->started && !w->learns && match(w, &err) < 0) {
        work_fail(w, &err);
    } else if (needs_state(w) && !s->block) {
        step_load(w, deadline);
    } else {
        if (!w->started && !w->learns)
            start(w);
        verbs[w->r->verb].step(w, deadline);
    }
}

/* False: the session is gone. */
static bool step(struct session *s, uint64_t deadline)
{
    if (s->checkpoint && s->deleted && session_boundary(s) && !s->want_evict)
        checkpoint_end(s, NULL);
    if (s->want_evict && session_boundary(s))
        step_evict(s);
    else if (s->head)
        step_head(s, deadline);
    else
        return step_delete(s);
    return true;
}

void session_run(struct fw_task *task)
{
    struct session *s = (struct session *)task;
    struct fw_engine *e = s->e;
    uint64_t deadline = fw_clock_mono_ns() + SLICE_NS;
    bool gone = false;

    pthread_mutex_lock(&e->lock);
    room_expire(e);
    hand_over(s);
    while (!gone && runnable(s)) {
        pthread_mutex_unlock(&e->lock);
        if (fw_clock_mono_ns() >= deadline) {
            fw_pool_submit(e->c.pool, &s->task);
            return;
        }
        gone = !step(s, deadline);
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
