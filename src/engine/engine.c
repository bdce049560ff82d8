/* engine.c - the engine opens, answers for itself, and closes.
 *
 * Up: store, memory, models, every session's facts. Down: no new requests; those accepted end;
 * every resident session is evicted, which writes the dirty ones; then the store goes. */
#include "config.h"

#include "parts.h"

#include <stdlib.h>

#include "fastweight/clock.h"

static void init(struct fw_engine *e, const struct fw_engine_config *c)
{
    e->c = *c;
    e->c.data_dir = NULL; /* borrowed for the open only */
    if (!e->c.max_resident_bytes)
        e->c.max_resident_bytes = (size_t)1 << 30;
    if (!e->c.max_sessions)
        e->c.max_sessions = 100000;
    if (!e->c.max_queue)
        e->c.max_queue = 64;
    if (!e->c.max_async_bytes)
        e->c.max_async_bytes = (size_t)64 << 20;
    if (!e->c.journal_bytes)
        e->c.journal_bytes = (size_t)256 << 10;
    pthread_mutex_init(&e->lock, NULL);
    pthread_cond_init(&e->quiet, NULL);
}

static void engine_free(struct fw_engine *e)
{
    struct recipe *rc;
    size_t i;

    if (e->store)
        fw_store_close(e->store);
    for (i = 0; i < e->dir_count; i++) {
        rc = e->dir[i]->recipe;
        load_free(e->dir[i]);
        if (e->dir[i]->block)
            fw_arena_give(e->arena, e->dir[i]->block, block_bytes(e->dir[i]));
        session_free(e->dir[i]);
        recipe_unref(e, rc);
    }
    recipes_close(e);
    fw_arena_free(e->arena);
    pthread_cond_destroy(&e->quiet);
    pthread_mutex_destroy(&e->lock);
    free(e->dir);
    free(e);
}

int fw_engine_open(struct fw_engine **ret, const struct fw_engine_config *c, struct fw_err *err)
{
    struct fw_engine *e = calloc(1, sizeof *e);

    if (!e)
        return out_of_memory(err);
    init(e, c);
    if (fw_store_open(&e->store, c->data_dir, err) < 0 ||
        fw_arena_new(&e->arena, e->c.max_resident_bytes, err) < 0 || recipes_open(e, err) < 0 ||
        dir_load(e, err) < 0) {
        engine_free(e);
        return -1;
    }
    *ret = e;
    return 0;
}

void fw_engine_drain(struct fw_engine *e)
{
    pthread_mutex_lock(&e->lock);
    e->draining = true;
    pthread_mutex_unlock(&e->lock);
}

void fw_engine_end_reads(struct fw_engine *e, unsigned in_ms)
{
    pthread_mutex_lock(&e->lock);
    e->reads_end_ns = fw_clock_mono_ns() + (uint64_t)in_ms * 1000000;
    pthread_mutex_unlock(&e->lock);
}

int fw_engine_close(struct fw_engine *e, struct fw_err *err)
{
    struct fw_err why;
    struct session *s;

    pthread_mutex_lock(&e->lock);
    e->draining = true;
    while (e->active > 0 || e->tasks > 0 || e->evicting > 0)
        pthread_cond_wait(&e->quiet, &e->lock);
    e->close_err.code = FW_OK;
    for (s = e->lru_first; s; s = s->lru_next) /* the lock is held: none leaves meanwhile */
        evict_mark(s);
    while (e->tasks > 0 || e->evicting > 0)
        pthread_cond_wait(&e->quiet, &e->lock);
    why = e->close_err;
    pthread_mutex_unlock(&e->lock);
    engine_free(e);
    if (why.code == FW_OK)
        return 0;
    if (err)
        *err = why;
    return -1;
}

void fw_engine_stats(struct fw_engine *e, struct fw_engine_stats *ret)
{
    pthread_mutex_lock(&e->lock);
    *ret = e->stats;
    ret->resident = e->resident;
    ret->async_bytes = e->async_bytes;
    pthread_mutex_unlock(&e->lock);
    ret->resident_bytes = fw_arena_used(e->arena);
    ret->resident_limit_bytes = fw_arena_limit(e->arena);
    fw_store_stats(e->store, &ret->store);
}

int fw_engine_ready(struct fw_engine *e, struct fw_err *why)
{
    int rc = 0;

    pthread_mutex_lock(&e->lock);
    if (e->draining) {
        rc = fw_fail(why, FW_EAGAIN, "draining", "the server is going down");
    } else if (e->disk_failed) {
        if (why)
            *why = e->disk_err;
        rc = -1;
    }
    pthread_mutex_unlock(&e->lock);
    return rc;
}
