/* passing.c - a generation without a session: from the first state of a model, kept nowhere.
 *
 * It gets a session of its own that is in no directory and no store, so it waits for memory, is
 * cut into slices and ends like any other; its block is made by the learner at load, never
 * changes, and goes with the one request (run.c: END). */
#include "config.h"

#include "parts.h"

static int prepare(struct session *s, struct fw_request *r, struct fw_err *err)
{
    if (r->learn)
        return fw_fail_param(err, FW_EINVAL, "needs_session", "learn",
                             "only a session can learn");
    if (recipe_open(s->e, r->model, &r->config, &s->recipe, err) < 0 ||
        session_fill(s, NULL, err) < 0 || !work_new(r, err))
        return -1;
    return work_check(r->work, s->recipe, err);
}

int passing_submit(struct fw_engine *e, struct fw_request *r, struct fw_err *err)
{
    struct session *s = session_new(e, "", 0);
    bool draining;

    if (!s)
        return out_of_memory(err);
    s->passing = true;
    if (prepare(s, r, err) < 0) {
        dir_drop(s);
        return -1;
    }
    pthread_mutex_lock(&e->lock);
    draining = e->draining;
    r->work->s = s;
    if (!draining)
        session_enqueue(s, r);
    pthread_mutex_unlock(&e->lock);
    if (!draining)
        return 0;
    dir_drop(s);
    return fw_fail(err, FW_EAGAIN, "draining", "the server is going down");
}
