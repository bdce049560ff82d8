/* scratch.c - where a chunk's rows live while its layers run: learning cannot fail, so a plan
 * has one scratch from the start. A thread that finds none free makes another, or waits for one
 * to come back where there is no memory. They stay until the plan goes: as many as threads ever
 * ran this plan at once. */
#include "config.h"

#include "inside.h"

#include <stdlib.h>

static struct fw_scratch *make(size_t floats)
{
    struct fw_scratch *s = malloc(sizeof *s);

    if (!s)
        return NULL;
    *s = (struct fw_scratch){ .size = (floats + 15) / 16 * 16 };
    s->data = aligned_alloc(64, s->size * sizeof *s->data);
    if (!s->data) {
        free(s);
        return NULL;
    }
    return s;
}

int fw_scratch_init(struct fw_model *m, struct fw_err *err)
{
    pthread_mutex_init(&m->lock, NULL);
    pthread_cond_init(&m->back, NULL);
    m->free = make(m->scratch_floats);
    return m->free ? 0 : fw_fail(err, FW_ENOMEM, "out_of_memory", "no memory for a plan");
}

void fw_scratch_done(struct fw_model *m)
{
    while (m->free) {
        struct fw_scratch *s = m->free;

        m->free = s->next;
        free(s->data);
        free(s);
    }
    pthread_cond_destroy(&m->back);
    pthread_mutex_destroy(&m->lock);
}

/* The list is the one thing of a plan that changes, under its own lock. */
static struct fw_model *own(const struct fw_model *m)
{
    return (struct fw_model *)(uintptr_t)m;
}

struct fw_scratch *fw_scratch_take(const struct fw_model *plan)
{
    struct fw_model *m = own(plan);
    struct fw_scratch *s;

    pthread_mutex_lock(&m->lock);
    while (!m->free) {
        pthread_mutex_unlock(&m->lock);
        s = make(m->scratch_floats);
        if (s)
            return s;
        pthread_mutex_lock(&m->lock);
        if (!m->free)
            pthread_cond_wait(&m->back, &m->lock);
    }
    s = m->free;
    m->free = s->next;
    pthread_mutex_unlock(&m->lock);
    return s;
}

void fw_scratch_give(const struct fw_model *plan, struct fw_scratch *s)
{
    struct fw_model *m = own(plan);

    pthread_mutex_lock(&m->lock);
    s->next = m->free;
    m->free = s;
    pthread_cond_signal(&m->back);
    pthread_mutex_unlock(&m->lock);
}
