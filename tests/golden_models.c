/* golden_models.c - cases of whole models and of single layers, through a checkpoint.
 *
 * A case becomes a checkpoint directory of its own: config.json from the case's fields,
 * model.safetensors from its weights, under the names that a loader knows. Models are fed their
 * tokens through fw_model_learn, once one by one, which is where logits are compared, and once
 * in one call, which must give the same block. A layer's rows go through the function that
 * fw_model_learn calls for it; around it stand an embedding, norms and an MLP that nobody runs.
 */
#include "config.h"

#include "golden.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fastweight/buf.h"
#include "inside.h"

#define MAX_WEIGHTS 512

struct golden_model {
    struct golden_test *t;
    char dir[64];
    struct fw_tensor weight[MAX_WEIGHTS];
    struct fw_tensors weights;
    struct fw_checkpoint *checkpoint;
    struct fw_model *plan;
    void *block;
};

static size_t number(const struct golden_test *t, const char *key)
{
    return (size_t)json_integer_value(json_object_get(t->json, key));
}

/* ---- the directory */

static void add_weight(struct golden_model *g, const char *name, uint32_t ndim, uint64_t rows,
                       uint64_t cols, const void *data)
{
    struct fw_tensor *w = &g->weight[g->weights.count];

    if (g->weights.count == MAX_WEIGHTS)
        return; /* and then one is missing */
    *w = (struct fw_tensor){ .dtype = FW_F32, .ndim = ndim, .shape = { rows, cols } };
    snprintf(w->name, sizeof w->name, "%s", name);
    w->data = data;
    w->bytes = (size_t)(rows * (ndim > 1 ? cols : 1)) * sizeof(float);
    g->weights.count++;
}

/* Every input but the tokens, under its own name. */
static void add_inputs(struct golden_model *g)
{
    const struct fw_tensors *file = &g->t->file.tensors;

    for (size_t i = 0; i < file->count && g->weights.count < MAX_WEIGHTS; i++)
        if (file->item[i].dtype == FW_F32)
            g->weight[g->weights.count++] = file->item[i];
}

static int write_file(const char *dir, const char *name, const void *data, size_t len)
{
    char path[128];
    FILE *f;
    size_t n;

    snprintf(path, sizeof path, "%s/%s", dir, name);
    f = fopen(path, "wb");
    if (!f)
        return -1;
    n = fwrite(data, 1, len, f);
    return fclose(f) == 0 && n == len ? 0 : -1;
}

static void remove_directory(struct golden_model *g)
{
    char path[128];

    if (!g->dir[0])
        return;
    snprintf(path, sizeof path, "%s/config.json", g->dir);
    unlink(path);
    snprintf(path, sizeof path, "%s/model.safetensors", g->dir);
    unlink(path);
    rmdir(g->dir);
}

static enum verdict open_model(struct golden_model *g, const char *config)
{
    struct fw_params none = { 0 }, resolved;
    struct fw_err err = { .msg = "the directory cannot be written" };
    struct fw_buf file;
    int rc = -1;

    fw_buf_init(&file, (size_t)1 << 30);
    snprintf(g->dir, sizeof g->dir, "/tmp/golden_XXXXXX");
    if (mkdtemp(g->dir) && write_file(g->dir, "config.json", config, strlen(config)) == 0 &&
        fw_safetensors_write(&file, &g->weights, NULL, 0, &err) == 0 &&
        write_file(g->dir, "model.safetensors", file.data, file.len) == 0 &&
        fw_checkpoint_open(&g->checkpoint, g->dir, &err) == 0 &&
        fw_model_new(&g->plan, g->checkpoint, &none, &resolved, &err) == 0)
        rc = 0;
    fw_buf_done(&file);
    if (rc < 0)
        return golden_fail(g->t, FAIL, "no model", err.msg);
    g->block = aligned_alloc(64, fw_model_layout(g->plan)->block_bytes);
    if (!g->block)
        return golden_fail(g->t, FAIL, "out of memory", NULL);
    memset(g->block, 0, fw_model_layout(g->plan)->block_bytes);
    fw_model_init(g->plan, g->block);
    return OK;
}

/* ---- comparing */

static void compare(struct golden_test *t, double got, double want)
{
    double d = fabs(got - want);

    if (!(d <= t->error))
        t->error = d;
}

static const double *output(const struct golden_test *t, const char *name, size_t count)
{
    const struct fw_tensor *w = fw_tensors_find(&t->file.tensors, name);

    return w && w->dtype == FW_F64 && w->bytes == count * sizeof(double) ? w->data : NULL;
}

static const float *field(const struct golden_model *g, size_t layer, const char *name)
{
    char full[FW_NAME_MAX];
    const struct fw_field *f;

    snprintf(full, sizeof full, "blocks.%zu.%s", layer, name);
    f = fw_layout_find(fw_model_layout(g->plan), full);
    return f ? (const float *)(const void *)((const char *)g->block + f->offset) : NULL;
}

/* S of one layer, (heads, d_k, d_v), with a state that is so or (heads, d_v, d_k). */
static enum verdict compare_state(struct golden_model *g, size_t layer, const double *want,
                                  bool turned)
{
    const struct fw_model_shape *s = fw_checkpoint_shape(g->checkpoint);
    size_t d_k = s->d_k, d_v = s->d_v, each = d_k * d_v;
    float *S = malloc(s->heads * each * sizeof *S);

    if (!S)
        return golden_fail(g->t, FAIL, "out of memory", NULL);
    fw_memory_state(g->plan->memory, (const char *)g->block + layer * g->plan->layer_bytes, S);
    for (size_t i = 0; i < s->heads * each; i++) {
        size_t in = i % each;

        compare(g->t, (double)S[i], want[turned ? i - in + in % d_v * d_k + in / d_v : i]);
    }
    free(S);
    return OK;
}

/* ---- models */

/* The same tokens in one call. */
static enum verdict compare_whole(struct golden_model *g, const uint32_t *tokens, size_t n)
{
    size_t bytes = fw_model_layout(g->plan)->block_bytes;
    void *whole = aligned_alloc(64, bytes);
    struct fw_err err;
    int same;

    if (!whole)
        return golden_fail(g->t, FAIL, "out of memory", NULL);
    memset(whole, 0, bytes);
    fw_model_init(g->plan, whole);
    fw_model_learn(g->plan, whole, tokens, n, NULL);
    same = memcmp(whole, g->block, bytes) == 0;
    free(whole);
    if (!same)
        return golden_fail(g->t, FAIL, "the block depends on how the tokens are cut", NULL);
    return fw_model_validate(g->plan, g->block, &err) == 0
               ? OK
               : golden_fail(g->t, FAIL, "the block is not valid", err.msg);
}

static enum verdict run_tokens(struct golden_model *g)
{
    struct golden_test *t = g->t;
    const struct fw_tensor *ids = fw_tensors_find(&t->file.tensors, "tokens");
    size_t vocab = fw_model_vocab(g->plan), n = ids ? ids->bytes / sizeof(int64_t) : 0;
    const double *want = output(t, "logits", n * vocab);
    uint32_t *token = calloc(n + 1, sizeof *token);
    float *logits = calloc(vocab, sizeof *logits);
    enum verdict v = want && token && logits ? OK : golden_fail(t, FAIL, "no logits", NULL);

    for (size_t i = 0; i < n && v == OK; i++) {
        int64_t id = ((const int64_t *)ids->data)[i];

        token[i] = (uint32_t)id;
        if (id < 0 || (size_t)id >= vocab) {
            v = golden_fail(t, FAIL, "a token is not in the vocabulary", NULL);
            break;
        }
        fw_model_learn(g->plan, g->block, &token[i], 1, NULL);
        fw_model_logits(g->plan, g->block, logits);
        for (size_t j = 0; j < vocab; j++)
            compare(t, (double)logits[j], want[i * vocab + j]);
    }
    if (v == OK)
        v = compare_whole(g, token, n);
    free(token);
    free(logits);
    return v;
}

static enum verdict run_rwkv7(struct golden_model *g)
{
    struct golden_test *t = g->t;
    size_t d = number(t, "n_embd"), layers = number(t, "n_layer");
    const double *shift = output(t, "state_shift", layers * 2 * d);
    const double *wkv = output(t, "state_wkv", layers * d * number(t, "head_size"));
    char config[256];
    enum verdict v;

    snprintf(config, sizeof config,
             "{\"architecture\": \"rwkv7\", \"n_layer\": %zu, \"n_embd\": %zu, "
             "\"head_size\": %zu, \"vocab_size\": %zu}",
             layers, d, number(t, "head_size"), number(t, "vocab"));
    add_inputs(g);
    v = open_model(g, config);
    if (v == OK)
        v = run_tokens(g);
    if (v == OK && !(shift && wkv))
        return golden_fail(t, FAIL, "no states", NULL);
    for (size_t i = 0; i < layers && v == OK; i++) {
        for (size_t j = 0; j < d; j++) {
            compare(t, (double)field(g, i, "att_shift")[j], shift[2 * i * d + j]);
            compare(t, (double)field(g, i, "ffn_shift")[j], shift[(2 * i + 1) * d + j]);
        }
        v = compare_state(g, i, wkv + i * d * number(t, "head_size"), true);
    }
    return v;
}

static enum verdict run_gpt2(struct golden_model *g)
{
    struct golden_test *t = g->t;
    const char *act = json_string_value(json_object_get(t->json, "activation"));
    char config[256];
    enum verdict v;

    snprintf(config, sizeof config,
             "{\"model_type\": \"gpt2\", \"n_layer\": %zu, \"n_head\": %zu, \"n_embd\": %zu, "
             "\"vocab_size\": %zu, \"block_size\": %zu, \"activation_function\": \"%s\"}",
             number(t, "n_layer"), number(t, "n_head"), number(t, "n_embd"), number(t, "vocab"),
             number(t, "block_size"), act ? act : "");
    add_inputs(g);
    v = open_model(g, config);
    return v == OK ? run_tokens(g) : v;
}

/* ---- layers */

static const struct golden_name layer_names[] = { /* of 16a; the others have these already */
                                                  { "in_proj_z.weight", "g_proj.weight" },
                                                  { "in_proj_b.weight", "b_proj.weight" },
                                                  { "in_proj_a.weight", "a_proj.weight" },
                                                  { "norm.weight", "o_norm.weight" },
                                                  { "out_proj.weight", "o_proj.weight" },
                                                  { NULL, NULL }
};

/* The thirds [q: keys][k: keys][v: values] of a tensor's rows. */
static void add_thirds(struct golden_model *g, const struct fw_tensor *w, size_t keys,
                       const char *what)
{
    size_t cols = w->bytes / sizeof(float) / (size_t)w->shape[0];
    const size_t from[4] = { 0, keys, 2 * keys, (size_t)w->shape[0] };
    char name[FW_NAME_MAX];

    for (size_t i = 0; i < 3 && from[2] <= from[3]; i++) {
        snprintf(name, sizeof name, "model.layers.0.attn.%c_%s.weight", "qkv"[i], what);
        add_weight(g, name, 2, from[i + 1] - from[i], cols,
                   (const float *)w->data + from[i] * cols);
    }
}

static void add_layer(struct golden_model *g, size_t keys, const float *zero, size_t d)
{
    const struct fw_tensors *file = &g->t->file.tensors;
    char name[2 * FW_NAME_MAX];

    for (size_t i = 0; i < file->count; i++) {
        const struct fw_tensor *w = &file->item[i];
        const char *ours = golden_find_name(layer_names, w->name);

        if (w->dtype != FW_F32 || strcmp(w->name, "hidden") == 0 || w->shape[0] == 0)
            continue;
        if (strcmp(w->name, "in_proj_qkv.weight") == 0) {
            add_thirds(g, w, keys, "proj");
        } else if (strcmp(w->name, "conv1d.weight") == 0) {
            add_thirds(g, w, keys, "conv1d");
        } else if (g->weights.count < MAX_WEIGHTS) {
            g->weight[g->weights.count] = *w;
            snprintf(name, sizeof name, "model.layers.0.attn.%s", ours ? ours : w->name);
            snprintf(g->weight[g->weights.count++].name, FW_NAME_MAX, "%.*s", FW_NAME_MAX - 1,
                     name);
        }
    }
    add_weight(g, "model.embeddings.weight", 2, 1, d, zero);
    add_weight(g, "model.norm.weight", 1, d, 0, zero);
    add_weight(g, "model.layers.0.attn_norm.weight", 1, d, 0, zero);
    add_weight(g, "model.layers.0.mlp_norm.weight", 1, d, 0, zero);
    add_weight(g, "model.layers.0.mlp.gate_proj.weight", 2, 1, d, zero);
    add_weight(g, "model.layers.0.mlp.up_proj.weight", 2, 1, d, zero);
    add_weight(g, "model.layers.0.mlp.down_proj.weight", 2, d, 1, zero);
}

/* The tails of the convolutions, which a case has as (channels, size), the last ones here as
 * (size - 1, channels). */
static void compare_tails(struct golden_model *g, size_t keys, size_t values, size_t size)
{
    static const char *const names[] = { "conv_q", "conv_k", "conv_v" };
    const double *want = output(g->t, "final_conv_state", (2 * keys + values) * size);

    for (size_t i = 0; i < 3 && want; i++) {
        size_t width = i < 2 ? keys : values;

        for (size_t c = 0; c < width; c++, want += size)
            for (size_t m = 1; m < size; m++)
                compare(g->t, (double)field(g, 0, names[i])[(m - 1) * width + c], want[m]);
    }
}

static enum verdict run_rows(struct golden_model *g, const float *hidden, size_t n, size_t d)
{
    const double *want = output(g->t, "out", n * d);
    struct fw_scratch *s = fw_scratch_take(g->plan);

    for (size_t t = 0, step; t < n && want; t += step) {
        struct fw_span span = { .block = g->block };
        struct fw_chunk c = { .span = &span, .spans = 1, .scratch = s };

        step = n - t < FW_CHUNK ? n - t : FW_CHUNK;
        c.n = span.n = step;
        c.x = fw_chunk_take(&c, step, d);
        memset(c.x, 0, step * d * sizeof *c.x);
        fw_deltanet_attention(g->plan, 0, hidden + t * d, &c);
        for (size_t i = 0; i < step * d; i++)
            compare(g->t, (double)c.x[i], want[t * d + i]);
    }
    fw_scratch_give(g->plan, s);
    return want ? OK : golden_fail(g->t, FAIL, "the case lacks", "out");
}

static enum verdict run_layer(struct golden_model *g, const char *arch)
{
    struct golden_test *t = g->t;
    const struct fw_tensor *hidden = fw_tensors_find(&t->file.tensors, "hidden");
    size_t heads = number(t, "num_k_heads") + number(t, "num_heads"), dk = number(t, "dk");
    size_t v_heads = number(t, "num_v_heads"), dv = number(t, "dv"), d, n;
    const double *state;
    float *zero;
    char config[512];
    enum verdict v;

    if (!hidden || hidden->ndim != 2 || !heads || !dk || !dv)
        return golden_fail(t, FAIL, "no hidden rows, heads, dk or dv", NULL);
    v_heads = v_heads ? v_heads : heads;
    n = (size_t)hidden->shape[0];
    d = (size_t)hidden->shape[1];
    state = output(t, "final_state", v_heads * dk * dv);
    zero = calloc(d, sizeof *zero);
    snprintf(
        config, sizeof config,
        "{\"architecture\": \"%s\", \"num_hidden_layers\": 1, \"hidden_size\": %zu, "
        "\"num_heads\": %zu, \"num_v_heads\": %zu, \"head_dim\": %zu, \"expand_v\": %.17g, "
        "\"conv_size\": %zu, \"norm_eps\": %.17g}",
        arch, d, heads, v_heads, dk, (double)dv / (double)dk, number(t, "conv_kernel"),
        json_number_value(json_object_get(t->json, "norm_eps")));
    add_layer(g, heads * dk, zero, d);
    v = open_model(g, config);
    if (v == OK)
        v = run_rows(g, hidden->data, n, d);
    if (v == OK)
        v = state ? compare_state(g, 0, state, false)
                  : golden_fail(t, FAIL, "the case lacks", "final_state");
    if (v == OK)
        compare_tails(g, heads * dk, v_heads * dv, number(t, "conv_kernel"));
    free(zero);
    return v;
}

static enum verdict run_gated(struct golden_model *g)
{
    return run_layer(g, "gated_deltanet");
}

static enum verdict run_delta(struct golden_model *g)
{
    return run_layer(g, "delta_net");
}

/* ---- the table */

static const struct {
    const char *rule;
    enum verdict (*run)(struct golden_model *g);
} rows[] = {
    { "rwkv7_model", run_rwkv7 },          { "gpt2", run_gpt2 },
    { "gated_deltanet_layer", run_gated }, { "fla_gated_deltanet_layer", run_gated },
    { "fla_deltanet_layer", run_delta },
};

static int row_of(const struct golden_test *t)
{
    const char *rule = json_string_value(json_object_get(t->json, "rule"));

    for (size_t i = 0; rule && i < sizeof rows / sizeof rows[0]; i++)
        if (strcmp(rows[i].rule, rule) == 0)
            return (int)i;
    return -1;
}

bool golden_is_model(const struct golden_test *t)
{
    return row_of(t) >= 0;
}

enum verdict golden_run_model(struct golden_test *t)
{
    struct golden_model *g = calloc(1, sizeof *g);
    enum verdict v;

    if (!g)
        return golden_fail(t, FAIL, "out of memory", NULL);
    g->t = t;
    g->weights.item = g->weight;
    v = rows[row_of(t)].run(g);
    if (v == OK && !(t->error <= t->tolerance))
        v = golden_fail(t, FAIL, "beyond the tolerance", NULL);
    free(g->block);
    fw_model_free(g->plan);
    fw_checkpoint_close(g->checkpoint);
    remove_directory(g);
    free(g);
    return v;
}
