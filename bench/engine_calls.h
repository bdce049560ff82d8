/* engine_calls.h - what the benchmarks of the engine share: an engine in a scratch directory,
 * one request at a time, and a text that never ends. */
#ifndef BENCH_ENGINE_CALLS_H
#define BENCH_ENGINE_CALLS_H

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fastweight/clock.h"
#include "fastweight/engine.h"
#include "fastweight/num.h"

#pragma GCC diagnostic ignored "-Wunused-function" /* each program uses some of them */

struct bench {
    char dir[512];
    struct fw_pool *pool;
    struct fw_engine *engine;
    struct fw_engine_config config;
};

struct call { /* r first: done() gets the request back as this */
    struct fw_request r;
    struct fw_tensor item[2];
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    int done;
};

static void die(const char *what, const char *why)
{
    fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

static void bench_open_with(struct bench *b, const char *dir, size_t max_resident_bytes,
                            const struct fw_models *models)
{
    struct fw_err err;

    fw_num_init();
    snprintf(b->dir, sizeof b->dir, "%s/fw_bench_XXXXXX", dir);
    if (!mkdtemp(b->dir))
        die(b->dir, strerror(errno));
    memset(&b->config, 0, sizeof b->config);
    b->config.data_dir = b->dir;
    b->config.models = models;
    b->config.max_resident_bytes = max_resident_bytes;
    if (fw_pool_new(&b->pool, 1, fw_num_thread, &err) < 0)
        die("pool", err.msg);
    b->config.pool = b->pool;
    if (fw_engine_open(&b->engine, &b->config, &err) < 0)
        die("engine", err.msg);
}

static void bench_open(struct bench *b, const char *dir, size_t max_resident_bytes)
{
    bench_open_with(b, dir, max_resident_bytes, NULL);
}

static void bench_close(struct bench *b)
{
    DIR *d;
    struct dirent *entry;
    char path[800];
    struct fw_err err;

    if (fw_engine_close(b->engine, &err) < 0)
        die("close", err.msg);
    fw_pool_free(b->pool);
    d = opendir(b->dir);
    while (d && (entry = readdir(d)) != NULL) {
        snprintf(path, sizeof path, "%s/%s", b->dir, entry->d_name);
        if (entry->d_name[0] != '.')
            unlink(path);
    }
    if (d)
        closedir(d);
    rmdir(b->dir);
}

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

    if (!c)
        die("call", "out of memory");
    pthread_mutex_init(&c->mutex, NULL);
    pthread_cond_init(&c->cond, NULL);
    c->r.verb = verb;
    snprintf(c->r.id, sizeof c->r.id, "%s", id);
    c->r.in.item = c->item;
    c->r.done = call_done;
    return c;
}

static void call_free(struct call *c)
{
    fw_request_done(&c->r);
    pthread_cond_destroy(&c->cond);
    pthread_mutex_destroy(&c->mutex);
    free(c);
}

/* Sends and waits; any failure ends the program. */
static struct call *call_run(struct bench *b, struct call *c)
{
    fw_engine_submit(b->engine, &c->r);
    pthread_mutex_lock(&c->mutex);
    while (!c->done)
        pthread_cond_wait(&c->cond, &c->mutex);
    pthread_mutex_unlock(&c->mutex);
    if (c->r.failed)
        die(c->r.id, c->r.err.msg);
    return c;
}

static void create_bytes(struct bench *b, const char *id, size_t state_bytes)
{
    struct call *c = call_new(FW_CREATE, id);

    snprintf(c->r.model, sizeof c->r.model, "bytes");
    fw_params_set_number(&c->r.config, "state_bytes", (double)state_bytes, NULL);
    call_free(call_run(b, c));
}

/* A delta memory of about heads * dim * dim * 4 bytes. */
static void create_memory(struct bench *b, const char *id, size_t heads, size_t dim)
{
    struct call *c = call_new(FW_CREATE, id);

    snprintf(c->r.model, sizeof c->r.model, "associative");
    fw_params_set_string(&c->r.config, "rule", "delta", NULL);
    fw_params_set_number(&c->r.config, "heads", (double)heads, NULL);
    fw_params_set_number(&c->r.config, "d_k", (double)dim, NULL);
    fw_params_set_number(&c->r.config, "d_v", (double)dim, NULL);
    call_free(call_run(b, c));
}

static void learn_bytes(struct bench *b, const char *id, const void *bytes, size_t n)
{
    struct call *c = call_new(FW_LEARN, id);

    c->item[0] = (struct fw_tensor){ "tokens", FW_U8, 1, { n }, bytes, n };
    c->r.in.count = 1;
    c->r.async = true;
    call_free(call_run(b, c));
}

/* n pairs; every element of every matrix is written. */
static void learn_pairs(struct bench *b, const char *id, size_t heads, size_t dim, size_t n)
{
    size_t count = n * heads * dim, i;
    float *keys = malloc(2 * count * sizeof *keys);
    struct call *c = call_new(FW_LEARN, id);

    if (!keys)
        die(id, "out of memory");
    for (i = 0; i < 2 * count; i++)
        keys[i] = (float)((i * 2654435761u >> 7) % 97) * (1.0f / 1024) + 0.001f;
    c->item[0] =
        (struct fw_tensor){ "keys", FW_F32, 3, { n, heads, dim }, keys, count * sizeof *keys };
    c->item[1] = (struct fw_tensor){ "values",          FW_F32,       3,
                                     { n, heads, dim }, keys + count, count * sizeof *keys };
    c->r.in.count = 2;
    c->r.async = true;
    call_free(call_run(b, c));
    free(keys);
}

static uint32_t next_random(uint64_t *x)
{
    *x = *x * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*x >> 33);
}

/* Words of a vocabulary that grows slowly, the frequent ones far more often, in lines. */
static void fill_text(char *text, size_t n, uint64_t *x)
{
    size_t at = 0;
    uint64_t word;
    uint32_t r, letters;

    while (at < n) {
        r = next_random(x) % 4096;
        word = (uint64_t)r * r / 4096 + 11; /* squared: small numbers are frequent */
        for (letters = 2 + (uint32_t)word % 7; letters > 0 && at < n; letters--) {
            word = word * 2862933555777941757u + 3037000493u;
            text[at++] = (char)('a' + (word >> 59) % 26);
        }
        if (at < n)
            text[at++] = next_random(x) % 12 ? ' ' : '\n';
    }
}

#endif
