/* call.c - what a handler sees of a request, and its answer.
 *
 * A reply is made into the library's response object in the answering thread; resuming the
 * connection is the last touch of the call, because the server's thread may send the reply and
 * free the call before this thread runs on. The server itself outlives that: it waits for
 * `busy`, which goes down after the resume. */
#include "config.h"

#include "call.h"

#include <stdlib.h>
#include <string.h>

#include "fastweight/clock.h"

#include "media.h"

struct fw_http_call *call_new(struct fw_http *h, struct MHD_Connection *connection,
                              const char *url, const char *method)
{
    struct fw_http_call *call = calloc(1, sizeof *call);

    if (!call)
        return NULL;
    call->http = h;
    call->connection = connection;
    call->url = url;
    call->method = method;
    call->start_ns = fw_clock_mono_ns();
    pthread_mutex_lock(&h->lock);
    h->open++;
    pthread_mutex_unlock(&h->lock);
    return call;
}

void call_free(struct fw_http_call *call)
{
    struct fw_http *h = call->http;
    size_t i;

    pthread_mutex_lock(&h->lock);
    stats_count(h, call);
    h->open--;
    h->unsent -= call->replied;
    pthread_cond_broadcast(&h->calmer);
    pthread_mutex_unlock(&h->lock);
    for (i = 0; i < call->pairs; i++)
        free((void *)(uintptr_t)call->query[i].name.data); /* owned; lent as const */
    if (call->response)
        MHD_destroy_response(call->response);
    fw_buf_done(&call->body);
    path_done(&call->path);
    free(call);
}

void call_refuse(struct fw_http_call *call)
{
    call->http->config.refuse(call, &call->refusal);
}

void *fw_http_arg(const struct fw_http_call *call)
{
    return call->http->config.arg;
}

struct fw_http *fw_http_of(const struct fw_http_call *call)
{
    return call->http;
}

const struct fw_http_route *fw_http_route(const struct fw_http_call *call)
{
    return call->route;
}

struct fw_http_text fw_http_segment(const struct fw_http_call *call, size_t i)
{
    if (i >= PATH_CAPTURES || !call->capture[i].data)
        return (struct fw_http_text){ "", 0 };
    return call->capture[i];
}

const struct fw_http_pair *fw_http_query(const struct fw_http_call *call, size_t *ret_count)
{
    *ret_count = call->pairs;
    return call->query;
}

const char *fw_http_header(const struct fw_http_call *call, const char *name)
{
    return MHD_lookup_connection_value(call->connection, MHD_HEADER_KIND, name);
}

enum fw_http_media fw_http_media(const struct fw_http_call *call)
{
    return call->media;
}

bool fw_http_accepts(const struct fw_http_call *call, enum fw_http_media media)
{
    return media_accepts(fw_http_header(call, MHD_HTTP_HEADER_ACCEPT), media);
}

const struct fw_buf *fw_http_body(const struct fw_http_call *call)
{
    return &call->body;
}

void call_head_of(struct fw_http_call *call, struct MHD_Response *r,
                  const struct fw_http_reply *reply)
{
    size_t i;

    call->response = r;
    call->status = (unsigned)reply->status;
    call->replied = true;
    if (!r)
        return;
    if (reply->media)
        MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, media_name(reply->media));
    for (i = 0; i < reply->headers; i++)
        MHD_add_response_header(r, reply->header[i].name, reply->header[i].value);
    if (call->allow[0])
        MHD_add_response_header(r, MHD_HTTP_HEADER_ALLOW, call->allow);
    if (call->refused && call->refusal.code == FW_EAGAIN)
        MHD_add_response_header(r, MHD_HTTP_HEADER_CONNECTION, "close");
}

static struct MHD_Response *make_response(struct fw_http_call *call,
                                          const struct fw_http_reply *reply)
{
    struct MHD_Response *r;
    unsigned char *data = NULL;
    size_t len = 0;

    if (reply->body)
        data = fw_buf_take(reply->body, &len);
    r = MHD_create_response_from_buffer(len, data, MHD_RESPMEM_MUST_FREE);
    if (!r)
        free(data);
    else
        call->sent_bytes = len;
    return r;
}

void fw_http_reply(struct fw_http_call *call, const struct fw_http_reply *reply)
{
    struct fw_http *h = call->http;
    struct MHD_Connection *connection = call->connection;
    bool asleep = call->asleep, counted = call->counted;

    call_head_of(call, make_response(call, reply), reply);
    pthread_mutex_lock(&h->lock);
    h->unsent++;
    pthread_mutex_unlock(&h->lock);
    if (asleep)
        MHD_resume_connection(connection); /* the call may be gone from here on */
    if (!counted)
        return;
    pthread_mutex_lock(&h->lock);
    h->busy--;
    pthread_cond_broadcast(&h->calmer);
    pthread_mutex_unlock(&h->lock);
}
