/* stream_test.c - replies that are made while they are sent, over a real socket. */
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

enum { STREAMS = 64, LONG = 8 << 20 };

struct source { /* what one stream gives: a '#' `given` times, then the end */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct fw_http_call *call; /* NULL: none, or gone */
    size_t given, taken;
    bool last;
    unsigned begun, gone, idle;
};

struct fixture {
    struct fw_pool *pool;
    struct fw_http *http;
    struct source source;
};

static struct fixture f;

static int pull(void *arg, char *to, size_t max, bool idle)
{
    struct source *s = arg;
    size_t n;

    pthread_mutex_lock(&s->lock);
    n = s->given - s->taken;
    if (n > max)
        n = max;
    memset(to, '#', n);
    s->taken += n;
    if (n == 0 && s->last) {
        pthread_mutex_unlock(&s->lock);
        return -1;
    }
    if (n == 0 && idle) {
        s->idle++;
        pthread_cond_broadcast(&s->changed);
        to[0] = '.';
        n = 1;
    }
    pthread_mutex_unlock(&s->lock);
    return (int)n;
}

static void gone(void *arg)
{
    struct source *s = arg;

    pthread_mutex_lock(&s->lock);
    s->call = NULL;
    s->gone++;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

static void begin_stream(struct fw_http_call *call)
{
    struct source *s = &f.source;
    struct fw_http_reply head = { .status = 200, .media = FW_HTTP_EVENTS };
    struct fw_http_stream stream = { pull, gone, s };

    pthread_mutex_lock(&s->lock);
    s->call = call;
    s->begun++;
    fw_http_stream(call, &head, &stream);
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

/* A stream that a worker feeds at once, while the server's thread may already pull. */
static void own_stream(struct fw_http_call *call)
{
    struct source *s = calloc(1, sizeof *s);
    struct fw_http_reply head = { .status = 200, .media = FW_HTTP_EVENTS };
    struct fw_http_stream stream = { pull, gone, s };
    int i;

    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);
    s->call = call;
    fw_http_stream(call, &head, &stream);
    for (i = 0; i < 100; i++) {
        pthread_mutex_lock(&s->lock);
        s->given += 7;
        s->last = i == 99;
        if (s->call)
            fw_http_wake(s->call, s->last);
        pthread_mutex_unlock(&s->lock);
    }
    pthread_mutex_lock(&s->lock);
    while (s->gone == 0)
        pthread_cond_wait(&s->changed, &s->lock);
    pthread_mutex_unlock(&s->lock);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

static void refuse(struct fw_http_call *call, const struct fw_err *err)
{
    (void)err;
    fw_http_reply(call, &(struct fw_http_reply){ .status = 503 });
}

static const struct fw_http_route routes[] = {
    { .method = FW_HTTP_GET, .pattern = "/stream", .later = begin_stream },
    { .method = FW_HTTP_GET, .pattern = "/own", .later = own_stream },
};

static void begin(unsigned ping_ms)
{
    struct fw_http_config c = { .listen = "127.0.0.1:0",
                                .route = routes,
                                .routes = 2,
                                .refuse = refuse,
                                .max_body_bytes = 1000,
                                .max_inflight_bytes = 1000,
                                .max_connections = STREAMS + 8,
                                .timeout_s = 20,
                                .ping_ms = ping_ms };

    memset(&f.source, 0, sizeof f.source);
    pthread_mutex_init(&f.source.lock, NULL);
    pthread_cond_init(&f.source.changed, NULL);
    ck_assert_int_eq(fw_pool_new(&f.pool, 4, NULL, NULL), 0);
    c.pool = f.pool;
    ck_assert_int_eq(fw_http_start(&f.http, &c, NULL), 0);
}

static void end(void)
{
    fw_http_drain(f.http, 1000);
    fw_pool_free(f.pool);
    fw_http_stop(f.http);
    pthread_cond_destroy(&f.source.changed);
    pthread_mutex_destroy(&f.source.lock);
}

static int ask(const char *path)
{
    struct sockaddr_in a = { .sin_family = AF_INET };
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    char text[128];
    int n = snprintf(text, sizeof text,
                     "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", path);

    a.sin_port = htons((uint16_t)strtoul(strrchr(fw_http_address(f.http), ':') + 1, NULL, 10));
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
    ck_assert_int_eq(send(fd, text, (size_t)n, MSG_NOSIGNAL), n);
    return fd;
}

static void give(size_t n, bool last)
{
    struct source *s = &f.source;

    pthread_mutex_lock(&s->lock);
    while (s->begun == 0)
        pthread_cond_wait(&s->changed, &s->lock);
    s->given += n;
    s->last = last;
    if (s->call)
        fw_http_wake(s->call, last);
    pthread_mutex_unlock(&s->lock);
}

static void wait_gone(void)
{
    pthread_mutex_lock(&f.source.lock);
    while (f.source.gone == 0)
        pthread_cond_wait(&f.source.changed, &f.source.lock);
    pthread_mutex_unlock(&f.source.lock);
}

/* Reads until `want` letters have come, or to the end (SIZE_MAX); returns how many. */
static size_t letters(int fd, size_t want)
{
    size_t got = 0;
    char data[4096];
    ssize_t i, n = 1;

    while (got < want && (n = recv(fd, data, sizeof data, 0)) > 0) {
        for (i = 0; i < n; i++)
            got += data[i] == '#';
    }
    return got;
}

START_TEST(bytes_go_out_as_they_are_given_and_the_end_after_the_last)
{
    char head[13] = { 0 };
    int fd;

    begin(5000);
    fd = ask("/stream");
    ck_assert_int_eq(recv(fd, head, 12, MSG_WAITALL), 12); /* before there is anything */
    ck_assert_str_eq(head, "HTTP/1.1 200");
    give(3, false);
    ck_assert_uint_eq(letters(fd, 3), 3);
    give(100000, false);
    ck_assert_uint_eq(letters(fd, 100000), 100000);
    give(5, true);
    ck_assert_uint_eq(letters(fd, SIZE_MAX), 5);
    wait_gone();
    close(fd);
    end();
    ck_assert_uint_eq(f.source.gone, 1);
}
END_TEST

START_TEST(a_silent_stream_is_asked_for_a_sign_of_life)
{
    int fd;

    begin(20);
    fd = ask("/stream");
    pthread_mutex_lock(&f.source.lock);
    while (f.source.idle < 3)
        pthread_cond_wait(&f.source.changed, &f.source.lock);
    pthread_mutex_unlock(&f.source.lock);
    give(1, true);
    ck_assert_uint_eq(letters(fd, SIZE_MAX), 1);
    close(fd);
    end();
}
END_TEST

START_TEST(a_client_that_leaves_a_sleeping_stream_is_noticed)
{
    int fd;

    begin(20);
    fd = ask("/stream");
    give(1, false);
    ck_assert_uint_eq(letters(fd, 1), 1);
    close(fd);
    wait_gone();
    end(); /* which does not wait for a last wake */
}
END_TEST

START_TEST(a_slow_reader_keeps_what_is_given_waiting_and_nobody_else)
{
    struct fw_http_stats stats;
    int fd, other;

    begin(5000);
    fd = ask("/stream");
    give(LONG, true);
    other = ask("/own");
    ck_assert_uint_eq(letters(other, SIZE_MAX), 700);
    ck_assert_uint_eq(letters(fd, SIZE_MAX), LONG);
    close(fd);
    close(other);
    wait_gone();
    do { /* its end is counted after the last byte is out */
        fw_http_stats(f.http, &stats);
    } while (stats.requests_open > 0);
    ck_assert_uint_eq(stats.sent_bytes, LONG + 700);
    end();
}
END_TEST

static void *drain(void *arg)
{
    fw_http_drain(f.http, 100);
    return arg;
}

START_TEST(drain_waits_for_the_last_wake_and_cuts_off_a_reader_that_is_too_slow)
{
    pthread_t thread;
    int fd, slow;

    begin(5000);
    fd = ask("/stream");
    give(1, false);
    ck_assert_uint_eq(letters(fd, 1), 1);
    ck_assert_int_eq(pthread_create(&thread, NULL, drain, NULL), 0);
    slow = fd;
    give(2 * LONG, true);
    pthread_join(thread, NULL);
    fw_pool_free(f.pool);
    fw_http_stop(f.http);
    ck_assert_uint_eq(f.source.gone, 1);
    ck_assert_uint_lt(letters(slow, SIZE_MAX), 2 * LONG);
    close(fd);
}
END_TEST

static void *read_own(void *arg)
{
    int fd = ask("/own");

    *(size_t *)arg = letters(fd, SIZE_MAX);
    close(fd);
    return NULL;
}

START_TEST(many_streams_are_all_whole)
{
    pthread_t thread[STREAMS];
    size_t got[STREAMS], i;

    begin(20);
    for (i = 0; i < STREAMS; i++)
        ck_assert_int_eq(pthread_create(&thread[i], NULL, read_own, &got[i]), 0);
    for (i = 0; i < STREAMS; i++) {
        pthread_join(thread[i], NULL);
        ck_assert_uint_eq(got[i], 700);
    }
    end();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("http/stream");
    TCase *t = tcase_create("stream");

    tcase_set_timeout(t, 60);
    tcase_add_test(t, bytes_go_out_as_they_are_given_and_the_end_after_the_last);
    tcase_add_test(t, a_silent_stream_is_asked_for_a_sign_of_life);
    tcase_add_test(t, a_client_that_leaves_a_sleeping_stream_is_noticed);
    tcase_add_test(t, a_slow_reader_keeps_what_is_given_waiting_and_nobody_else);
    tcase_add_test(t, drain_waits_for_the_last_wake_and_cuts_off_a_reader_that_is_too_slow);
    tcase_add_test(t, many_streams_are_all_whole);
    suite_add_tcase(s, t);
    return run_suite(s);
}
