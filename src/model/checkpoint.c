/* checkpoint.c - opening a checkpoint directory: config.json, the mapped tensors, and an
 * architecture that takes them. Immutable once open. */
#include "config.h"

#include "inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct fw_arch *const archs[] = { &fw_arch_rwkv7, &fw_arch_gated_deltanet,
                                               &fw_arch_delta_net, &fw_arch_gpt2 };

/* Of the tensors and of the settings that say what is computed with them: a state belongs to
 * both. What the shapes of tensors imply is in them. */
static struct fw_hash hash_of(const struct fw_checkpoint *c)
{
    const struct fw_model_shape *s = &c->shape;
    const struct fw_hash tensors = fw_weights_hash(&c->weights);
    const uint32_t number[] = { s->heads, s->d_k, s->d_v, s->max_context, c->set.double_beta };
    const struct fw_hash_piece piece[] = { { &tensors, sizeof tensors },
                                           { c->arch->name, strlen(c->arch->name) + 1 },
                                           { number, sizeof number },
                                           { &c->set.eps, sizeof c->set.eps },
                                           { c->set.activation,
                                             strlen(c->set.activation) + 1 } };

    return fw_hash128_pieces(piece, sizeof piece / sizeof piece[0]);
}

static int open_all(struct fw_checkpoint *c, const char *dir, struct fw_err *err)
{
    struct fw_model_shape *s = &c->shape;

    if (fw_settings_read(&c->set, dir, err) < 0)
        return -1;
    for (size_t i = 0; i < sizeof archs / sizeof archs[0]; i++)
        if (strcmp(archs[i]->name, c->set.architecture) == 0)
            c->arch = archs[i];
    snprintf(s->architecture, sizeof s->architecture, "%s", c->set.architecture);
    snprintf(s->tokenizer, sizeof s->tokenizer, "%s", c->set.tokenizer);
    snprintf(s->memory, sizeof s->memory, "%s", c->arch->rule);
    if (c->set.layers == 0)
        return fw_fail(err, FW_EINVAL, "bad_model",
                       "config.json does not say num_hidden_layers");
    if (fw_weights_open(&c->weights, dir, err) < 0 || c->arch->open(c, err) < 0 ||
        fw_weights_all_taken(&c->weights, c->arch->ignored, err) < 0)
        return -1;
    fw_hash_hex(hash_of(c), s->weights);
    s->layers = (uint32_t)c->set.layers;
    s->vocab = (uint32_t)c->embed.out;
    s->d_model = (uint32_t)c->embed.in;
    s->parameters = c->weights.parameters;
    s->weight_bytes = c->weights.bytes;
    return 0;
}

int fw_checkpoint_open(struct fw_checkpoint **ret, const char *dir, struct fw_err *err)
{
    struct fw_checkpoint *c = calloc(1, sizeof *c);

    if (!c)
        return fw_fail(err, FW_ENOMEM, "out_of_memory", "no memory for a checkpoint");
    if (open_all(c, dir, err) < 0) {
        fw_checkpoint_close(c);
        return -1;
    }
    *ret = c;
    return 0;
}

void fw_checkpoint_close(struct fw_checkpoint *c)
{
    if (!c)
        return;
    fw_weights_close(&c->weights);
    free(c->layers);
    free(c);
}

const struct fw_model_shape *fw_checkpoint_shape(const struct fw_checkpoint *c)
{
    return &c->shape;
}
