/* fork.c - a copy of a session under a new id: FORK, and CREATE from a session or its snapshot.
 *
 * Runs at its place in the parent's queue. The new id is reserved, the block goes to the store
 * from where it lies (the parent's, pinned, or the snapshot's in a second block), and the new
 * session is seen when that is durable; it comes into memory when it is first used. It starts
 * at version 1 with the parent's tokens_seen; keys stay with the parent. */
#include "config.h"

#include "steps.h"

#include <stdlib.h>
#include <string.h>

enum { ASK, ANSWER };

struct source { /* what is copied */
    const void *block;
    struct fw_hash hash;
    uint64_t version, tokens_seen;
};

/* 0, -1, or 1: come again. */
static int find_source(struct fw_work *w, struct source *ret, struct fw_err *err)
{
    struct session *s = w->s;
    struct fw_store_snapshot snap;
    int rc;

    if (w->r->verb == FW_FORK || !w->r->name[0]) {
        ret->block = s->block;
        ret->hash = fw_hash128(s->block, block_bytes(s));
        ret->version = s->version;
        ret->tokens_seen = s->tokens_seen;
        return 0;
    }
    rc = snapshot_read(w, w->r->name, &snap, err);
    ret->block = w->copy;
    ret->hash = snap.hash;
    ret->version = snap.version;
    ret->tokens_seen = snap.tokens_seen;
    return rc;
}

static int fill_child(struct session *child, struct fw_work *w, const struct source *from,
                      struct fw_err *err)
{
    struct session *s = w->s;

    pthread_mutex_lock(&s->e->lock);
    child->recipe = recipe_ref(s->recipe);
    pthread_mutex_unlock(&s->e->lock);
    if (session_fill(child, w->r->labels ? w->r->labels : s->labels, err) < 0)
        return -1;
    child->parent_id = strdup(s->id);
    if (!child->parent_id)
        return out_of_memory(err);
    child->parent_version = from->version;
    child->parent_hash = from->hash;
    child->tokens_seen = from->tokens_seen;
    child->version = child->assigned = child->durable = child->stored = 1;
    return 0;
}

static int check_create(const struct fw_work *w, struct fw_err *err)
{
    const struct fw_request *r = w->r;

    if (r->verb == FW_FORK)
        return 0;
    if (r->config.count > 0)
        return fw_fail_param(err, FW_EINVAL, "config_with_from", "config",
                             "a copy has its source's configuration");
    if (r->model[0] && strcmp(r->model, w->s->recipe->model) != 0)
        return fw_fail_param(err, FW_EINVAL, "model_mismatch", "model",
                             "the source's model is %s", w->s->recipe->model);
    return 0;
}

/* 0, -1, or 1: come again. */
static int ask(struct fw_work *w, struct fw_err *err)
{
    const struct fw_request *r = w->r;
    struct source from;
    struct session *child;
    int rc = check_create(w, err);

    if (rc == 0)
        rc = find_source(w, &from, err);
    if (rc != 0)
        return rc;
    if (dir_reserve(w->s->e, r->verb == FW_FORK ? r->new_id : r->id, &child, err) < 0)
        return -1;
    if (fill_child(child, w, &from, err) < 0) {
        dir_drop(child);
        return -1;
    }
    w->child = child;
    w->phase = ANSWER;
    session_row(child, &w->op_session);
    w->op_session.hash = from.hash;
    w->op_session.has_block = 1;
    w->op.verb = FW_STORE_CREATE;
    w->op.uid = child->uid;
    w->op.session = &w->op_session;
    w->op.block = from.block;
    w->op.block_bytes = block_bytes(child);
    w->op.hash = from.hash;
    work_write(w);
    return 0;
}

void step_fork(struct fw_work *w, uint64_t deadline)
{
    struct fw_engine *e = w->s->e;
    struct fw_err err;

    (void)deadline;
    if (w->phase == ASK) {
        if (ask(w, &err) < 0)
            work_fail(w, &err);
        return;
    }
    if (w->op.failed) {
        dir_drop(w->child);
        w->child = NULL;
        work_fail(w, &w->op.err);
        return;
    }
    pthread_mutex_lock(&e->lock);
    dir_show(e, w->child);
    pthread_mutex_unlock(&e->lock);
    work_finish(w);
}
