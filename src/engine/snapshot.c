/* snapshot.c - named copies in the store, and the small writes: labels, checkpoints.
 *
 * Each takes its place in the session's queue. A snapshot is written from the pinned block: the
 * session is parked until the writer is done with it. */
#include "config.h"

#include "steps.h"

#include <stdlib.h>
#include <string.h>

#include "fastweight/clock.h"

enum { ASK, ANSWER };

enum { LIST_MAX = 100000 }; /* snapshots one reply lists */

/* True when the op came back well; else the request was answered. */
static bool came_back(struct fw_work *w)
{
    if (!w->op.failed)
        return true;
    work_fail(w, &w->op.err);
    return false;
}

static int answer_snapshots(struct fw_request *r, const struct fw_store_snapshot *list,
                            size_t n, struct fw_err *err)
{
    r->snapshot = calloc(n ? n : 1, sizeof *r->snapshot);
    if (!r->snapshot)
        return out_of_memory(err);
    if (n)
        memcpy(r->snapshot, list, n * sizeof *list);
    r->count = n;
    return 0;
}

static void ask_snapshot(struct fw_work *w)
{
    struct session *s = w->s;

    w->phase = ANSWER;
    w->op.verb = FW_STORE_SNAPSHOT;
    w->op.uid = s->uid;
    w->op.name = w->r->name;
    w->op.version = s->version;
    w->op.tokens = s->tokens_seen;
    w->op.block = s->block;
    w->op.block_bytes = block_bytes(s);
    w->op.hash = fw_hash128(s->block, block_bytes(s));
    work_write(w);
}

void step_snapshot(struct fw_work *w, uint64_t deadline)
{
    struct fw_store_snapshot snap;
    struct fw_err err;

    (void)deadline;
    if (w->phase == ASK) {
        ask_snapshot(w);
        return;
    }
    if (!came_back(w))
        return;
    if (fw_store_snapshot_load(w->s->e->store, w->s->uid, w->r->name, NULL, 0, &snap, &err) <
            0 ||
        answer_snapshots(w->r, &snap, 1, &err) < 0)
        work_fail(w, &err);
    else
        work_finish(w);
}

void step_snapshot_list(struct fw_work *w, uint64_t deadline)
{
    struct fw_request *r = w->r;
    size_t max = r->top && r->top < LIST_MAX ? r->top : LIST_MAX, n = 64, count;
    struct fw_store_snapshot *list = NULL, *more;
    struct fw_err err;

    (void)deadline;
    for (;; n *= 4) { /* until they all fit, or max */
        n = n < max ? n : max;
        more = realloc(list, n * sizeof *list);
        if (!more) {
            out_of_memory(&err);
            break;
        }
        list = more;
        if (fw_store_snapshots(w->s->e->store, w->s->uid, r->name, n, list, &count, &err) < 0)
            break;
        if (count < n || n == max) {
            r->snapshot = list;
            r->count = count;
            work_finish(w);
            return;
        }
    }
    free(list);
    work_fail(w, &err);
}

void step_snapshot_drop(struct fw_work *w, uint64_t deadline)
{
    (void)deadline;
    if (w->phase == ASK) {
        w->phase = ANSWER;
        w->op.verb = FW_STORE_SNAPSHOT_DELETE;
        w->op.uid = w->s->uid;
        w->op.name = w->r->name;
        work_write(w);
    } else if (came_back(w)) {
        work_finish(w);
    }
}

int snapshot_read(struct fw_work *w, const char *name, struct fw_store_snapshot *ret,
                  struct fw_err *err)
{
    struct session *s = w->s;
    int rc;

    if (fw_store_snapshot_load(s->e->store, s->uid, name, NULL, 0, ret, err) < 0)
        return -1; /* before memory is asked for */
    rc = w->copy ? 0 : room_take(s, &w->copy, err);
    if (rc != 0)
        return rc;
    if (fw_store_snapshot_load(s->e->store, s->uid, name, w->copy, block_bytes(s), ret, err) <
        0)
        return -1;
    if (!fw_hash_equal(fw_hash128(w->copy, block_bytes(s)), ret->hash))
        return fw_fail(err, FW_ECORRUPT, "state_corrupt", "snapshot '%s' fails its hash", name);
    w->hash = ret->hash;
    w->tokens_seen = ret->tokens_seen;
    return 0;
}

/* The patch from snapshot `from` to `name`: both at once in memory, for this step alone. */
static int write_patch(struct fw_work *w, struct fw_err *err)
{
    const struct fw_learner *l = w->s->recipe->learner;
    size_t bytes = block_bytes(w->s);
    struct fw_store_snapshot snap;
    void *base = NULL;
    int rc;

    if (!l->kind->patch)
        return fw_fail_param(err, FW_EINVAL, "not_associative", "model",
                             "patches are of associative models");
    rc = snapshot_read(w, w->r->from, &snap, err);
    if (rc != 0)
        return rc;
    base = aligned_alloc(64, bytes);
    if (!base)
        return out_of_memory(err);
    memcpy(base, w->copy, bytes);
    rc = snapshot_read(w, w->r->name, &snap, err);
    if (rc == 0)
        rc = l->kind->patch(l, base, w->copy, &w->r->bytes, err);
    free(base);
    return rc;
}

static int write_snapshot(struct fw_work *w, struct fw_err *err)
{
    struct fw_store_snapshot snap;
    int rc = snapshot_read(w, w->r->name, &snap, err);

    if (rc != 0)
        return rc;
    return export_write(w->s->recipe, w->copy, &snap.hash, snap.tokens_seen, snap.created_ms,
                        &w->r->bytes, err);
}

void step_snapshot_get(struct fw_work *w, uint64_t deadline)
{
    struct fw_err err;
    int rc = w->r->from[0] ? write_patch(w, &err) : write_snapshot(w, &err);

    (void)deadline;
    if (rc == 0)
        work_finish(w);
    else if (rc < 0)
        work_fail(w, &err);
}

void step_export(struct fw_work *w, uint64_t deadline)
{
    struct session *s = w->s;
    struct fw_hash hash = fw_hash128(s->block, block_bytes(s));
    struct fw_err err;

    (void)deadline;
    if (export_write(s->recipe, s->block, &hash, s->tokens_seen, fw_clock_wall_ms(),
                     &w->r->bytes, &err) < 0) {
        work_fail(w, &err);
        return;
    }
    w->r->facts.hash = hash;
    w->r->facts.has_hash = true;
    work_finish(w);
}

/* ---- labels, checkpoint */

static void set_labels(struct fw_work *w)
{
    struct session *s = w->s;
    char *labels = strdup(w->r->labels);
    struct fw_err err;

    if (!labels) { /* on disk they are: the next start shows them */
        out_of_memory(&err);
        work_fail(w, &err);
        return;
    }
    pthread_mutex_lock(&s->e->lock);
    free(s->labels);
    s->labels = labels;
    pthread_mutex_unlock(&s->e->lock);
    work_finish(w);
}

void step_label(struct fw_work *w, uint64_t deadline)
{
    (void)deadline;
    if (w->phase == ASK) {
        w->phase = ANSWER;
        w->op.verb = FW_STORE_LABELS;
        w->op.uid = w->s->uid;
        w->op.labels = w->r->labels;
        work_write(w);
    } else if (came_back(w)) {
        set_labels(w);
    }
}

void step_checkpoint(struct fw_work *w, uint64_t deadline)
{
    struct session *s = w->s;
    struct fw_err err;
    bool dirty;
    int rc = 0;

    (void)deadline;
    pthread_mutex_lock(&s->e->lock);
    dirty = session_dirty(s);
    pthread_mutex_unlock(&s->e->lock);
    if (w->phase == ANSWER)
        rc = checkpoint_end(s, &err);
    else if (dirty)
        rc = checkpoint_of(s, &err);
    if (rc < 0)
        work_fail(w, &err);
    else if (w->phase == ANSWER || !dirty)
        work_finish(w);
    else
        w->phase = ANSWER;
}
