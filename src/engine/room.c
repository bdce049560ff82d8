/* room.c - memory for blocks: who is resident, who must leave, who waits.
 *
 * Resident sessions form a list by last use. A request that needs a block and finds the arena
 * full makes room: a clean idle session's block is given back at once; others are marked
 * (want_evict), and leave at their next boundary between two requests, after a checkpoint when
 * dirty; the request is parked until a block came back. One whose session holds no block may
 * wait for busy sessions too, at most ROOM_WAIT_NS; one that holds a block and needs a second
 * waits only for idle ones, which need nothing but the disk, so no two can wait for each other.
 * When nothing can leave: FW_EAGAIN "memory_full". */
#include "config.h"

#include "parts.h"

#include <stdlib.h>

#include "fastweight/clock.h"

size_t block_bytes(const struct session *s)
{
    return s->recipe->learner ? s->recipe->learner->layout->block_bytes : 0;
}

/* ---- the list of resident sessions */

static void lru_unlink(struct session *s)
{
    struct fw_engine *e = s->e;

    if (s->lru_prev)
        s->lru_prev->lru_next = s->lru_next;
    else
        e->lru_first = s->lru_next;
    if (s->lru_next)
        s->lru_next->lru_prev = s->lru_prev;
    else
        e->lru_last = s->lru_prev;
    s->lru_prev = s->lru_next = NULL;
}

static void lru_append(struct session *s)
{
    struct fw_engine *e = s->e;

    s->lru_prev = e->lru_last;
    if (e->lru_last)
        e->lru_last->lru_next = s;
    else
        e->lru_first = s;
    e->lru_last = s;
}

void resident_add(struct session *s, void *block)
{
    s->block = block;
    s->e->resident++;
    lru_append(s);
}

void *resident_remove(struct session *s)
{
    void *block = s->block;

    if (block) {
        s->block = NULL;
        s->e->resident--;
        lru_unlink(s);
    }
    return block;
}

void resident_touch(struct session *s)
{
    if (s->block && s->e->lru_last != s) {
        lru_unlink(s);
        lru_append(s);
    }
}

/* ---- who waits */

static void wait_for_room(struct session *s, size_t bytes)
{
    struct fw_engine *e = s->e;

    s->room_wait = true;
    s->room_bytes = bytes;
    s->room_next = NULL;
    if (!s->room_since_ns)
        s->room_since_ns = fw_clock_mono_ns();
    if (e->room.first)
        e->room.last->room_next = s;
    else
        e->room.first = s;
    e->room.last = s;
    e->room_bytes += bytes;
}

void room_leave(struct session *s, bool refused)
{
    struct fw_engine *e = s->e;
    struct session **at, *last = NULL;

    if (!s->room_wait)
        return;
    for (at = &e->room.first; *at != s; at = &(*at)->room_next)
        last = *at;
    *at = s->room_next;
    if (e->room.last == s)
        e->room.last = last;
    s->room_next = NULL;
    s->room_wait = false;
    s->room_refused = refused;
    e->room_bytes -= s->room_bytes;
    session_kick(s);
}

static void wake_all(struct fw_engine *e, bool refused)
{
    while (e->room.first)
        room_leave(e->room.first, refused);
}

void room_expire(struct fw_engine *e)
{
    uint64_t now;

    if (!e->room.first)
        return;
    now = fw_clock_mono_ns();
    while (e->room.first && now - e->room.first->room_since_ns > ROOM_WAIT_NS)
        room_leave(e->room.first, true);
}

void room_give(struct fw_engine *e, void *block, size_t bytes)
{
    if (!block)
        return;
    fw_arena_give(e->arena, block, bytes);
    pthread_mutex_lock(&e->lock);
    e->freed++;
    wake_all(e, false);
    pthread_mutex_unlock(&e->lock);
}

/* ---- who leaves */

/* (locked) It has nothing to do: nothing waits, nothing holds its block. A worker that has just
 * answered its last request may still be with it. */
static bool resting(const struct session *s)
{
    return !s->writes && !s->checkpoint && !s->room_wait && !s->head && !s->deleter;
}

/* (locked) At rest: and no worker is with it. */
static bool idle(const struct session *s)
{
    return !s->scheduled && resting(s);
}

/* (locked) The longest unused that may leave; `clean`: without a write. */
static struct session *victim(struct fw_engine *e, const struct session *self,
                              bool only_resting, bool clean)
{
    struct session *s;

    for (s = e->lru_first; s; s = s->lru_next) {
        if (s == self || s->want_evict || (only_resting && !resting(s)) ||
            (clean && session_dirty(s)))
            continue;
        return s;
    }
    return NULL;
}

void evict_mark(struct session *s)
{
    struct fw_engine *e = s->e;

    s->want_evict = true;
    s->evict_idle = resting(s);
    e->evicting++;
    e->evicting_bytes += block_bytes(s);
    if (s->evict_idle)
        e->evicting_idle_bytes += block_bytes(s);
    session_kick(s);
}

/* (locked) */
static void evict_unmark(struct session *s)
{
    struct fw_engine *e = s->e;

    s->want_evict = false;
    e->evicting--;
    e->evicting_bytes -= block_bytes(s);
    if (s->evict_idle)
        e->evicting_idle_bytes -= block_bytes(s);
    pthread_cond_broadcast(&e->quiet);
}

static void evict_now(struct session *s)
{
    struct fw_engine *e = s->e;
    void *block;

    pthread_mutex_lock(&e->lock);
    evict_unmark(s);
    block = resident_remove(s);
    if (block)
        e->stats.evictions++;
    pthread_mutex_unlock(&e->lock);
    room_give(e, block, block_bytes(s));
}

static void evict_failed(struct session *s, const struct fw_err *err)
{
    struct fw_engine *e = s->e;

    pthread_mutex_lock(&e->lock);
    evict_unmark(s);
    if (e->close_err.code == FW_OK)
        e->close_err = *err; /* looked at while closing only */
    wake_all(e, true);
    pthread_mutex_unlock(&e->lock);
}

void step_evict(struct session *s)
{
    struct fw_err err;
    bool dirty;

    if (s->checkpoint && checkpoint_end(s, &err) < 0) {
        evict_failed(s, &err);
        return;
    }
    pthread_mutex_lock(&s->e->lock);
    dirty = s->block && session_dirty(s);
    pthread_mutex_unlock(&s->e->lock);
    if (!dirty)
        evict_now(s);
    else if (checkpoint_of(s, &err) < 0)
        evict_failed(s, &err);
}

/* ---- taking */

static int memory_full(struct fw_engine *e, struct fw_err *err)
{
    if (e->disk_failed)
        return fw_fail(err, FW_EAGAIN, "memory_full",
                       "memory is full and the disk fails, so no session can leave it");
    return fw_fail(err, FW_EAGAIN, "memory_full", "all state memory is in use");
}

/* (locked) Marks sessions until what leaves covers everybody who waits. 0: none leaves. */
static size_t mark_victims(struct session *self, size_t bytes)
{
    struct fw_engine *e = self->e;
    bool only_idle = self->block != NULL;
    size_t *leaving = only_idle ? &e->evicting_idle_bytes : &e->evicting_bytes;
    struct session *v;

    while (*leaving < e->room_bytes + bytes) {
        v = victim(e, self, true, false);
        if (!v && !only_idle)
            v = victim(e, self, false, false);
        if (!v)
            break;
        evict_mark(v);
    }
    return *leaving;
}

/* After a take that failed: 0 try again, 1 parked, -1 no way. `seen`: e->freed before it. */
static int make_room(struct session *s, size_t bytes, uint64_t seen, struct fw_err *err)
{
    struct fw_engine *e = s->e;
    struct session *v;
    void *block = NULL;
    int rc = 0;

    pthread_mutex_lock(&e->lock);
    if (e->freed == seen) {
        v = victim(e, s, true, e->disk_failed);
        if (v && idle(v) && !session_dirty(v)) {
            block = resident_remove(v);
            e->stats.evictions++;
        } else if (mark_victims(s, bytes) > 0) {
            wait_for_room(s, bytes);
            rc = 1;
        } else {
            rc = memory_full(e, err);
        }
    }
    pthread_mutex_unlock(&e->lock);
    if (block)
        room_give(e, block, block_bytes(v));
    return rc;
}

/* (locked) What a waiter was told; ends its wait. */
static bool was_refused(struct session *s)
{
    bool refused = s->room_refused;

    s->room_refused = false;
    if (refused)
        s->room_since_ns = 0;
    return refused;
}

int room_take(struct session *s, void **ret, struct fw_err *err)
{
    struct fw_engine *e = s->e;
    size_t bytes = block_bytes(s);
    uint64_t seen;
    bool refused;
    int rc;

    for (;;) {
        pthread_mutex_lock(&e->lock);
        seen = e->freed;
        refused = was_refused(s);
        rc = refused ? memory_full(e, err) : 0;
        pthread_mutex_unlock(&e->lock);
        if (refused)
            return rc;
        rc = fw_arena_take(e->arena, bytes, ret, err);
        if (rc < 0 && err->code == FW_EAGAIN)
            rc = make_room(s, bytes, seen, err);
        else
            break;
        if (rc != 0)
            break;
    }
    if (rc != 1) {
        pthread_mutex_lock(&e->lock);
        s->room_since_ns = 0;
        pthread_mutex_unlock(&e->lock);
    }
    return rc;
}
