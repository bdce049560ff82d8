/* head.c - what the head of a request decides before any of its body is read.
 *
 * In this order: framing, host, origin, path, route and method, draining, query, media type,
 * length. Each failure fills the caller's error once, which becomes the refusal. A refused body
 * that is short is read and thrown away, so that the client keeps its connection; one that is
 * long, over the limit or waiting for "100 Continue" is refused at once, and the connection
 * closes (linger.c lets the client read why). Server's thread. */
#include "config.h"

#include "call.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "media.h"

static const char *const methods[] = { [FW_HTTP_GET] = "GET",
                                       [FW_HTTP_POST] = "POST",
                                       [FW_HTTP_PUT] = "PUT",
                                       [FW_HTTP_PATCH] = "PATCH",
                                       [FW_HTTP_DELETE] = "DELETE" };

bool call_refuse_at_once(const struct fw_http_call *call)
{
    return call->expects_continue || call->length > CALL_DISCARD_SMALL ||
           call->refusal.code == FW_ETOOBIG || strcmp(call->refusal.reason, "bad_framing") == 0;
}

/* Whatever another reader of the same bytes might cut in another way is refused: a second
 * length, and a name that only looks like one. */
static enum MHD_Result look_at_framing(void *arg, enum MHD_ValueKind kind, const char *name,
                                       const char *value)
{
    int *lengths = arg;

    (void)kind;
    (void)value;
    if (strcasecmp(name, MHD_HTTP_HEADER_CONTENT_LENGTH) == 0 ||
        strcasecmp(name, MHD_HTTP_HEADER_TRANSFER_ENCODING) == 0)
        *lengths += 1;
    else if (name[strcspn(name, " \t")])
        *lengths += 2;
    return MHD_YES;
}

static int read_framing(struct fw_http_call *call, struct fw_err *err)
{
    int lengths = 0;
    const char *length = fw_http_header(call, MHD_HTTP_HEADER_CONTENT_LENGTH);
    const char *coding = fw_http_header(call, MHD_HTTP_HEADER_TRANSFER_ENCODING);
    const char *expect = fw_http_header(call, MHD_HTTP_HEADER_EXPECT);

    call->expects_continue = expect && strcasecmp(expect, "100-continue") == 0;
    MHD_get_connection_values(call->connection, MHD_HEADER_KIND, look_at_framing, &lengths);
    if (lengths > 1 || (coding && strcasecmp(coding, "chunked") != 0))
        return fw_fail(err, FW_ESYNTAX, "bad_framing",
                       "a body has one Content-Length or Transfer-Encoding: chunked");
    call->chunked = coding != NULL;
    call->length = length ? strtoull(length, NULL, 10) : 0; /* the library checked it */
    return 0;
}

/* localhost or a number: nobody's name server has a say in where that leads. */
static bool is_fixed(const char *host)
{
    size_t len = strcspn(host, ":");

    return *host == '[' || (len == 9 && strncasecmp(host, "localhost", len) == 0) ||
           (len > 0 && strspn(host, "0123456789.") == len);
}

/* A site may let its own name lead to this machine, once its page is loaded; then the browser
 * takes us for that site, and reads what it is told here. */
static int check_host(const struct fw_http_call *call, struct fw_err *err)
{
    const char *host = fw_http_header(call, MHD_HTTP_HEADER_HOST);

    if (!host || is_fixed(host))
        return 0;
    return fw_fail_param(err, FW_EACCES, "foreign_host", "Host",
                         "this is not '%.80s'; ask for localhost or a numeric address", host);
}

/* A browser names the page that asks. Another site's page must not reach what listens on this
 * machine: only a page that we served may. */
static int check_origin(const struct fw_http_call *call, struct fw_err *err)
{
    const char *origin = fw_http_header(call, MHD_HTTP_HEADER_ORIGIN);
    const char *host = fw_http_header(call, MHD_HTTP_HEADER_HOST);

    if (!origin ||
        (host && strncmp(origin, "http://", 7) == 0 && strcasecmp(origin + 7, host) == 0))
        return 0;
    return fw_fail_param(err, FW_EACCES, "foreign_origin", "Origin",
                         "pages of '%.80s' may not ask here", origin);
}

static void add_allow(struct fw_http_call *call, enum fw_http_method m)
{
    size_t at = strlen(call->allow);

    snprintf(call->allow + at, sizeof call->allow - at, "%s%s%s", at ? ", " : "", methods[m],
             m == FW_HTTP_GET ? ", HEAD" : "");
}

static int find_route(struct fw_http_call *call, struct fw_err *err)
{
    const struct fw_http_config *c = &call->http->config;
    const char *method = strcmp(call->method, "HEAD") == 0 ? "GET" : call->method;
    struct fw_http_text capture[PATH_CAPTURES] = { { NULL, 0 } };
    size_t i;

    for (i = 0; i < c->routes; i++) {
        if (!path_match(&call->path, c->route[i].pattern, capture))
            continue;
        if (strcmp(method, methods[c->route[i].method]) == 0) {
            call->route = &c->route[i];
            memcpy(call->capture, capture, sizeof capture);
            call->allow[0] = 0;
            return 0;
        }
        add_allow(call, c->route[i].method);
    }
    if (!call->allow[0])
        return fw_fail(err, FW_ENOENT, "unknown_path", "no such path");
    return fw_fail(err, FW_EMETHOD, "method_not_allowed",
                   "%.20s is not for this path; it has %s", call->method, call->allow);
}

static int check_draining(const struct fw_http_call *call, struct fw_err *err)
{
    bool draining;

    pthread_mutex_lock(&call->http->lock);
    draining = call->http->draining;
    pthread_mutex_unlock(&call->http->lock);
    if (draining && !call->route->while_draining)
        return fw_fail(err, FW_EAGAIN, "draining", "the server is shutting down");
    return 0;
}

static int add_pair(struct fw_http_call *call, const char *name, const char *value,
                    struct fw_err *err)
{
    struct fw_http_pair *pair = &call->query[call->pairs];
    char *bytes, *at;

    if (call->pairs == CALL_PAIRS)
        return fw_fail_param(err, FW_EINVAL, "too_many_parameters", "query",
                             "more than %d query parameters", CALL_PAIRS);
    bytes = malloc(strlen(name) + strlen(value) + 2);
    if (!bytes)
        return fw_fail(err, FW_ENOMEM, "out_of_memory", "no memory for the query");
    call->pairs++;
    pair->name.data = bytes;
    if (path_decode(name, bytes, &pair->name.len) < 0)
        goto malformed;
    pair->value.data = at = bytes + pair->name.len + 1;
    if (path_decode(value, at, &pair->value.len) < 0)
        goto malformed;
    return 0;
malformed:
    return fw_fail(err, FW_ESYNTAX, "bad_query", "malformed %%XX in the query");
}

struct query_reader {
    struct fw_http_call *call;
    struct fw_err *err;
    int rc;
};

static enum MHD_Result on_pair(void *arg, enum MHD_ValueKind kind, const char *name,
                               const char *value)
{
    struct query_reader *r = arg;

    (void)kind;
    r->rc = add_pair(r->call, name ? name : "", value ? value : "", r->err);
    return r->rc < 0 ? MHD_NO : MHD_YES;
}

static int read_query(struct fw_http_call *call, struct fw_err *err)
{
    struct query_reader r = { call, err, 0 };

    MHD_get_connection_values(call->connection, MHD_GET_ARGUMENT_KIND, on_pair, &r);
    return r.rc;
}

static int check_media(struct fw_http_call *call, struct fw_err *err)
{
    const char *type = fw_http_header(call, MHD_HTTP_HEADER_CONTENT_TYPE);
    unsigned takes = call->route->media;
    char list[128];

    if (call->length == 0 && !call->chunked)
        return 0;
    if (!takes)
        return fw_fail_param(err, FW_EINVAL, "unexpected_body", "body",
                             "this request takes no body");
    call->media = type ? media_parse(type) : 0;
    if (call->media & takes)
        return 0;
    media_list(takes, list, sizeof list);
    if (!type)
        return fw_fail_param(err, FW_EMEDIA, "unsupported_media_type", "Content-Type",
                             "a body needs a Content-Type; send %s", list);
    return fw_fail_param(err, FW_EMEDIA, "unsupported_media_type", "Content-Type",
                         "'%.60s' is not taken here; send %s", type, list);
}

static int check_length(struct fw_http_call *call, struct fw_err *err)
{
    const struct fw_http_config *c = &call->http->config;
    size_t limit = c->max_body_bytes;
    uint64_t inflight;

    if (call->route->limit && call->route->limit(call, &limit, err) < 0)
        return -1;
    fw_buf_init(&call->body, limit);
    if (call->length > limit)
        return fw_fail_param(err, FW_ETOOBIG, "body_too_large", "body",
                             "the body has %llu bytes, the limit here is %zu",
                             (unsigned long long)call->length, limit);
    pthread_mutex_lock(&call->http->lock);
    inflight = call->http->stats.inflight_bytes;
    pthread_mutex_unlock(&call->http->lock);
    if (inflight > 0 && call->length > 0 && inflight + call->length > c->max_inflight_bytes)
        return fw_fail(err, FW_EBUSY, "bodies_in_flight",
                       "all bodies together would pass max_inflight_bytes (%zu)",
                       c->max_inflight_bytes);
    return 0;
}

int call_head(struct fw_http_call *call, struct fw_err *err)
{
    if (read_framing(call, err) < 0 || check_host(call, err) < 0 ||
        check_origin(call, err) < 0 || path_split(&call->path, call->url, err) < 0 ||
        find_route(call, err) < 0 || check_draining(call, err) < 0 ||
        read_query(call, err) < 0 || check_media(call, err) < 0)
        return -1;
    return check_length(call, err);
}
