/* submit.c - a request comes in: found, checked whole, queued.
 *
 * The check runs in the caller's thread without the lock, against the session's recipe, which
 * is immutable; the session is looked up again afterwards, since it may be gone by then. */
#include "config.h"

#include "parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fw_work *work_new(struct fw_request *r, struct fw_err *err)
{
    struct fw_work *w = calloc(1, sizeof *w);

    if (!w) {
        out_of_memory(err);
        return NULL;
    }
    w->r = r;
    w->in = &r->in;
    r->work = w;
    return w;
}

void work_free(struct fw_engine *e, struct fw_work *w)
{
    if (!w)
        return;
    if (w->view)
        w->view->learner->kind->view_free(w->view);
    if (w->copy)
        room_give(e, w->copy, w->copy_bytes);
    pass_done(&w->pass);
    free(w->own_tokens);
    sampler_free(w->sampler);
    stops_done(&w->stops);
    free(w);
}

void request_refuse(struct fw_engine *e, struct fw_request *r, const struct fw_err *err)
{
    pthread_mutex_lock(&e->lock);
    e->stats.requests[r->verb]++;
    e->stats.failed[r->verb]++;
    pthread_mutex_unlock(&e->lock);
    r->failed = true;
    r->err = *err;
    r->done(r);
}

static int check_labels(const struct fw_request *r, struct fw_err *err)
{
    if (r->labels ? strlen(r->labels) < FW_LABELS_MAX : r->verb != FW_LABEL)
        return 0;
    return fw_fail_param(err, FW_EINVAL, "bad_labels", "labels", "labels take 2 to %d bytes",
                         FW_LABELS_MAX - 1);
}

static const char *queue_of(const struct fw_request *r)
{
    return r->verb == FW_CREATE ? r->from : r->id;
}

/* ---- what each verb's body must be */

static int check_learn(struct fw_work *w, const struct fw_learner *l, struct fw_err *err)
{
    struct fw_request *r = w->r;
    enum fw_detail detail = r->detail;

    if (detail == FW_DETAIL_NONE && r->key[0])
        detail = FW_DETAIL_MEAN; /* its repeat wants to know */
    if (l->kind->check(l, FW_USE_LEARN, w->in, &w->tokens, err) < 0 ||
        pass_init(&w->pass, l, w->in, w->tokens, detail, err) < 0)
        return -1;
    if (fw_tensors_find(w->in, "queries") && pass_values(&w->pass, err) < 0)
        return -1;
    w->learns = true;
    return row_new(w, err);
}

static int check_edit(struct fw_work *w, const struct fw_learner *l, struct fw_err *err)
{
    struct fw_request *r = w->r;
    size_t probes;

    if (!l->kind->edit)
        return fw_fail_param(err, FW_EINVAL, "not_associative", "model",
                             "edit and forget are for associative models");
    if (l->kind->check(l, FW_USE_EDIT, w->in, &w->tokens, err) < 0)
        return -1;
    if (r->probes.count && l->kind->check(l, FW_USE_QUERY, &r->probes, &probes, err) < 0) {
        snprintf(err->param, sizeof err->param, "probes");
        return -1;
    }
    r->values = calloc(2 * l->values[0] * l->values[1], sizeof *r->values);
    if (!r->values)
        return out_of_memory(err);
    w->learns = true;
    return row_new(w, err);
}

static int check_stream(const struct fw_learner *l, struct fw_err *err)
{
    if (l->vocab > 0)
        return 0;
    return fw_fail_param(err, FW_EINVAL, "not_a_token_model", "model",
                         "this model predicts no tokens");
}

/* Bytes are their own text. */
static bool has_text(const struct fw_learner *l)
{
    return l->token_bytes == 1 || (l->about && l->about->tokenizer[0]);
}

static int check_generate(struct fw_work *w, const struct fw_learner *l, struct fw_err *err)
{
    const struct fw_request *r = w->r;

    if (check_stream(l, err) < 0)
        return -1;
    if (r->max_tokens < 1 || r->max_tokens > 65536)
        return fw_fail_param(err, FW_EINVAL, "bad_value", "max_tokens",
                             "max_tokens must lie in [1, 65536]");
    if (sampling_check(&r->sampling, l->vocab, err) < 0)
        return -1;
    if (r->sampling.stops > 0 && !has_text(l))
        return fw_fail_param(err, FW_EINVAL, "no_text", "stop",
                             "this model's tokens have no text; use stop_tokens");
    w->barrier = r->learn;
    return l->kind->check(l, FW_USE_PREFIX, w->in, &w->tokens, err);
}

static int check_predict(struct fw_work *w, const struct fw_learner *l, struct fw_err *err)
{
    if (check_stream(l, err) < 0)
        return -1;
    return l->kind->check(l, FW_USE_PREFIX, w->in, &w->tokens, err);
}

static int check_recall(struct fw_work *w, const struct fw_learner *l, struct fw_err *err)
{
    if (l->values[0] == 0)
        return fw_fail_param(err, FW_EINVAL, "not_associative", "model",
                             "recall is for associative models");
    return l->kind->check(l, FW_USE_QUERY, w->in, &w->tokens, err);
}

static int check_body(struct fw_work *w, const struct fw_learner *l, struct fw_err *err)
{
    switch (w->r->verb) {
    case FW_LEARN:
        return check_learn(w, l, err);
    case FW_EDIT:
        return check_edit(w, l, err);
    case FW_SCORE:
        return l->kind->check(l, FW_USE_SCORE, w->in, &w->tokens, err);
    case FW_PREDICT:
        return check_predict(w, l, err);
    case FW_GENERATE:
        return check_generate(w, l, err);
    case FW_RECALL:
        return check_recall(w, l, err);
    default:
        return 0;
    }
}

int work_check(struct fw_work *w, const struct recipe *rc, struct fw_err *err)
{
    struct fw_request *r = w->r;

    if (r->key[0] && r->verb != FW_LEARN && r->verb != FW_EDIT)
        return fw_fail_param(err, FW_EINVAL, "key_not_taken", "Idempotency-Key",
                             "only learn, edit and forget take an idempotency key");
    if (r->verb == FW_SNAPSHOT && name_check(r->name, "name", err) < 0)
        return -1;
    w->barrier = r->verb == FW_RESTORE || r->verb == FW_IMPORT;
    if (!rc->learner && r->verb != FW_LABEL && r->verb != FW_SNAPSHOT_LIST &&
        r->verb != FW_SNAPSHOT_DROP) {
        *err = rc->err;
        return -1;
    }
    if (!rc->learner)
        return 0;
    w->copy_bytes = rc->learner->layout->block_bytes;
    return check_body(w, rc->learner, err);
}

/* ---- coming in */

static int draining(struct fw_err *err)
{
    return fw_fail(err, FW_EAGAIN, "draining", "the server is going down");
}

static int find_recipe(struct fw_engine *e, const char *id, struct recipe **ret,
                       struct fw_err *err)
{
    struct session *s;
    int rc = 0;

    pthread_mutex_lock(&e->lock);
    s = dir_find(e, id);
    if (e->draining)
        rc = draining(err);
    else if (!s)
        rc = session_missing(id, err);
    else
        *ret = recipe_ref(s->recipe);
    pthread_mutex_unlock(&e->lock);
    return rc;
}

/* (locked) */
static int enqueue(struct fw_engine *e, struct fw_request *r, const struct recipe *rc,
                   struct fw_err *err)
{
    struct session *s = dir_find(e, queue_of(r));

    if (!s || s->recipe != rc)
        return session_missing(queue_of(r), err);
    if (e->draining)
        return draining(err);
    if (s->queued >= e->c.max_queue)
        return fw_fail(err, FW_EBUSY, "queue_full", "%zu requests wait for this session",
                       s->queued);
    r->work->s = s;
    if (r->key[0] && r->work->row && key_enter(r->work, err) < 0)
        return -1;
    session_enqueue(s, r);
    if (r->work->key_pending)
        key_lookup(r->work);
    return 0;
}

static int submit(struct fw_engine *e, struct fw_request *r, struct fw_err *err)
{
    struct recipe *rc = NULL;
    int ok = -1;

    if (find_recipe(e, queue_of(r), &rc, err) < 0)
        return -1;
    if (work_new(r, err) && work_check(r->work, rc, err) == 0) {
        pthread_mutex_lock(&e->lock);
        ok = enqueue(e, r, rc, err);
        pthread_mutex_unlock(&e->lock);
    }
    recipe_unref(e, rc);
    return ok;
}

static int check_draining(struct fw_engine *e, struct fw_err *err)
{
    int rc = 0;

    pthread_mutex_lock(&e->lock);
    if (e->draining)
        rc = draining(err);
    pthread_mutex_unlock(&e->lock);
    return rc;
}

/* Facts without the hash wait for nobody. */
static int answer_facts(struct fw_engine *e, struct fw_request *r, struct fw_err *err)
{
    if (fw_engine_facts(e, r->id, &r->facts, err) < 0)
        return -1;
    if (r->has_match && (r->match_uid != r->facts.uid || r->match_version != r->facts.version))
        return fw_fail(err, FW_EVERSION, "version_mismatch", "the session is at \"%lld-%llu\"",
                       (long long)r->facts.uid, (unsigned long long)r->facts.version);
    r->version = r->facts.version;
    pthread_mutex_lock(&e->lock);
    e->stats.requests[r->verb]++;
    pthread_mutex_unlock(&e->lock);
    r->done(r);
    return 0;
}

/* What has no queue or does not use it; 1: not such a request. */
static int submit_aside(struct fw_engine *e, struct fw_request *r, struct fw_err *err)
{
    bool create = r->verb == FW_CREATE && !r->from[0];
    bool passing = r->verb == FW_GENERATE && !r->id[0];

    if (!create && !passing && r->verb != FW_DELETE && (r->verb != FW_FACTS || r->want_hash))
        return 1;
    if (check_draining(e, err) < 0)
        return -1;
    if (passing)
        return passing_submit(e, r, err);
    if (create)
        create_submit(e, r);
    else if (r->verb == FW_DELETE)
        delete_submit(e, r);
    else
        return answer_facts(e, r, err);
    return 0;
}

void fw_engine_submit(struct fw_engine *e, struct fw_request *r)
{
    struct fw_err err;
    int rc;

    fw_buf_init(&r->bytes, SIZE_MAX);
    fw_report_init(&r->report);
    r->work = NULL;
    rc = check_labels(r, &err);
    if (rc == 0)
        rc = submit_aside(e, r, &err);
    if (rc == 1)
        rc = submit(e, r, &err);
    if (rc == 0)
        return;
    if (r->work) {
        row_release(r->work->row);
        work_free(e, r->work);
    }
    request_refuse(e, r, &err);
}
