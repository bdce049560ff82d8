/* fastweight/http.h - requests, replies, routes, server start and drain.
 *
 * A table of routes is the whole interface. Whatever can be refused from the head of a request
 * alone (path, method, media type, length) is refused there; a body is read under a cap; then
 * the route's handler runs. `now` runs in the server's one thread and must be short; `later`
 * runs on a pool worker while the connection sleeps, and may answer from any thread. Every call
 * is answered exactly once, by fw_http_reply(), and must not be touched after it.
 *
 * Unless stated otherwise a function belongs to the handler that has the call just then. */
#ifndef FW_HTTP_H
#define FW_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fastweight/buf.h"
#include "fastweight/log.h"
#include "fastweight/pool.h"

enum fw_http_method { FW_HTTP_GET, FW_HTTP_POST, FW_HTTP_PUT, FW_HTTP_PATCH, FW_HTTP_DELETE };

enum fw_http_media { /* a bit each */
                     FW_HTTP_JSON = 1,
                     FW_HTTP_TEXT = 2,
                     FW_HTTP_OCTETS = 4,
                     FW_HTTP_SAFETENSORS = 8,
                     FW_HTTP_PNG = 16,
                     FW_HTTP_METRICS = 32, /* text/plain as Prometheus names it */
                     FW_HTTP_EVENTS = 64   /* text/event-stream */
};

struct fw_http;
struct fw_http_call;

struct fw_http_text { /* decoded bytes; may hold any byte; also NUL-terminated */
    const char *data;
    size_t len;
};

struct fw_http_pair {
    struct fw_http_text name, value;
};

struct fw_http_route {
    enum fw_http_method method; /* GET also serves HEAD */
    const char *pattern;        /* "/v1/sessions/{id}/learn": literal or {captured} segments */
    unsigned media;             /* what a body may be; 0: no body is taken */
    bool while_draining;        /* answered until the end; others get 503 */
    bool (*now)(struct fw_http_call *call); /* or NULL; false: not mine, run `later` */
    void (*later)(struct fw_http_call *call);
    /* The most body bytes, in place of max_body_bytes; short, in the server's thread; -1
     * refuses the request. NULL: max_body_bytes. */
    int (*limit)(struct fw_http_call *call, size_t *ret, struct fw_err *err);
    const void *arg; /* the table owner's */
};

struct fw_http_config { /* borrowed until stop */
    const char *listen; /* "127.0.0.1:7787", "[::1]:0"; loopback only */
    const struct fw_http_route *route;
    size_t routes;
    /* Answers a request that no handler saw, with fw_http_reply, at once. */
    void (*refuse)(struct fw_http_call *call, const struct fw_err *err);
    void *arg;
    size_t max_body_bytes;
    size_t max_inflight_bytes; /* of all bodies in memory; over it: 429 */
    unsigned max_connections, timeout_s;
    unsigned ping_ms; /* how long a stream may be silent */
    struct fw_pool *pool;
    const struct fw_log *log;
};

/* Binds and serves. FW_EINVAL on a bad or not-loopback address, FW_EIO when it cannot bind. */
int fw_http_start(struct fw_http **ret, const struct fw_http_config *c, struct fw_err *err);
const char *fw_http_address(const struct fw_http *h); /* "127.0.0.1:7787", with the real port */
/* Stops listening, refuses new requests with FW_EAGAIN, waits up to deadline_ms for bodies on
 * their way, then until everything accepted is answered. After it no handler runs any more. */
void fw_http_drain(struct fw_http *h, unsigned deadline_ms);
/* After drain, once no thread can be inside fw_http_reply: closes and frees. NULL allowed. */
void fw_http_stop(struct fw_http *h);

/* What was asked. Lent until the reply. */
void *fw_http_arg(const struct fw_http_call *call); /* config's arg */
struct fw_http *fw_http_of(const struct fw_http_call *call);
const struct fw_http_route *fw_http_route(const struct fw_http_call *call);
/* The i-th {captured} segment, from 0; empty when there is none. */
struct fw_http_text fw_http_segment(const struct fw_http_call *call, size_t i);
const struct fw_http_pair *fw_http_query(const struct fw_http_call *call, size_t *ret_count);
const char *fw_http_header(const struct fw_http_call *call, const char *name); /* or NULL */
enum fw_http_media fw_http_media(const struct fw_http_call *call); /* of the body; 0: none */
bool fw_http_accepts(const struct fw_http_call *call, enum fw_http_media media); /* by name */
/* The whole body; aligned as malloc does. */
const struct fw_buf *fw_http_body(const struct fw_http_call *call);

struct fw_http_header {
    const char *name, *value;
};

struct fw_http_reply {
    int status;
    enum fw_http_media media; /* 0: no body */
    struct fw_buf *body;      /* its bytes are taken */
    struct fw_http_header header[4];
    size_t headers;
};

/* Any thread, exactly once per call; the call is gone afterwards. */
void fw_http_reply(struct fw_http_call *call, const struct fw_http_reply *reply);

/* A reply whose body is made while it is sent: the server's thread pulls it, as fast as the
 * client reads, so nothing waits for a slow reader (who is cut off after timeout_s). */
struct fw_http_stream {
    /* Puts up to max bytes at `to` and returns how many. 0: nothing yet; the connection sleeps
     * until fw_http_wake, or for ping_ms, after which it is asked again with `idle`. -1: the
     * end; -2: a failure, which breaks the connection off. Short. */
    int (*pull)(void *arg, char *to, size_t max, bool idle);
    /* Exactly once, in the server's thread: all is sent, or the client or the server is gone.
     * The call is gone too when it returns; until then fw_http_wake is allowed. */
    void (*gone)(void *arg);
    void *arg;
};
/* In place of fw_http_reply; reply has no body. Its head goes out at once. */
void fw_http_stream(struct fw_http_call *call, const struct fw_http_reply *reply,
                    const struct fw_http_stream *s);
/* pull has something to give. last: and will have until it ends; drain waits for that. Any
 * thread. */
void fw_http_wake(struct fw_http_call *call, bool last);

/* Counters since start; any thread. */
#define FW_HTTP_BUCKETS 12
extern const uint64_t fw_http_bucket_us[FW_HTTP_BUCKETS]; /* upper bounds of the histogram */

struct fw_http_route_stats {
    uint64_t status[6]; /* by class: 2 = 2xx; 0 = no reply went out */
    uint64_t bucket[FW_HTTP_BUCKETS];
    uint64_t count, duration_ns;
};
struct fw_http_stats {
    uint64_t requests_open, inflight_bytes, received_bytes, sent_bytes;
};
void fw_http_stats(struct fw_http *h, struct fw_http_stats *ret);
/* route: an index into the table, or its length for requests that matched none. */
void fw_http_route_stats(struct fw_http *h, size_t route, struct fw_http_route_stats *ret);

#endif
