/* server.c - libmicrohttpd's callbacks, start and drain.
 *
 * One thread of the library serves all connections. For one request it calls on_request first
 * with the head, then with pieces of the body, then once more: dispatch. A `later` handler is
 * run on a worker: the connection is suspended first and enqueued then, for the worker may
 * answer before this thread returns. After the resume on_request is called again and sends the
 * stored reply, or pulls a stream (stream.c). on_completed alone frees a call. Stopping the
 * library with a suspended connection would abort, so drain waits until no call is inside a
 * handler. */
#include "config.h"

#include "call.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "fastweight/clock.h"

static enum MHD_Result send_reply(struct fw_http_call *call)
{
    if (!call->response)
        return MHD_NO;
    return MHD_queue_response(call->connection, call->status, call->response);
}

static enum MHD_Result refuse(struct fw_http_call *call)
{
    call->refused = true;
    call_refuse(call);
    return send_reply(call);
}

static void run_later(struct fw_task *task)
{
    struct fw_http_call *call = (struct fw_http_call *)task;

    call->route->later(call);
}

/* The body is whole. */
static enum MHD_Result dispatch(struct fw_http_call *call)
{
    struct fw_http *h = call->http;

    if (call->refused)
        return refuse(call);
    pthread_mutex_lock(&h->lock);
    call->counted = !h->closing;
    h->busy += call->counted;
    pthread_mutex_unlock(&h->lock);
    if (!call->counted) {
        fw_fail(&call->refusal, FW_EAGAIN, "draining", "the server is shutting down");
        return refuse(call);
    }
    if (call->route->now && call->route->now(call))
        return send_reply(call);
    call->asleep = true;
    call->task.run = run_later;
    MHD_suspend_connection(call->connection);
    fw_pool_submit(h->config.pool, &call->task);
    return MHD_YES;
}

static enum MHD_Result on_request(void *arg, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *data,
                                  size_t *len, void **own)
{
    struct fw_http_call *call = *own;
    bool all_taken;

    (void)version;
    if (!call) {
        *own = call = call_new(arg, connection, url, method);
        if (!call)
            return MHD_NO;
        call->refused = call_head(call, &call->refusal) < 0;
        call->early = call->refused && call_refuse_at_once(call);
        return call->early ? refuse(call) : MHD_YES;
    }
    if (call->replied)
        return send_reply(call);
    if (*len > 0) {
        all_taken = call_take_body(call, data, *len);
        *len = 0;
        return all_taken ? MHD_YES : MHD_NO;
    }
    return dispatch(call);
}

static void linger_on(struct fw_http *h, struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);

    if (info)
        linger_add(h->linger, info->connect_fd);
}

static void on_completed(void *arg, struct MHD_Connection *connection, void **own,
                         enum MHD_RequestTerminationCode why)
{
    struct fw_http *h = arg;
    struct fw_http_call *call = *own;

    (void)why;
    if (!call)
        return;
    *own = NULL;
    if (call->early)
        linger_on(h, connection);
    fw_log(h->config.log, FW_LOG_DEBUG, "%s %s %u %zu bytes in %zu bytes out %llu us",
           call->method, call->url, call->status, call->body.len, call->sent_bytes,
           (unsigned long long)((fw_clock_mono_ns() - call->start_ns) / 1000));
    if (call->stream.pull)
        stream_gone(call);
    call_free(call);
}

/* Leaves escapes as they are: path.c cuts first and decodes then. */
static size_t keep_escapes(void *arg, struct MHD_Connection *connection, char *text)
{
    (void)arg;
    (void)connection;
    return strlen(text);
}

static FW_PRINTF(2, 0) void on_log(void *arg, const char *fmt, va_list ap)
{
    struct fw_http *h = arg;
    char text[512];

    vsnprintf(text, sizeof text, fmt, ap);
    fw_log(h->config.log, FW_LOG_DEBUG, "http: %s", text);
}

static int start_daemon(struct fw_http *h, struct fw_err *err)
{
    const struct fw_http_config *c = &h->config;

    h->daemon = MHD_start_daemon(
        MHD_USE_AUTO_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG, 0, NULL,
        NULL, on_request, h, MHD_OPTION_EXTERNAL_LOGGER, on_log, h, MHD_OPTION_LISTEN_SOCKET,
        h->fd, MHD_OPTION_NOTIFY_COMPLETED, on_completed, h, MHD_OPTION_UNESCAPE_CALLBACK,
        keep_escapes, h, MHD_OPTION_CONNECTION_LIMIT, c->max_connections,
        MHD_OPTION_CONNECTION_TIMEOUT, c->timeout_s, MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1,
        MHD_OPTION_END);
    if (!h->daemon)
        return fw_fail(err, FW_EIO, "no_server", "the HTTP server does not start: %s",
                       strerror(errno));
    return 0;
}

int fw_http_start(struct fw_http **ret, const struct fw_http_config *c, struct fw_err *err)
{
    struct fw_http *h = calloc(1, sizeof *h);
    pthread_condattr_t attr;

    if (!h)
        return fw_fail(err, FW_ENOMEM, "out_of_memory", "no memory for a server");
    h->config = *c;
    h->fd = -1;
    pthread_mutex_init(&h->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&h->calmer, &attr);
    pthread_cond_init(&h->pulse_stop, &attr);
    pthread_condattr_destroy(&attr);
    h->route_stats = calloc(c->routes + 1, sizeof h->route_stats[0]);
    if (!h->route_stats) {
        fw_fail(err, FW_ENOMEM, "out_of_memory", "no memory for a server");
        goto fail;
    }
    if (linger_new(&h->linger, err) < 0 || stream_start(h, err) < 0 ||
        listen_open(c->listen, &h->fd, h->address, err) < 0 || start_daemon(h, err) < 0)
        goto fail;
    *ret = h;
    return 0;
fail:
    fw_http_stop(h);
    return -1;
}

const char *fw_http_address(const struct fw_http *h)
{
    return h->address;
}

static struct timespec deadline_of(unsigned ms)
{
    uint64_t ns = fw_clock_mono_ns() + (uint64_t)ms * 1000000;

    return (struct timespec){ (time_t)(ns / 1000000000), (long)(ns % 1000000000) };
}

void fw_http_drain(struct fw_http *h, unsigned deadline_ms)
{
    struct timespec deadline = deadline_of(deadline_ms);

    pthread_mutex_lock(&h->lock);
    h->draining = true;
    pthread_mutex_unlock(&h->lock);
    MHD_quiesce_daemon(h->daemon);
    shutdown(h->fd, SHUT_RDWR); /* new clients are refused at once, not left in the backlog */
    pthread_mutex_lock(&h->lock);
    while (h->open > 0 && pthread_cond_timedwait(&h->calmer, &h->lock, &deadline) == 0)
        ;
    h->closing = true;
    while (h->busy > 0)
        pthread_cond_wait(&h->calmer, &h->lock);
    deadline = deadline_of(deadline_ms); /* slow readers */
    while (h->unsent > 0 && pthread_cond_timedwait(&h->calmer, &h->lock, &deadline) == 0)
        ;
    pthread_mutex_unlock(&h->lock);
}

void fw_http_stop(struct fw_http *h)
{
    if (!h)
        return;
    stream_stop(h);
    if (h->daemon) {
        MHD_quiesce_daemon(h->daemon); /* the socket stays ours, also without a drain */
        MHD_stop_daemon(h->daemon);
    }
    linger_free(h->linger);
    if (h->fd >= 0)
        close(h->fd);
    pthread_cond_destroy(&h->pulse_stop);
    pthread_cond_destroy(&h->calmer);
    pthread_mutex_destroy(&h->lock);
    free(h->route_stats);
    free(h);
}
