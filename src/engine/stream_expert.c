/* stream_expert.c - between the rooms: a plan of the model room behind struct fw_expert.
 *
 * The stream room knows no models and the model room no streams. The checkpoint is the
 * catalogue's, the plan is this expert's own; its block lies within the stream's. */
#include "config.h"

#include "stream_expert.h"

#include <stdlib.h>
#include <string.h>

#define AT_ONCE 32

struct stream_expert {
    struct fw_expert base;
    struct fw_model *plan;
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

int stream_expert_open(struct stream_expert **ret, const struct fw_models *models,
                       const struct fw_params *config, struct fw_err *err)
{
    const struct fw_param *name = fw_params_find(config, "expert");
    const struct fw_model_entry *m;
    struct fw_params none = { 0 }, full = { 0 };
    struct stream_expert *e;

    *ret = NULL;
    if (!models || !name || name->type != FW_PARAM_STRING ||
        !(m = fw_models_find(models, name->string)))
        return 0;
    if (speaks_bytes(m, err) < 0)
        return -1;
    if (!(e = calloc(1, sizeof *e)))
        return fw_fail(err, FW_ENOMEM, "out_of_memory", "out of memory");
    if (fw_model_new(&e->plan, m->checkpoint, &none, &full, err) < 0) {
        free(e);
        return -1;
    }
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
