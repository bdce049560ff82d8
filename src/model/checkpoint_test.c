#include "config.h"

#include <sys/stat.h>

#include "test_main.h"

#include "models_testing.h"

/* A directory that is as it stands must be refused, in these words. */
static void must_refuse(struct testing *t, const char *because)
{
    struct fw_checkpoint *c = NULL;
    struct fw_err err = { .msg = "" };

    ck_assert_msg(fw_checkpoint_open(&c, t->dir, &err) == -1, "accepted; wanted: %s", because);
    ck_assert_int_eq(err.code, FW_EINVAL);
    ck_assert_str_eq(err.reason, "bad_model");
    ck_assert_msg(strstr(err.msg, because) != NULL, "'%s' instead of '%s'", err.msg, because);
    ck_assert_ptr_null(c);
}

static void refuse_config(const char *config, const char *because)
{
    struct testing *t = testing_deltanet(true);

    snprintf(t->config, sizeof t->config, "%s", config);
    testing_save(t);
    must_refuse(t, because);
    testing_remove(t);
}

START_TEST(the_shape_is_what_config_and_tensors_say)
{
    struct testing *t = testing_deltanet(true);
    struct fw_checkpoint *c = testing_open(t);
    const struct fw_model_shape *s = fw_checkpoint_shape(c);
    uint64_t n = 0;

    for (size_t i = 0; i < t->tensors.count; i++)
        n += t->item[i].bytes / sizeof(float);
    ck_assert_str_eq(s->architecture, "gated_deltanet");
    ck_assert_str_eq(s->tokenizer, "bytes");
    ck_assert(s->vocab == 19 && s->d_model == 16 && s->layers == 2 && s->heads == 2);
    ck_assert(s->d_k == 4 && s->d_v == 6 && s->d_ff == 24 && s->max_context == 0);
    ck_assert_uint_eq(s->parameters, n);
    ck_assert_uint_eq(s->weight_bytes, 4 * n);
    fw_checkpoint_close(c);
    testing_remove(t);
    t = testing_rwkv7(true);
    c = testing_open(t);
    s = fw_checkpoint_shape(c); /* heads from r_k */
    ck_assert(s->heads == 2 && s->d_k == 8 && s->d_v == 8 && s->d_ff == 24);
    fw_checkpoint_close(c);
    testing_remove(t);
    t = testing_gpt2(true);
    c = testing_open(t);
    ck_assert_uint_eq(fw_checkpoint_shape(c)->max_context, 12);
    fw_checkpoint_close(c);
    testing_remove(t);
}
END_TEST

START_TEST(a_directory_without_its_files_is_refused)
{
    static const char config[] = "{\"architecture\": \"gpt2\", \"n_layer\": 1}";
    struct testing *t = testing_new("{}");

    must_refuse(t, "config.json cannot be opened");
    testing_write(t, "config.json", config, strlen(config));
    must_refuse(t, "model.safetensors cannot be opened");
    testing_write(t, "model.safetensors", "", 0);
    must_refuse(t, "model.safetensors cannot be mapped");
    testing_write(t, "model.safetensors", "12345678", 8);
    must_refuse(t, "model.safetensors: header length");
    testing_remove(t);
}
END_TEST

START_TEST(a_pipe_in_place_of_a_file_is_refused_without_waiting)
{
    struct testing *t = testing_deltanet(true);
    static const char *const files[] = { "model.safetensors", "config.json" };
    static const char *const because[] = { "cannot be mapped", "cannot be opened" };
    char path[512];

    testing_save(t);
    for (size_t i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", t->dir, files[i]);
        ck_assert_int_eq(unlink(path), 0);
        ck_assert_int_eq(mkfifo(path, 0600), 0);
        must_refuse(t, because[i]);
    }
    testing_remove(t);
}
END_TEST

START_TEST(the_weights_hash_tells_settings_apart_that_no_tensor_shows)
{
    struct testing *t = testing_deltanet(true);
    struct fw_checkpoint *c;
    char before[FW_HASH_HEX], config[512];

    c = testing_open(t);
    snprintf(before, sizeof before, "%s", fw_checkpoint_shape(c)->weights);
    fw_checkpoint_close(c);
    ck_assert_int_lt(snprintf(config, sizeof config, "%s", t->config), sizeof config);
    snprintf(t->config, sizeof t->config, "{\"allow_neg_eigval\": true, %s", config + 1);
    c = testing_open(t);
    ck_assert_str_ne(fw_checkpoint_shape(c)->weights, before);
    fw_checkpoint_close(c);
    testing_remove(t);
}
END_TEST

START_TEST(every_setting_that_is_read_has_a_range)
{
    refuse_config("{\"architecture\": ", "no JSON");
    refuse_config("[]", "no JSON object");
    refuse_config("{\"a\": 1, \"a\": 2}", "repeated keys");
    refuse_config("{}", "names no architecture");
    refuse_config("{\"architecture\": \"llama\"}", "is none of");
    refuse_config("{\"architecture\": 7}", "must be a word");
    refuse_config("{\"architectures\": [\"MambaForCausalLM\"]}", "is none of");
    refuse_config("{\"architecture\": \"gpt2\"}", "num_hidden_layers");
    refuse_config("{\"architecture\": \"gpt2\", \"n_layer\": 0}", "n_layer must be an integer");
    refuse_config("{\"architecture\": \"gpt2\", \"n_layer\": 257}", "from 1 to 256");
    refuse_config("{\"architecture\": \"gpt2\", \"n_layer\": 2.5}", "n_layer");
    refuse_config("{\"architecture\": \"gpt2\", \"n_layer\": -1}", "n_layer");
    refuse_config("{\"architecture\": \"gpt2\", \"vocab_size\": 1e30}", "vocab_size");
    refuse_config("{\"architecture\": \"gpt2\", \"vocab_size\": \"many\"}", "vocab_size");
    refuse_config("{\"architecture\": \"gpt2\", \"norm_eps\": 0}", "norm_eps");
    refuse_config("{\"architecture\": \"gpt2\", \"expand_v\": -2}", "expand_v");
    refuse_config("{\"architecture\": \"gpt2\", \"use_gate\": 1}", "use_gate must be true");
    refuse_config("{\"architecture\": \"gpt2\", \"attn\": {\"layers\": [1]}}",
                  "attn must be null");
    refuse_config("{\"architecture\": \"delta_net\", \"qk_norm\": \"sum\"}", "another is not");
    refuse_config("{\"architecture\": \"gated_deltanet\", \"n_layer\": 2}", "hidden_size");
    refuse_config("{\"architecture\": \"gated_deltanet\", \"n_layer\": 2, \"hidden_size\": 16, "
                  "\"num_heads\": 2, \"head_dim\": 4, \"expand_v\": 1.3}",
                  "whole dimensions");
    refuse_config("{\"architecture\": \"gated_deltanet\", \"n_layer\": 2, \"hidden_size\": 16, "
                  "\"num_heads\": 2, \"num_v_heads\": 3, \"head_dim\": 4}",
                  "heads");
    refuse_config("{\"architecture\": \"gated_deltanet\", \"n_layer\": 2, \"hidden_act\": "
                  "\"relu\"}",
                  "hidden_act");
    refuse_config("{\"architecture\": \"gated_deltanet\", \"n_layer\": 2, \"hidden_size\": 16, "
                  "\"num_heads\": 2, \"head_dim\": 4, \"expand_v\": 1.5, \"vocab_size\": 20}",
                  "(20, 16) is needed");
    refuse_config("{\"architecture\": \"gated_deltanet\", \"n_layer\": 3, \"hidden_size\": 16, "
                  "\"num_heads\": 2, \"head_dim\": 4, \"expand_v\": 1.5}",
                  "'model.layers.2.attn_norm.weight' is missing");
    refuse_config("{\"architecture\": \"gated_deltanet\", \"n_layer\": 1, \"hidden_size\": 16, "
                  "\"num_heads\": 2, \"head_dim\": 4, \"expand_v\": 1.5}",
                  "is none of this architecture's");
}
END_TEST

typedef struct testing *maker(void);

static struct testing *gated(void)
{
    return testing_deltanet(true);
}

static struct testing *rwkv(void)
{
    return testing_rwkv7(true);
}

static struct testing *gpt(void)
{
    return testing_gpt2(false);
}

static maker *const makers[] = { gated, rwkv, gpt };

static bool is_optional(const char *name)
{
    return (strstr(name, "bias") && !strstr(name, "dt_bias")) || strstr(name, "head.weight");
}

START_TEST(every_tensor_must_be_there_in_its_shape_and_type)
{
    size_t n = 1;

    for (size_t i = 0; i < n; i++) {
        struct testing *t = makers[_i]();
        struct fw_tensor *w = &t->item[i], was = *w;
        char name[FW_NAME_MAX + 16];
        bool optional = is_optional(w->name);

        n = t->tensors.count;
        snprintf(name, sizeof name, "'%s'", was.name);
        snprintf(w->name, sizeof w->name, "other");
        testing_save(t);
        must_refuse(t, optional ? "'other' is none of this" : "is missing");
        *w = was;
        w->dtype = FW_I32;
        testing_save(t);
        must_refuse(t, "not F32, F16 or BF16");
        *w = was;
        w->shape[0]++;
        w->bytes = (size_t)w->shape[0] * (w->bytes / (size_t)was.shape[0]);
        w->data = calloc(1, w->bytes);
        testing_save(t);
        must_refuse(t, "needed");
        free((void *)(uintptr_t)w->data);
        *w = was;
        t->data[i][0] = i % 2 ? __builtin_nanf("") : -__builtin_inff();
        testing_save(t);
        must_refuse(t, "1 elements are not finite");
        testing_remove(t);
    }
}
END_TEST

START_TEST(nothing_has_no_elements)
{
    static const char *const names[] = { "emb.weight", "head.weight", "head.bias",
                                         "blocks.0.att.w1", "blocks.0.ffn.key.weight" };

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct testing *t = testing_rwkv7(true);

        if (strcmp(names[i], "head.bias") == 0)
            testing_add(t, names[i], 1, 19, 0, 0);
        for (size_t w = 0; w < t->tensors.count; w++)
            if (strcmp(t->item[w].name, names[i]) == 0) {
                t->item[w].shape[t->item[w].ndim - 1] = 0;
                t->item[w].bytes = 0;
            }
        testing_save(t);
        must_refuse(t, "needed");
        testing_remove(t);
    }
}
END_TEST

START_TEST(any_cut_of_the_file_is_refused)
{
    struct testing *t = makers[_i]();
    struct fw_buf b;

    testing_save(t);
    fw_buf_init(&b, 1 << 24);
    ck_assert_int_eq(fw_model_file(&b, t->dir, "model.safetensors", NULL), 0);
    for (size_t len = 1; len < b.len; len += 1 + b.len / 200) {
        testing_write(t, "model.safetensors", b.data, len);
        must_refuse(t, "model.safetensors: ");
    }
    fw_buf_done(&b);
    testing_remove(t);
}
END_TEST

/* Writes the first `cut` tensors into one shard, the rest into another. */
static void save_shards(struct testing *t, size_t cut)
{
    struct fw_tensors part = { cut, t->item };
    struct fw_buf b;

    testing_write(t, "config.json", t->config, strlen(t->config));
    for (int i = 0; i < 2; i++) {
        fw_buf_init(&b, 1 << 24);
        ck_assert_int_eq(fw_safetensors_write(&b, &part, NULL, 0, NULL), 0);
        testing_write(t, i ? "two.safetensors" : "one.safetensors", b.data, b.len);
        fw_buf_done(&b);
        part = (struct fw_tensors){ t->tensors.count - cut, t->item + cut };
    }
}

static void save_index(struct testing *t, size_t cut, const char *one, const char *more)
{
    struct fw_buf b;

    fw_buf_init(&b, 1 << 20);
    fw_buf_printf(&b, NULL, "{\"weight_map\": {%s", more);
    for (size_t i = 0; i < t->tensors.count; i++)
        fw_buf_printf(&b, NULL, "%s\"%s\": \"%s\"", i ? ", " : "", t->item[i].name,
                      i < cut ? one : "two.safetensors");
    fw_buf_printf(&b, NULL, "}}");
    testing_write(t, "model.safetensors.index.json", b.data, b.len);
    fw_buf_done(&b);
}

START_TEST(shards_are_one_checkpoint)
{
    struct testing *t = testing_rwkv7(true), *whole = testing_rwkv7(true);
    struct fw_checkpoint *c, *d = testing_open(whole);
    struct fw_err err = { .msg = "" };

    save_shards(t, 20);
    save_index(t, 20, "one.safetensors", "");
    ck_assert_msg(fw_checkpoint_open(&c, t->dir, &err) == 0, "%s", err.msg);
    ck_assert_uint_eq(fw_checkpoint_shape(c)->parameters, fw_checkpoint_shape(d)->parameters);
    fw_checkpoint_close(c);
    fw_checkpoint_close(d);
    testing_remove(whole);
    save_index(t, 19, "one.safetensors", "");
    must_refuse(t, "the index does not say that tensor");
    save_index(t, 20, "../one.safetensors", "");
    must_refuse(t, "no plain name");
    save_index(t, 20, ".", "");
    must_refuse(t, "no plain name");
    save_index(t, 20, "none.safetensors", "");
    must_refuse(t, "none.safetensors cannot be opened");
    save_index(t, 20, "one.safetensors", "\"ghost\": \"one.safetensors\", ");
    must_refuse(t, "tensors, the files hold");
    testing_write(t, "model.safetensors.index.json", "{\"weight_map\": 5}", 17);
    must_refuse(t, "no weight_map");
    testing_write(t, "model.safetensors.index.json", "{", 1);
    must_refuse(t, "no JSON");
    testing_remove(t);
}
END_TEST

START_TEST(masks_that_hugging_face_stores_are_passed_over)
{
    struct testing *t = testing_gpt2(true);

    testing_add(t, "h.0.attn.bias", 3, 12, 12, 0);
    testing_add(t, "h.0.attn.masked_bias", 1, 1, 0, 0);
    fw_checkpoint_close(testing_open(t));
    testing_remove(t);
}
END_TEST

START_TEST(a_head_that_is_missing_is_the_embedding)
{
    struct testing *t = testing_deltanet(true);
    struct fw_checkpoint *c;
    struct fw_tensor head = t->item[2];

    ck_assert_str_eq(head.name, "lm_head.weight");
    t->item[2] = t->item[t->tensors.count - 1];
    t->data[2] = t->data[t->tensors.count - 1];
    t->tensors.count--;
    c = testing_open(t);
    ck_assert_ptr_eq(c->head.W.data, c->embed.data);
    fw_checkpoint_close(c);
    free((void *)(uintptr_t)head.data);
    testing_remove(t);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("model/checkpoint");
    TCase *tc = tcase_create("checkpoint");

    fw_num_init();
    tcase_set_timeout(tc, 300);
    tcase_add_test(tc, the_shape_is_what_config_and_tensors_say);
    tcase_add_test(tc, a_directory_without_its_files_is_refused);
    tcase_add_test(tc, a_pipe_in_place_of_a_file_is_refused_without_waiting);
    tcase_add_test(tc, the_weights_hash_tells_settings_apart_that_no_tensor_shows);
    tcase_add_test(tc, every_setting_that_is_read_has_a_range);
    tcase_add_loop_test(tc, every_tensor_must_be_there_in_its_shape_and_type, 0, 3);
    tcase_add_test(tc, nothing_has_no_elements);
    tcase_add_loop_test(tc, any_cut_of_the_file_is_refused, 0, 3);
    tcase_add_test(tc, shards_are_one_checkpoint);
    tcase_add_test(tc, masks_that_hugging_face_stores_are_passed_over);
    tcase_add_test(tc, a_head_that_is_missing_is_the_embedding);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
