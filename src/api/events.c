/* events.c - a generation told as server-sent events while it runs.
 *
 * Nothing is copied for the client on the way: the request's ids and logp stand still once they
 * are `ready`, and the server's thread makes events of them as fast as the client reads. So a
 * slow reader holds up nobody, and what he has not read yet takes no more than a whole reply
 * would. Text ends at whole characters; the bytes of a begun one wait for the next event.
 *
 * Three have the op in common: the worker that submits it, the engine until done, the
 * connection until gone; who leaves last frees it. `lock` guards what they tell each other; it
 * is taken before the locks of http and engine. A refusal that comes before the stream has
 * begun is an ordinary reply with its status. When the client goes the request is cancelled. */
#include "config.h"

#include "events.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "fastweight/utf8.h"

#include "status.h"

enum { TOKENS_AN_EVENT = 64 };

struct events {
    pthread_mutex_t lock;
    unsigned owners; /* lock */
    bool open;       /* lock: the connection can be woken */
    bool over;       /* lock: the request is done, and the last event in op->out */
    bool failed;     /* lock: with an error there */
    size_t ready;    /* lock: tokens that stand still */
    /* the server's thread */
    size_t told;        /* tokens that events were made of */
    bool ended;         /* so was the end */
    struct fw_buf text; /* of told tokens, and not told itself: less than a character */
    struct fw_buf made; /* events, from made_at on not yet sent */
    size_t made_at;
};

int events_new(struct op *op, struct fw_err *err)
{
    struct events *ev = calloc(1, sizeof *ev);

    if (!ev)
        return fw_fail(err, FW_ENOMEM, "out_of_memory", "no memory for a stream");
    pthread_mutex_init(&ev->lock, NULL);
    fw_buf_init(&ev->text, OP_REPLY_MAX);
    fw_buf_init(&ev->made, OP_REPLY_MAX);
    op->events = ev;
    return 0;
}

void events_free(struct events *ev)
{
    if (!ev)
        return;
    fw_buf_done(&ev->text);
    fw_buf_done(&ev->made);
    pthread_mutex_destroy(&ev->lock);
    free(ev);
}

/* Unlocks, and frees the op when nobody else has it. */
static void leave(struct op *op)
{
    bool last = --op->events->owners == 0;

    pthread_mutex_unlock(&op->events->lock);
    if (last)
        op_free(op);
}

/* ---- events out of tokens; the server's thread */

static int add_text(struct op *op, size_t to, struct fw_err *err)
{
    struct events *ev = op->events;
    int rc = 0;

    for (; rc == 0 && ev->told < to; ev->told++)
        rc = intake_text(&op->intake, op->r.ids[ev->told], &ev->text, err);
    return rc;
}

static int make_event(struct op *op, size_t to, bool last, struct fw_err *err)
{
    struct events *ev = op->events;
    size_t len, from = ev->told;
    struct out o;

    if (add_text(op, to, err) < 0)
        return -1;
    if (last && op->r.bytes.len > 0 &&
        fw_buf_append(&ev->text, op->r.bytes.data, op->r.bytes.len, err) < 0)
        return -1;
    len = last ? ev->text.len : fw_utf8_settled(ev->text.data, ev->text.len);
    out_begin(&o, &ev->made, err);
    if (fw_buf_append(&ev->made, "data: ", 6, err) < 0 ||
        op->endpoint->tell(op, &o, from, to,
                           &(struct fw_http_text){ (const char *)ev->text.data, len }) < 0)
        return -1;
    ev->text.len -= len;
    if (ev->text.len > 0)
        memmove(ev->text.data, ev->text.data + len, ev->text.len);
    return fw_buf_append(&ev->made, "\n\n", 2, err);
}

static int make_end(struct op *op, bool failed, struct fw_err *err)
{
    struct events *ev = op->events;
    const char *before = failed ? "event: error\ndata: " : "data: ";
    const char *after = failed ? "\n\n" : "\n\ndata: [DONE]\n\n";

    ev->ended = true;
    if (fw_buf_append(&ev->made, before, strlen(before), err) < 0 ||
        fw_buf_append(&ev->made, op->out.data, op->out.len, err) < 0)
        return -1;
    return fw_buf_append(&ev->made, after, strlen(after), err);
}

static int make(struct op *op, bool idle, struct fw_err *err)
{
    struct events *ev = op->events;
    size_t ready;
    bool over, failed;

    pthread_mutex_lock(&ev->lock);
    ready = ev->ready;
    over = ev->over;
    failed = ev->failed;
    pthread_mutex_unlock(&ev->lock);
    if (ev->told < ready)
        return make_event(
            op, ready - ev->told > TOKENS_AN_EVENT ? ev->told + TOKENS_AN_EVENT : ready, false,
            err);
    if (over && !failed && !ev->ended && ev->text.len + op->r.bytes.len > 0) {
        if (make_event(op, ready, true, err) < 0)
            return -1;
        op->r.bytes.len = 0;
        return 0;
    }
    if (over && !ev->ended)
        return make_end(op, failed, err);
    return idle && !over ? fw_buf_append(&ev->made, ": ping\n\n", 8, err) : 0;
}

static int pull(void *arg, char *to, size_t max, bool idle)
{
    struct op *op = arg;
    struct events *ev = op->events;
    size_t n;

    if (ev->made_at == ev->made.len) {
        ev->made.len = ev->made_at = 0;
        if (make(op, idle, NULL) < 0)
            return -2;
    }
    n = ev->made.len - ev->made_at;
    if (n == 0)
        return ev->ended ? -1 : 0;
    if (n > max)
        n = max;
    memcpy(to, ev->made.data + ev->made_at, n);
    ev->made_at += n;
    return (int)n;
}

static void gone(void *arg)
{
    struct op *op = arg;
    struct events *ev = op->events;

    pthread_mutex_lock(&ev->lock);
    ev->open = false;
    if (!ev->over)
        fw_engine_cancel(op->api->engine, &op->r);
    leave(op);
}

/* ---- the engine's side */

static void on_progress(struct fw_request *r, size_t ready)
{
    struct op *op = (struct op *)r;
    struct events *ev = op->events;

    pthread_mutex_lock(&ev->lock);
    ev->ready = ready;
    if (ev->open)
        fw_http_wake(op->call, false);
    pthread_mutex_unlock(&ev->lock);
}

static void on_done(struct fw_request *r)
{
    struct op *op = (struct op *)r;
    struct events *ev = op->events;

    if (!r->failed)
        r->failed = op->endpoint->answer(op, &r->err) < 0;
    if (r->failed) {
        fw_buf_done(&op->out);
        fw_buf_init(&op->out, OP_REPLY_MAX);
        status_print(&r->err, &op->out);
    }
    pthread_mutex_lock(&ev->lock);
    ev->over = true;
    ev->failed = r->failed;
    if (ev->open)
        fw_http_wake(op->call, true);
    leave(op);
}

/* (lock) */
static void begin(struct op *op)
{
    struct fw_http_reply head = { .status = 200,
                                  .media = FW_HTTP_EVENTS,
                                  .header = { { "Cache-Control", "no-cache" } },
                                  .headers = 1 };

    op->events->owners++;
    op->events->open = true;
    fw_http_stream(op->call, &head,
                   &(struct fw_http_stream){ .pull = pull, .gone = gone, .arg = op });
    if (op->events->over)
        fw_http_wake(op->call, true);
}

void events_submit(struct op *op)
{
    struct events *ev = op->events;

    ev->owners = 2;
    op->r.progress = on_progress;
    op->r.done = on_done;
    fw_engine_submit(op->api->engine, &op->r);
    pthread_mutex_lock(&ev->lock);
    if (ev->over && ev->failed)
        reply_error(op->call, &op->r.err);
    else
        begin(op);
    leave(op);
}
