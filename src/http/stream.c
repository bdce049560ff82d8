/* stream.c - replies that are made while they are sent.
 *
 * The library asks for bytes (on_pull) whenever the socket takes some. When there are none the
 * connection is suspended, under the server's lock, and only then may a waker resume it; a wake
 * that comes before that is kept in `woken`, so none is lost. A suspended connection cannot
 * time out nor see its client leave: a thread of its own, the pulse, resumes what has slept for
 * ping_ms, so that the handler sends a sign of life. A stream counts as busy until its last
 * wake: from then on it is never suspended again, and the library can be stopped. */
#include "config.h"

#include "call.h"

#include <errno.h>
#include <string.h>

#include "fastweight/clock.h"

enum { BLOCK = 16 << 10 };

/* (locked) */
static void rouse(struct fw_http_call *call)
{
    if (call->asleep)
        MHD_resume_connection(call->connection);
    call->asleep = false;
}

/* Goes to sleep: 0; or not: 1, pull again; -1, it may not sleep any more. */
static int fall_asleep(struct fw_http_call *call, uint64_t now)
{
    struct fw_http *h = call->http;
    int rc = 0;

    pthread_mutex_lock(&h->lock);
    if (call->woken) {
        rc = 1;
    } else if (call->over) {
        rc = -1;
    } else {
        MHD_suspend_connection(call->connection);
        call->asleep = true;
        call->slept_ns = now;
    }
    call->woken = false;
    pthread_mutex_unlock(&h->lock);
    return rc;
}

static ssize_t on_pull(void *arg, uint64_t at, char *to, size_t max)
{
    struct fw_http_call *call = arg;
    uint64_t now, ping_ns = call->http->config.ping_ms * UINT64_C(1000000);
    int n, rc;

    (void)at;
    do {
        now = fw_clock_mono_ns();
        n = call->stream.pull(call->stream.arg, to, max, now - call->sent_ns >= ping_ns);
        rc = n == 0 ? fall_asleep(call, now) : 0;
    } while (rc == 1);
    if (n == 0)
        return rc < 0 ? MHD_CONTENT_READER_END_WITH_ERROR : 0;
    if (n < 0)
        return n == -1 ? MHD_CONTENT_READER_END_OF_STREAM : MHD_CONTENT_READER_END_WITH_ERROR;
    call->sent_ns = now;
    call->sent_bytes += (size_t)n;
    return n;
}

/* (locked) */
static void list(struct fw_http_call *call)
{
    struct fw_http *h = call->http;

    call->stream_next = h->streams;
    if (h->streams)
        h->streams->stream_prev = call;
    h->streams = call;
}

/* (locked) */
static void unlist(struct fw_http_call *call)
{
    if (call->stream_next)
        call->stream_next->stream_prev = call->stream_prev;
    if (call->stream_prev)
        call->stream_prev->stream_next = call->stream_next;
    else
        call->http->streams = call->stream_next;
}

void fw_http_stream(struct fw_http_call *call, const struct fw_http_reply *reply,
                    const struct fw_http_stream *s)
{
    struct fw_http *h = call->http;

    call->stream = *s;
    call->sent_ns = fw_clock_mono_ns();
    call_head_of(
        call, MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK, on_pull, call, NULL),
        reply);
    pthread_mutex_lock(&h->lock);
    h->unsent++;
    list(call);
    rouse(call);
    pthread_mutex_unlock(&h->lock);
}

/* (locked) */
static void end_busy(struct fw_http_call *call)
{
    if (!call->over && call->counted) {
        call->http->busy--;
        pthread_cond_broadcast(&call->http->calmer);
    }
    call->over = true;
}

void fw_http_wake(struct fw_http_call *call, bool last)
{
    struct fw_http *h = call->http;

    pthread_mutex_lock(&h->lock);
    call->woken = true;
    if (last)
        end_busy(call);
    rouse(call);
    pthread_mutex_unlock(&h->lock);
}

void stream_gone(struct fw_http_call *call)
{
    struct fw_http *h = call->http;

    call->stream.gone(call->stream.arg);
    pthread_mutex_lock(&h->lock);
    end_busy(call);
    unlist(call);
    pthread_mutex_unlock(&h->lock);
}

/* ---- the pulse */

/* (locked) */
static void rouse_the_silent(struct fw_http *h, uint64_t silent_ns)
{
    uint64_t now = fw_clock_mono_ns();
    struct fw_http_call *call;

    for (call = h->streams; call; call = call->stream_next) {
        if (call->asleep && now - call->slept_ns >= silent_ns)
            rouse(call);
    }
}

static void *pulse(void *arg)
{
    struct fw_http *h = arg;
    uint64_t ping_ns = h->config.ping_ms * UINT64_C(1000000), at;
    struct timespec next;

    pthread_mutex_lock(&h->lock);
    while (h->pulsing) {
        at = fw_clock_mono_ns() + ping_ns / 2;
        next = (struct timespec){ (time_t)(at / 1000000000), (long)(at % 1000000000) };
        if (pthread_cond_timedwait(&h->pulse_stop, &h->lock, &next) == ETIMEDOUT)
            rouse_the_silent(h, ping_ns);
    }
    pthread_mutex_unlock(&h->lock);
    return NULL;
}

int stream_start(struct fw_http *h, struct fw_err *err)
{
    int rc;

    if (h->config.ping_ms == 0)
        h->config.ping_ms = 5000;
    h->pulsing = true;
    rc = pthread_create(&h->pulse, NULL, pulse, h);
    if (rc == 0)
        return 0;
    h->pulsing = false;
    return fw_fail(err, FW_ENOMEM, "no_thread", "cannot start a thread: %s", strerror(rc));
}

void stream_stop(struct fw_http *h)
{
    bool running;

    pthread_mutex_lock(&h->lock);
    running = h->pulsing;
    h->pulsing = false;
    pthread_cond_signal(&h->pulse_stop);
    pthread_mutex_unlock(&h->lock);
    if (running)
        pthread_join(h->pulse, NULL);
}
