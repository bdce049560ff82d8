/* model.c - a plan: which memory the layers have, and the block they ask for.
 *
 * Block, per layer N, each layer of the same shape:
 *     blocks.N.*        the fields of the layer's memory, as its own plan lays them out
 *     blocks.N.KEPT     F32: convolution tails or token shifts of the architecture
 * and then
 *     hidden            F32 (d_model,)  the last token's normed hidden vector: the head reads
 * it tokens            U64 (1,)        fed since the start
 *
 * Offsets are multiples of 64, so a layer's memory is a block of its plan at layer_bytes N. A
 * rule other than the architecture's own is taken when the layer makes every tensor it needs;
 * keys that are not of length 1 are then divided by theirs. A plan is immutable. */
#include "config.h"

#include "inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fastweight/fmath.h"

/* The inner size of what a layer makes; 0: a scalar. */
static size_t inner_of(const struct fw_checkpoint *c, enum fw_made_shape shape)
{
    switch (shape) {
    case FW_MADE_D_K:
        return c->shape.d_k;
    case FW_MADE_D_V:
        return c->shape.d_v;
    case FW_MADE_SCALAR:
        break;
    }
    return 0;
}

static bool makes(const struct fw_checkpoint *c, const struct fw_made *made,
                  const struct fw_memory_input *in)
{
    size_t inner = inner_of(c, made->shape);

    return strcmp(made->name, in->name) == 0 && in->ndim == (inner ? 3u : 2u) &&
           in->shape[1] == c->shape.heads && (inner == 0 || in->shape[2] == inner);
}

/* Which of the layer's tensors go into the memory's body. */
static int fill_slots(struct fw_model *m, const char *rule, struct fw_err *err)
{
    const struct fw_arch *arch = m->c->arch;
    struct fw_memory_input in;

    for (size_t i = 0; fw_memory_input(m->memory, i, &in) == 0; i++) {
        size_t made = 0;

        while (arch->made[made].name && !makes(m->c, &arch->made[made], &in))
            made++;
        if (!arch->made[made].name && in.required)
            return fw_fail_param(err, FW_EINVAL, "bad_value", "config.memory",
                                 "rule %s needs %s, which a layer of %s does not make", rule,
                                 in.name, arch->name);
        if (!arch->made[made].name)
            continue;
        m->made[m->slots] = made;
        m->slot[m->slots] = (struct fw_tensor){ .dtype = FW_F32, .ndim = in.ndim };
        memcpy(m->slot[m->slots].shape, in.shape, sizeof in.shape);
        snprintf(m->slot[m->slots++].name, FW_NAME_MAX, "%s", in.name);
    }
    return 0;
}

static int set_memory(struct fw_params *p, const struct fw_model *m, const char *rule,
                      struct fw_err *err)
{
    const struct fw_model_shape *s = &m->c->shape;
    const struct fw_arch *arch = m->c->arch;

    if (fw_params_set_string(p, "rule", rule, err) < 0 ||
        fw_params_set_number(p, "heads", s->heads, err) < 0 ||
        fw_params_set_number(p, "d_k", s->d_k, err) < 0 ||
        fw_params_set_number(p, "d_v", s->d_v, err) < 0)
        return -1;
    if (arch->query_scale &&
        fw_params_set_number(p, "query_scale", (double)arch->query_scale(m->c), err) < 0)
        return -1;
    if (!arch->unit_keys && strcmp(rule, arch->rule) != 0 &&
        fw_params_set_string(p, "key_norm", "l2", err) < 0)
        return -1;
    if (m->max_context && strcmp(rule, "softmax") == 0 &&
        fw_params_set_number(p, "max_pairs", (double)m->max_context, err) < 0)
        return -1;
    return 0;
}

static bool is_rule(const char *name)
{
    for (size_t i = 0; fw_memory_rule(i); i++)
        if (strcmp(fw_memory_rule(i), name) == 0)
            return true;
    return false;
}

static int plan_memory(struct fw_model *m, const char *rule, struct fw_err *err)
{
    struct fw_params p = { 0 }, full;
    struct fw_err why;

    if (!is_rule(rule))
        return fw_fail_param(err, FW_EINVAL, "bad_value", "config.memory",
                             "config.memory names no rule");
    if (set_memory(&p, m, rule, err) < 0)
        return -1;
    if (fw_memory_new(&m->memory, &p, &full, &why) < 0)
        return fw_fail_param(err, why.code, why.reason, "config.memory", "rule %s: %.180s",
                             rule, why.msg);
    return fill_slots(m, rule, err);
}

static int read_config(struct fw_model *m, const struct fw_params *config,
                       struct fw_params *resolved, const char **ret_rule, struct fw_err *err)
{
    static const char *const plain[] = { "memory", NULL };
    static const char *const limited[] = { "memory", "max_context", NULL };
    size_t most = m->c->shape.max_context;

    m->max_context = most;
    *ret_rule = m->c->arch->rule;
    if (fw_params_only(config, most ? limited : plain, err) < 0 ||
        fw_params_get_string(config, "memory", ret_rule, err) < 0 ||
        fw_params_set_string(resolved, "memory", *ret_rule, err) < 0)
        return -1;
    if (most == 0)
        return 0;
    if (fw_params_get_size(config, "max_context", 1, most, &m->max_context, err) < 0)
        return -1;
    return fw_params_set_number(resolved, "max_context", (double)m->max_context, err);
}

/* ---- the block */

static int add_memory(struct fw_model *m, size_t layer, struct fw_err *err)
{
    const struct fw_layout *l = fw_memory_layout(m->memory);
    char name[FW_NAME_MAX];

    for (size_t i = 0; i < l->count; i++) {
        const struct fw_field *f = &l->field[i];
        size_t at;

        snprintf(name, sizeof name, "blocks.%zu.%.40s", layer, f->name);
        if (fw_layout_add(&m->layout, name, f->dtype, f->ndim, f->shape, &at, err) < 0)
            return -1;
        if (at != layer * m->layer_bytes + f->offset)
            return fw_fail(err, FW_EINTERNAL, "bad_layout", "%s moved in its layer", name);
        if (strcmp(f->name, "counters") == 0)
            m->at_pairs = f->offset;
    }
    return 0;
}

static int add_layer(struct fw_model *m, size_t layer, struct fw_err *err)
{
    struct fw_kept kept[FW_KEPT];
    size_t n = m->c->arch->kept ? m->c->arch->kept(m->c, kept) : 0, at;
    char name[FW_NAME_MAX];

    if (add_memory(m, layer, err) < 0)
        return -1;
    for (size_t i = 0; i < n; i++) {
        const uint64_t shape[2] = { kept[i].rows, kept[i].cols };

        snprintf(name, sizeof name, "blocks.%zu.%s", layer, kept[i].name);
        if (fw_layout_add(&m->layout, name, FW_F32, 2, shape, &at, err) < 0)
            return -1;
        m->at_kept[i] = at - layer * m->layer_bytes;
    }
    if (layer == 0)
        m->layer_bytes = m->layout.block_bytes;
    return 0;
}

static int lay_out(struct fw_model *m, struct fw_err *err)
{
    const uint64_t d = m->c->shape.d_model, one = 1;

    for (size_t i = 0; i < m->c->shape.layers; i++)
        if (add_layer(m, i, err) < 0)
            return -1;
    if (fw_layout_add(&m->layout, "hidden", FW_F32, 1, &d, &m->at_hidden, err) < 0 ||
        fw_layout_add(&m->layout, "tokens", FW_U64, 1, &one, &m->at_tokens, err) < 0)
        return -1;
    return fw_layout_seal(&m->layout, 0, err);
}

/* The chunk's own rows, the widest layer's and the head's, each with its alignment. */
static size_t count_scratch(const struct fw_checkpoint *c)
{
    size_t d = c->shape.d_model, layer = c->arch->scratch(c, FW_CHUNK);
    size_t head = (size_t)FW_CHUNK * c->shape.vocab;

    return 4 * (FW_CHUNK + 1) * d + (layer > head ? layer : head) + 64 * 16;
}

int fw_model_new(struct fw_model **ret, const struct fw_checkpoint *c,
                 const struct fw_params *config, struct fw_params *resolved, struct fw_err *err)
{
    struct fw_model *m = calloc(1, sizeof *m);
    struct fw_params full = { 0 };
    const char *rule;
    size_t widest = c->shape.d_k > c->shape.d_v ? c->shape.d_k : c->shape.d_v;

    if (!m)
        return fw_fail(err, FW_ENOMEM, "out_of_memory", "no memory for a plan");
    m->c = c;
    m->limit = (float)(1e6 / fw_sqrt((double)widest));
    m->scratch_floats = count_scratch(c);
    fw_layout_init(&m->layout);
    if (fw_scratch_init(m, err) < 0 || read_config(m, config, &full, &rule, err) < 0 ||
        plan_memory(m, rule, err) < 0 || lay_out(m, err) < 0) {
        fw_model_free(m);
        return -1;
    }
    *ret = m;
    *resolved = full;
    return 0;
}

void fw_model_free(struct fw_model *m)
{
    if (!m)
        return;
    fw_scratch_done(m);
    fw_memory_free(m->memory);
    fw_layout_done(&m->layout);
    free(m);
}

const struct fw_layout *fw_model_layout(const struct fw_model *m)
{
    return &m->layout;
}

uint32_t fw_model_vocab(const struct fw_model *m)
{
    return m->c->shape.vocab;
}
