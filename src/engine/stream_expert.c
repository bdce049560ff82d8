/* stream_expert.c - between the rooms: a plan of the model room behind struct fw_expert.
 *
 * The stream room knows no models and the model room no streams. The checkpoint is the
 * catalogue's, the plan is this expert's own; its block lies within the stream's. As with a
 * session of the model itself, config.weights is the hash of the weights that made the state.
 */
#include "config.h"

#include "stream_expert.h"

#include <stdlib.h>
#include <string.h>

#define AT_ONCE 32

struct stream_expert {
    struct fw_expert base;
    struct fw_model *plan;
    const char *weights; /* lent by the checkpoint: their hash */
};

static void init(const void *context, void *block)
{
    fw_model_init(context, block);
}

static int validate(const void *context, const void *block, struct fw_err *err)
{
    return fw_model_validate(context, block, err);
}

static void learn(const void *context, void *block, const uint8_t *bytes, size_t n,
                  float *logits)
{
    uint32_t token[AT_ONCE];

    for (size_t done = 0, count; done < n; done += count) {
        struct fw_model_part part = { .block = block, .tokens = token };

        count = n - done < AT_ONCE ? n - done : AT_ONCE;
        for (size_t i = 0; i < count; i++)
            token[i] = bytes[done + i];
        part.n = count;
        part.logits = logits ? logits + done * 256 : NULL;
        fw_model_learn_many(context, &part, 1);
    }
}

static void logits_of(const void *context, const void *block, float *logits)
{
    fw_model_logits(context, block, logits);
}

static int speaks_bytes(const struct fw_model_entry *m, struct fw_err *err)
{
    const struct fw_model_shape *shape;

    if (!m->checkpoint)
        return fw_fail_param(err, FW_EINVAL, "bad_value", "config.expert",
                             "model %.64s is broken: %.150s", m->id, m->err.msg);
    shape = fw_checkpoint_shape(m->checkpoint);
    if (strcmp(shape->tokenizer, "bytes") != 0 || shape->vocab != 256)
        return fw_fail_param(err, FW_EINVAL, "bad_value", "config.expert",
                             "model %.64s does not speak bytes", m->id);
    return 0;
}

static int check_weights(const struct fw_params *config, const char *weights,
                         struct fw_params *rest, struct fw_err *err)
{
    const char *said = weights;

    if (fw_params_get_string(config, "weights", &said, err) < 0)
        return -1;
    if (strcmp(said, weights) != 0)
        return fw_fail_param(err, FW_EINVAL, "other_weights", "config.weights",
                             "the expert's weights are %s, not %.32s", weights, said);
    rest->count = 0;
    for (size_t i = 0; i < config->count; i++)
        if (strcmp(config->item[i].key, "weights") != 0)
            rest->item[rest->count++] = config->item[i];
    return 0;
}

static int make(struct stream_expert **ret, const struct fw_model_entry *m, struct fw_err *err)
{
    struct fw_params none = { 0 }, full = { 0 };
    struct stream_expert *e = calloc(1, sizeof *e);

    if (!e)
        return fw_fail(err, FW_ENOMEM, "out_of_memory", "out of memory");
    if (fw_model_new(&e->plan, m->checkpoint, &none, &full, err) < 0) {
        free(e);
        return -1;
    }
    e->weights = fw_checkpoint_shape(m->checkpoint)->weights;
    e->base = (struct fw_expert){ .name = m->id,
                                  .layout = fw_model_layout(e->plan),
                                  .context = e->plan,
                                  .init = init,
                                  .validate = validate,
                                  .learn = learn,
                                  .logits = logits_of };
    *ret = e;
    return 0;
}

int stream_expert_open(struct stream_expert **ret, const struct fw_models *models,
                       const struct fw_params *config, struct fw_params *rest,
                       struct fw_err *err)
{
    const struct fw_model_entry *m;
    const char *name = "none";

    *ret = NULL;
    *rest = *config;
    if (fw_params_get_string(config, "expert", &name, err) < 0)
        return -1;
    if (strcmp(name, "none") == 0 || strcmp(name, "dense") == 0)
        return 0;
    m = models ? fw_models_find(models, name) : NULL;
    if (!m)
        return fw_fail_param(err, FW_EINVAL, "bad_value", "config.expert",
                             "neither none nor dense, and no model: %s", name);
    if (speaks_bytes(m, err) < 0 ||
        check_weights(config, fw_checkpoint_shape(m->checkpoint)->weights, rest, err) < 0)
        return -1;
    return make(ret, m, err);
}

int stream_expert_resolve(const struct stream_expert *e, struct fw_params *resolved,
                          struct fw_err *err)
{
    return e ? fw_params_set_string(resolved, "weights", e->weights, err) : 0;
}

void stream_expert_close(struct stream_expert *e)
{
    if (!e)
        return;
    fw_model_free(e->plan);
    free(e);
}

const struct fw_expert *stream_expert_of(const struct stream_expert *e)
{
    return e ? &e->base : NULL;
}
