/* load.c - a session's state into memory: its block, then the journal's rows above it.
 *
 * A session that was never checkpointed starts from its learner's initial block, whose hash the
 * store knows too. Rows are replayed in slices, exactly up to the version that the session is
 * known to have: a row above it belongs to a learn that still waits in the queue. Damaged bytes
 * make this one session answer state_corrupt from then on. */
#include "config.h"

#include "parts.h"

#include <stdio.h>
#include <stdlib.h>

#include "fastweight/clock.h"

void load_free(struct session *s)
{
    struct load *l = s->load;

    if (!l)
        return;
    pass_done(&l->pass);
    fw_store_rows_free(l->rows);
    room_give(s->e, l->block, block_bytes(s));
    free(l);
    s->load = NULL;
}

static int read_block(struct session *s, struct load *l, struct fw_err *err)
{
    const struct fw_learner *learner = s->recipe->learner;
    struct fw_store_session row;

    if (s->passing) {
        learner->kind->init(learner, l->block);
        return 0;
    }
    if (fw_store_load(s->e->store, s->uid, l->block, block_bytes(s), &row, err) < 0)
        return -1;
    if (!row.has_block)
        learner->kind->init(learner, l->block);
    if (!fw_hash_equal(fw_hash128(l->block, block_bytes(s)), row.hash))
        return fw_fail(err, FW_ECORRUPT, "state_corrupt", "the stored state fails its hash");
    if (learner->kind->validate(learner, l->block, err) < 0) {
        err->code = FW_ECORRUPT;
        return -1;
    }
    l->version = l->stored = row.version;
    l->tokens_seen = row.tokens_seen;
    if (fw_store_journal(s->e->store, s->uid, row.version, &l->rows, err) < 0)
        return -1;
    l->row = l->rows;
    return 0;
}

/* -1 failed, 0 begun, 1 parked. */
static int begin(struct session *s, struct fw_err *err)
{
    struct load *l;
    void *block;
    uint64_t from_ns = fw_clock_mono_ns();
    int rc = room_take(s, &block, err);

    if (rc != 0)
        return rc;
    l = calloc(1, sizeof *l);
    if (!l) {
        room_give(s->e, block, block_bytes(s));
        return out_of_memory(err);
    }
    l->block = block;
    s->load = l;
    rc = read_block(s, l, err);
    pthread_mutex_lock(&s->e->lock);
    s->e->stats.load_ns += fw_clock_mono_ns() - from_ns;
    pthread_mutex_unlock(&s->e->lock);
    return rc;
}

/* An edit's row: its tensors have names that no learn takes. */
static bool is_edit(const struct fw_tensors *in)
{
    return fw_tensors_find(in, "edit.key") || fw_tensors_find(in, "forget.key");
}

static int begin_row(struct session *s, struct load *l, struct fw_err *err)
{
    const struct fw_learner *learner = s->recipe->learner;
    const struct fw_store_row *row = l->row;
    enum fw_use use;
    size_t tokens;

    if (body_decode(row->body, row->body_len, l->item, sizeof l->item / sizeof l->item[0],
                    &l->in, err) < 0)
        return -1;
    use = learner->kind->edit && is_edit(&l->in) ? FW_USE_EDIT : FW_USE_LEARN;
    if (learner->kind->check(learner, use, &l->in, &tokens, err) < 0 || tokens != row->tokens)
        return fw_fail(err, FW_ECORRUPT, "state_corrupt", "a journal row cannot be learned");
    if (pass_init(&l->pass, learner, &l->in, tokens,
                  row->key[0] ? FW_DETAIL_MEAN : FW_DETAIL_NONE, err) < 0)
        return -1;
    if (use == FW_USE_EDIT)
        learner->kind->edit(learner, l->block, &l->in, NULL, NULL, NULL, NULL);
    return 0;
}

static int end_row(struct session *s, struct load *l, struct fw_err *err)
{
    const struct fw_store_row *row = l->row;
    int rc = 0;

    pthread_mutex_lock(&s->e->lock);
    if (row->key[0])
        rc = key_replayed(s, row, pass_mean(&l->pass), err);
    s->e->stats.replayed_tokens += row->tokens;
    pthread_mutex_unlock(&s->e->lock);
    pass_done(&l->pass);
    l->version = row->version;
    l->tokens_seen += row->tokens;
    l->row = row->next;
    l->in_row = false;
    return rc;
}

/* 1 at the end, 0 when the slice is over, -1 failed. */
static int replay(struct session *s, struct load *l, uint64_t deadline, struct fw_err *err)
{
    while (l->row && l->row->version <= s->version) {
        if (!l->in_row && begin_row(s, l, err) < 0)
            return -1;
        l->in_row = true;
        if (!pass_learn(&l->pass, l->block, deadline))
            return 0;
        if (end_row(s, l, err) < 0)
            return -1;
    }
    if (l->version != s->version || l->tokens_seen != s->tokens_seen)
        return fw_fail(err, FW_ECORRUPT, "state_corrupt", "the journal ends at version %llu",
                       (unsigned long long)l->version);
    return 1;
}

static void finish(struct session *s)
{
    struct load *l = s->load;

    pthread_mutex_lock(&s->e->lock);
    resident_add(s, l->block);
    s->stored = l->stored;
    s->e->stats.loads++;
    pthread_mutex_unlock(&s->e->lock);
    l->block = NULL;
    load_free(s);
}

static void fail(struct fw_work *w, struct fw_err *err)
{
    struct session *s = w->s;
    struct fw_err *kept = NULL;

    load_free(s);
    if (err->code == FW_ECORRUPT)
        kept = malloc(sizeof *kept);
    if (kept) {
        snprintf(err->reason, sizeof err->reason, "state_corrupt");
        *kept = *err;
        pthread_mutex_lock(&s->e->lock);
        free(s->corrupt);
        s->corrupt = kept;
        pthread_mutex_unlock(&s->e->lock);
    }
    work_fail(w, err);
}

bool step_load(struct fw_work *w, uint64_t deadline)
{
    struct session *s = w->s;
    struct fw_err err;
    int rc = 0;

    if (s->corrupt) {
        err = *s->corrupt;
        work_fail(w, &err);
        return false;
    }
    if (!s->load)
        rc = begin(s, &err);
    if (rc == 1) /* parked */
        return false;
    if (rc == 0)
        rc = replay(s, s->load, deadline, &err);
    if (rc == 1)
        finish(s);
    else if (rc < 0)
        fail(w, &err);
    return rc == 1;
}
