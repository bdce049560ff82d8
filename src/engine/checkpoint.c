/* checkpoint.c - a session's block to the disk, and the journal cut, in one transaction.
 *
 * begin and end are both the session's runner's; between them the session is parked and the
 * writer has the block (pinned: no copy). The op carries the version that the block includes,
 * so rows handed over meanwhile stay. What was keyed since the last checkpoint goes along. */
#include "config.h"

#include "parts.h"

#include <stdlib.h>

bool session_dirty(const struct session *s)
{
    return s->version != s->stored || s->async_failed;
}

static void done(struct fw_store_op *op)
{
    struct session *s = ((struct checkpoint *)op)->s;
    struct fw_engine *e = s->e;

    pthread_mutex_lock(&e->lock);
    disk_note(e, op);
    s->writes--;
    session_kick(s);
    pthread_mutex_unlock(&e->lock);
}

int checkpoint_begin(struct session *s, const void *block, uint64_t version, uint64_t tokens,
                     const struct fw_hash *hash, struct fw_err *err)
{
    struct checkpoint *c = calloc(1, sizeof *c);
    int rc;

    if (!c)
        return out_of_memory(err);
    c->s = s;
    c->op.verb = FW_STORE_CHECKPOINT;
    c->op.uid = s->uid;
    c->op.version = version;
    c->op.tokens = tokens;
    c->op.block = block;
    c->op.block_bytes = block_bytes(s);
    c->op.hash = hash ? *hash : fw_hash128(block, c->op.block_bytes);
    c->op.done = done;
    pthread_mutex_lock(&s->e->lock);
    rc = keys_results(s, version, &c->results, &c->op.results, err);
    s->writes += rc == 0;
    pthread_mutex_unlock(&s->e->lock);
    if (rc < 0) {
        free(c);
        return -1;
    }
    c->op.result = c->results;
    s->checkpoint = c;
    fw_store_submit(s->e->store, &c->op);
    return 0;
}

int checkpoint_of(struct session *s, struct fw_err *err)
{
    return checkpoint_begin(s, s->block, s->version, s->tokens_seen, NULL, err);
}

/* (locked) */
static void note_success(struct session *s, const struct fw_store_op *op)
{
    s->stored = op->version;
    if (op->version > s->durable)
        s->durable = op->version;
    s->journal_bytes = s->unlearned_bytes;
    if (s->async_failed) {
        s->async_failed = false;
        s->assigned = op->version;
    }
    keys_drop(s, op->version);
    s->e->stats.checkpoints++;
}

int checkpoint_end(struct session *s, struct fw_err *err)
{
    struct checkpoint *c = s->checkpoint;
    bool failed = c->op.failed;

    pthread_mutex_lock(&s->e->lock);
    if (failed)
        s->e->stats.checkpoint_failures++;
    else
        note_success(s, &c->op);
    s->checkpoint = NULL;
    s->preparing = false;
    pthread_mutex_unlock(&s->e->lock);
    if (failed && err)
        *err = c->op.err;
    free(c->results);
    free(c);
    return failed ? -1 : 0;
}

void checkpoint_cancel(struct session *s)
{
    pthread_mutex_lock(&s->e->lock);
    s->preparing = false;
    pthread_mutex_unlock(&s->e->lock);
}
