/* engine_testing.h - what the engine's tests share: an engine in a fresh directory, requests
 * that are waited for. */
#ifndef ENGINE_TESTING_H
#define ENGINE_TESTING_H

#include "test_main.h"

#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fastweight/engine.h"
#include "fastweight/num.h"

#pragma GCC diagnostic ignored "-Wunused-function" /* each program uses some of them */

struct call { /* r first: done() gets the request back as this */
    struct fw_request r;
    struct fw_tensor item[8];
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    int done;
    float *own; /* freed with the call */
};

static char test_dir[64];
static struct fw_pool *pool;
static struct fw_engine *engine;
static struct fw_engine_config config;

static void make_dir(void)
{
    snprintf(test_dir, sizeof test_dir, "/tmp/fw_engine_XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(test_dir));
}

static void remove_dir(void)
{
    DIR *d = opendir(test_dir);
    struct dirent *entry;
    char path[384];

    while (d && (entry = readdir(d)) != NULL) {
        snprintf(path, sizeof path, "%s/%s", test_dir, entry->d_name);
        if (entry->d_name[0] != '.')
            unlink(path);
    }
    if (d)
        closedir(d);
    rmdir(test_dir);
}

static void open_engine(void)
{
    struct fw_err err = { 0 };

    ck_assert_int_eq(fw_pool_new(&pool, 2, fw_num_thread, NULL), 0);
    config.data_dir = test_dir;
    config.pool = pool;
    ck_assert_msg(fw_engine_open(&engine, &config, &err) == 0, "%s: %s", err.reason, err.msg);
}

static void close_engine(void)
{
    struct fw_err err = { 0 };

    fw_engine_drain(engine);
    ck_assert_msg(fw_engine_close(engine, &err) == 0, "%s: %s", err.reason, err.msg);
    fw_pool_free(pool);
}

static void reopen_engine(void)
{
    close_engine();
    open_engine();
}

static void setup(void)
{
    fw_num_init();
    memset(&config, 0, sizeof config);
    make_dir();
    open_engine();
}

static void teardown(void)
{
    close_engine();
    remove_dir();
}

/* ---- requests */

static void call_done(struct fw_request *r)
{
    struct call *c = (struct call *)r;

    pthread_mutex_lock(&c->mutex);
    c->done = 1;
    pthread_cond_signal(&c->cond);
    pthread_mutex_unlock(&c->mutex);
}

static struct call *call_new(enum fw_verb verb, const char *id)
{
    struct call *c = calloc(1, sizeof *c);

    ck_assert_ptr_nonnull(c);
    pthread_mutex_init(&c->mutex, NULL);
    pthread_cond_init(&c->cond, NULL);
    c->r.verb = verb;
    snprintf(c->r.id, sizeof c->r.id, "%s", id);
    c->r.in.item = c->item;
    c->r.done = call_done;
    c->r.arg = c;
    return c;
}

static void send_call(struct call *c)
{
    fw_engine_submit(engine, &c->r);
}

static struct call *wait_call(struct call *c)
{
    pthread_mutex_lock(&c->mutex);
    while (!c->done)
        pthread_cond_wait(&c->cond, &c->mutex);
    pthread_mutex_unlock(&c->mutex);
    return c;
}

static void call_free(struct call *c)
{
    fw_request_done(&c->r);
    pthread_cond_destroy(&c->cond);
    pthread_mutex_destroy(&c->mutex);
    free(c->own);
    free(c);
}

/* Sends, waits, expects success. */
static struct call *ok(struct call *c)
{
    send_call(c);
    wait_call(c);
    ck_assert_msg(!c->r.failed, "%s: %s", c->r.err.reason, c->r.err.msg);
    return c;
}

/* Sends, waits, expects that code and reason. */
static void fails(struct call *c, enum fw_code code, const char *reason)
{
    send_call(c);
    wait_call(c);
    ck_assert_msg(c->r.failed, "it succeeded instead of %s", reason);
    ck_assert_msg(c->r.err.code == code && strcmp(c->r.err.reason, reason) == 0,
                  "code %d %s: %s", (int)c->r.err.code, c->r.err.reason, c->r.err.msg);
    call_free(c);
}

static void done(struct call *c)
{
    call_free(ok(c));
}

static struct call *with_bytes(struct call *c, const void *bytes, size_t n)
{
    c->item[0] = (struct fw_tensor){
        .name = "tokens", .dtype = FW_U8, .ndim = 1, .shape = { n }, .data = bytes, .bytes = n
    };
    c->r.in.count = 1;
    return c;
}

static struct call *with_text(struct call *c, const char *text)
{
    return with_bytes(c, text, strlen(text));
}

static struct call *create(const char *id)
{
    struct call *c = call_new(FW_CREATE, id);

    snprintf(c->r.model, sizeof c->r.model, "bytes");
    fw_params_set_number(&c->r.config, "state_bytes", 1 << 20, NULL);
    return c;
}

static struct call *learn(const char *id, const char *text)
{
    struct call *c = with_text(call_new(FW_LEARN, id), text);

    c->r.detail = FW_DETAIL_MEAN;
    return c;
}

/* ---- associative sessions: the smallest states; pair i of a stream follows from i alone */

enum { DIM = 8 };

static struct call *create_small(const char *id)
{
    struct call *c = call_new(FW_CREATE, id);

    snprintf(c->r.model, sizeof c->r.model, "associative");
    fw_params_set_string(&c->r.config, "rule", "delta", NULL);
    fw_params_set_number(&c->r.config, "heads", 1, NULL);
    fw_params_set_number(&c->r.config, "d_k", DIM, NULL);
    fw_params_set_number(&c->r.config, "d_v", DIM, NULL);
    return c;
}

static void fill_pairs(float *keys, float *values, unsigned from, unsigned n)
{
    unsigned i, j;

    for (i = 0; i < n; i++) {
        for (j = 0; j < DIM; j++) {
            keys[i * DIM + j] = (float)((from + i) * 7 % 11 == j % 11) + 0.125f;
            values[i * DIM + j] = (float)((from + i + j) % 13) * 0.25f;
        }
    }
}

static void put_pairs(struct call *c, size_t at, const char *name, const float *data,
                      unsigned n)
{
    c->item[at] = (struct fw_tensor){ .dtype = FW_F32,
                                      .ndim = 2,
                                      .shape = { n, DIM },
                                      .data = data,
                                      .bytes = (size_t)n * DIM * sizeof *data };
    snprintf(c->item[at].name, sizeof c->item[at].name, "%s", name);
    c->r.in.count = at + 1;
}

/* Learns pairs [from, from + n); the body lives as long as the call. */
static struct call *pairs(enum fw_verb verb, const char *id, unsigned from, unsigned n)
{
    struct call *c = call_new(verb, id);

    c->own = malloc(2 * (size_t)n * DIM * sizeof *c->own);
    ck_assert_ptr_nonnull(c->own);
    fill_pairs(c->own, c->own + (size_t)n * DIM, from, n);
    put_pairs(c, 0, "keys", c->own, n);
    put_pairs(c, 1, "values", c->own + (size_t)n * DIM, n);
    c->r.detail = FW_DETAIL_MEAN;
    return c;
}

static struct call *keyed(const char *id, const char *text, const char *key)
{
    struct call *c = learn(id, text);

    snprintf(c->r.key, sizeof c->r.key, "%s", key);
    return c;
}

static struct call *named(enum fw_verb verb, const char *id, const char *name)
{
    struct call *c = call_new(verb, id);

    snprintf(c->r.name, sizeof c->r.name, "%s", name);
    return c;
}

static struct fw_facts facts_of(const char *id)
{
    struct fw_facts f;
    struct fw_err err = { 0 };

    memset(&f, 0, sizeof f);
    ck_assert_msg(fw_engine_facts(engine, id, &f, &err) == 0, "%s", err.msg);
    return f;
}

static struct fw_hash hash_of(const char *id)
{
    struct call *c = call_new(FW_FACTS, id);
    struct fw_hash h;

    c->r.want_hash = true;
    ok(c);
    ck_assert(c->r.facts.has_hash);
    h = c->r.facts.hash;
    call_free(c);
    return h;
}

#define ck_assert_hash_eq(a, b) ck_assert(fw_hash_equal(a, b))
#define ck_assert_hash_ne(a, b) ck_assert(!fw_hash_equal(a, b))

#endif
