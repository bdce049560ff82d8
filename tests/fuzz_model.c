/* fuzz_model.c - libFuzzer target: any config.json and any model.safetensors, and what they
 * make.
 *
 * An input is the text of config.json, a NUL, and what a safetensors file is made of (fuzz.h).
 * What opens must have a plan and learn: the block stays valid, predictions finite. Build:
 * CC=clang ./configure --enable-fuzz, make; run: tests/fuzz_model CORPUS_DIR. */
#include "config.h"

#include "fuzz.h"

#include <stdio.h>
#include <unistd.h>

#include "fastweight/fmath.h"
#include "fastweight/model.h"
#include "fastweight/num.h"

/* Small whole checkpoints; of each tensor: its name and the numbers of its shape. */
static const struct {
    const char *config, *tensors;
} models[] = {
    { "{\"model_type\":\"gpt2\",\"n_layer\":1,\"n_head\":1}",
      "wte.weight 3,2 wpe.weight 4,2 ln_f.weight 2 ln_f.bias 2 h.0.ln_1.weight 2 "
      "h.0.ln_2.weight 2 h.0.attn.c_attn.weight 6,2 h.0.attn.c_proj.weight 2,2 "
      "h.0.mlp.c_fc.weight 3,2 h.0.mlp.c_proj.weight 2,3" },
    { "{\"architecture\":\"gated_deltanet\",\"num_hidden_layers\":1,\"hidden_size\":2,"
      "\"num_heads\":1,\"num_v_heads\":2,\"head_dim\":2,\"expand_v\":1.5,\"conv_size\":2}",
      "model.embeddings.weight 3,2 model.norm.weight 2 model.layers.0.attn_norm.weight 2 "
      "model.layers.0.mlp_norm.weight 2 model.layers.0.attn.q_proj.weight 2,2 "
      "model.layers.0.attn.k_proj.weight 2,2 model.layers.0.attn.v_proj.weight 6,2 "
      "model.layers.0.attn.b_proj.weight 2,2 model.layers.0.attn.a_proj.weight 2,2 "
      "model.layers.0.attn.A_log 2 model.layers.0.attn.dt_bias 2 "
      "model.layers.0.attn.g_proj.weight 6,2 model.layers.0.attn.o_norm.weight 3 "
      "model.layers.0.attn.o_proj.weight 2,6 model.layers.0.attn.q_conv1d.weight 2,1,2 "
      "model.layers.0.attn.k_conv1d.weight 2,1,2 model.layers.0.attn.v_conv1d.weight 6,1,2 "
      "model.layers.0.mlp.gate_proj.weight 2,2 model.layers.0.mlp.up_proj.weight 2,2 "
      "model.layers.0.mlp.down_proj.weight 2,2" },
    { "{\"architecture\":\"rwkv7\",\"n_layer\":1}",
      "emb.weight 3,2 ln_out.weight 2 head.weight 3,2 blocks.0.ln1.weight 2 "
      "blocks.0.ln2.weight 2 blocks.0.att.x_r 2 blocks.0.att.x_w 2 blocks.0.att.x_k 2 "
      "blocks.0.att.x_v 2 blocks.0.att.x_a 2 blocks.0.att.x_g 2 blocks.0.att.w0 2 "
      "blocks.0.att.w1 2,1 blocks.0.att.w2 1,2 blocks.0.att.a0 2 blocks.0.att.a1 2,1 "
      "blocks.0.att.a2 1,2 blocks.0.att.g1 2,1 blocks.0.att.g2 1,2 blocks.0.att.k_k 2 "
      "blocks.0.att.k_a 2 blocks.0.att.r_k 1,2 blocks.0.att.receptance.weight 2,2 "
      "blocks.0.att.key.weight 2,2 blocks.0.att.value.weight 2,2 "
      "blocks.0.att.output.weight 2,2 blocks.0.att.ln_x.weight 2 blocks.0.ffn.x_k 2 "
      "blocks.0.ffn.key.weight 3,2 blocks.0.ffn.value.weight 2,3" },
};

#define MODELS (sizeof models / sizeof models[0])

/* One model as an input; returns its length. */
static size_t write_seed(size_t which, char *out, size_t size)
{
    size_t len = strlen(models[which].config) + 1, at = 0;
    const char *p = models[which].tensors;
    char name[64], shape[16];
    int used;

    require(len < size);
    memcpy(out, models[which].config, len);
    for (; sscanf(p, " %63s %15s%n", name, shape, &used) == 2; p += used) {
        size_t a = 1, b = 1, c = 1, bytes;

        sscanf(shape, "%zu,%zu,%zu", &a, &b, &c);
        bytes = a * b * c * sizeof(float);
        len += (size_t)snprintf(out + len, size - len,
                                "%s\"%s\":{\"dtype\":\"F32\",\"shape\":[%s],"
                                "\"data_offsets\":[%zu,%zu]}",
                                at ? "," : "{", name, shape, at, at + bytes);
        at += bytes;
    }
    require(len + 2 + at < size);
    out[len++] = '}';
    out[len++] = 0;
    for (size_t i = 0; i < at / sizeof(float); i++) {
        float x = 0.1f * (float)(int)(i % 17) - 0.7f;

        memcpy(out + len + i * sizeof x, &x, sizeof x);
    }
    return len + at;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    static char text[MODELS][8192];
    struct seed seeds[MODELS];

    for (size_t i = 0; i < MODELS; i++)
        seeds[i] = (struct seed){ text[i], write_seed(i, text[i], sizeof text[i]) };
    return mutate(seeds, MODELS, data, size, max_size, seed);
}

static const char *directory(void)
{
    static char dir[] = "/tmp/fuzz_model_XXXXXX";
    static int made;

    if (!made)
        require(mkdtemp(dir) != NULL);
    made = 1;
    return dir;
}

static void save(const char *name, const void *data, size_t len)
{
    char path[64];
    FILE *f;

    snprintf(path, sizeof path, "%s/%s", directory(), name);
    f = fopen(path, "wb");
    require(f && fwrite(data, 1, len, f) == len);
    require(fclose(f) == 0);
}

static void learn(const struct fw_model *m)
{
    const struct fw_layout *l = fw_model_layout(m);
    uint32_t token[40], vocab = fw_model_vocab(m);
    double logp[40];
    void *block = l->block_bytes < 1 << 24 ? aligned_alloc(64, l->block_bytes) : NULL;

    if (!block)
        return;
    memset(block, 0, l->block_bytes);
    fw_model_init(m, block);
    for (uint32_t i = 0; i < 40; i++)
        token[i] = i * 7 % vocab;
    fw_model_learn(m, block, token, 40, logp);
    for (size_t i = 0; i < 40; i++)
        require(logp[i] <= 1e-6 && logp[i] >= -1e31);
    require(fw_model_validate(m, block, NULL) == 0);
    free(block);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *nul = size ? memchr(data, 0, size) : NULL;
    size_t config = nul ? (size_t)(nul - data) : size, rest = nul ? size - config - 1 : 0, len;
    struct fw_checkpoint *c = NULL;
    struct fw_params none = { 0 }, full;
    struct fw_model *m = NULL;
    uint8_t *file = assemble(data + size - rest, rest, &len);

    fw_num_init();
    fw_num_thread();
    save("config.json", data, config);
    save("model.safetensors", file, len);
    free(file);
    if (fw_checkpoint_open(&c, directory(), NULL) == 0 &&
        fw_model_new(&m, c, &none, &full, NULL) == 0)
        learn(m);
    fw_model_free(m);
    fw_checkpoint_close(c);
    return 0;
}
