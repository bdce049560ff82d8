/* view.c - frozen reading: what every model's view shares. */
#include "config.h"

#include <stdlib.h>

#include "fastweight/fmath.h"

#include "stream_int.h"

int fw_stream_view_new(struct fw_stream_view **ret, const struct fw_stream *s,
                       const void *block, struct fw_err *err)
{
    struct fw_stream_view *v = calloc(1, sizeof *v);

    if (!v)
        return fw_fail(err, FW_ENOMEM, "out_of_memory", "a view");
    v->s = s;
    v->block = block;
    v->logp = malloc(s->vocab * sizeof *v->logp);
    v->ranked = malloc(s->vocab * sizeof *v->ranked);
    if (!v->logp || !v->ranked) {
        fw_stream_view_free(v);
        return fw_fail(err, FW_ENOMEM, "out_of_memory", "a view");
    }
    if (s->ops->view_new(v, err) != 0) {
        fw_stream_view_free(v);
        return -1;
    }
    *ret = v;
    return 0;
}

void fw_stream_view_free(struct fw_stream_view *v)
{
    if (!v)
        return;
    v->s->ops->view_free(v);
    free(v->logp);
    free(v->ranked);
    free(v);
}

void fw_stream_view_feed(struct fw_stream_view *v, const void *tokens, size_t n, double *logp)
{
    v->s->ops->feed(v, tokens, n, logp);
}

void fw_stream_view_predict(struct fw_stream_view *v, double *logp)
{
    v->s->ops->predict(v, logp);
}

int ranked_likelier(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;

    if (x->logp != y->logp)
        return x->logp > y->logp ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

size_t view_rank(struct fw_stream_view *v, size_t k, uint32_t *ids, double *logp)
{
    const uint32_t vocab = v->s->vocab;

    fw_stream_view_predict(v, v->logp);
    for (uint32_t i = 0; i < vocab; i++)
        v->ranked[i] = (struct ranked){ v->logp[i], i };
    qsort(v->ranked, vocab, sizeof *v->ranked, ranked_likelier);
    if (k > vocab)
        k = vocab;
    for (size_t i = 0; i < k; i++) {
        ids[i] = v->ranked[i].id;
        logp[i] = v->ranked[i].logp;
    }
    return k;
}

size_t fw_stream_view_top(struct fw_stream_view *v, size_t k, uint32_t *ids, double *logp)
{
    return v->s->ops->top ? v->s->ops->top(v, k, ids, logp) : view_rank(v, k, ids, logp);
}

/* splitmix64 (Steele, Lea, Flood 2014), upper 53 bits as a number in [0, 1). */
static double draw(uint64_t *rng)
{
    uint64_t z = *rng += 0x9E3779B97F4A7C15u;

    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

static uint32_t likeliest(const double *logp, uint32_t n)
{
    uint32_t best = 0;

    for (uint32_t i = 1; i < n; i++)
        if (logp[i] > logp[best])
            best = i;
    return best;
}

/* p^(1/T), the largest scaled to 1 first: no T > 0 overflows or gives an empty sum. */
uint32_t fw_stream_view_sample(struct fw_stream_view *v, float temperature, uint64_t *rng)
{
    const uint32_t vocab = v->s->vocab;
    uint32_t best, id;
    double sum = 0, top, u;

    fw_stream_view_predict(v, v->logp);
    best = likeliest(v->logp, vocab);
    if (!(temperature > 0))
        return best;
    top = v->logp[best];
    for (uint32_t i = 0; i < vocab; i++)
        sum += v->logp[i] = fw_exp((v->logp[i] - top) / (double)temperature);
    u = draw(rng) * sum;
    for (id = 0; id + 1 < vocab && u >= v->logp[id]; id++)
        u -= v->logp[id];
    return id;
}
