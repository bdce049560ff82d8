/* learner_stream.c - the stream learner (fastweight/stream.h) as a learner kind.
 *
 * Models bytes and events; a body is the tensor "tokens" (n,), U8 or U16. The learner speaks ln
 * p as a double; bits = -ln p / ln 2, rounded once, here and nowhere else. The expert of a
 * stream of bytes may be any checkpoint of the catalogue that speaks bytes. */
#include "config.h"

#include "fastweight/learner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fastweight/stream.h"

#include "stream_expert.h"

struct stream {
    struct fw_learner base; /* first */
    struct fw_stream *plan;
    struct stream_expert *expert; /* NULL: none of the catalogue's */
};

struct stream_view {
    struct fw_view base; /* first */
    struct fw_stream_view *view;
};

static const struct fw_stream *plan_of(const struct fw_learner *l)
{
    return ((const struct stream *)l)->plan;
}

static struct fw_stream_view *view_of(struct fw_view *v)
{
    return ((struct stream_view *)v)->view;
}

static int no_memory(struct fw_err *err)
{
    return fw_fail(err, FW_ENOMEM, "out_of_memory", "out of memory");
}

static void close_stream(struct fw_learner *l)
{
    struct stream *s = (struct stream *)l;

    fw_stream_free(s->plan);
    stream_expert_close(s->expert);
    free(s);
}

static int open_stream(struct fw_learner **ret, const struct fw_models *catalogue,
                       const char *model, const struct fw_params *config,
                       struct fw_params *resolved, struct fw_err *err)
{
    struct stream *s = calloc(1, sizeof *s);
    struct fw_params rest;

    if (!s)
        return no_memory(err);
    s->base.kind = &fw_learner_stream;
    if (stream_expert_open(&s->expert, catalogue, config, &rest, err) < 0 ||
        fw_stream_new(&s->plan, model, &rest, stream_expert_of(s->expert), resolved, err) < 0 ||
        stream_expert_resolve(s->expert, resolved, err) < 0) {
        close_stream(&s->base);
        return -1;
    }
    s->base.layout = fw_stream_layout(s->plan);
    s->base.vocab = fw_stream_vocab(s->plan);
    s->base.token_bytes = fw_stream_token_bytes(s->plan);
    s->base.width = 1;
    *ret = &s->base;
    return 0;
}

static void init(const struct fw_learner *l, void *block)
{
    fw_stream_init(plan_of(l), block);
}

static int validate(const struct fw_learner *l, const void *block, struct fw_err *err)
{
    return fw_stream_validate(plan_of(l), block, err);
}

static int check_ids(const struct fw_learner *l, const struct fw_tensor *t, struct fw_err *err)
{
    const uint16_t *id = t->data;
    size_t i;

    if (l->token_bytes != 2 || l->vocab > 65535)
        return 0;
    for (i = 0; i < t->shape[0]; i++) {
        if (id[i] >= l->vocab)
            return fw_fail_param(err, FW_EINVAL, "token_out_of_range", "tokens",
                                 "token %zu is %u, the vocabulary ends at %u", i, id[i],
                                 l->vocab - 1);
    }
    return 0;
}

static int check(const struct fw_learner *l, enum fw_use use, const struct fw_tensors *in,
                 size_t *ret_tokens, struct fw_err *err)
{
    enum fw_dtype dtype = l->token_bytes == 1 ? FW_U8 : FW_U16;
    const struct fw_tensor *t = fw_tensors_find(in, "tokens");

    if (use == FW_USE_QUERY)
        return fw_fail_param(err, FW_EINVAL, "not_associative", "model",
                             "recall is for associative models");
    if (in->count != (t != NULL))
        return fw_fail_param(err, FW_EINVAL, "unknown_tensor", "body",
                             "a stream's body is one tensor \"tokens\"");
    if (t && (t->ndim != 1 || t->dtype != dtype))
        return fw_fail_param(err, FW_EINVAL, "bad_shape", "tokens", "tokens must be (n,) %s",
                             fw_dtype_name(dtype));
    *ret_tokens = t ? (size_t)t->shape[0] : 0;
    if (use != FW_USE_PREFIX && *ret_tokens == 0)
        return fw_fail_param(err, FW_EINVAL, "empty_body", "tokens", "there are no tokens");
    return t ? check_ids(l, t, err) : 0;
}

static const void *tokens_at(const struct fw_learner *l, const struct fw_tensors *in,
                             size_t from)
{
    const struct fw_tensor *t = fw_tensors_find(in, "tokens");

    return t ? (const char *)t->data + from * l->token_bytes : NULL;
}

static void to_bits(double *logp, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++)
        logp[i] = -logp[i] / 0.69314718055994530942;
}

static void learn(const struct fw_learner *l, void *block, const struct fw_tensors *in,
                  size_t from, size_t n, double *surprise, float *values)
{
    (void)values;
    fw_stream_learn(plan_of(l), block, tokens_at(l, in, from), n, surprise);
    if (surprise)
        to_bits(surprise, n);
}

static int view_new(struct fw_view **ret, const struct fw_learner *l, const void *block,
                    struct fw_err *err)
{
    struct stream_view *v = calloc(1, sizeof *v);

    if (!v)
        return no_memory(err);
    v->base.learner = l;
    if (fw_stream_view_new(&v->view, plan_of(l), block, err) < 0) {
        free(v);
        return -1;
    }
    *ret = &v->base;
    return 0;
}

static void view_free(struct fw_view *v)
{
    if (v)
        fw_stream_view_free(view_of(v));
    free(v);
}

static void score(struct fw_view *v, const struct fw_tensors *in, size_t from, size_t n,
                  double *surprise)
{
    if (n == 0)
        return;
    fw_stream_view_feed(view_of(v), tokens_at(v->learner, in, from), n, surprise);
    if (surprise)
        to_bits(surprise, n);
}

static void predict(struct fw_view *v, double *logp)
{
    fw_stream_view_predict(view_of(v), logp);
}

static size_t top(struct fw_view *v, size_t k, uint32_t *ids, double *logp)
{
    return fw_stream_view_top(view_of(v), k, ids, logp);
}

static uint32_t sample(struct fw_view *v, float temperature, uint64_t *rng)
{
    return fw_stream_view_sample(view_of(v), temperature, rng);
}

/* ---- inspect */

static int report_heads(const struct fw_stream_stats *st, struct fw_report *r,
                        struct fw_err *err)
{
    double value[4][FW_STREAM_MAX_HEADS];
    const char *name[FW_STREAM_MAX_HEADS];
    size_t h, n = st->heads;

    for (h = 0; h < n; h++) {
        name[h] = st->head_name[h];
        value[0][h] = (double)st->rows[h];
        value[1][h] = (double)st->used[h];
        value[2][h] = (double)st->replaced[h];
        value[3][h] = st->weight[h];
    }
    if (fw_report_strings(r, "heads.name", name, n, err) < 0 ||
        fw_report_integers(r, "heads.rows", value[0], n, err) < 0 ||
        fw_report_integers(r, "heads.used", value[1], n, err) < 0 ||
        fw_report_integers(r, "heads.replaced", value[2], n, err) < 0)
        return -1;
    return fw_report_numbers(r, "heads.weight", value[3], n, err);
}

static int inspect(const struct fw_learner *l, const void *block, struct fw_report *r,
                   struct fw_err *err)
{
    struct fw_stream_stats st;

    fw_stream_stats(plan_of(l), block, &st);
    if (fw_report_integer(r, "tokens", (double)st.tokens, err) < 0 ||
        fw_report_number(r, "bits_per_token.all", st.bits_all, err) < 0 ||
        fw_report_number(r, "bits_per_token.last_1k", st.bits_1k, err) < 0 ||
        fw_report_number(r, "bits_per_token.last_10k", st.bits_10k, err) < 0 ||
        fw_report_number(r, "bits_per_token.last_100k", st.bits_100k, err) < 0 ||
        fw_report_number(r, "calibration_error", st.calibration_error, err) < 0 ||
        fw_report_integer(r, "nonfinite", (double)st.nonfinite, err) < 0)
        return -1;
    return report_heads(&st, r, err);
}

static void show(const struct fw_learner *l, const void *block, const struct fw_field *f,
                 void *out)
{
    (void)l;
    memcpy(out, (const char *)block + f->offset, f->bytes);
}

static const char *const models[] = { "bytes", "events", NULL };

const struct fw_learner_kind fw_learner_stream = {
    .name = "stream",
    .models = models,
    .open = open_stream,
    .close = close_stream,
    .init = init,
    .validate = validate,
    .check = check,
    .learn = learn,
    .view_new = view_new,
    .view_free = view_free,
    .score = score,
    .predict = predict,
    .top = top,
    .sample = sample,
    .inspect = inspect,
    .show = show,
};
