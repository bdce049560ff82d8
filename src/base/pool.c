/* pool.c - worker threads that run intrusive tasks in FIFO order.
 *
 * One mutex guards the queue, `busy` and `stop`; it is never held while a task runs. A worker
 * leaves when stop is set, the queue is empty and no task runs any more: until then a running
 * task may still submit. A task is not touched after its run began, so it may free or resubmit
 * itself. */
#include "config.h"

#include "fastweight/pool.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct fw_pool {
    pthread_mutex_t lock;
    pthread_cond_t changed; /* a task came, or the last one ended while stopping */
    struct fw_task *first;  /* NULL: the queue is empty */
    struct fw_task *last;   /* valid while first is not NULL */
    unsigned busy;          /* tasks running now */
    int stop;
    void (*thread_start)(void); /* or NULL */
    unsigned threads;
    pthread_t thread[];
};

/* Waits for a task; NULL when the pool is stopping and nothing can come any more. */
static struct fw_task *take_task(struct fw_pool *pool)
{
    struct fw_task *task;

    while (!pool->first && !(pool->stop && pool->busy == 0))
        pthread_cond_wait(&pool->changed, &pool->lock);
    task = pool->first;
    if (task) {
        pool->first = task->next;
        pool->busy++;
    }
    return task;
}

static void *work(void *arg)
{
    struct fw_pool *pool = arg;
    struct fw_task *task;

    if (pool->thread_start)
        pool->thread_start();
    pthread_mutex_lock(&pool->lock);
    while ((task = take_task(pool)) != NULL) {
        pthread_mutex_unlock(&pool->lock);
        task->run(task);
        pthread_mutex_lock(&pool->lock);
        pool->busy--;
        if (pool->stop && pool->busy == 0)
            pthread_cond_broadcast(&pool->changed);
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
    pthread_mutex_destroy(&pool->lock);
    free(pool);
}
