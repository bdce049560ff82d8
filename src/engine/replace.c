/* replace.c - restore and import: another block takes the place of a session's state.
 *
 * The block is read and checked whole in a second one from the arena first, so whatever is
 * wrong with it leaves the session as it was. Then one checkpoint transaction writes it with
 * the next version and cuts the journal; only when that is on disk are the blocks swapped. As
 * barriers they hold back the hand-over of learns behind them. The old state is not needed, so
 * a damaged session is healed by them. */
#include "config.h"

#include "steps.h"

#include <stdlib.h>

enum { READ, WRITTEN };

/* (locked) The block of w becomes the session's; gives the old one back to the caller. */
static void *swap(struct fw_work *w)
{
    struct session *s = w->s;
    void *old = resident_remove(s);

    resident_add(s, w->copy);
    w->copy = NULL;
    s->version++;
    s->assigned = s->version;
    s->tokens_seen = w->tokens_seen;
    free(s->corrupt);
    s->corrupt = NULL;
    return old;
}

static void finish(struct fw_work *w)
{
    struct session *s = w->s;
    struct fw_err err;
    void *old;

    if (checkpoint_end(s, &err) < 0) {
        work_fail(w, &err);
        return;
    }
    load_free(s);
    pthread_mutex_lock(&s->e->lock);
    old = swap(w);
    pthread_mutex_unlock(&s->e->lock);
    room_give(s->e, old, block_bytes(s));
    w->r->facts.hash = w->hash;
    w->r->facts.has_hash = true;
    work_finish(w);
}

/* rc: of the reading. */
static void write(struct fw_work *w, int rc, struct fw_err *err)
{
    struct session *s = w->s;

    if (rc == 0)
        rc = checkpoint_begin(s, w->copy, s->version + 1, w->tokens_seen, &w->hash, err);
    if (rc == 0)
        w->phase = WRITTEN;
    else if (rc < 0)
        work_fail(w, err);
}

void step_restore(struct fw_work *w, uint64_t deadline)
{
    struct fw_store_snapshot snap;
    struct fw_err err;

    (void)deadline;
    if (w->phase == WRITTEN)
        finish(w);
    else
        write(w, snapshot_read(w, w->r->name, &snap, &err), &err);
}

void step_import(struct fw_work *w, uint64_t deadline)
{
    struct fw_err err;
    int rc;

    (void)deadline;
    if (w->phase == WRITTEN) {
        finish(w);
        return;
    }
    rc = w->copy ? 0 : room_take(w->s, &w->copy, &err);
    if (rc == 0)
        rc = import_read(w->s->recipe, w->r, w->copy, &w->hash, &w->tokens_seen, &err);
    write(w, rc, &err);
}
