/* learner_transformer.c - checkpoints (fastweight/model.h) as a learner kind.
 *
 * A body is the tensor "tokens" (n,), U32. The fast weights of the layers are the context: all
 * of the block is registers, so a read that goes on past the block as it is learns on a copy of
 * it, and a view only looks. bits = -ln p / ln 2, rounded once, here.
 *
 * config.weights is the hash of the checkpoint's weights. It is always in the resolved
 * configuration, so a state is never read with weights that did not make it: a stored session
 * answers state_corrupt, an import is refused. */
#include "config.h"

#include "fastweight/learner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fastweight/fmath.h"

enum { BATCH = 32 }; /* rows that share a pass over the weights */

struct transformer {
    struct fw_learner base; /* first */
    struct fw_model *plan;
    struct fw_about about;
};

struct transformer_view {
    struct fw_view base; /* first */
    const void *block;
    double logp[]; /* (vocab,) scratch */
};

static const struct fw_model *plan_of(const struct fw_learner *l)
{
    return ((const struct transformer *)l)->plan;
}

static int no_memory(struct fw_err *err)
{
    return fw_fail(err, FW_ENOMEM, "out_of_memory", "out of memory");
}

static struct fw_about about(const struct fw_model_shape *s, const struct fw_params *config)
{
    const struct fw_param *memory = fw_params_find(config, "memory");
    const struct fw_param *limit = fw_params_find(config, "max_context");
    struct fw_about a = { .vocab = s->vocab,
                          .token_bytes = sizeof(uint32_t),
                          .d_model = s->d_model,
                          .layers = s->layers,
                          .heads = s->heads,
                          .d_k = s->d_k,
                          .d_v = s->d_v,
                          .max_context = limit ? (uint64_t)limit->number : 0,
                          .parameters = s->parameters,
                          .weight_bytes = s->weight_bytes };

    snprintf(a.architecture, sizeof a.architecture, "%s", s->architecture);
    snprintf(a.tokenizer, sizeof a.tokenizer, "%s", s->tokenizer);
    snprintf(a.memory, sizeof a.memory, "%.31s", memory ? memory->string : s->memory);
    a.off_distribution = strcmp(a.memory, s->memory) != 0;
    return a;
}

/* *ret: the configuration without `weights`, which must be the checkpoint's where it is said.
 */
static int check_weights(const struct fw_params *config, const struct fw_model_shape *s,
                         struct fw_params *ret, struct fw_err *err)
{
    const char *said = s->weights;

    if (fw_params_get_string(config, "weights", &said, err) < 0)
        return -1;
    if (strcmp(said, s->weights) != 0)
        return fw_fail_param(err, FW_EINVAL, "other_weights", "config.weights",
                             "the checkpoint's weights are %s, not %.32s", s->weights, said);
    ret->count = 0;
    for (size_t i = 0; i < config->count; i++)
        if (strcmp(config->item[i].key, "weights") != 0)
            ret->item[ret->count++] = config->item[i];
    return 0;
}

static int open_checkpoint(struct fw_learner **ret, const struct fw_models *catalogue,
                           const char *model, const struct fw_params *config,
                           struct fw_params *resolved, struct fw_err *err)
{
    const struct fw_model_entry *entry = fw_models_find(catalogue, model);
    const struct fw_model_shape *shape = fw_checkpoint_shape(entry->checkpoint);
    struct transformer *t = calloc(1, sizeof *t);
    struct fw_params asked;

    if (!t)
        return no_memory(err);
    if (check_weights(config, shape, &asked, err) < 0 ||
        fw_model_new(&t->plan, entry->checkpoint, &asked, resolved, err) < 0 ||
        fw_params_set_string(resolved, "weights", shape->weights, err) < 0) {
        fw_model_free(t->plan);
        free(t);
        return -1;
    }
    t->about = about(shape, resolved);
    t->base.kind = &fw_learner_transformer;
    t->base.layout = fw_model_layout(t->plan);
    t->base.vocab = fw_model_vocab(t->plan);
    t->base.token_bytes = sizeof(uint32_t);
    t->base.width = 1;
    t->base.batch = BATCH;
    t->base.about = &t->about;
    *ret = &t->base;
    return 0;
}

static void close_checkpoint(struct fw_learner *l)
{
    fw_model_free(((struct transformer *)l)->plan);
    free(l);
}

static void init(const struct fw_learner *l, void *block)
{
    fw_model_init(plan_of(l), block);
}

static int validate(const struct fw_learner *l, const void *block, struct fw_err *err)
{
    return fw_model_validate(plan_of(l), block, err);
}

static int check_ids(const struct fw_learner *l, const struct fw_tensor *t, struct fw_err *err)
{
    const uint32_t *id = t->data;

    for (size_t i = 0; i < t->shape[0]; i++)
        if (id[i] >= l->vocab)
            return fw_fail_param(err, FW_EINVAL, "token_out_of_range", "tokens",
                                 "token %zu is %u, the vocabulary ends at %u", i,
                                 (unsigned)id[i], (unsigned)l->vocab - 1);
    return 0;
}

static int check(const struct fw_learner *l, enum fw_use use, const struct fw_tensors *in,
                 size_t *ret_tokens, struct fw_err *err)
{
    const struct fw_tensor *t = fw_tensors_find(in, "tokens");

    if (use == FW_USE_QUERY || use == FW_USE_EDIT)
        return fw_fail_param(err, FW_EINVAL, "not_associative", "model",
                             "recall and edit are for associative models");
    if (in->count != (t != NULL))
        return fw_fail_param(err, FW_EINVAL, "unknown_tensor", "body",
                             "a transformer's body is one tensor \"tokens\"");
    if (t && (t->ndim != 1 || t->dtype != FW_U32))
        return fw_fail_param(err, FW_EINVAL, "bad_shape", "tokens", "tokens must be (n,) U32");
    *ret_tokens = t ? (size_t)t->shape[0] : 0;
    if (use != FW_USE_PREFIX && *ret_tokens == 0)
        return fw_fail_param(err, FW_EINVAL, "empty_body", "tokens", "there are no tokens");
    return t ? check_ids(l, t, err) : 0;
}

static void learn(const struct fw_learner *l, void *block, const struct fw_tensors *in,
                  size_t from, size_t n, double *surprise, float *values)
{
    const uint32_t *tokens = fw_tensors_find(in, "tokens")->data;

    (void)values;
    fw_model_learn(plan_of(l), block, tokens + from, n, surprise);
    for (size_t i = 0; surprise && i < n; i++)
        surprise[i] = -surprise[i] / 0.69314718055994530942;
}

static void learn_many(const struct fw_learner *l, const struct fw_learner_part *part,
                       size_t parts)
{
    struct fw_model_part p[FW_LEARNER_PARTS];

    for (size_t i = 0; i < parts; i++) {
        const uint32_t *tokens = fw_tensors_find(part[i].in, "tokens")->data;

        p[i] = (struct fw_model_part){ .block = part[i].block,
                                       .tokens = tokens + part[i].from,
                                       .n = part[i].n,
                                       .logp = part[i].surprise };
    }
    fw_model_learn_many(plan_of(l), p, parts);
    for (size_t i = 0; i < parts; i++)
        for (size_t t = 0; part[i].surprise && t < part[i].n; t++)
            part[i].surprise[t] = -part[i].surprise[t] / 0.69314718055994530942;
}

static int view_new(struct fw_view **ret, const struct fw_learner *l, const void *block,
                    struct fw_err *err)
{
    struct transformer_view *v = malloc(sizeof *v + l->vocab * sizeof v->logp[0]);

    if (!v)
        return no_memory(err);
    v->base.learner = l;
    v->block = block;
    *ret = &v->base;
    return 0;
}

static void view_free(struct fw_view *v)
{
    free(v);
}

static void predict(struct fw_view *v, double *logp)
{
    fw_model_predict(plan_of(v->learner), ((struct transformer_view *)v)->block, logp);
}

/* Likelier first, of equals the lower id; a heap of the k best would save little: k is small.
 */
static size_t top(struct fw_view *v, size_t k, uint32_t *ids, double *logp)
{
    const double *all = ((struct transformer_view *)v)->logp;
    size_t at, n = 0;

    predict(v, ((struct transformer_view *)v)->logp);
    for (uint32_t i = 0; i < v->learner->vocab; i++) {
        if (n == k && (k == 0 || !(all[i] > logp[n - 1])))
            continue;
        for (at = n < k ? n : n - 1; at > 0 && all[i] > logp[at - 1]; at--) {
            ids[at] = ids[at - 1];
            logp[at] = logp[at - 1];
        }
        ids[at] = i;
        logp[at] = all[i];
        n += n < k;
    }
    return n;
}

/* splitmix64 (Steele, Lea, Flood 2014), upper 53 bits as a number in [0, 1). */
static double draw(uint64_t *rng)
{
    uint64_t z = *rng += 0x9E3779B97F4A7C15u;

    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

/* p^(1/T), the largest scaled to 1 first: no T > 0 overflows or gives an empty sum. */
static uint32_t sample(struct fw_view *v, float temperature, uint64_t *rng)
{
    double *p = ((struct transformer_view *)v)->logp, sum = 0, highest, u;
    const uint32_t vocab = v->learner->vocab;
    uint32_t best = 0, id;

    predict(v, p);
    for (id = 1; id < vocab; id++)
        best = p[id] > p[best] ? id : best;
    if (!(temperature > 0))
        return best;
    highest = p[best];
    for (id = 0; id < vocab; id++)
        sum += p[id] = fw_exp((p[id] - highest) / (double)temperature);
    u = draw(rng) * sum;
    for (id = 0; id + 1 < vocab && u >= p[id]; id++)
        u -= p[id];
    return id;
}

/* ---- inspect */

static int report_layer(const struct fw_model *m, const void *block, uint32_t layer,
                        uint32_t heads, double *column, struct fw_report *r, struct fw_err *err)
{
    static const char *const names[] = { "norm", "effective_rank", "update_norm", "nonfinite" };
    struct fw_model_layer_stats st;
    char path[64];

    for (uint32_t h = 0; h < heads; h++) {
        if (fw_model_layer_stats(m, block, layer, h, &st, err) < 0)
            return -1;
        column[h] = st.norm;
        column[heads + h] = st.effective_rank;
        column[2 * heads + h] = st.update_norm;
        column[3 * heads + h] = (double)st.nonfinite;
    }
    for (size_t i = 0; i < 4; i++) {
        snprintf(path, sizeof path, "blocks.%u.%s", (unsigned)layer, names[i]);
        if ((i < 3 ? fw_report_numbers : fw_report_integers)(r, path, column + i * heads, heads,
                                                             err) < 0)
            return -1;
    }
    return 0;
}

static int inspect(const struct fw_learner *l, const void *block, struct fw_report *r,
                   struct fw_err *err)
{
    const struct fw_about *a = l->about;
    double *column = calloc(4 * a->heads, sizeof *column);
    int rc;

    if (!column)
        return no_memory(err);
    rc = fw_report_string(r, "memory", a->memory, err);
    for (uint32_t i = 0; rc == 0 && i < a->layers; i++)
        rc = report_layer(plan_of(l), block, i, a->heads, column, r, err);
    free(column);
    return rc;
}

static void show(const struct fw_learner *l, const void *block, const struct fw_field *f,
                 void *out)
{
    fw_model_show(plan_of(l), block, f, out);
}

const struct fw_learner_kind fw_learner_transformer = {
    .name = "transformer",
    .all_registers = true,
    .open = open_checkpoint,
    .close = close_checkpoint,
    .init = init,
    .validate = validate,
    .check = check,
    .learn = learn,
    .learn_many = learn_many,
    .view_new = view_new,
    .view_free = view_free,
    .predict = predict,
    .top = top,
    .sample = sample,
    .inspect = inspect,
    .show = show,
};
