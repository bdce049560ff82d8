/* main.c - the list of rooms going up, and the same list going down.
 *
 * Only here does the program print, log above debug or end. Up: options, log, numbers, pool,
 * models, engine (recovery's scan), HTTP; then the address on stdout, and READY. Down on
 * SIGTERM or SIGINT: HTTP drains (all accepted requests are answered), the engine checkpoints,
 * the pool ends, the socket closes. Exit code 0 only when every checkpoint succeeded. */
#include "config.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <systemd/sd-daemon.h>

#include "fastweight/api.h"
#include "fastweight/models.h"
#include "fastweight/num.h"

#include "options.h"
#include "wait.h"

struct daemon {
    struct options options;
    struct fw_log log;
    struct fw_pool *pool;
    struct fw_models *models;
    struct fw_engine *engine;
    struct fw_http *http;
    struct fw_api api;
};

static unsigned worker_count(const struct options *o)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);

    if (o->workers)
        return (unsigned)o->workers;
    return cores > 0 ? (unsigned)cores : 1;
}

static int make_data_dir(const char *path, struct fw_err *err)
{
    if (mkdir(path, 0700) < 0 && errno != EEXIST)
        return fw_fail_param(err, FW_EIO, "no_data_dir", "data_dir", "cannot make %.180s: %s",
                             path, strerror(errno));
    return 0;
}

static int engine_up(struct daemon *d, struct fw_err *err)
{
    const struct options *o = &d->options;
    struct fw_engine_config c = { .data_dir = o->data_dir,
                                  .max_resident_bytes = o->max_resident_bytes,
                                  .max_sessions = o->max_sessions,
                                  .max_queue = o->max_queue,
                                  .max_async_bytes = o->max_async_bytes,
                                  .journal_bytes = o->journal_bytes,
                                  .models = d->models,
                                  .log = &d->log,
                                  .pool = d->pool };

    return make_data_dir(o->data_dir, err) < 0 ? -1 : fw_engine_open(&d->engine, &c, err);
}

/* What is not served stops nobody, but somebody should hear of it. */
static void tell_models(const struct daemon *d)
{
    size_t n = fw_engine_models(d->engine, NULL, 0);
    struct fw_model_facts *m = calloc(n, sizeof *m);

    if (!m)
        return;
    fw_engine_models(d->engine, m, n);
    for (size_t i = 0; i < n; i++)
        if (m[i].err.code)
            fw_log(&d->log, FW_LOG_WARNING, "model %s is not served: %s", m[i].id,
                   m[i].err.msg);
    fw_log(&d->log, FW_LOG_INFO, "%zu checkpoints in %s", fw_models_count(d->models),
           d->options.models_dir);
    free(m);
}

static int http_up(struct daemon *d, struct fw_err *err)
{
    const struct options *o = &d->options;
    struct fw_http_config c = { .listen = o->listen,
                                .refuse = fw_api_refuse,
                                .arg = &d->api,
                                .max_body_bytes = o->max_body_bytes,
                                .max_inflight_bytes = o->max_inflight_bytes,
                                .max_connections = (unsigned)o->max_connections,
                                .timeout_s = (unsigned)o->connection_timeout_s,
                                .pool = d->pool,
                                .log = &d->log };

    d->api = (struct fw_api){ d->engine, d->pool, fw_num_cpu_level() };
    c.route = fw_api_routes(&c.routes);
    return fw_http_start(&d->http, &c, err);
}

static int up(struct daemon *d, struct fw_err *err)
{
    if (fw_pool_new(&d->pool, worker_count(&d->options), fw_num_thread, err) < 0 ||
        fw_models_open(&d->models, d->options.models_dir, err) < 0 || engine_up(d, err) < 0)
        return -1;
    tell_models(d);
    if (http_up(d, err) < 0)
        return -1;
    return 0;
}

static int down(struct daemon *d, struct fw_err *err)
{
    int rc = 0;

    if (d->engine)
        fw_engine_end_reads(d->engine, (unsigned)d->options.drain_timeout_s * 1000);
    if (d->http)
        fw_http_drain(d->http, (unsigned)d->options.drain_timeout_s * 1000);
    if (d->engine) {
        fw_engine_drain(d->engine);
        rc = fw_engine_close(d->engine, err);
    }
    fw_models_close(d->models);
    fw_pool_free(d->pool);
    fw_http_stop(d->http);
    return rc;
}

static void complain(const struct fw_log *log, const struct fw_err *err)
{
    fw_log(log, FW_LOG_ERR, "%s%s%s", err->param, err->param[0] ? ": " : "", err->msg);
}

static int serve(struct daemon *d)
{
    struct fw_err err = { 0 }, closing = { 0 };
    int got;

    if (up(d, &err) < 0) {
        complain(&d->log, &err);
        down(d, &closing);
        return EXIT_FAILURE;
    }
    printf("fastweightd listening on http://%s\n", fw_http_address(d->http));
    fflush(stdout);
    fw_log(&d->log, FW_LOG_INFO, "fastweightd %s listens on http://%s, keeps %s, %s",
           PACKAGE_VERSION, fw_http_address(d->http), d->options.data_dir, fw_num_cpu_level());
    sd_notify(0, "READY=1");
    got = wait_for_end(d->pool, &d->log);
    sd_notify(0, "STOPPING=1");
    fw_log(&d->log, FW_LOG_INFO, "%s: draining", got == SIGTERM ? "SIGTERM" : "SIGINT");
    if (down(d, &err) < 0) {
        complain(&d->log, &err);
        return EXIT_FAILURE;
    }
    fw_log(&d->log, FW_LOG_INFO, "all saved");
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    struct daemon d = { .log = { STDERR_FILENO, FW_LOG_INFO } };
    enum options_result result;
    struct fw_err err = { 0 };

    if (options_read(argc, argv, &d.options, &result, &err) < 0) {
        complain(&d.log, &err);
        return EXIT_FAILURE;
    }
    if (result == OPTIONS_HELP) {
        options_help(stdout);
        return EXIT_SUCCESS;
    }
    if (result == OPTIONS_VERSION) {
        puts(PACKAGE_STRING);
        return EXIT_SUCCESS;
    }
    d.log.threshold = (enum fw_log_level)d.options.log_level;
    umask(0077);
    wait_block_signals();
    fw_num_init();
    return serve(&d);
}
