/* server.c - what the server says about itself.
 *
 * All in the server's own thread, so nothing here waits: health is told by whether it answers
 * at all. Paths outside /v1 are asked by probes, which may add a query: it is ignored. */
#include "config.h"

#include "op.h"

#include <stdlib.h>
#include <string.h>

#include "in.h"
#include "query.h"

static bool has_query(struct fw_http_call *call)
{
    static const char *const none[] = { NULL };
    struct fw_err err = { 0 };

    if (query_only(call, none, &err) == 0)
        return false;
    reply_error(call, &err);
    return true;
}

bool api_healthz(struct fw_http_call *call)
{
    struct fw_err err = { 0 };
    struct fw_buf b;
    struct out o;

    fw_buf_init(&b, OP_REPLY_MAX);
    out_begin(&o, &b, &err);
    out_open(&o, '{');
    out_string(&o, "status", "ok");
    out_close(&o, '}');
    reply_json(call, &b, o.rc, &err);
    return true;
}

bool api_readyz(struct fw_http_call *call)
{
    const struct fw_api *api = fw_http_arg(call);
    struct fw_err why = { 0 };
    bool ready = fw_engine_ready(api->engine, &why) == 0;
    struct fw_http_reply reply = { .status = ready ? 200 : 503, .media = FW_HTTP_JSON };
    struct fw_buf b;
    struct out o;

    fw_buf_init(&b, OP_REPLY_MAX);
    out_begin(&o, &b, NULL);
    out_open(&o, '{');
    out_bool(&o, "ready", ready);
    out_key(&o, "reasons");
    out_open(&o, '[');
    if (!ready)
        out_string(&o, NULL, why.msg);
    out_close(&o, ']');
    out_close(&o, '}');
    reply.body = &b;
    fw_http_reply(call, &reply);
    return true;
}

#if defined(__clang__)
#define COMPILER "clang " __clang_version__
#else
#define COMPILER "gcc " __VERSION__
#endif

bool api_version(struct fw_http_call *call)
{
    const struct fw_api *api = fw_http_arg(call);
    struct fw_err err = { 0 };
    struct fw_buf b;
    struct out o;

    fw_buf_init(&b, OP_REPLY_MAX);
    out_begin(&o, &b, &err);
    out_open(&o, '{');
    out_string(&o, "name", PACKAGE_NAME);
    out_string(&o, "version", PACKAGE_VERSION);
    out_string(&o, "api", "v1");
    out_string(&o, "cpu_level", api->cpu_level);
    out_string(&o, "compiler", COMPILER);
    out_close(&o, '}');
    reply_json(call, &b, o.rc, &err);
    return true;
}

static void out_model(struct out *o, const struct fw_model_facts *m)
{
    out_open(o, '{');
    out_string(o, "id", m->id);
    out_string(o, "kind", m->kind);
    if (m->err.code) {
        out_string(o, "error", m->err.msg);
        out_close(o, '}');
        return;
    }
    out_u64(o, "vocab", m->about.vocab);
    out_u64(o, "state_bytes", m->state_bytes);
    out_params(o, "config", &m->config);
    out_about(o, &m->about);
    out_close(o, '}');
}

static void out_models(struct out *o, const struct fw_model_facts *m, size_t n)
{
    size_t i;

    out_open(o, '{');
    out_key(o, "data");
    out_open(o, '[');
    for (i = 0; i < n; i++)
        out_model(o, &m[i]);
    out_close(o, ']');
    out_close(o, '}');
}

static int print_model(struct out *o, struct fw_engine *engine, const char *id)
{
    struct fw_model_facts *m = malloc(sizeof *m);
    int rc;

    if (!m)
        return fw_fail(o->err, FW_ENOMEM, "out_of_memory", "no memory for a model");
    rc = fw_engine_model(engine, id, m, o->err);
    if (rc == 0)
        out_model(o, m);
    free(m);
    return rc < 0 ? rc : o->rc;
}

static int print_models(struct out *o, struct fw_engine *engine)
{
    size_t n = fw_engine_models(engine, NULL, 0);
    struct fw_model_facts *m = calloc(n, sizeof *m);

    if (!m)
        return fw_fail(o->err, FW_ENOMEM, "out_of_memory", "no memory for a list");
    fw_engine_models(engine, m, n);
    out_models(o, m, n);
    free(m);
    return o->rc;
}

bool api_models(struct fw_http_call *call)
{
    const struct fw_api *api = fw_http_arg(call);
    struct fw_http_text segment = fw_http_segment(call, 0);
    char id[FW_ID_MAX] = "";
    struct fw_err err = { 0 };
    struct fw_buf b;
    struct out o;

    if (has_query(call))
        return true;
    fw_buf_init(&b, OP_REPLY_MAX);
    out_begin(&o, &b, &err);
    if (segment.len > 0)
        o.rc = in_id(segment.data, segment.len, "model", id, &err);
    if (o.rc == 0)
        o.rc = *id ? print_model(&o, api->engine, id) : print_models(&o, api->engine);
    reply_json(call, &b, o.rc, &err);
    return true;
}
