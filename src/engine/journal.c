/* journal.c - learns on their way to the disk: numbers, order, failures, bounds.
 *
 * Hand-over walks the queue from its front: a learn gets the next version and its row goes to
 * the store, all under the engine lock, so journal order = queue order = version order, and
 * several learns of a session can share one group commit. It stops at a barrier (what changes
 * the version at its own place), and while the session is not in memory, must write a
 * checkpoint first, or has failed rows in flight. A learn that was handed over is always
 * learned if its row is written: its session stays in memory from then on.
 *
 * When a row fails, so do all later ones in flight (the store sees the gap). Nothing new is
 * handed over until the last has come back; then numbers go on after the last good row. If a
 * failed row was learned already (async), the journal lacks what the state has: async_failed,
 * and only a checkpoint mends that. */
#include "config.h"

#include "parts.h"

#include <stdlib.h>
#include <string.h>

int row_new(struct fw_work *w, struct fw_err *err)
{
    size_t key_size = strlen(w->r->key) + 1;
    struct row *row = calloc(1, sizeof *row + key_size);
    void *body;

    if (!row)
        return out_of_memory(err);
    memcpy(row->key, w->r->key, key_size);
    if (body_encode(w->in, &body, &row->op.body_len, err) < 0) {
        free(row);
        return -1;
    }
    row->op.verb = FW_STORE_APPEND;
    row->op.body = body;
    row->op.tokens = w->tokens;
    row->op.digest = fw_hash128(body, row->op.body_len);
    row->cost = ROW_COST + row->op.body_len;
    row->async = w->r->async;
    row->written = true; /* nothing is in flight yet */
    w->row = row;
    return 0;
}

static void row_free(struct row *row)
{
    union {
        const void *lent;
        void *own;
    } body = { .lent = row->op.body };

    free(body.own);
    free(row);
}

void row_release(struct row *row)
{
    if (!row)
        return;
    row->released = true;
    if (row->written)
        row_free(row);
}

void disk_note(struct fw_engine *e, const struct fw_store_op *op)
{
    if (!op->failed) {
        e->disk_failed = false;
    } else if ((op->err.code == FW_ENOSPC || op->err.code == FW_EIO) &&
               strcmp(op->err.reason, "journal_gap") != 0) {
        e->disk_failed = true;
        e->disk_err = op->err;
    }
}

/* (locked) Rows were written, so those who wait for room among the unwritten may go on. */
static void wake_async(struct fw_engine *e)
{
    struct session *s = e->async.first, *next;

    e->async.first = e->async.last = NULL;
    for (; s; s = next) {
        next = s->async_next;
        s->async_next = NULL;
        s->async_wait = false;
        session_kick(s);
    }
}

static void row_failed(struct session *s, struct row *row)
{
    row->err = row->op.err;
    if (!s->failing) {
        s->failing = true;
        s->good = row->op.version - 1;
    }
    s->journal_bytes -= row->cost;
    if (row->taken)
        s->async_failed = true;
    else
        s->unlearned_bytes -= row->cost;
}

static void row_done(struct fw_store_op *op)
{
    struct row *row = (struct row *)op;
    struct session *s = row->s;
    struct fw_engine *e = s->e;

    pthread_mutex_lock(&e->lock);
    disk_note(e, op);
    row->written = true;
    s->rows--;
    if (op->failed)
        row_failed(s, row);
    else if (op->version > s->durable)
        s->durable = op->version;
    if (s->rows == 0 && s->failing) {
        s->failing = false;
        s->assigned = s->good;
    }
    if (row->async) {
        e->async_bytes -= row->cost;
        wake_async(e);
    }
    if (row->released)
        row_free(row);
    session_kick(s);
    pthread_mutex_unlock(&e->lock);
}

enum hand hand_over_stop(struct session *s, struct fw_work *w)
{
    struct fw_engine *e = s->e;

    if (w->key_pending)
        return HAND_KEY;
    if (s->failing)
        return HAND_FAILING;
    if (!s->block)
        return HAND_STATE;
    if (s->want_evict)
        return HAND_EVICT;
    if (s->preparing || s->async_failed || s->journal_bytes >= e->c.journal_bytes)
        return HAND_CHECKPOINT;
    if (w->row->async && e->async_bytes > 0 &&
        e->async_bytes + w->row->cost > e->c.max_async_bytes)
        return HAND_ASYNC;
    return HAND_OK;
}

static void wait_async(struct session *s)
{
    struct fw_engine *e = s->e;

    if (s->async_wait)
        return;
    s->async_wait = true;
    if (e->async.first)
        e->async.last->async_next = s;
    else
        e->async.first = s;
    e->async.last = s;
}

void async_leave(struct session *s)
{
    struct fw_engine *e = s->e;
    struct session **at, *last = NULL;

    if (!s->async_wait)
        return;
    for (at = &e->async.first; *at != s; at = &(*at)->async_next)
        last = *at;
    *at = s->async_next;
    if (e->async.last == s)
        e->async.last = last;
    s->async_wait = false;
}

static void append(struct session *s, struct fw_work *w)
{
    struct row *row = w->row;

    w->version = ++s->assigned;
    w->handed = true;
    row->s = s;
    row->written = false;
    row->op.uid = s->uid;
    row->op.version = w->version;
    row->op.key = w->key ? row->key : NULL;
    row->op.done = row_done;
    s->handed++;
    s->rows++;
    s->journal_bytes += row->cost;
    s->unlearned_bytes += row->cost;
    if (row->async)
        s->e->async_bytes += row->cost;
    fw_store_submit(s->e->store, &row->op);
}

/* Is the learn's answer known without the journal? If-Match compares where numbers are given.
 */
static bool settled(struct session *s, struct fw_work *w)
{
    if (w->repeat || w->err.code != FW_OK || s->deleted)
        return true;
    if (w->r->has_match && (w->r->match_uid != s->uid || w->r->match_version != s->assigned)) {
        fw_fail(&w->err, FW_EVERSION, "version_mismatch", "the session is at \"%lld-%llu\"",
                (long long)s->uid, (unsigned long long)s->assigned);
        return true;
    }
    return false;
}

void hand_over(struct session *s)
{
    struct fw_work *w;
    enum hand stop;

    for (; s->unhanded; s->unhanded = s->unhanded->next) {
        w = s->unhanded->work;
        if (w->barrier)
            return;
        if (!w->learns)
            continue;
        if (w->key_pending)
            return;
        stop = w->repeat || w->err.code != FW_OK || s->deleted ? HAND_OK : hand_over_stop(s, w);
        if (stop == HAND_ASYNC)
            wait_async(s);
        if (stop != HAND_OK)
            return;
        if (!settled(s, w))
            append(s, w);
    }
}

bool row_take(struct fw_work *w)
{
    struct session *s = w->s;

    if (w->row->err.code != FW_OK) {
        w->err = w->row->err;
        return false;
    }
    if (s->failing && w->version > s->good) {
        fw_fail(&w->err, FW_ENOSPC, "journal_gap", "an earlier learn was not written");
        return false;
    }
    w->row->taken = true;
    return true;
}
