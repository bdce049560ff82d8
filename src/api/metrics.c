/* metrics.c - Prometheus text: base units, counters end in _total, no label of a session.
 *
 * Names are tables, so that HELP and TYPE stand once before each. In the server's thread. */
#include "config.h"

#include "op.h"

#include <stddef.h>
#include <stdio.h>

struct metric {
    const char *name, *type, *help;
    size_t at;      /* of a uint64_t in the stats */
    double divisor; /* to base units; 0: none */
};

#define ENGINE(field) offsetof(struct fw_engine_stats, field)
#define HTTP(field)   offsetof(struct fw_http_stats, field)

static const struct metric engine_metrics[] = {
    { "sessions", "gauge", "Sessions that exist.", ENGINE(sessions), 0 },
    { "sessions_resident", "gauge", "Sessions whose block is in memory.", ENGINE(resident), 0 },
    { "resident_bytes", "gauge", "Bytes of blocks in memory.", ENGINE(resident_bytes), 0 },
    { "resident_limit_bytes", "gauge", "max_resident_bytes.", ENGINE(resident_limit_bytes), 0 },
    { "queued_requests", "gauge", "Requests waiting in sessions' queues.", ENGINE(queued), 0 },
    { "tokens_learned_total", "counter", "Tokens learned.", ENGINE(tokens_learned), 0 },
    { "tokens_scored_total", "counter", "Tokens scored.", ENGINE(tokens_scored), 0 },
    { "tokens_generated_total", "counter", "Tokens sampled.", ENGINE(tokens_generated), 0 },
    { "shared_passes_total", "counter", "Passes over a model's weights for several sessions.",
      ENGINE(shared_passes), 0 },
    { "learn_seconds_total", "counter", "Time spent learning.", ENGINE(learn_ns), 1e9 },
    { "cancelled_requests_total", "counter", "Requests whose client went away.",
      ENGINE(cancelled), 0 },
    { "evictions_total", "counter", "Blocks written back and dropped.", ENGINE(evictions), 0 },
    { "loads_total", "counter", "Blocks read back.", ENGINE(loads), 0 },
    { "replayed_tokens_total", "counter", "Tokens learned again from the journal.",
      ENGINE(replayed_tokens), 0 },
    { "checkpoints_total", "counter", "Checkpoints written.", ENGINE(checkpoints), 0 },
    { "checkpoint_failures_total", "counter", "Checkpoints that failed.",
      ENGINE(checkpoint_failures), 0 },
    { "async_bytes", "gauge", "Unwritten bytes of async learns.", ENGINE(async_bytes), 0 },
    { "store_commits_total", "counter", "Transactions.", ENGINE(store.commits), 0 },
    { "store_ops_total", "counter", "Operations in transactions.", ENGINE(store.ops), 0 },
    { "store_append_bytes_total", "counter", "Journal bytes.", ENGINE(store.append_bytes), 0 },
    { "store_failures_total", "counter", "Writes the disk refused.", ENGINE(store.failures),
      0 },
    { "store_queued_ops", "gauge", "Operations waiting for the writer.", ENGINE(store.queued),
      0 },
    { "store_file_bytes", "gauge", "Size of the database.", ENGINE(store.file_bytes), 0 },
    { "store_wal_bytes", "gauge", "Size of its write-ahead log.", ENGINE(store.wal_bytes), 0 },
};

static const struct metric http_metrics[] = {
    { "http_requests_in_flight", "gauge", "Requests being read or answered.",
      HTTP(requests_open), 0 },
    { "http_body_bytes_in_flight", "gauge", "Bytes of bodies in memory.", HTTP(inflight_bytes),
      0 },
    { "http_received_body_bytes_total", "counter", "Body bytes received.", HTTP(received_bytes),
      0 },
    { "http_sent_body_bytes_total", "counter", "Body bytes sent.", HTTP(sent_bytes), 0 },
};

static const char *const verb_names[] = {
    [FW_CREATE] = "create",
    [FW_DELETE] = "delete",
    [FW_LABEL] = "label",
    [FW_FACTS] = "facts",
    [FW_LEARN] = "learn",
    [FW_EDIT] = "edit",
    [FW_SCORE] = "score",
    [FW_PREDICT] = "predict",
    [FW_RECALL] = "recall",
    [FW_GENERATE] = "generate",
    [FW_INSPECT] = "inspect",
    [FW_TENSOR] = "tensor",
    [FW_SNAPSHOT] = "snapshot",
    [FW_SNAPSHOT_LIST] = "snapshot_list",
    [FW_SNAPSHOT_GET] = "snapshot_get",
    [FW_SNAPSHOT_DROP] = "snapshot_drop",
    [FW_RESTORE] = "restore",
    [FW_EXPORT] = "export",
    [FW_IMPORT] = "import",
    [FW_FORK] = "fork",
    [FW_CHECKPOINT] = "checkpoint",
};

static void head(struct fw_buf *b, const char *name, const char *type, const char *help)
{
    fw_buf_printf(b, NULL, "# HELP fastweightd_%s %s\n# TYPE fastweightd_%s %s\n", name, help,
                  name, type);
}

static void put_metrics(struct fw_buf *b, const struct metric *m, size_t n, const void *stats)
{
    const uint64_t *v;
    size_t i;

    for (i = 0; i < n; i++) {
        v = (const uint64_t *)((const char *)stats + m[i].at);
        head(b, m[i].name, m[i].type, m[i].help);
        if (m[i].divisor > 0)
            fw_buf_printf(b, NULL, "fastweightd_%s %.9g\n", m[i].name,
                          (double)*v / m[i].divisor);
        else
            fw_buf_printf(b, NULL, "fastweightd_%s %llu\n", m[i].name, (unsigned long long)*v);
    }
}

static void put_verbs(struct fw_buf *b, const char *name, const char *help,
                      const uint64_t *count)
{
    size_t i;

    head(b, name, "counter", help);
    for (i = 0; i <= FW_CHECKPOINT; i++)
        fw_buf_printf(b, NULL, "fastweightd_%s{verb=\"%s\"} %llu\n", name, verb_names[i],
                      (unsigned long long)count[i]);
}

static const char *method_name(const struct fw_http_route *r)
{
    static const char *const names[] = { "GET", "POST", "PUT", "PATCH", "DELETE" };

    return r ? names[r->method] : "";
}

static void put_requests(struct fw_buf *b, struct fw_http *h,
                         const struct fw_http_route *routes, size_t n)
{
    struct fw_http_route_stats s;
    size_t i, c;

    head(b, "http_requests_total", "counter", "Requests by route and class of status.");
    for (i = 0; i <= n; i++) {
        fw_http_route_stats(h, i, &s);
        for (c = 0; c < 6; c++) {
            if (s.status[c] == 0)
                continue;
            fw_buf_printf(b, NULL,
                          "fastweightd_http_requests_total{method=\"%s\",route=\"%s\","
                          "status=\"%zuxx\"} %llu\n",
                          method_name(i < n ? &routes[i] : NULL),
                          i < n ? routes[i].pattern : "none", c,
                          (unsigned long long)s.status[c]);
        }
    }
}

static void put_histogram(struct fw_buf *b, const struct fw_http_route *r,
                          const struct fw_http_route_stats *s)
{
    char label[96];
    uint64_t below = 0;
    size_t i;

    snprintf(label, sizeof label, "method=\"%s\",route=\"%s\"", method_name(r), r->pattern);
    for (i = 0; i < FW_HTTP_BUCKETS; i++) {
        below += s->bucket[i];
        fw_buf_printf(b, NULL,
                      "fastweightd_http_request_duration_seconds_bucket{%s,le=\"%g\"} %llu\n",
                      label, (double)fw_http_bucket_us[i] / 1e6, (unsigned long long)below);
    }
    fw_buf_printf(b, NULL,
                  "fastweightd_http_request_duration_seconds_bucket{%s,le=\"+Inf\"} %llu\n"
                  "fastweightd_http_request_duration_seconds_sum{%s} %.9g\n"
                  "fastweightd_http_request_duration_seconds_count{%s} %llu\n",
                  label, (unsigned long long)s->count, label, (double)s->duration_ns / 1e9,
                  label, (unsigned long long)s->count);
}

static void put_durations(struct fw_buf *b, struct fw_http *h,
                          const struct fw_http_route *routes, size_t n)
{
    struct fw_http_route_stats s;
    size_t i;

    head(b, "http_request_duration_seconds", "histogram",
         "From the head of a request to the end of its reply, of routes that were used.");
    for (i = 0; i < n; i++) {
        fw_http_route_stats(h, i, &s);
        if (s.count)
            put_histogram(b, &routes[i], &s);
    }
}

bool api_metrics(struct fw_http_call *call)
{
    const struct fw_api *api = fw_http_arg(call);
    struct fw_http *h = fw_http_of(call);
    struct fw_engine_stats engine;
    struct fw_http_stats http;
    const struct fw_http_route *routes;
    struct fw_buf b;
    size_t n;

    routes = fw_api_routes(&n);
    fw_engine_stats(api->engine, &engine);
    fw_http_stats(h, &http);
    fw_buf_init(&b, OP_REPLY_MAX);
    put_metrics(&b, engine_metrics, sizeof engine_metrics / sizeof engine_metrics[0], &engine);
    put_verbs(&b, "requests_total", "Requests to sessions, by verb.", engine.requests);
    put_verbs(&b, "failed_requests_total", "Those that failed.", engine.failed);
    put_metrics(&b, http_metrics, sizeof http_metrics / sizeof http_metrics[0], &http);
    put_requests(&b, h, routes, n);
    put_durations(&b, h, routes, n);
    fw_http_reply(
        call, &(struct fw_http_reply){ .status = 200, .media = FW_HTTP_METRICS, .body = &b });
    return true;
}
