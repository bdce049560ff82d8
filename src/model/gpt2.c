/* gpt2.c - GPT-2, the baseline: its contextual layer keeps every pair of its context.
 *
 *     x = wte[token] + wpe[position]
 *     x += c_proj attn(c_attn LN1(x));  x += c_proj gelu(c_fc LN2(x))
 *     attn: q, k, v are the thirds of c_attn's output, a head is d consecutive channels,
 *           softmax(q.k / sqrt(d)) over the pairs so far (the memory `softmax`)
 *
 * Sources: Radford et al. 2019; minGPT and nanoGPT store linears (out, in), Hugging Face's
 * Conv1D (in, out), which are turned into own copies. Names may have `transformer.` in front;
 * lm_head is tied to wte where it is missing; biases may be missing. gelu: by tanh where
 * config.json says gelu_new or gelu_pytorch_tanh (the default), exact for gelu. */
#include "config.h"

#include "inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BAD(err, ...) fw_fail(err, FW_EINVAL, "bad_model", __VA_ARGS__)

struct layer {
    struct fw_norm ln1, ln2;
    struct fw_linear attn, attn_out, fc, fc_out;
};

enum { ANY, D, QKV, VOCAB, CONTEXT, FF, DIMS };

#define AT(f)    offsetof(struct layer, f)
#define MODEL(f) offsetof(struct fw_checkpoint, f)
#define END                                                                                    \
    {                                                                                          \
        NULL, FW_VECTOR, 0, 0, 0, 0                                                            \
    }

/* The same names in both forms, with matrices stored (out, in) or (in, out). */
#define LAYER(shape)                                                                           \
    {                                                                                          \
        { "ln_1.weight", FW_VECTOR, D, 0, AT(ln1.w), 0 },                                      \
            { "ln_1.bias", FW_VECTOR, D, 0, AT(ln1.b), 1 },                                    \
            { "ln_2.weight", FW_VECTOR, D, 0, AT(ln2.w), 0 },                                  \
            { "ln_2.bias", FW_VECTOR, D, 0, AT(ln2.b), 1 },                                    \
            { "attn.c_attn.weight", (shape), QKV, D, AT(attn.W), 0 },                          \
            { "attn.c_attn.bias", FW_VECTOR, QKV, 0, AT(attn.bias), 1 },                       \
            { "attn.c_proj.weight", (shape), D, D, AT(attn_out.W), 0 },                        \
            { "attn.c_proj.bias", FW_VECTOR, D, 0, AT(attn_out.bias), 1 },                     \
            { "mlp.c_fc.weight", (shape), FF, D, AT(fc.W), 0 },                                \
            { "mlp.c_fc.bias", FW_VECTOR, FF, 0, AT(fc.bias), 1 },                             \
            { "mlp.c_proj.weight", (shape), D, FF, AT(fc_out.W), 0 },                          \
            { "mlp.c_proj.bias", FW_VECTOR, D, 0, AT(fc_out.bias), 1 }, END,                   \
    }

static const struct fw_want linear_layer[] = LAYER(FW_MATRIX);
static const struct fw_want conv1d_layer[] = LAYER(FW_TURNED);

static const struct fw_want model_wants[] = {
    { "wte.weight", FW_MATRIX, VOCAB, D, MODEL(embed), 0 },
    { "wpe.weight", FW_MATRIX, CONTEXT, D, MODEL(positions), 0 },
    { "ln_f.weight", FW_VECTOR, D, 0, MODEL(last.w), 0 },
    { "ln_f.bias", FW_VECTOR, D, 0, MODEL(last.b), 1 },
    END,
};

static const struct fw_want head_wants[] = {
    { "lm_head.weight", FW_MATRIX, VOCAB, D, MODEL(head.W), 1 },
    END,
};

/* Causal masks that some checkpoints carry along. */
static const char *const ignored[] = { ".attn.bias", ".attn.masked_bias", NULL };

/* Is c_attn (3 d, d), and so every linear (out, in)? */
static bool is_linear(const struct fw_checkpoint *c, const char *prefix)
{
    char name[FW_NAME_MAX];
    const struct fw_tensor *t;

    snprintf(name, sizeof name, "%sh.0.attn.c_attn.weight", prefix);
    t = fw_weights_look(&c->weights, name);
    return !t || t->ndim != 2 || t->shape[0] != c->embed.in;
}

static int read_activation(const struct fw_checkpoint *c, struct fw_err *err)
{
    static const char *const known[] = { "",          "gelu_new", "gelu_pytorch_tanh",
                                         "gelu_tanh", "gelu",     "gelu_erf",
                                         NULL };

    for (size_t i = 0; known[i]; i++)
        if (strcmp(known[i], c->set.activation) == 0)
            return 0;
    return BAD(err, "config.json: activation_function must be gelu_new, gelu_pytorch_tanh or "
                    "gelu");
}

static bool is_exact(const struct fw_checkpoint *c)
{
    return strcmp(c->set.activation, "gelu") == 0 || strcmp(c->set.activation, "gelu_erf") == 0;
}

static int take_layers(struct fw_checkpoint *c, const char *prefix, size_t *dims,
                       struct fw_err *err)
{
    const struct fw_want *wants = is_linear(c, prefix) ? linear_layer : conv1d_layer;
    char name[FW_NAME_MAX];

    for (size_t i = 0; i < c->set.layers; i++) {
        snprintf(name, sizeof name, "%sh.%zu.", prefix, i);
        if (fw_weights_take(&c->weights, name, wants, dims, (struct layer *)c->layers + i,
                            err) < 0)
            return -1;
    }
    return 0;
}

static int open_gpt2(struct fw_checkpoint *c, struct fw_err *err)
{
    struct fw_settings *s = &c->set;
    struct fw_weights *w = &c->weights;
    size_t dims[DIMS] = {
        [D] = s->d_model, [VOCAB] = s->vocab, [CONTEXT] = s->max_context, [FF] = s->d_ff
    };
    const char *prefix = fw_weights_look(w, "wte.weight") ? "" : "transformer.";

    s->eps = s->eps != 0 ? s->eps : 1e-5;
    c->layers = calloc(s->layers, sizeof(struct layer));
    if (!c->layers)
        return fw_fail(err, FW_ENOMEM, "out_of_memory", "no memory for a checkpoint");
    if (read_activation(c, err) < 0 ||
        fw_weights_take(w, prefix, model_wants, dims, c, err) < 0 ||
        fw_weights_take(w, "", head_wants, dims, c, err) < 0)
        return -1;
    if (s->heads == 0 || c->embed.in % s->heads || c->embed.in / s->heads > 4096)
        return BAD(err, "config.json: %zu heads do not divide %zu channels", s->heads,
                   c->embed.in);
    dims[QKV] = 3 * c->embed.in;
    if (take_layers(c, prefix, dims, err) < 0)
        return -1;
    if (!c->head.W.data)
        c->head.W = c->embed;
    c->shape.heads = (uint32_t)s->heads;
    c->shape.d_k = c->shape.d_v = (uint32_t)(c->embed.in / s->heads);
    c->shape.d_ff = (uint32_t)dims[FF];
    c->shape.max_context = (uint32_t)dims[CONTEXT];
    return 0;
}

static size_t scratch(const struct fw_checkpoint *c, size_t n)
{
    return n * (10 * c->shape.d_model + c->shape.d_ff);
}

/* The thirds of (n, 3 d) rows. */
static void split(const float *qkv, size_t n, size_t d, float *q, float *k, float *v)
{
    for (size_t t = 0; t < n; t++, qkv += 3 * d) {
        memcpy(q + t * d, qkv, d * sizeof *q);
        memcpy(k + t * d, qkv + d, d * sizeof *k);
        memcpy(v + t * d, qkv + 2 * d, d * sizeof *v);
    }
}

static void run_layer(const struct fw_model *m, size_t layer, struct fw_chunk *c)
{
    const struct fw_checkpoint *ck = m->c;
    const struct layer *l = (const struct layer *)ck->layers + layer;
    size_t d = ck->shape.d_model, ff = ck->shape.d_ff;
    float *h = fw_chunk_take(c, c->n, d), *qkv = fw_chunk_take(c, c->n, 3 * d), *made[FW_MADE];
    float *fc;

    fw_layer_norm_rows(&l->ln1, ck->set.eps, c->x, c->n, d, h);
    fw_linear_rows(&l->attn, h, c->n, qkv);
    for (size_t i = 0; i < 3; i++)
        made[i] = fw_chunk_take(c, c->n, d);
    split(qkv, c->n, d, made[2], made[0], made[1]);
    fw_model_memory(m, layer, c, made, h);
    fw_residual(&l->attn_out, h, c);
    fw_layer_norm_rows(&l->ln2, ck->set.eps, c->x, c->n, d, h);
    fc = fw_chunk_take(c, c->n, ff);
    fw_linear_rows(&l->fc, h, c->n, fc);
    if (is_exact(ck))
        fw_parts()->gelu(fc, c->n * ff);
    else
        fw_parts()->gelu_tanh(fc, c->n * ff);
    fw_residual(&l->fc_out, fc, c);
}

const struct fw_arch fw_arch_gpt2 = {
    .name = "gpt2",
    .rule = "softmax",
    .made = { { "keys", FW_MADE_D_K }, { "values", FW_MADE_D_V }, { "queries", FW_MADE_D_K } },
    .ignored = ignored,
    .open = open_gpt2,
    .scratch = scratch,
    .layer = run_layer,
};
