/* fastweight/pool.h - worker threads that run intrusive tasks in FIFO order. */
#ifndef FW_POOL_H
#define FW_POOL_H

#include <stddef.h>

#include "fastweight/err.h"

struct fw_task {
    struct fw_task *next;              /* the pool's, while submitted */
    void (*run)(struct fw_task *task); /* on a worker; may free or resubmit the task */
};

struct fw_parts { /* work in parts that may be done at once, in any order */
    void (*run)(struct fw_parts *parts, size_t i); /* part i */
    size_t count;
    struct fw_parts *next; /* the pool's, with what follows */
    size_t begun, ended;
};

struct fw_pool;

/* `threads` >= 1 workers; each calls thread_start (or NULL) once before its first task. */
int fw_pool_new(struct fw_pool **ret, unsigned threads, void (*thread_start)(void),
                struct fw_err *err);
unsigned fw_pool_threads(const struct fw_pool *pool);
/* Takes the task until it runs. Any thread, also from inside a task. Never blocks on work,
 * never fails. Not after stop. */
void fw_pool_submit(struct fw_pool *pool, struct fw_task *task);
/* Runs each part once, on this thread and on workers that have no task; returns when all have
 * ended. It waits only for parts that a worker has begun, so it ends however busy the pool is.
 * Any thread, also from inside a task. */
void fw_pool_spread(struct fw_pool *pool, struct fw_parts *parts);
/* Runs what is queued (and what that submits), joins the workers, frees. NULL is allowed. */
void fw_pool_free(struct fw_pool *pool);

#endif
