/* settings.c - reading config.json: Hugging Face's, flash-linear-attention's and nanoGPT's
 * names for the same things, and this house's.
 *
 * Each number that is read has a range; what nobody reads is passed over, except settings that
 * would change the formulas: those must have the one value that is built here. `null` counts as
 * not said. The architecture is "architecture", or follows from "model_type" or the first of
 * "architectures". Any thread, no state. */
#include "config.h"

#include "settings.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include "tokens.h"

#define BAD(err, ...)   fw_fail(err, FW_EINVAL, "bad_model", __VA_ARGS__)
#define MAX_CONFIG_JSON ((size_t)1 << 20)

struct number {
    const char *names[5];
    size_t at;
    size_t min, max; /* of a size */
    double low, high;
};

#define AT(field) offsetof(struct fw_settings, field)

static const struct number sizes[] = {
    { { "vocab_size" }, AT(vocab), 1, (size_t)1 << 20, 0, 0 },
    { { "hidden_size", "n_embd" }, AT(d_model), 1, 16384, 0, 0 },
    { { "num_hidden_layers", "num_layers", "n_layer" }, AT(layers), 1, 256, 0, 0 },
    { { "num_heads", "num_attention_heads", "n_head" }, AT(heads), 1, 1024, 0, 0 },
    { { "num_v_heads" }, AT(v_heads), 1, 1024, 0, 0 },
    { { "head_dim", "head_size" }, AT(head_dim), 1, 4096, 0, 0 },
    { { "intermediate_size", "n_inner" }, AT(d_ff), 1, 131072, 0, 0 },
    { { "conv_size" }, AT(conv_size), 1, 16, 0, 0 },
    { { "block_size", "n_positions", "n_ctx" }, AT(max_context), 1, (size_t)1 << 20, 0, 0 },
};

static const struct number reals[] = {
    { { "expand_k" }, AT(expand_k), 0, 0, 1e-3, 64 },
    { { "expand_v" }, AT(expand_v), 0, 0, 1e-3, 64 },
    { { "norm_eps", "layer_norm_epsilon", "layer_norm_eps" }, AT(eps), 0, 0, 1e-12, 1 },
};

static const struct {
    const char *name;
    size_t at;
    bool when; /* the field is set where the setting is this */
} flags[] = {
    { "use_gate", AT(gate), true },
    { "use_gate", AT(no_gate), false },
    { "use_short_conv", AT(no_conv), false },
    { "tie_word_embeddings", AT(untied), false },
    { "allow_neg_eigval", AT(double_beta), true },
};

/* Settings that must have this value where they are there. */
static const struct {
    const char *name, *value; /* as JSON text */
} fixed[] = {
    { "attn", "null" },
    { "qk_activation", "\"silu\"" },
    { "qk_norm", "\"l2\"" },
    { "use_beta", "true" },
    { "scale_attn_weights", "true" },
    { "scale_attn_by_inverse_layer_idx", "false" },
    { "add_cross_attention", "false" },
};

static const struct {
    const char *said, *name;
} architectures[] = {
    { "rwkv7", "rwkv7" },
    { "RWKV7ForCausalLM", "rwkv7" },
    { "gated_deltanet", "gated_deltanet" },
    { "GatedDeltaNetForCausalLM", "gated_deltanet" },
    { "delta_net", "delta_net" },
    { "DeltaNetForCausalLM", "delta_net" },
    { "gpt2", "gpt2" },
    { "GPT2LMHeadModel", "gpt2" },
};

/* NULL for what is no file: a pipe would make us wait for ever. */
static FILE *open_file(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat st;
    FILE *f = NULL;

    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
        f = fdopen(fd, "rb");
    if (fd >= 0 && !f)
        close(fd);
    return f;
}

int fw_model_file(struct fw_buf *out, const char *dir, const char *name, struct fw_err *err)
{
    char path[4096];
    unsigned char part[16384];
    FILE *f;
    size_t n;
    int rc = 0;

    if (snprintf(path, sizeof path, "%s/%s", dir, name) >= (int)sizeof path)
        return BAD(err, "the path of %.64s is too long", name);
    f = open_file(path);
    if (!f)
        return BAD(err, "%.64s cannot be opened", name);
    while (rc == 0 && (n = fread(part, 1, sizeof part, f)) > 0)
        rc = fw_buf_append(out, part, n, NULL);
    if (rc < 0 || ferror(f))
        rc = BAD(err, "%.64s cannot be read, or has more than %zu bytes", name, out->max);
    fclose(f);
    return rc;
}

/* The setting under the first of its names that is there, or NULL. */
static const json_t *find(const json_t *config, const char *const *names, size_t max,
                          const char **ret_name)
{
    for (size_t i = 0; i < max && names[i]; i++) {
        const json_t *v = json_object_get(config, names[i]);

        *ret_name = names[i];
        if (v && !json_is_null(v))
            return v;
    }
    return NULL;
}

static void *field(struct fw_settings *s, size_t at)
{
    return (char *)s + at;
}

static int read_numbers(struct fw_settings *s, const json_t *config, struct fw_err *err)
{
    const char *name = "";

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        const json_t *v = find(config, sizes[i].names, 5, &name);
        json_int_t n = json_integer_value(v);

        if (v && (!json_is_integer(v) || n < (json_int_t)sizes[i].min ||
                  n > (json_int_t)sizes[i].max))
            return BAD(err, "config.json: %s must be an integer from %zu to %zu", name,
                       sizes[i].min, sizes[i].max);
        *(size_t *)field(s, sizes[i].at) = (size_t)n;
    }
    for (size_t i = 0; i < sizeof reals / sizeof reals[0]; i++) {
        const json_t *v = find(config, reals[i].names, 5, &name);
        double x = json_number_value(v);

        if (v && !(json_is_number(v) && x >= reals[i].low && x <= reals[i].high))
            return BAD(err, "config.json: %s must be a number from %g to %g", name,
                       reals[i].low, reals[i].high);
        *(double *)field(s, reals[i].at) = x;
    }
    return 0;
}

static int read_flags(struct fw_settings *s, const json_t *config, struct fw_err *err)
{
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        const json_t *v = json_object_get(config, flags[i].name);

        if (!v || json_is_null(v))
            continue;
        if (!json_is_boolean(v))
            return BAD(err, "config.json: %s must be true or false", flags[i].name);
        *(bool *)field(s, flags[i].at) = json_is_true(v) == flags[i].when;
    }
    for (size_t i = 0; i < sizeof fixed / sizeof fixed[0]; i++) {
        const json_t *v = json_object_get(config, fixed[i].name);
        json_t *want = json_loads(fixed[i].value, JSON_DECODE_ANY, NULL);
        bool ok = !v || json_is_null(v) || json_equal(v, want);

        json_decref(want);
        if (!ok)
            return BAD(err, "config.json: %s must be %s, another is not built", fixed[i].name,
                       fixed[i].value);
    }
    return 0;
}

static int read_word(const json_t *config, const char *const *names, char *ret, size_t size,
                     struct fw_err *err)
{
    const char *name = "";
    const json_t *v = find(config, names, 5, &name);

    if (!v)
        return 0;
    if (!json_is_string(v) || json_string_length(v) >= size)
        return BAD(err, "config.json: %s must be a word of less than %zu bytes", name, size);
    snprintf(ret, size, "%s", json_string_value(v));
    return 0;
}

static int read_architecture(struct fw_settings *s, const json_t *config, struct fw_err *err)
{
    static const char *const names[5] = { "architecture", "model_type" };
    const json_t *list = json_object_get(config, "architectures");
    const char *first = json_string_value(json_array_get(list, 0));
    char said[64] = "";

    if (read_word(config, names, said, sizeof said, err) < 0)
        return -1;
    if (!said[0] && first)
        snprintf(said, sizeof said, "%.63s", first);
    if (!said[0])
        return BAD(err, "config.json names no architecture");
    for (size_t i = 0; i < sizeof architectures / sizeof architectures[0]; i++)
        if (strcmp(architectures[i].said, said) == 0) {
            snprintf(s->architecture, sizeof s->architecture, "%s", architectures[i].name);
            return 0;
        }
    return BAD(err, "config.json: the architecture is none of rwkv7, gated_deltanet, "
                    "delta_net, gpt2");
}

/* What config.json does not say, a file beside it does. */
static void guess_tokenizer(struct fw_settings *s, const char *dir)
{
    char path[4096], name[128];

    if (s->tokenizer[0])
        return;
    if (tokens_world_name(dir, name) == 0)
        snprintf(s->tokenizer, sizeof s->tokenizer, "rwkv_world");
    else if (snprintf(path, sizeof path, "%s/tokenizer.json", dir) < (int)sizeof path &&
             access(path, R_OK) == 0)
        snprintf(s->tokenizer, sizeof s->tokenizer, "bpe");
}

static int read_words(struct fw_settings *s, const json_t *config, struct fw_err *err)
{
    static const char *const tokenizer[5] = { "tokenizer" };
    static const char *const activation[5] = { "hidden_act", "activation_function",
                                               "activation" };

    if (read_word(config, tokenizer, s->tokenizer, sizeof s->tokenizer, err) < 0 ||
        read_word(config, activation, s->activation, sizeof s->activation, err) < 0)
        return -1;
    return read_architecture(s, config, err);
}

int fw_settings_read(struct fw_settings *ret, const char *dir, struct fw_err *err)
{
    struct fw_settings s = { .gate = false };
    struct fw_buf text;
    json_t *config = NULL;
    json_error_t at;
    int rc;

    fw_buf_init(&text, MAX_CONFIG_JSON);
    rc = fw_model_file(&text, dir, "config.json", err);
    if (rc == 0) {
        config = json_loadb((const char *)text.data, text.len, JSON_REJECT_DUPLICATES, &at);
        if (!config || !json_is_object(config))
            rc = BAD(err, "config.json is no JSON object without repeated keys");
    }
    if (rc == 0 && (read_numbers(&s, config, err) < 0 || read_flags(&s, config, err) < 0 ||
                    read_words(&s, config, err) < 0))
        rc = -1;
    json_decref(config);
    fw_buf_done(&text);
    if (rc < 0)
        return -1;
    guess_tokenizer(&s, dir);
    *ret = s;
    return 0;
}
