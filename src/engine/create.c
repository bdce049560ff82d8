/* create.c - sessions begin and end.
 *
 * A create reserves its id, opens the recipe on a worker (that may take a while) and is durable
 * before its reply. A fresh session is stored without its block: the learner can make it again,
 * and its hash is recorded. A delete hides the session at once; what was handed to the journal
 * is finished first, the rest of the queue gets 404; the id is free when the store has
 * forgotten it. If the store cannot, the session is back. */
#include "config.h"

#include "parts.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "fastweight/clock.h"

int session_fill(struct session *s, const char *labels, struct fw_err *err)
{
    size_t limit = s->e->c.max_resident_bytes;
    bool copied = s->recipe->learner->kind->all_registers; /* by what reads on: read.c */

    if (fw_arena_room(s->e->arena, block_bytes(s)) > limit / (copied ? 2 : 1))
        return fw_fail_param(err, FW_EINVAL, "state_too_large", "config",
                             "a state of %zu bytes%s exceeds max_resident_bytes %zu",
                             block_bytes(s),
                             copied ? ", with the copy that it generates on," : "", limit);
    s->created_ms = fw_clock_wall_ms();
    s->labels = strdup(labels ? labels : "{}");
    return s->labels ? 0 : out_of_memory(err);
}

void session_row(const struct session *s, struct fw_store_session *ret)
{
    memset(ret, 0, sizeof *ret);
    ret->uid = s->uid;
    ret->owner = FW_OWNER;
    ret->id = s->id;
    ret->model = s->recipe->model;
    ret->config = s->recipe->text;
    ret->labels = s->labels;
    ret->version = s->version;
    ret->tokens_seen = s->tokens_seen;
    ret->block_bytes = block_bytes(s);
    ret->created_ms = s->created_ms;
    ret->parent_id = s->parent_id ? s->parent_id : "";
    ret->parent_version = s->parent_version;
    ret->parent_hash = s->parent_hash;
}

/* Ends a create beside the queues; the session goes again when it failed. */
static void created(struct fw_work *w)
{
    struct session *s = w->s;
    struct fw_engine *e = s->e;
    struct fw_request *r = w->r;

    r->failed = w->err.code != FW_OK;
    r->err = w->err;
    pthread_mutex_lock(&e->lock);
    e->stats.requests[r->verb]++;
    e->stats.failed[r->verb] += r->failed;
    if (!r->failed) {
        dir_show(e, s);
        session_facts(s, &r->facts);
    }
    pthread_mutex_unlock(&e->lock);
    if (r->failed)
        dir_drop(s);
    work_free(e, w);
    r->done(r);
    pthread_mutex_lock(&e->lock);
    e->active--;
    pthread_cond_broadcast(&e->quiet);
    pthread_mutex_unlock(&e->lock);
}

static void stored(struct fw_store_op *op)
{
    struct fw_work *w = (struct fw_work *)((char *)op - offsetof(struct fw_work, op));
    struct fw_engine *e = w->s->e;

    pthread_mutex_lock(&e->lock);
    disk_note(e, op);
    pthread_mutex_unlock(&e->lock);
    if (op->failed)
        w->err = op->err;
    created(w);
}

static int open_recipe(struct session *s, const struct fw_request *r, struct fw_err *err)
{
    if (recipe_open(s->e, r->model, &r->config, &s->recipe, err) < 0 ||
        session_fill(s, r->labels, err) < 0)
        return -1; /* dir_drop lets go of the recipe */
    return recipe_init_hash(s->e, s->recipe, err);
}

static void create(struct fw_task *task)
{
    struct fw_work *w = (struct fw_work *)task;
    struct session *s = w->s;
    struct fw_engine *e = s->e;

    if (open_recipe(s, w->r, &w->err) < 0) {
        created(w);
    } else {
        session_row(s, &w->op_session);
        w->op_session.hash = s->recipe->init_hash;
        w->op.verb = FW_STORE_CREATE;
        w->op.uid = s->uid;
        w->op.session = &w->op_session;
        w->op.done = stored;
        fw_store_submit(e->store, &w->op);
    }
    pthread_mutex_lock(&e->lock);
    task_ended(e);
    pthread_mutex_unlock(&e->lock);
}

void create_submit(struct fw_engine *e, struct fw_request *r)
{
    struct fw_err err;
    struct fw_work *w = work_new(r, &err);

    if (!w || dir_reserve(e, r->id, &w->s, &err) < 0) {
        work_free(e, w);
        request_refuse(e, r, &err);
        return;
    }
    w->task.run = create;
    pthread_mutex_lock(&e->lock);
    e->active++;
    pthread_mutex_unlock(&e->lock);
    task_submit(e, &w->task);
}

/* ---- delete */

static int delete_begin(struct fw_engine *e, struct fw_request *r, struct fw_work *w,
                        struct fw_err *err)
{
    struct session *s = dir_find(e, r->id);

    if (!s)
        return session_missing(r->id, err);
    if (r->has_match && (r->match_uid != s->uid || r->match_version != s->version))
        return fw_fail(err, FW_EVERSION, "version_mismatch", "the session is at \"%lld-%llu\"",
                       (long long)s->uid, (unsigned long long)s->version);
    w->s = s;
    s->deleted = true;
    s->deleter = r;
    e->active++;
    room_leave(s, false);
    session_kick(s);
    return 0;
}

void delete_submit(struct fw_engine *e, struct fw_request *r)
{
    struct fw_err err;
    struct fw_work *w = work_new(r, &err);
    int rc = -1;

    if (w) {
        pthread_mutex_lock(&e->lock);
        rc = delete_begin(e, r, w, &err);
        pthread_mutex_unlock(&e->lock);
    }
    if (rc < 0) {
        work_free(e, w);
        request_refuse(e, r, &err);
    }
}

static void ask(struct fw_work *w)
{
    struct session *s = w->s;
    void *block;

    load_free(s);
    pthread_mutex_lock(&s->e->lock);
    block = session_dirty(s) ? NULL : resident_remove(s); /* if it fails, nothing is lost */
    pthread_mutex_unlock(&s->e->lock);
    room_give(s->e, block, block_bytes(s));
    w->phase = 1;
    w->op.verb = FW_STORE_DELETE;
    w->op.uid = s->uid;
    work_write(w);
}

void session_forget(struct session *s)
{
    struct fw_engine *e = s->e;
    size_t bytes = block_bytes(s);
    void *block;

    pthread_mutex_lock(&e->lock);
    block = resident_remove(s);
    async_leave(s);
    pthread_mutex_unlock(&e->lock);
    room_give(e, block, bytes);
    dir_drop(s);
}

bool step_delete(struct session *s)
{
    struct fw_request *r = s->deleter;
    struct fw_work *w = r->work;
    struct fw_engine *e = s->e;
    bool gone;

    if (w->phase == 0) {
        ask(w);
        return true;
    }
    gone = !w->op.failed;
    r->failed = !gone;
    r->err = w->op.err;
    pthread_mutex_lock(&e->lock);
    s->deleter = NULL;
    if (!gone)
        s->deleted = false;
    e->stats.requests[r->verb]++;
    e->stats.failed[r->verb] += r->failed;
    pthread_mutex_unlock(&e->lock);
    if (gone)
        session_forget(s);
    work_free(e, w);
    r->done(r);
    pthread_mutex_lock(&e->lock);
    e->active--;
    pthread_cond_broadcast(&e->quiet);
    pthread_mutex_unlock(&e->lock);
    return !gone;
}
