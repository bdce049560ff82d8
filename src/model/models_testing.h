/* models_testing.h - checkpoint directories for this room's tests: small ones of random
 * weights, and real ones around a file that may be there. Each is made in a directory of its
 * own, which testing_remove takes away. */
#ifndef MODELS_TESTING_H
#define MODELS_TESTING_H

#include <check.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fastweight/num.h"
#include "fastweight/safetensors.h"
#include "inside.h"

#define TESTING_MAX 256

struct testing { /* a checkpoint to be */
    char dir[64];
    struct fw_tensor item[TESTING_MAX];
    struct fw_tensors tensors;
    float *data[TESTING_MAX]; /* owned */
    char config[1024];
    uint64_t seed;
    float scale;        /* of the weights */
    enum fw_dtype type; /* of matrices: F32, F16 or BF16 */
};

static inline float testing_random(uint64_t *s) /* splitmix64, in [-1, 1) */
{
    uint64_t z = *s += 0x9e3779b97f4a7c15u;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    return (float)(int32_t)(uint32_t)(z >> 32) * 0x1p-31f;
}

static inline struct testing *testing_new(const char *config)
{
    struct testing *t = calloc(1, sizeof *t);

    ck_assert_ptr_nonnull(t);
    t->tensors.item = t->item;
    t->scale = 0.5f;
    t->type = FW_F32;
    snprintf(t->config, sizeof t->config, "%s", config);
    snprintf(t->dir, sizeof t->dir, "/tmp/model_test_XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(t->dir));
    return t;
}

static inline void testing_write(const struct testing *t, const char *name, const void *data,
                                 size_t len)
{
    char path[256];
    FILE *f;

    snprintf(path, sizeof path, "%s/%s", t->dir, name);
    f = fopen(path, "wb");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(data, 1, len, f), len);
    ck_assert_int_eq(fclose(f), 0);
}

static inline void testing_remove(struct testing *t)
{
    static const char *const names[] = { "config.json", "model.safetensors", "one.safetensors",
                                         "two.safetensors", "model.safetensors.index.json" };
    char path[256];

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", t->dir, names[i]);
        unlink(path);
    }
    rmdir(t->dir);
    for (size_t i = 0; i < t->tensors.count; i++)
        free(t->data[i]);
    free(t);
}

/* Random weights around `middle`; matrices in the checkpoint's type. */
static inline struct fw_tensor *testing_add(struct testing *t, const char *name, uint32_t ndim,
                                            uint64_t rows, uint64_t cols, float middle)
{
    struct fw_tensor *w = &t->item[t->tensors.count];
    size_t n = (size_t)(rows * (ndim > 1 ? cols : 1));
    float scale = ndim > 1 ? t->scale / (float)sqrt((double)cols) * 1.7f : 0.2f;
    float *x = calloc(n, sizeof *x);

    ck_assert(x && t->tensors.count < TESTING_MAX);
    *w = (struct fw_tensor){ .dtype = ndim > 1 ? t->type : FW_F32, .ndim = ndim };
    w->shape[0] = rows;
    w->shape[1] = ndim == 3 ? 1 : cols;
    w->shape[2] = cols;
    snprintf(w->name, sizeof w->name, "%s", name);
    for (size_t i = 0; i < n; i++) {
        float y = middle + scale * testing_random(&t->seed);

        if (w->dtype == FW_F32)
            x[i] = y;
        else
            ((uint16_t *)x)[i] = w->dtype == FW_F16 ? fw_to_f16(y) : fw_to_bf16(y);
    }
    w->data = t->data[t->tensors.count++] = x;
    w->bytes = n * fw_dtype_bytes(w->dtype);
    return w;
}

#define ADD(...) (snprintf(name, sizeof name, __VA_ARGS__), name)

/* vocab 19, d_model 16, 2 layers, heads of (4, 6), d_ff 24 */
static inline struct testing *testing_deltanet(bool gated)
{
    struct testing *t = testing_new(
        gated ? "{\"architecture\": \"gated_deltanet\", \"hidden_size\": 16, \"num_heads\": 2, "
                "\"head_dim\": 4, \"expand_v\": 1.5, \"num_hidden_layers\": 2, "
                "\"tokenizer\": \"bytes\", \"vocab_size\": 19}"
              : "{\"model_type\": \"delta_net\", \"hidden_size\": 16, \"num_heads\": 2, "
                "\"expand_k\": 0.5, \"expand_v\": 0.75, \"num_hidden_layers\": 2}");
    char name[80];

    testing_add(t, "model.embeddings.weight", 2, 19, 16, 0);
    testing_add(t, "model.norm.weight", 1, 16, 0, 1);
    testing_add(t, "lm_head.weight", 2, 19, 16, 0);
    for (int i = 0; i < 2; i++) {
        testing_add(t, ADD("model.layers.%d.attn_norm.weight", i), 1, 16, 0, 1);
        testing_add(t, ADD("model.layers.%d.mlp_norm.weight", i), 1, 16, 0, 1);
        testing_add(t, ADD("model.layers.%d.attn.q_proj.weight", i), 2, 8, 16, 0);
        testing_add(t, ADD("model.layers.%d.attn.k_proj.weight", i), 2, 8, 16, 0);
        testing_add(t, ADD("model.layers.%d.attn.v_proj.weight", i), 2, 12, 16, 0);
        testing_add(t, ADD("model.layers.%d.attn.b_proj.weight", i), 2, 2, 16, 0);
        testing_add(t, ADD("model.layers.%d.attn.q_conv1d.weight", i), 3, 8, 4, 0);
        testing_add(t, ADD("model.layers.%d.attn.k_conv1d.weight", i), 3, 8, 4, 0);
        testing_add(t, ADD("model.layers.%d.attn.v_conv1d.weight", i), 3, 12, 4, 0);
        testing_add(t, ADD("model.layers.%d.attn.o_norm.weight", i), 1, 6, 0, 1);
        testing_add(t, ADD("model.layers.%d.attn.o_proj.weight", i), 2, 16, 12, 0);
        testing_add(t, ADD("model.layers.%d.mlp.gate_proj.weight", i), 2, 24, 16, 0);
        testing_add(t, ADD("model.layers.%d.mlp.up_proj.weight", i), 2, 24, 16, 0);
        testing_add(t, ADD("model.layers.%d.mlp.down_proj.weight", i), 2, 16, 24, 0);
        if (!gated)
            continue;
        testing_add(t, ADD("model.layers.%d.attn.a_proj.weight", i), 2, 2, 16, 0);
        testing_add(t, ADD("model.layers.%d.attn.A_log", i), 1, 2, 0, 0);
        testing_add(t, ADD("model.layers.%d.attn.dt_bias", i), 1, 2, 0, -2);
        testing_add(t, ADD("model.layers.%d.attn.g_proj.weight", i), 2, 12, 16, 0);
    }
    return t;
}

static const struct {
    const char *ours, *fla;
    uint32_t ndim;
    uint64_t rows, cols;
    float middle;
    int turned; /* official is stored (cols, rows) */
} testing_rwkv7_layer[] = {
    { "ln1.weight", "attn_norm.weight", 1, 16, 0, 1, 0 },
    { "ln1.bias", "attn_norm.bias", 1, 16, 0, 0, 0 },
    { "ln2.weight", "ffn_norm.weight", 1, 16, 0, 1, 0 },
    { "ln2.bias", "ffn_norm.bias", 1, 16, 0, 0, 0 },
    { "att.x_r", "attn.x_r", 1, 16, 0, 0.5f, 0 },
    { "att.x_w", "attn.x_w", 1, 16, 0, 0.5f, 0 },
    { "att.x_k", "attn.x_k", 1, 16, 0, 0.5f, 0 },
    { "att.x_v", "attn.x_v", 1, 16, 0, 0.5f, 0 },
    { "att.x_a", "attn.x_a", 1, 16, 0, 0.5f, 0 },
    { "att.x_g", "attn.x_g", 1, 16, 0, 0.5f, 0 },
    { "att.w0", "attn.w_lora.lora.2.bias", 1, 16, 0, -1, 0 },
    { "att.w1", "attn.w_lora.lora.0.weight", 2, 4, 16, 0, 1 },
    { "att.w2", "attn.w_lora.lora.2.weight", 2, 16, 4, 0, 1 },
    { "att.a0", "attn.a_lora.lora.2.bias", 1, 16, 0, 0, 0 },
    { "att.a1", "attn.a_lora.lora.0.weight", 2, 4, 16, 0, 1 },
    { "att.a2", "attn.a_lora.lora.2.weight", 2, 16, 4, 0, 1 },
    { "att.g1", "attn.g_lora.lora.0.weight", 2, 4, 16, 0, 1 },
    { "att.g2", "attn.g_lora.lora.2.weight", 2, 16, 4, 0, 1 },
    { "att.k_k", "attn.k_k", 1, 16, 0, 0.7f, 0 },
    { "att.k_a", "attn.k_a", 1, 16, 0, 1, 0 },
    { "att.r_k", "attn.r_k", 2, 2, 8, 0, 0 },
    { "att.receptance.weight", "attn.r_proj.weight", 2, 16, 16, 0, 0 },
    { "att.key.weight", "attn.k_proj.weight", 2, 16, 16, 0, 0 },
    { "att.value.weight", "attn.v_proj.weight", 2, 16, 16, 0, 0 },
    { "att.output.weight", "attn.o_proj.weight", 2, 16, 16, 0, 0 },
    { "att.ln_x.weight", "attn.g_norm.weight", 1, 16, 0, 1, 0 },
    { "att.ln_x.bias", "attn.g_norm.bias", 1, 16, 0, 0, 0 },
    { "ffn.x_k", "ffn.x_k", 1, 16, 0, 0.5f, 0 },
    { "ffn.key.weight", "ffn.key.weight", 2, 24, 16, 0, 0 },
    { "ffn.value.weight", "ffn.value.weight", 2, 16, 24, 0, 0 },
    { "att.v0", "attn.v_lora.lora.2.bias", 1, 16, 0, 0, 0 }, /* these three: not layer 0 */
    { "att.v1", "attn.v_lora.lora.0.weight", 2, 4, 16, 0, 1 },
    { "att.v2", "attn.v_lora.lora.2.weight", 2, 16, 4, 0, 1 },
};

/* vocab 19, d_model 16, 2 layers, 2 heads of 8, d_ff 24, ranks 4; official names or fla's */
static inline struct testing *testing_rwkv7(bool official)
{
    struct testing *t = testing_new(
        official ? "{\"architecture\": \"rwkv7\", \"n_layer\": 2}"
                 : "{\"architectures\": [\"RWKV7ForCausalLM\"], \"num_hidden_layers\": 2, "
                   "\"head_dim\": 8, \"hidden_size\": 16, \"norm_eps\": 8e-5, \"attn\": null}");
    char name[80];

    testing_add(t, official ? "emb.weight" : "model.embeddings.weight", 2, 19, 16, 0);
    testing_add(t, official ? "ln_out.weight" : "model.norm.weight", 1, 16, 0, 1);
    testing_add(t, official ? "ln_out.bias" : "model.norm.bias", 1, 16, 0, 0);
    testing_add(t, official ? "head.weight" : "lm_head.weight", 2, 19, 16, 0);
    for (int i = 0; i < 2; i++)
        for (size_t j = 0;
             j < sizeof testing_rwkv7_layer / sizeof testing_rwkv7_layer[0] - (i ? 0 : 3);
             j++) {
            struct fw_tensor *w =
                testing_add(t,
                            official ? ADD("blocks.%d.%s", i, testing_rwkv7_layer[j].ours)
                                     : ADD("model.layers.%d.%s", i, testing_rwkv7_layer[j].fla),
                            testing_rwkv7_layer[j].ndim, testing_rwkv7_layer[j].rows,
                            testing_rwkv7_layer[j].cols, testing_rwkv7_layer[j].middle);
            uint64_t rows = testing_rwkv7_layer[j].rows, cols = testing_rwkv7_layer[j].cols;
            float *x = t->data[t->tensors.count - 1], turned[16 * 16];

            if (!official || !testing_rwkv7_layer[j].turned || w->dtype != FW_F32)
                continue;
            for (uint64_t r = 0; r < rows; r++)
                for (uint64_t c = 0; c < cols; c++)
                    turned[c * rows + r] = x[r * cols + c];
            memcpy(x, turned, w->bytes);
            w->shape[0] = cols;
            w->shape[1] = rows;
        }
    return t;
}

/* vocab 19, d_model 16, 2 layers, 2 heads of 8, d_ff 24, context 12; nanoGPT's or Conv1D */
static inline struct testing *testing_gpt2(bool conv1d)
{
    struct testing *t = testing_new("{\"model_type\": \"gpt2\", \"n_layer\": 2, \"n_head\": 2, "
                                    "\"n_embd\": 16, \"n_positions\": 12, \"vocab_size\": 19}");
    const char *p = conv1d ? "" : "transformer.";
    static const struct {
        const char *name;
        uint64_t out, in;
    } linear[] = { { "attn.c_attn", 48, 16 },
                   { "attn.c_proj", 16, 16 },
                   { "mlp.c_fc", 24, 16 },
                   { "mlp.c_proj", 16, 24 } };
    char name[80];

    testing_add(t, ADD("%swte.weight", p), 2, 19, 16, 0);
    testing_add(t, ADD("%swpe.weight", p), 2, 12, 16, 0);
    testing_add(t, ADD("%sln_f.weight", p), 1, 16, 0, 1);
    testing_add(t, ADD("%sln_f.bias", p), 1, 16, 0, 0);
    for (int i = 0; i < 2; i++) {
        for (int j = 1; j <= 2; j++) {
            testing_add(t, ADD("%sh.%d.ln_%d.weight", p, i, j), 1, 16, 0, 1);
            testing_add(t, ADD("%sh.%d.ln_%d.bias", p, i, j), 1, 16, 0, 0);
        }
        for (int j = 0; j < 4; j++) {
            uint64_t out = linear[j].out, in = linear[j].in;
            struct fw_tensor *w =
                testing_add(t, ADD("%sh.%d.%s.weight", p, i, linear[j].name), 2, out, in, 0);
            float *x = t->data[t->tensors.count - 1], turned[48 * 24];

            for (uint64_t r = 0; conv1d && r < out; r++)
                for (uint64_t c = 0; c < in; c++)
                    turned[c * out + r] = x[r * in + c];
            if (conv1d) {
                memcpy(x, turned, w->bytes);
                w->shape[0] = in;
                w->shape[1] = out;
            }
            testing_add(t, ADD("%sh.%d.%s.bias", p, i, linear[j].name), 1, out, 0, 0);
        }
    }
    return t;
}

static inline void testing_save(struct testing *t)
{
    struct fw_buf b;

    fw_buf_init(&b, (size_t)64 << 20);
    ck_assert_int_eq(fw_safetensors_write(&b, &t->tensors, NULL, 0, NULL), 0);
    testing_write(t, "config.json", t->config, strlen(t->config));
    testing_write(t, "model.safetensors", b.data, b.len);
    fw_buf_done(&b);
}

static inline struct fw_checkpoint *testing_open(struct testing *t)
{
    struct fw_checkpoint *c = NULL;
    struct fw_err err = { .msg = "" };

    testing_save(t);
    ck_assert_msg(fw_checkpoint_open(&c, t->dir, &err) == 0, "%s", err.msg);
    return c;
}

static inline struct fw_model *testing_plan(const struct fw_checkpoint *c, const char *rule)
{
    struct fw_params p = { 0 }, full;
    struct fw_model *m = NULL;
    struct fw_err err = { .msg = "" };

    if (rule)
        ck_assert_int_eq(fw_params_set_string(&p, "memory", rule, NULL), 0);
    ck_assert_msg(fw_model_new(&m, c, &p, &full, &err) == 0, "%s", err.msg);
    return m;
}

static inline void *testing_block(const struct fw_model *m)
{
    size_t bytes = fw_model_layout(m)->block_bytes;
    void *block = aligned_alloc(64, bytes);

    ck_assert_ptr_nonnull(block);
    memset(block, 0, bytes);
    fw_model_init(m, block);
    return block;
}

static inline void testing_tokens(uint32_t *token, size_t n, uint32_t vocab)
{
    uint64_t s = 7;

    for (size_t i = 0; i < n; i++)
        token[i] = (uint32_t)((double)(testing_random(&s) * 0.5f + 0.5f) * vocab * 0.999);
}

#endif
