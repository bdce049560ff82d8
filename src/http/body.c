/* body.c - reading a body under three caps: the route's, all bodies' together, and what is
 * thrown away after a refusal. The bytes count as in flight from here until the call ends.
 * Server's thread. */
#include "config.h"

#include "call.h"

/* Forgets what was read; the rest will be thrown away. */
static void refuse_rest(struct fw_http_call *call)
{
    struct fw_http *h = call->http;

    call->refused = true;
    pthread_mutex_lock(&h->lock);
    h->stats.inflight_bytes -= call->body.len;
    pthread_mutex_unlock(&h->lock);
    fw_buf_done(&call->body);
}

static int charge(struct fw_http *h, size_t own, size_t len, struct fw_err *err)
{
    uint64_t all;
    int rc = 0;

    pthread_mutex_lock(&h->lock);
    all = h->stats.inflight_bytes + len;
    if (all > h->config.max_inflight_bytes && all > own + len) /* alone it always may */
        rc = fw_fail(err, FW_EBUSY, "bodies_in_flight",
                     "all bodies together would pass max_inflight_bytes (%zu)",
                     h->config.max_inflight_bytes);
    else
        h->stats.inflight_bytes = all;
    pthread_mutex_unlock(&h->lock);
    return rc;
}

static int append(struct fw_http_call *call, const void *data, size_t len, struct fw_err *err)
{
    struct fw_buf *b = &call->body;

    if (len > b->max - b->len)
        return fw_fail_param(err, FW_ETOOBIG, "body_too_large", "body",
                             "the body passes the limit of %zu bytes", b->max);
    if (b->cap == 0 && fw_buf_reserve(b, call->length > len ? call->length : len, err) < 0)
        return -1;
    if (fw_buf_reserve(b, len, err) < 0 || charge(call->http, b->len, len, err) < 0)
        return -1;
    return fw_buf_append(b, data, len, NULL); /* it has room */
}

bool call_take_body(struct fw_http_call *call, const void *data, size_t len)
{
    struct fw_http *h = call->http;

    pthread_mutex_lock(&h->lock);
    h->stats.received_bytes += len;
    pthread_mutex_unlock(&h->lock);
    if (!call->refused && append(call, data, len, &call->refusal) < 0)
        refuse_rest(call);
    if (call->refused)
        call->discarded += len;
    return call->discarded <= CALL_DISCARD_MAX;
}
