/* fastweight/pool.h - worker threads that run intrusive tasks in FIFO order. */
#ifndef FW_POOL_H
#define FW_POOL_H

#include "fastweight/err.h"

struct fw_task {
    struct fw_task *next;              /* the pool's, while submitted */
    void (*run)(struct fw_task *task); /* on a worker; may free or resubmit the task */
};

struct fw_pool;

/* `threads` >= 1 workers; each calls thread_start (or NULL) once before its first task. */
int fw_pool_new(struct fw_pool **ret, unsigned threads, void (*thread_start)(void),
                struct fw_err *err);
/* Takes the task until it runs. Any thread, also from inside a task. Never blocks on work,
 * never fails. Not after stop. */
void fw_pool_submit(struct fw_pool *pool, struct fw_task *task);
/* Runs what is queued (and what that submits), joins the workers, frees. NULL is allowed. */
void fw_pool_free(struct fw_pool *pool);

#endif
