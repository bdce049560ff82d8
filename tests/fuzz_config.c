/* fuzz_config.c - libFuzzer target: any configuration of a session, and what it makes.
 *
 * The first byte picks a model and who reads the rest: JSON as the API takes it, text as the
 * store kept it, or items of three bytes (a key, a kind of value, a value), which go deepest;
 * the second is the seed of what is learned.
 * What is refused must name a key. What is accepted must resolve to a configuration that opens
 * the same layout and resolves to itself; a small one then learns, scores and recalls a few
 * pairs (or tokens) and must still be a valid, finite state. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fastweight/memory.h"
#include "fastweight/num.h"
#include "fastweight/stream.h"
#include "fuzz.h"
#include "src/api/in.h"

enum { TOKENS = 3, INPUTS = 16, SMALL_STATE = 1 << 20, SMALL_BODY = 1 << 12 };

static const char *const keys[] = {
    "rule",        "heads",       "d_k",        "d_v",
    "query_scale", "key_norm",    "cache",      "nu",
    "features",    "feature_map", "beta",       "pairs_per_token",
    "eta",         "theta",       "alpha",      "cache_bandwidth",
    "lambda",      "window",      "max_pairs",  "sinks",
    "recent",      "bandwidth",   "levels",     "form",
    "solver",      "eps",         "limit_eta",  "cg_iterations",
    "chunk",       "batch",       "depth",      "hidden",
    "variant",     "layer_norm",  "mini_batch", "delta",
    "u",           "A",           "lr",         "preset",
    "state_bytes", "vocab",       "probes",     "covariance",
};

static const char *const words[] = {
    "none",     "l2",   "identity", "elu+1", "relu",   "relu^2", "dpfp",
    "poly2",    "rff",  "step",     "ssd",   "exact",  "cg",     "fla",
    "official", "auto", "text",     "log",   "linear", "mlp",    "no_such_word",
};

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* By the first byte: who reads it (modulo 4) and the model (a quarter of it modulo 8). */
static const struct seed seeds[] = {
    SEED("\11s{\"config\":{\"rule\":\"gated_delta\",\"heads\":2,\"d_k\":5,\"key_norm\":\"l2\"}"
         "}"),
    SEED("\11s{\"config\":{\"rule\":\"titans\",\"heads\":1,\"d_k\":4,\"layer_norm\":true}}"),
    SEED("\1s{\"config\":{\"preset\":\"log\",\"state_bytes\":1048576}}"),
    SEED("\10sd_k=n:4\nfeature_map=s:rff\nfeatures=n:10\nheads=n:1\nrule=s:mesa\n"),
    SEED("\4svocab=n:300\n"),
    SEED("\11s{\"config\":{\"rule\":\"huber\",\"d_k\":5,\"probes\":2,\"covariance\":true}}"),
};

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    return mutate(seeds, COUNT(seeds), data, size, max_size, seed);
}

/* ---- where a configuration comes from */

static int of_json(struct fw_params *p, const char *text, size_t size, struct fw_err *err)
{
    json_t *root;
    int rc;

    if (in_parse(text, size, false, &root, err) < 0)
        return -1;
    rc = in_params(root, "config", p, err);
    json_decref(root);
    return rc;
}

static const char *rule_at(size_t at)
{
    size_t n = 0;

    while (fw_memory_rule(n))
        n++;
    return fw_memory_rule(at % n);
}

static double number_of(uint8_t kind, uint8_t value)
{
    static const double special[] = { 0, -1, 0.5, 1e-30, 1e6, 4096, 4097, 4294967296, 1e308 };

    switch (kind) {
    case 0:
        return value;
    case 1:
        return value / 128.0;
    case 2:
        return (double)((uint64_t)1 << value % 40);
    default:
        return special[value % COUNT(special)];
    }
}

static void of_items(struct fw_params *p, const uint8_t *data, size_t size)
{
    for (; size >= 3; data += 3, size -= 3) {
        const char *key = keys[data[0] % COUNT(keys)];

        switch (data[1] % 8) {
        case 4:
        case 5:
            fw_params_set_string(p, key, words[data[2] % COUNT(words)], NULL);
            break;
        case 6:
            fw_params_set_string(p, "rule", rule_at(data[2]), NULL);
            break;
        case 7:
            fw_params_set_bool(p, key, data[2] & 1, NULL);
            break;
        default:
            fw_params_set_number(p, key, number_of(data[1] % 8, data[2]), NULL);
        }
    }
}

/* ---- what it makes */

struct body {
    struct fw_tensors in;
    struct fw_tensor item[INPUTS];
};

/* Within what the input takes: mostly small, so that the body is admitted; of numbers per pair
 * and head some lie at the edges. */
static float element(const struct fw_memory_input *about, unsigned style, uint64_t *seed)
{
    static const float scale[] = { 1, 1.0f / 64, 1.0f / 64, 1e4f };
    bool vector = about->shape[about->ndim - 1] > 4;
    float x;

    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    if (style >= 2 && !vector && (*seed >> 33 & 7) < 2)
        return *seed >> 33 & 1 ? about->min : about->max;
    x = ((float)(*seed >> 40) * 0x1p-23f - 1) * scale[style];
    if (about->min >= 0 && x < 0)
        x = -x;
    return x < about->min ? about->min : x > about->max ? about->max : x;
}

static void add(struct body *b, const struct fw_memory_input *about, unsigned style,
                uint64_t *seed)
{
    struct fw_tensor *t = &b->item[b->in.count++];
    uint64_t count;
    float *x;

    require(b->in.count <= INPUTS);
    *t = (struct fw_tensor){ .dtype = FW_F32, .ndim = about->ndim };
    snprintf(t->name, sizeof t->name, "%s", about->name);
    memcpy(t->shape, about->shape, sizeof t->shape);
    t->shape[0] = TOKENS;
    require(fw_shape_count(t->shape, t->ndim, &count, NULL) == 0);
    t->bytes = count * sizeof *x;
    t->data = x = malloc(t->bytes);
    for (size_t i = 0; i < count; i++)
        x[i] = element(about, style, seed);
}

static void fill(struct body *b, const struct fw_memory *m, uint64_t seed)
{
    unsigned style = seed & 3;
    struct fw_memory_input about;

    b->in = (struct fw_tensors){ 0, b->item };
    for (size_t i = 0; fw_memory_input(m, i, &about) == 0; i++)
        if (about.required || seed >> (i + 8) & 1)
            add(b, &about, style, &seed);
}

static void empty(struct body *b)
{
    for (size_t i = 0; i < b->in.count; i++)
        free((void *)(uintptr_t)b->item[i].data);
}

static void finite(const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        require(x[i] - x[i] == 0);
}

static void use_memory(const struct fw_memory *m, void *block, const struct fw_tensors *in)
{
    size_t heads = fw_memory_heads(m), reads = TOKENS * heads * fw_memory_d_v(m), n;
    double *residual = calloc(TOKENS * heads, sizeof *residual);
    float *values = calloc(reads, sizeof *values);
    const struct fw_tensor *queries = fw_tensors_find(in, "queries");

    if (fw_memory_check(m, in, &n, NULL) == 0) {
        require(n == TOKENS);
        fw_memory_learn(m, block, in, 0, n, residual, queries ? values : NULL);
        require(fw_memory_validate(m, block, NULL) == 0);
        require(fw_layout_check_padding(fw_memory_layout(m), block, NULL) == 0);
        finite(values, reads);
        fw_memory_score(m, block, in, 0, n, residual);
        for (size_t i = 0; i < TOKENS * heads; i++)
            require(residual[i] >= 0 && residual[i] - residual[i] == 0);
        if (queries)
            fw_memory_recall(m, block, in, 0, n, values);
        finite(values, reads);
    }
    free(values);
    free(residual);
}

static size_t body_floats(const struct fw_memory *m)
{
    struct fw_memory_input about;
    size_t sum = 0;
    uint64_t count;

    for (size_t i = 0; fw_memory_input(m, i, &about) == 0; i++)
        if (fw_shape_count(about.shape, about.ndim, &count, NULL) == 0)
            sum += count;
    return sum;
}

static void learn_pairs(const struct fw_memory *m, uint64_t seed)
{
    size_t bytes = fw_memory_layout(m)->block_bytes;
    struct body b;
    void *block;

    if (bytes > SMALL_STATE || body_floats(m) > SMALL_BODY)
        return;
    block = aligned_alloc(64, bytes);
    fw_memory_init(m, block);
    require(fw_memory_validate(m, block, NULL) == 0);
    fill(&b, m, seed);
    use_memory(m, block, &b.in);
    empty(&b);
    free(block);
}

static void learn_tokens(const struct fw_stream *s, uint64_t seed)
{
    size_t bytes = fw_stream_layout(s)->block_bytes;
    uint16_t ids[TOKENS];
    uint8_t text[TOKENS];
    double logp[TOKENS];
    void *block;

    if (bytes > SMALL_STATE)
        return;
    block = aligned_alloc(64, bytes);
    memset(block, 0, bytes);
    fw_stream_init(s, block);
    require(fw_stream_validate(s, block, NULL) == 0);
    for (size_t i = 0; i < TOKENS; i++) {
        ids[i] = (uint16_t)((seed >> 16 * i) % fw_stream_vocab(s));
        text[i] = (uint8_t)(seed >> 8 * i);
    }
    fw_stream_learn(s, block, fw_stream_token_bytes(s) == 1 ? (void *)text : (void *)ids,
                    TOKENS, logp);
    for (size_t i = 0; i < TOKENS; i++)
        require(logp[i] < 0 && logp[i] - logp[i] == 0);
    require(fw_stream_validate(s, block, NULL) == 0);
    free(block);
}

/* ---- and that it opens again */

static void same_params(const struct fw_params *a, const struct fw_params *b)
{
    char text[2][FW_PARAMS_TEXT];

    require(fw_params_print(a, text[0], sizeof text[0], NULL) == 0);
    require(fw_params_print(b, text[1], sizeof text[1], NULL) == 0);
    require(strcmp(text[0], text[1]) == 0);
}

static void same_layout(const struct fw_layout *a, const struct fw_layout *b)
{
    require(a->block_bytes == b->block_bytes && a->count == b->count);
    for (size_t i = 0; i < a->count; i++)
        require(a->field[i].offset == b->field[i].offset &&
                a->field[i].bytes == b->field[i].bytes);
}

static void refused(const struct fw_err *err)
{
    require(err->code == FW_EINVAL && strncmp(err->param, "config", 6) == 0 && err->msg[0]);
}

static void associative(const struct fw_params *config, uint64_t seed)
{
    struct fw_params resolved, again;
    struct fw_err err = { .code = FW_OK };
    struct fw_memory *m, *twin;

    if (fw_memory_new(&m, config, &resolved, &err) < 0) {
        refused(&err);
        return;
    }
    require(fw_memory_new(&twin, &resolved, &again, &err) == 0);
    same_params(&resolved, &again);
    same_layout(fw_memory_layout(m), fw_memory_layout(twin));
    fw_memory_free(twin);
    learn_pairs(m, seed);
    fw_memory_free(m);
}

static void stream(const char *model, const struct fw_params *config, uint64_t seed)
{
    struct fw_params resolved, again;
    struct fw_err err = { .code = FW_OK };
    struct fw_stream *s, *twin;

    if (fw_stream_new(&s, model, config, NULL, &resolved, &err) < 0) {
        refused(&err);
        return;
    }
    require(fw_stream_new(&twin, model, &resolved, NULL, &again, &err) == 0);
    same_params(&resolved, &again);
    same_layout(fw_stream_layout(s), fw_stream_layout(twin));
    fw_stream_free(twin);
    learn_tokens(s, seed);
    fw_stream_free(s);
}

/* As text that ends. */
static int of_text(struct fw_params *p, const uint8_t *data, size_t size, bool json)
{
    char *text = malloc(size + 1);
    struct fw_err err;
    int rc;

    memcpy(text, data, size);
    text[size] = 0;
    rc = json ? of_json(p, text, size, &err) : fw_params_parse(p, text, &err);
    free(text);
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fw_params config = { 0 };
    uint64_t seed;

    if (size < 2)
        return 0;
    fw_num_thread();
    seed = (uint64_t)data[1] * 0x9e3779b97f4a7c15u; /* odd: the low bits stay */
    if (data[0] % 4 > 1)
        of_items(&config, data + 2, size - 2);
    else if (of_text(&config, data + 2, size - 2, data[0] % 4 == 1) < 0)
        return 0;
    switch (data[0] / 4 % 8) {
    case 0:
        stream("bytes", &config, seed);
        break;
    case 1:
        stream("events", &config, seed);
        break;
    default:
        associative(&config, seed);
    }
    return 0;
}
