/* stats.c - counters per route: status classes and a histogram of durations. Under the
 * server's lock. */
#include "config.h"

#include "call.h"

#include "fastweight/clock.h"

const uint64_t fw_http_bucket_us[FW_HTTP_BUCKETS] = { 100,    250,    500,     1000,
                                                      2500,   5000,   10000,   25000,
                                                      100000, 500000, 2500000, 10000000 };

void stats_count(struct fw_http *h, const struct fw_http_call *call)
{
    size_t index = call->route ? (size_t)(call->route - h->config.route) : h->config.routes;
    struct fw_http_route_stats *s = &h->route_stats[index];
    uint64_t ns = fw_clock_mono_ns() - call->start_ns;
    unsigned status_class = call->response ? call->status / 100 : 0;
    size_t i;

    s->status[status_class < 6 ? status_class : 0]++;
    s->count++;
    s->duration_ns += ns;
    for (i = 0; i < FW_HTTP_BUCKETS; i++) {
        if (ns <= fw_http_bucket_us[i] * 1000) {
            s->bucket[i]++;
            break;
        }
    }
    h->stats.inflight_bytes -= call->body.len;
    h->stats.sent_bytes += call->sent_bytes;
}

void fw_http_stats(struct fw_http *h, struct fw_http_stats *ret)
{
    pthread_mutex_lock(&h->lock);
    *ret = h->stats;
    ret->requests_open = h->open;
    pthread_mutex_unlock(&h->lock);
}

void fw_http_route_stats(struct fw_http *h, size_t route, struct fw_http_route_stats *ret)
{
    pthread_mutex_lock(&h->lock);
    *ret = h->route_stats[route];
    pthread_mutex_unlock(&h->lock);
}
