/* share.c - short passes of many sessions on one model, run as one.
 *
 * To learn one token all weights are read; to learn one for each of 32 sessions, too. So a
 * worker whose head has few tokens left to learn, or samples one after the other, first claims
 * other sessions of the recipe that wait on the pool for the same. A claimed session is run by
 * this worker like any other: it is out of its recipe's line, and a worker to which its task
 * comes leaves it alone. After the pass all go back into the line, those whose task came up
 * meanwhile also to the pool's tail: what is next for them their own task decides, be it only
 * that nothing is left to do. So order, waiting and ends are those of run.c, and no worker
 * waits for another. A group is a worker's fair part of the sessions that could share: the
 * other workers find theirs. */
#include "config.h"

#include "share.h"

#include "fastweight/clock.h"
#include "parts.h"

enum { LOOK_MAX = 128 }; /* sessions of a line that are looked at */

struct group {
    struct session *s[FW_LEARNER_PARTS]; /* the first is the worker's own */
    struct fw_work *w[FW_LEARNER_PARTS];
    size_t count, rows;
};

void line_join(struct session *s)
{
    struct line *line = &s->recipe->line;

    s->line_prev = line->last;
    s->line_next = NULL;
    if (line->last)
        line->last->line_next = s;
    else
        line->first = s;
    line->last = s;
    line->count++;
    s->in_line = true;
}

bool line_leave(struct session *s)
{
    struct line *line = &s->recipe->line;

    if (!s->in_line)
        return false;
    if (s->line_prev)
        s->line_prev->line_next = s->line_next;
    else
        line->first = s->line_next;
    if (s->line_next)
        s->line_next->line_prev = s->line_prev;
    else
        line->last = s->line_prev;
    line->count--;
    s->in_line = false;
    return true;
}

/* Tokens that w would put into a pass; 0: it does not share. */
static size_t rows_of(const struct fw_work *w)
{
    size_t left;

    if (w->learns && w->r->verb != FW_EDIT) {
        left = w->pass.tokens - w->pass.from;
        return left <= FW_LEARNER_PARTS ? left : 0;
    }
    return generate_samples(w) ? 1 : 0;
}

bool share_wants(const struct fw_work *w)
{
    return w->s->recipe->learner->kind->learn_many && rows_of(w) > 0;
}

/* (locked) Puts s in if there is place for what it learns next. */
static void claim(struct group *g, struct session *s)
{
    size_t rows = session_steps(s) ? rows_of(s->head->work) : 0;

    if (rows == 0 || g->rows + rows > FW_LEARNER_PARTS)
        return;
    line_leave(s);
    g->s[g->count] = s;
    g->w[g->count++] = s->head->work;
    g->rows += rows;
}

static void gather(struct group *g, struct fw_work *own)
{
    struct fw_engine *e = own->s->e;
    struct line *line = &own->s->recipe->line;
    struct session *s, *next;
    size_t most, threads = fw_pool_threads(e->c.pool), looked = 0;

    *g = (struct group){ .s = { own->s }, .w = { own }, .count = 1, .rows = rows_of(own) };
    pthread_mutex_lock(&e->lock);
    most = (line->count + line->sharing + threads) / threads;
    for (s = line->first; s && g->count < most && looked < LOOK_MAX; s = next, looked++) {
        next = s->line_next;
        claim(g, s);
    }
    line->sharing += g->count;
    pthread_mutex_unlock(&e->lock);
}

static void release(const struct group *g, uint64_t learn_ns)
{
    struct fw_engine *e = g->s[0]->e;
    size_t i;

    pthread_mutex_lock(&e->lock);
    e->stats.learn_ns += learn_ns;
    e->stats.shared_passes += g->count > 1;
    g->s[0]->recipe->line.sharing -= g->count;
    for (i = 1; i < g->count; i++) {
        line_join(g->s[i]);
        if (g->s[i]->came)
            fw_pool_submit(e->c.pool, &g->s[i]->task);
        g->s[i]->came = false;
    }
    pthread_mutex_unlock(&e->lock);
}

void share_pass(struct fw_work *own)
{
    const struct fw_learner *l = own->s->recipe->learner;
    struct fw_learner_part part[FW_LEARNER_PARTS];
    uint64_t from_ns = fw_clock_mono_ns();
    size_t i, parts = 0, learns = 0, n = 0;
    struct group g;

    gather(&g, own);
    for (i = 0; i < g.count; i++) {
        struct fw_work *w = g.w[i];

        if (!(w->learns ? learn_offer : generate_offer)(w, &part[parts]))
            continue;
        g.w[n++] = w;
        learns += w->learns;
        parts++;
    }
    l->kind->learn_many(l, part, parts);
    from_ns = fw_clock_mono_ns() - from_ns;
    for (i = 0; i < n; i++)
        (g.w[i]->learns ? learn_took : generate_took)(g.w[i]);
    release(&g, learns ? from_ns : 0);
}
