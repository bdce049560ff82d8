/* keys.c - Idempotency-Key: one learn is learned once, however often it is sent.
 *
 * Where a key is known from, in the order asked: in flight here (conflict, or 422 when the body
 * is another); learned since the last checkpoint (s->keys holds version and mean); the store,
 * asked by a task of its own while the learn waits unhanded in its queue. A key that the store
 * has only in a journal row has no mean yet: loading the session replays the row and computes
 * it (key_replayed). A checkpoint takes the results along and they leave memory. */
#include "config.h"

#include "parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct key *find(struct session *s, const char *text, uint64_t hash)
{
    struct key *k;

    for (k = s->keys; k; k = k->next) {
        if (k->hash == hash && strcmp(k->text, text) == 0)
            return k;
    }
    return NULL;
}

static struct key *add(struct session *s, const char *text, uint64_t hash,
                       struct fw_hash digest)
{
    size_t size = strlen(text) + 1;
    struct key *k = calloc(1, sizeof *k + size);

    if (!k)
        return NULL;
    k->hash = hash;
    k->digest = digest;
    memcpy(k->text, text, size);
    k->next = s->keys;
    s->keys = k;
    return k;
}

static void drop(struct session *s, struct key *k)
{
    struct key **at;

    for (at = &s->keys; *at != k; at = &(*at)->next)
        ;
    *at = k->next;
    free(k);
}

static int reused(const char *key, struct fw_err *err)
{
    return fw_fail_param(err, FW_EINVAL, "key_reused", "Idempotency-Key",
                         "key '%.100s' came with another body before", key);
}

int key_enter(struct fw_work *w, struct fw_err *err)
{
    struct session *s = w->s;
    const char *text = w->r->key;
    uint64_t hash = fw_hash64(text, strlen(text));
    struct fw_hash digest = w->row->op.digest;
    struct key *k = find(s, text, hash);

    if (k && !fw_hash_equal(k->digest, digest))
        return reused(text, err);
    if (k && !k->done)
        return fw_fail_param(err, FW_EINFLIGHT, "key_in_flight", "Idempotency-Key",
                             "the learn with key '%.100s' still runs", text);
    if (k) {
        w->repeat = true;
        w->has_mean = true;
        w->version = k->version;
        w->mean = k->mean;
        return 0;
    }
    w->key = add(s, text, hash, digest);
    if (!w->key)
        return out_of_memory(err);
    w->key->held = true;
    w->key_pending = true;
    return 0;
}

/* (locked) What the store knows decides what the waiting learn is. */
static void found(struct fw_work *w, const struct fw_store_key *k)
{
    if (!fw_hash_equal(k->digest, w->row->op.digest)) {
        reused(w->r->key, &w->err);
        return;
    }
    w->repeat = true;
    w->version = k->version;
    w->has_mean = k->has_mean != 0;
    w->mean = k->mean;
}

static void lookup(struct fw_task *task)
{
    struct fw_work *w = (struct fw_work *)task;
    struct session *s = w->s;
    struct fw_engine *e = s->e;
    struct fw_store_key k;
    struct fw_err err = { .code = FW_OK };
    int rc = fw_store_key_find(e->store, s->uid, w->r->key, &k, &err);

    pthread_mutex_lock(&e->lock);
    w->key_pending = false;
    if (rc == 0)
        found(w, &k);
    else if (err.code != FW_ENOENT)
        w->err = err;
    session_kick(s);
    task_ended(e);
    pthread_mutex_unlock(&e->lock);
}

void key_lookup(struct fw_work *w)
{
    w->task.run = lookup;
    w->s->e->tasks++;
    fw_pool_submit(w->s->e->c.pool, &w->task);
}

void key_leave(struct fw_work *w, bool learned)
{
    struct key *k = w->key;

    w->key = NULL;
    if (!k)
        return;
    k->held = false;
    if (k->done) /* replayed meanwhile, it waits for a checkpoint */
        return;
    if (!learned || w->repeat) {
        drop(w->s, k);
        return;
    }
    k->done = true;
    k->version = w->version;
    k->mean = w->mean;
}

int key_replayed(struct session *s, const struct fw_store_row *row, double mean,
                 struct fw_err *err)
{
    uint64_t hash = fw_hash64(row->key, strlen(row->key));
    struct key *k = find(s, row->key, hash);

    if (!k)
        k = add(s, row->key, hash, row->digest);
    if (!k)
        return out_of_memory(err);
    k->done = true;
    k->digest = row->digest;
    k->version = row->version;
    k->mean = mean;
    return 0;
}

int keys_results(struct session *s, uint64_t version, struct fw_store_result **ret,
                 size_t *ret_count, struct fw_err *err)
{
    struct fw_store_result *results = NULL;
    const struct key *k;
    size_t n = 0;

    for (k = s->keys; k; k = k->next)
        n += k->done && k->version <= version;
    if (n > 0) {
        results = calloc(n, sizeof *results);
        if (!results)
            return out_of_memory(err);
    }
    *ret = results;
    *ret_count = n;
    for (k = s->keys; k; k = k->next) {
        if (!k->done || k->version > version)
            continue;
        snprintf(results->key, sizeof results->key, "%s", k->text);
        results->version = k->version;
        results->mean = k->mean;
        results->digest = k->digest;
        results++;
    }
    return 0;
}

void keys_drop(struct session *s, uint64_t version)
{
    struct key **at = &s->keys, *k;

    while ((k = *at) != NULL) {
        if (!k->done || k->version > version) {
            at = &k->next;
        } else if (k->held) { /* a repeat on its way will ask the store */
            k->done = false;
            at = &k->next;
        } else {
            *at = k->next;
            free(k);
        }
    }
}

void keys_free(struct session *s)
{
    struct key *k;

    while ((k = s->keys) != NULL) {
        s->keys = k->next;
        free(k);
    }
}

/* ---- the repeat at its place */

/* The row that holds the key was replayed by now, or a checkpoint has taken its result. */
static int find_mean(struct fw_work *w)
{
    struct session *s = w->s;
    struct fw_store_key k;
    bool known;

    pthread_mutex_lock(&s->e->lock);
    known = w->key && w->key->done;
    if (known)
        w->mean = w->key->mean;
    pthread_mutex_unlock(&s->e->lock);
    if (!known) {
        if (fw_store_key_find(s->e->store, s->uid, w->r->key, &k, &w->err) < 0)
            return -1;
        if (!k.has_mean)
            return fw_fail(&w->err, FW_ECORRUPT, "state_corrupt",
                           "the journal lacks the row of key '%.100s'", w->r->key);
        w->mean = k.mean;
    }
    w->has_mean = true;
    return 0;
}

/* A reply with commit durability promises the disk, also for an async learn's repeat. */
static bool make_durable(struct fw_work *w)
{
    struct session *s = w->s;
    bool durable;

    pthread_mutex_lock(&s->e->lock);
    durable = s->durable >= w->version;
    pthread_mutex_unlock(&s->e->lock);
    if (w->r->async || durable)
        return true;
    if (s->checkpoint ? checkpoint_end(s, &w->err) : checkpoint_of(s, &w->err))
        work_finish(w);
    return false;
}

void step_repeat(struct fw_work *w, uint64_t deadline)
{
    struct fw_request *r = w->r;

    if (!w->has_mean && !w->s->block && !step_load(w, deadline))
        return;
    if (!w->has_mean && find_mean(w) < 0) {
        work_finish(w);
        return;
    }
    if (!make_durable(w))
        return;
    r->replayed = true;
    r->version = w->version;
    r->mean = w->mean;
    work_finish(w);
}
