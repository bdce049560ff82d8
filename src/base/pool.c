/* pool.c - worker threads that run intrusive tasks in FIFO order, and parts of spread work when
 * there is no task.
 *
 * One mutex guards the queue, the spread work, `busy` and `stop`; it is never held while
 * something runs. A worker leaves when stop is set, the queue is empty and no task runs any
 * more: until then a running task may still submit. A task is not touched after its run began,
 * so it may free or resubmit itself. Who spreads work does its parts like everyone else and
 * then waits for those that others began; a helper holds nothing that anybody waits for but its
 * part. */
#include "config.h"

#include "fastweight/pool.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct fw_pool {
    pthread_mutex_t lock;
    pthread_cond_t changed; /* a task or parts came, or the last task ended while stopping */
    pthread_cond_t joined;  /* the last part of some spread work ended */
    struct fw_task *first;  /* NULL: the queue is empty */
    struct fw_task *last;   /* valid while first is not NULL */
    struct fw_parts *parts; /* spread work with parts not yet begun */
    unsigned busy;          /* tasks running now */
    int stop;
    void (*thread_start)(void); /* or NULL */
    unsigned threads;
    pthread_t thread[];
};

/* (locked, but not while it runs) */
static void run_task(struct fw_pool *pool)
{
    struct fw_task *task = pool->first;

    pool->first = task->next;
    pool->busy++;
    pthread_mutex_unlock(&pool->lock);
    task->run(task);
    pthread_mutex_lock(&pool->lock);
    pool->busy--;
    if (pool->stop && pool->busy == 0)
        pthread_cond_broadcast(&pool->changed);
}

/* (locked) All its parts are begun. */
static void unlink_parts(struct fw_pool *pool, struct fw_parts *parts)
{
    struct fw_parts **at = &pool->parts;

    while (*at != parts)
        at = &(*at)->next;
    *at = parts->next;
}

/* (locked, but not while it runs) */
static void run_part(struct fw_pool *pool, struct fw_parts *parts)
{
    size_t i = parts->begun++;

    if (parts->begun == parts->count)
        unlink_parts(pool, parts);
    pthread_mutex_unlock(&pool->lock);
    parts->run(parts, i);
    pthread_mutex_lock(&pool->lock);
    if (++parts->ended == parts->count)
        pthread_cond_broadcast(&pool->joined);
}

static void *work(void *arg)
{
    struct fw_pool *pool = arg;

    if (pool->thread_start)
        pool->thread_start();
    pthread_mutex_lock(&pool->lock);
    while (pool->first || pool->parts || !pool->stop || pool->busy > 0) {
        if (pool->first)
            run_task(pool);
        else if (pool->parts)
            run_part(pool, pool->parts);
        else
            pthread_cond_wait(&pool->changed, &pool->lock);
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

int fw_pool_new(struct fw_pool **ret, unsigned threads, void (*thread_start)(void),
                struct fw_err *err)
{
    struct fw_pool *pool;
    int rc;

    assert(threads >= 1);
    pool = calloc(1, sizeof *pool + threads * sizeof pool->thread[0]);
    if (!pool)
        return fw_fail(err, FW_ENOMEM, "out_of_memory", "no memory for a pool");
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->changed, NULL);
    pthread_cond_init(&pool->joined, NULL);
    pool->thread_start = thread_start;
    while (pool->threads < threads) {
        rc = pthread_create(&pool->thread[pool->threads], NULL, work, pool);
        if (rc != 0) {
            fw_pool_free(pool); /* joins those that began */
            return fw_fail(err, FW_ENOMEM, "no_thread", "cannot start a worker: %s",
                           strerror(rc));
        }
        pool->threads++;
    }
    *ret = pool;
    return 0;
}

unsigned fw_pool_threads(const struct fw_pool *pool)
{
    return pool->threads;
}

void fw_pool_submit(struct fw_pool *pool, struct fw_task *task)
{
    task->next = NULL;
    pthread_mutex_lock(&pool->lock);
    assert(!pool->stop || pool->busy > 0);
    if (pool->first)
        pool->last->next = task;
    else
        pool->first = task;
    pool->last = task;
    pthread_cond_signal(&pool->changed);
    pthread_mutex_unlock(&pool->lock);
}

void fw_pool_spread(struct fw_pool *pool, struct fw_parts *parts)
{
    parts->begun = parts->ended = 0;
    if (parts->count == 0)
        return;
    pthread_mutex_lock(&pool->lock);
    parts->next = pool->parts;
    pool->parts = parts;
    for (size_t i = 1; i < parts->count && i <= pool->threads; i++)
        pthread_cond_signal(&pool->changed);
    while (parts->begun < parts->count)
        run_part(pool, parts);
    while (parts->ended < parts->count)
        pthread_cond_wait(&pool->joined, &pool->lock);
    pthread_mutex_unlock(&pool->lock);
}

void fw_pool_free(struct fw_pool *pool)
{
    unsigned i;

    if (!pool)
        return;
    pthread_mutex_lock(&pool->lock);
    pool->stop = 1;
    pthread_cond_broadcast(&pool->changed);
    pthread_mutex_unlock(&pool->lock);
    for (i = 0; i < pool->threads; i++)
        pthread_join(pool->thread[i], NULL);
    pthread_cond_destroy(&pool->changed);
    pthread_cond_destroy(&pool->joined);
    pthread_mutex_destroy(&pool->lock);
    free(pool);
}
