/* server_test.c - requests over a real socket: refusals, bodies, sleeping calls, drain. */
#include "config.h"

#include "fastweight/http.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "test_main.h"

struct gate { /* holds `slow` calls until it is opened */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool open;
    unsigned waiting;
};

static struct gate gate = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false, 0 };

static void answer(struct fw_http_call *call, int status, const char *text)
{
    struct fw_buf b;

    fw_buf_init(&b, 1 << 20);
    ck_assert_int_eq(fw_buf_append(&b, text, strlen(text), NULL), 0);
    fw_http_reply(call, &(struct fw_http_reply){ .status = status,
                                                 .media = FW_HTTP_TEXT,
                                                 .body = &b,
                                                 .header = { { "X-Test", "1" } },
                                                 .headers = 1 });
}

static void on_refuse(struct fw_http_call *call, const struct fw_err *err)
{
    answer(call, 400 + (int)err->code, err->reason);
}

static bool hello(struct fw_http_call *call)
{
    size_t n;
    const struct fw_http_pair *q = fw_http_query(call, &n);

    answer(call, 200, n == 1 ? q->value.data : "hello");
    return true;
}

static void echo(struct fw_http_call *call)
{
    const struct fw_buf *body = fw_http_body(call);
    char text[64];
    int shown = body->len < 8 ? (int)body->len : 8; /* a body has no NUL */

    snprintf(text, sizeof text, "%s %zu bytes %.*s", fw_http_segment(call, 0).data, body->len,
             shown, shown ? (const char *)body->data : "");
    answer(call, 200, text);
}

static void slow(struct fw_http_call *call)
{
    pthread_mutex_lock(&gate.lock);
    gate.waiting++;
    pthread_cond_broadcast(&gate.changed);
    while (!gate.open)
        pthread_cond_wait(&gate.changed, &gate.lock);
    pthread_mutex_unlock(&gate.lock);
    answer(call, 200, "at last");
}

static int small_limit(struct fw_http_call *call, size_t *ret, struct fw_err *err)
{
    if (strcmp(fw_http_segment(call, 0).data, "none") == 0)
        return fw_fail(err, FW_ENOENT, "no_such_thing", "none");
    *ret = 10;
    return 0;
}

static const struct fw_http_route routes[] = {
    { .method = FW_HTTP_GET, .pattern = "/hello", .now = hello, .while_draining = true },
    { .method = FW_HTTP_POST,
      .pattern = "/echo/{id}",
      .later = echo,
      .media = FW_HTTP_TEXT | FW_HTTP_JSON },
    { .method = FW_HTTP_PUT,
      .pattern = "/echo/{id}",
      .later = echo,
      .media = FW_HTTP_OCTETS,
      .limit = small_limit },
    { .method = FW_HTTP_GET, .pattern = "/slow", .later = slow },
};

struct fixture {
    struct fw_pool *pool;
    struct fw_http *http;
};

static struct fixture begin(void)
{
    struct fixture f;
    struct fw_err err;
    struct fw_http_config c = { .listen = "127.0.0.1:0",
                                .route = routes,
                                .routes = sizeof routes / sizeof routes[0],
                                .refuse = on_refuse,
                                .max_body_bytes = 100000,
                                .max_inflight_bytes = 150000,
                                .max_connections = 20,
                                .timeout_s = 20 };

    ck_assert_int_eq(fw_pool_new(&f.pool, 2, NULL, &err), 0);
    c.pool = f.pool;
    ck_assert_int_eq(fw_http_start(&f.http, &c, &err), 0);
    return f;
}

static void end(struct fixture *f)
{
    fw_http_drain(f->http, 1000);
    fw_pool_free(f->pool);
    fw_http_stop(f->http);
}

static int dial(const struct fixture *f)
{
    struct sockaddr_in a = { .sin_family = AF_INET };
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    a.sin_port = htons((uint16_t)strtoul(strrchr(fw_http_address(f->http), ':') + 1, NULL, 10));
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
    return fd;
}

static void put(int fd, const char *data, size_t len)
{
    ssize_t n;

    while (len > 0) {
        n = send(fd, data, len, MSG_NOSIGNAL);
        ck_assert_int_gt(n, 0);
        data += n;
        len -= (size_t)n;
    }
}

static void say(int fd, const char *text)
{
    put(fd, text, strlen(text));
}

/* Reads until the peer closes. */
static const char *read_all(int fd)
{
    static char text[8192];
    size_t at = 0;
    ssize_t n;

    while (at < sizeof text - 1 && (n = recv(fd, text + at, sizeof text - 1 - at, 0)) > 0)
        at += (size_t)n;
    text[at] = 0;
    close(fd);
    return text;
}

static const char *ask(const struct fixture *f, const char *head)
{
    int fd = dial(f);

    say(fd, head);
    return read_all(fd);
}

#define CLOSE "Host: localhost\r\nConnection: close\r\n"

static void expect(const char *reply, int status, const char *what)
{
    ck_assert_msg(strtol(reply + 9, NULL, 10) == status && strstr(reply, what), "%d %s in: %s",
                  status, what, reply);
}

START_TEST(a_request_reaches_its_handler)
{
    struct fixture f = begin();

    expect(ask(&f, "GET /hello HTTP/1.1\r\n" CLOSE "\r\n"), 200, "\r\n\r\nhello");
    expect(ask(&f, "GET /hello?a=%41%2b+b HTTP/1.1\r\n" CLOSE "\r\n"), 200, "A+ b");
    expect(ask(&f, "HEAD /hello HTTP/1.1\r\n" CLOSE "\r\n"), 200, "Content-Length: 5");
    expect(ask(&f, "POST /echo/x%2Fy HTTP/1.1\r\n" CLOSE
                   "Content-Type: text/plain\r\nContent-Length: 3\r\n\r\nabc"),
           200, "x/y 3 bytes abc");
    expect(ask(&f, "POST /echo/x HTTP/1.1\r\n" CLOSE "Content-Type: text/plain\r\n"
                   "Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n"),
           200, "x 3 bytes abc");
    expect(ask(&f, "POST /echo/x HTTP/1.1\r\n" CLOSE "\r\n"), 200, "x 0 bytes");
    end(&f);
}
END_TEST

START_TEST(what_the_head_rules_out_is_refused)
{
    struct fixture f = begin();

    expect(ask(&f, "GET /nothing HTTP/1.1\r\n" CLOSE "\r\n"), 400 + FW_ENOENT, "unknown_path");
    expect(ask(&f, "GET /echo/x HTTP/1.1\r\n" CLOSE "\r\n"), 400 + FW_EMETHOD,
           "Allow: POST, PUT\r\n");
    expect(ask(&f, "PATCH /hello HTTP/1.1\r\n" CLOSE "\r\n"), 400 + FW_EMETHOD,
           "Allow: GET, HEAD\r\n");
    expect(ask(&f, "GET /he%6 HTTP/1.1\r\n" CLOSE "\r\n"), 400 + FW_ESYNTAX, "bad_path");
    expect(ask(&f, "GET /hello?a=%6 HTTP/1.1\r\n" CLOSE "\r\n"), 400 + FW_ESYNTAX, "bad_query");
    expect(ask(&f, "GET /hello?a&b&c&d&e&f&g&h&i HTTP/1.1\r\n" CLOSE "\r\n"), 400 + FW_EINVAL,
           "too_many_parameters");
    expect(ask(&f, "POST /echo/x HTTP/1.1\r\n" CLOSE
                   "Content-Type: image/png\r\nContent-Length: 1\r\n\r\na"),
           400 + FW_EMEDIA, "unsupported_media_type");
    expect(ask(&f, "GET /hello HTTP/1.1\r\n" CLOSE "Content-Length: 1\r\n\r\na"),
           400 + FW_EINVAL, "unexpected_body");
    expect(ask(&f, "POST /echo/x HTTP/1.1\r\n" CLOSE
                   "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
           400 + FW_ESYNTAX, "bad_framing");
    end(&f);
}
END_TEST

START_TEST(a_page_of_another_site_may_not_ask)
{
    struct fixture f = begin();

    expect(ask(&f, "GET /hello HTTP/1.1\r\n" CLOSE "Origin: http://x\r\n\r\n"), 400 + FW_EACCES,
           "foreign_origin");
    expect(ask(&f, "GET /hello HTTP/1.1\r\n" CLOSE "Origin: null\r\n\r\n"), 400 + FW_EACCES,
           "foreign_origin");
    expect(ask(&f, "GET /hello HTTP/1.1\r\nHost: localhost:80\r\nConnection: close\r\n"
                   "Origin: http://localhost:80\r\n\r\n"),
           200, "hello");
    expect(ask(&f, "GET /hello HTTP/1.1\r\nHost: 127.0.0.1:80\r\nConnection: close\r\n"
                   "Origin: http://127.0.0.1:81\r\n\r\n"),
           400 + FW_EACCES, "foreign_origin");
    end(&f);
}
END_TEST

START_TEST(only_names_that_no_name_server_leads_here_are_answered)
{
    static const char *const good[] = { "localhost", "LocalHost:7787", "127.0.0.1:80",
                                        "[::1]:7787", "10.1.2.3:80" };
    static const char *const bad[] = { "example.org",     "example.org:7787",
                                       "127.0.0.1.x:80",  "localhost.example.org",
                                       "localhostx:7787", "x" };
    struct fixture f = begin();
    char text[200];

    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        snprintf(text, sizeof text,
                 "GET /hello HTTP/1.1\r\nConnection: close\r\nHost: %s\r\n\r\n", good[i]);
        expect(ask(&f, text), 200, "hello");
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        snprintf(text, sizeof text,
                 "GET /hello HTTP/1.1\r\nConnection: close\r\nHost: %s\r\n\r\n", bad[i]);
        expect(ask(&f, text), 400 + FW_EACCES, "foreign_host");
    }
    end(&f);
}
END_TEST

START_TEST(a_body_over_the_limit_is_refused_and_named)
{
    struct fixture f = begin();
    char *big = calloc(1, 200000);
    int fd;

    memset(big, 'x', 200000);
    fd = dial(&f); /* known length: thrown away, then answered */
    say(fd, "POST /echo/x HTTP/1.1\r\n" CLOSE "Content-Type: text/plain\r\n"
            "Content-Length: 200000\r\n\r\n");
    put(fd, big, 200000);
    expect(read_all(fd), 400 + FW_ETOOBIG, "body_too_large");
    fd = dial(&f); /* unknown length */
    say(fd, "POST /echo/x HTTP/1.1\r\n" CLOSE "Content-Type: text/plain\r\n"
            "Transfer-Encoding: chunked\r\n\r\n30D40\r\n");
    put(fd, big, 200000);
    say(fd, "\r\n0\r\n\r\n");
    expect(read_all(fd), 400 + FW_ETOOBIG, "body_too_large");
    /* who waits for 100 Continue is told before he sends */
    expect(ask(&f, "POST /echo/x HTTP/1.1\r\n" CLOSE "Content-Type: text/plain\r\n"
                   "Expect: 100-continue\r\nContent-Length: 200000\r\n\r\n"),
           400 + FW_ETOOBIG, "body_too_large");
    expect(ask(&f, "PUT /echo/x HTTP/1.1\r\n" CLOSE "Content-Length: 11\r\nContent-Type: "
                   "application/octet-stream\r\n\r\n12345678901"),
           400 + FW_ETOOBIG, "body_too_large");
    expect(ask(&f, "PUT /echo/none HTTP/1.1\r\n" CLOSE "Content-Length: 1\r\nContent-Type: "
                   "application/octet-stream\r\n\r\n1"),
           400 + FW_ENOENT, "no_such_thing");
    free(big);
    end(&f);
}
END_TEST

START_TEST(bodies_together_stay_under_their_bound)
{
    struct fixture f = begin();
    struct fw_http_stats s;
    char *big = calloc(1, 100000);
    int first = dial(&f);

    say(first, "POST /echo/x HTTP/1.1\r\n" CLOSE "Content-Type: text/plain\r\n"
               "Content-Length: 100000\r\n\r\n");
    put(first, big, 99999);
    do { /* until the server has taken it in */
        fw_http_stats(f.http, &s);
    } while (s.inflight_bytes < 99999);
    expect(ask(&f, "POST /echo/y HTTP/1.1\r\n" CLOSE "Content-Type: text/plain\r\n"
                   "Expect: 100-continue\r\nContent-Length: 90000\r\n\r\n"),
           400 + FW_EBUSY, "bodies_in_flight");
    put(first, big, 1);
    expect(read_all(first), 200, "100000 bytes");
    do { /* on_completed runs after the last byte is out */
        fw_http_stats(f.http, &s);
    } while (s.inflight_bytes > 0);
    free(big);
    end(&f);
}
END_TEST

START_TEST(expect_100_continue_is_answered_before_the_body)
{
    struct fixture f = begin();
    char line[64] = { 0 };
    int fd = dial(&f);
    const char *head = "POST /echo/x HTTP/1.1\r\n" CLOSE "Content-Type: text/plain\r\n"
                       "Expect: 100-continue\r\nContent-Length: 3\r\n\r\n";

    say(fd, head);
    ck_assert_int_eq(recv(fd, line, 25, MSG_WAITALL), 25);
    ck_assert_str_eq(line, "HTTP/1.1 100 Continue\r\n\r\n");
    say(fd, "abc");
    expect(read_all(fd), 200, "x 3 bytes abc");
    end(&f);
}
END_TEST

static void *drain(void *arg)
{
    struct fixture *f = arg;

    fw_http_drain(f->http, 1000);
    return NULL;
}

START_TEST(drain_answers_what_was_accepted_and_refuses_the_rest)
{
    struct fixture f = begin();
    pthread_t thread;
    int sleeping = dial(&f), idle = dial(&f);
    char line[16] = { 0 };

    say(idle, "GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n"); /* a connection kept alive */
    ck_assert_int_eq(recv(idle, line, 12, MSG_WAITALL), 12);
    say(sleeping, "GET /slow HTTP/1.1\r\n" CLOSE "\r\n");
    pthread_mutex_lock(&gate.lock);
    while (gate.waiting == 0)
        pthread_cond_wait(&gate.changed, &gate.lock);
    pthread_mutex_unlock(&gate.lock);
    ck_assert_int_eq(pthread_create(&thread, NULL, drain, &f), 0);
    say(idle, "GET /slow HTTP/1.1\r\n" CLOSE "\r\n");
    /* either it came before the drain began and is answered, or it got the 503 */
    pthread_mutex_lock(&gate.lock);
    gate.open = true;
    pthread_cond_broadcast(&gate.changed);
    pthread_mutex_unlock(&gate.lock);
    expect(read_all(sleeping), 200, "at last");
    ck_assert_ptr_nonnull(strstr(read_all(idle), "HTTP/1.1"));
    pthread_join(thread, NULL);
    fw_pool_free(f.pool);
    fw_http_stop(f.http);
}
END_TEST

START_TEST(requests_are_counted_by_route_and_status)
{
    struct fixture f = begin();
    struct fw_http_route_stats s;

    ask(&f, "GET /hello HTTP/1.1\r\n" CLOSE "\r\n");
    ask(&f, "GET /nothing HTTP/1.1\r\n" CLOSE "\r\n");
    fw_http_drain(f.http, 1000);
    fw_http_route_stats(f.http, 0, &s);
    ck_assert_uint_eq(s.status[2], 1);
    ck_assert_uint_eq(s.count, 1);
    fw_http_route_stats(f.http, 4, &s);
    ck_assert_uint_eq(s.status[4], 1);
    fw_pool_free(f.pool);
    fw_http_stop(f.http);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("http/server");
    TCase *t = tcase_create("server");

    tcase_set_timeout(t, 60);
    tcase_add_test(t, a_request_reaches_its_handler);
    tcase_add_test(t, what_the_head_rules_out_is_refused);
    tcase_add_test(t, a_page_of_another_site_may_not_ask);
    tcase_add_test(t, only_names_that_no_name_server_leads_here_are_answered);
    tcase_add_test(t, a_body_over_the_limit_is_refused_and_named);
    tcase_add_test(t, bodies_together_stay_under_their_bound);
    tcase_add_test(t, expect_100_continue_is_answered_before_the_body);
    tcase_add_test(t, drain_answers_what_was_accepted_and_refuses_the_rest);
    tcase_add_test(t, requests_are_counted_by_route_and_status);
    suite_add_tcase(s, t);
    return run_suite(s);
}
