/* call.h - one request on its way, and the server it belongs to. Private to http.
 *
 * The server's thread owns a call, except between suspend and resume, when the handler does.
 * `lock` guards the counters and the two flags of struct fw_http. */
#ifndef HTTP_CALL_H
#define HTTP_CALL_H

#include <microhttpd.h>
#include <pthread.h>

#include "fastweight/http.h"

#include "linger.h"
#include "listen.h"
#include "path.h"

enum {
    CALL_PAIRS = 8,
    CALL_DISCARD_SMALL = 64 << 10, /* a refused body that is read to keep the connection */
    CALL_DISCARD_MAX = 64 << 20    /* of a chunked body, read past its refusal */
};

struct fw_http {
    struct fw_http_config config;
    struct MHD_Daemon *daemon;
    int fd; /* listening; ours once quiesced */
    char address[LISTEN_TEXT];
    pthread_mutex_t lock;
    pthread_cond_t calmer; /* open or busy went down */
    bool draining;         /* new requests get 503 */
    bool closing;          /* also those whose body was still on its way */
    uint64_t open;         /* calls that exist */
    uint64_t busy;         /* calls inside a handler: dispatched, not answered */
    uint64_t unsent;       /* calls whose reply is not all out */
    struct lingerer *linger;
    struct fw_http_call *streams; /* list of calls whose reply is a stream */
    pthread_t pulse;
    pthread_cond_t pulse_stop;
    bool pulsing; /* false: the thread shall end, or there is none */
    struct fw_http_stats stats;
    struct fw_http_route_stats *route_stats; /* (routes + 1) */
};

struct fw_http_call {
    struct fw_task task; /* first: the pool hands it back */
    struct fw_http *http;
    struct MHD_Connection *connection;
    const struct fw_http_route *route; /* NULL: none matched */
    const char *url, *method;          /* raw; the connection's */
    struct path path;
    struct fw_http_text capture[PATH_CAPTURES];
    struct fw_http_pair query[CALL_PAIRS];
    size_t pairs;
    enum fw_http_media media;
    char allow[48]; /* of a 405 */
    struct fw_buf body;
    uint64_t length;    /* Content-Length; 0 when chunked */
    uint64_t discarded; /* body bytes read past a refusal */
    bool chunked, expects_continue;
    bool refused; /* refusal is what it gets */
    struct fw_err refusal;
    bool asleep;  /* suspended: the reply must resume it */
    bool counted; /* in busy */
    bool replied;
    bool early; /* answered before its body came: the connection will be closed */
    struct fw_http_stream stream; /* pull NULL: it is none */
    struct fw_http_call *stream_next, *stream_prev;
    bool woken;                    /* pull again before going to sleep */
    bool over;                     /* pull will not return 0 any more */
    uint64_t slept_ns;             /* when it was suspended */
    uint64_t sent_ns;              /* server's thread: when a stream last gave something */
    struct MHD_Response *response; /* NULL when even that failed: the connection closes */
    unsigned status;
    size_t sent_bytes;
    uint64_t start_ns;
};

/* head.c: everything that the head of a request decides; a failure is the refusal. */
int call_head(struct fw_http_call *call, struct fw_err *err);
/* Is the refusal sent before the body, or after the body was read and thrown away? */
bool call_refuse_at_once(const struct fw_http_call *call);

/* body.c: takes body bytes; false: give the connection up. */
bool call_take_body(struct fw_http_call *call, const void *data, size_t len);

/* call.c */
struct fw_http_call *call_new(struct fw_http *h, struct MHD_Connection *connection,
                              const char *url, const char *method);
void call_free(struct fw_http_call *call);
void call_refuse(struct fw_http_call *call); /* makes its refusal the reply */

/* Makes a response's head; takes over r, which may be NULL. */
void call_head_of(struct fw_http_call *call, struct MHD_Response *r,
                  const struct fw_http_reply *reply);

/* stream.c */
int stream_start(struct fw_http *h, struct fw_err *err); /* the thread that pings */
void stream_stop(struct fw_http *h);
void stream_gone(struct fw_http_call *call); /* before call_free */

/* stats.c */
void stats_count(struct fw_http *h, const struct fw_http_call *call);

#endif
