/* stream.c - the room's front door: picks a model's table, keeps what models share.
 *
 * A view answers `top` and `sample` from the full distribution unless its model knows a
 * shorter way to the same numbers. */
#include "config.h"

#include "fastweight/stream.h"

#include <stdlib.h>
#include <string.h>

#include "fastweight/fmath.h"

#include "stream_int.h"

static const struct stream_ops *const models[] = { &stream_bytes, &stream_events };

static const struct stream_ops *model_named(const char *name)
{
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++)
        if (strcmp(models[i]->model, name) == 0)
            return models[i];
    return NULL;
}

int fw_stream_new(struct fw_stream **ret, const char *model, const struct fw_params *config,
                  const struct fw_expert *expert, struct fw_params *resolved,
                  struct fw_err *err)
{
    const struct stream_ops *ops = model_named(model);
    struct fw_stream *s;

    if (!ops)
        return fw_fail_param(err, FW_EINVAL, "unknown_model", "model", "no stream model %s",
                             model);
    if (!(s = calloc(1, sizeof *s)))
        return fw_fail(err, FW_ENOMEM, "out_of_memory", "a stream plan");
    s->ops = ops;
    s->expert = expert;
    fw_layout_init(&s->layout);
    resolved->count = 0;
    if (tables_new(&s->tables, err) != 0 || ops->plan(s, config, resolved, err) != 0) {
        fw_stream_free(s);
        return -1;
    }
    *ret = s;
    return 0;
}

void fw_stream_free(struct fw_stream *s)
{
    if (!s)
        return;
    s->ops->free(s);
    free(s->tables);
    fw_layout_done(&s->layout);
    free(s);
}

const struct fw_layout *fw_stream_layout(const struct fw_stream *s)
{
    return &s->layout;
}

size_t fw_stream_token_bytes(const struct fw_stream *s)
{
    return s->token_bytes;
}

uint32_t fw_stream_vocab(const struct fw_stream *s)
{
    return s->vocab;
}

void fw_stream_init(const struct fw_stream *s, void *block)
{
    s->ops->init(s, block);
}

int fw_stream_validate(const struct fw_stream *s, const void *block, struct fw_err *err)
{
    if (fw_layout_check_padding(&s->layout, block, err) != 0)
        return -1;
    return s->ops->validate(s, block, err);
}

void fw_stream_learn(const struct fw_stream *s, void *block, const void *tokens, size_t n,
                     double *logp)
{
    s->ops->learn(s, block, tokens, n, logp);
}

void fw_stream_stats(const struct fw_stream *s, const void *block, struct fw_stream_stats *ret)
{
    memset(ret, 0, sizeof *ret);
    s->ops->stats(s, block, ret);
}
