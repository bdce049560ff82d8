/* read.c - requests that look at the state and leave it as it is.
 *
 * Long ones are cut into slices; the session is theirs until they end, so a view may borrow the
 * block from one slice to the next. adapt, generate with learn, and whatever reads on where all
 * of the block is registers, work on a copy from the arena, which is given back with the
 * request. */
#include "config.h"

#include "steps.h"

#include <stdlib.h>
#include <string.h>

#include "fastweight/clock.h"
#include "fastweight/safetensors.h"

static const struct fw_learner *learner_of(const struct fw_work *w)
{
    return w->s->recipe->learner;
}

void step_facts(struct fw_work *w, uint64_t deadline)
{
    struct session *s = w->s;

    (void)deadline;
    w->r->facts.hash = fw_hash128(s->block, block_bytes(s));
    w->r->facts.has_hash = true;
    work_finish(w);
}

int copy_take(struct fw_work *w, struct fw_err *err)
{
    int rc;

    if (w->copy)
        return 0;
    rc = room_take(w->s, &w->copy, err);
    if (rc == 0)
        memcpy(w->copy, w->s->block, block_bytes(w->s));
    return rc;
}

int view_take(struct fw_work *w, const void *block, struct fw_err *err)
{
    const struct fw_learner *l = learner_of(w);

    return w->view ? 0 : l->kind->view_new(&w->view, l, block, err);
}

static int begin_score(struct fw_work *w, struct fw_err *err)
{
    bool copy = w->r->adapt || learner_of(w)->kind->all_registers;
    int rc = copy ? copy_take(w, err) : view_take(w, w->s->block, err);

    if (rc != 0 || w->pass.l)
        return rc;
    return pass_init(&w->pass, learner_of(w), w->in, w->tokens, w->r->detail, err);
}

static void count_scored(struct fw_work *w)
{
    pthread_mutex_lock(&w->s->e->lock);
    w->s->e->stats.tokens_scored += w->tokens;
    pthread_mutex_unlock(&w->s->e->lock);
}

void step_score(struct fw_work *w, uint64_t deadline)
{
    struct fw_err err;
    int rc = begin_score(w, &err);
    bool end;

    if (rc < 0)
        work_fail(w, &err);
    if (rc != 0)
        return;
    end = w->copy ? pass_learn(&w->pass, w->copy, deadline)
                  : pass_score(&w->pass, w->view, deadline);
    if (!end)
        return;
    pass_take(&w->pass, w->r);
    count_scored(w);
    work_finish(w);
}

void step_recall(struct fw_work *w, uint64_t deadline)
{
    struct fw_err err;

    if (view_take(w, w->s->block, &err) < 0 ||
        (!w->pass.l &&
         (pass_init(&w->pass, learner_of(w), w->in, w->tokens, FW_DETAIL_NONE, &err) < 0 ||
          pass_values(&w->pass, &err) < 0))) {
        work_fail(w, &err);
        return;
    }
    if (!pass_recall(&w->pass, w->view, deadline))
        return;
    pass_take(&w->pass, w->r);
    work_finish(w);
}

/* ---- predict */

int prefix_feed(struct fw_work *w, uint64_t deadline, struct fw_err *err)
{
    bool copy = w->tokens > 0 && learner_of(w)->kind->all_registers;
    int rc = copy ? copy_take(w, err) : view_take(w, w->s->block, err);

    if (rc != 0)
        return rc;
    if (!w->pass.l &&
        pass_init(&w->pass, learner_of(w), w->in, w->tokens, FW_DETAIL_NONE, err) < 0)
        return -1;
    if (copy)
        return pass_learn(&w->pass, w->copy, deadline) ? view_take(w, w->copy, err) : 1;
    return pass_score(&w->pass, w->view, deadline) ? 0 : 1;
}

static int predict(struct fw_work *w, struct fw_err *err)
{
    const struct fw_learner *l = learner_of(w);
    struct fw_request *r = w->r;
    size_t k = r->full || r->top > l->vocab ? l->vocab : r->top;

    r->logp = malloc((k ? k : 1) * sizeof *r->logp);
    if (!r->full)
        r->ids = malloc((k ? k : 1) * sizeof *r->ids);
    if (!r->logp || (!r->full && !r->ids))
        return out_of_memory(err);
    if (r->full)
        l->kind->predict(w->view, r->logp);
    else
        k = l->kind->top(w->view, k, r->ids, r->logp);
    r->count = k;
    return 0;
}

void step_predict(struct fw_work *w, uint64_t deadline)
{
    struct fw_err err;
    int rc = prefix_feed(w, deadline, &err);

    if (rc == 0)
        rc = predict(w, &err);
    if (rc < 0)
        work_fail(w, &err);
    else if (rc == 0)
        work_finish(w);
}

/* ---- inspect, tensors */

void step_inspect(struct fw_work *w, uint64_t deadline)
{
    const struct fw_learner *l = learner_of(w);
    struct fw_err err;

    (void)deadline;
    if (l->kind->inspect(l, w->s->block, &w->r->report, &err) < 0)
        work_fail(w, &err);
    else
        work_finish(w);
}

static int list_tensors(struct fw_work *w, struct fw_err *err)
{
    const struct fw_layout *layout = learner_of(w)->layout;

    w->r->field = malloc((layout->count + 1) * sizeof *w->r->field);
    if (!w->r->field)
        return out_of_memory(err);
    memcpy(w->r->field, layout->field, layout->count * sizeof *w->r->field);
    w->r->count = layout->count;
    return 0;
}

static int show_tensor(struct fw_work *w, struct fw_err *err)
{
    const struct fw_learner *l = learner_of(w);
    const struct fw_field *f = fw_layout_find(l->layout, w->r->name);
    struct fw_tensor t;
    struct fw_tensors ts = { 1, &t };
    void *bytes;
    int rc;

    if (!f)
        return fw_fail_param(err, FW_ENOENT, "tensor_not_found", "name", "no tensor '%.63s'",
                             w->r->name);
    bytes = malloc(f->bytes + 1);
    if (!bytes)
        return out_of_memory(err);
    l->kind->show(l, w->s->block, f, bytes);
    t = fw_layout_view(f, w->s->block);
    t.data = bytes;
    rc = fw_safetensors_write(&w->r->bytes, &ts, NULL, 0, err);
    free(bytes);
    return rc;
}

void step_tensor(struct fw_work *w, uint64_t deadline)
{
    struct fw_err err;
    int rc = w->r->name[0] ? show_tensor(w, &err) : list_tensors(w, &err);

    (void)deadline;
    if (rc < 0)
        work_fail(w, &err);
    else
        work_finish(w);
}
