#include "config.h"

#include "test_main.h"

#include <math.h>
#include <sys/stat.h>

#include "fastweight/num.h"
#include "models_testing.h"

static char shared[4096]; /* a folder with trained weights, or "" */

/* Where the weights of these tests are; they are no part of the tree. */
static void find_shared(void)
{
    const char *top = getenv("top_srcdir"), *said = getenv("FW_SHARED");
    struct stat st;

    if (said)
        snprintf(shared, sizeof shared, "%s", said);
    else
        snprintf(shared, sizeof shared, "%s/../shared", top ? top : ".");
    if (stat(shared, &st) != 0) {
        shared[0] = 0;
        fprintf(stderr, "real_test: no trained weights here, so they are not tested\n");
    }
}

static struct testing *open_real(const char *file, const char *config,
                                 struct fw_checkpoint **ret)
{
    struct testing *t = testing_new(config);
    struct fw_err err = { .msg = "" };
    char from[4300], real[4300], to[256];

    snprintf(from, sizeof from, "%s/models/%s.safetensors", shared, file);
    ck_assert_ptr_nonnull(realpath(from, real));
    snprintf(to, sizeof to, "%s/model.safetensors", t->dir);
    ck_assert_int_eq(symlink(real, to), 0);
    testing_write(t, "config.json", config, strlen(config));
    ck_assert_msg(fw_checkpoint_open(ret, t->dir, &err) == 0, "%s", err.msg);
    return t;
}

static void close_real(struct testing *t, struct fw_model *m, struct fw_checkpoint *c,
                       void *block)
{
    free(block);
    fw_model_free(m);
    fw_checkpoint_close(c);
    testing_remove(t);
}

/* A whole small file. */
static unsigned char *read_file(const char *name, size_t max, size_t *ret_len)
{
    unsigned char *data = malloc(max);
    char path[4300];
    FILE *f;

    snprintf(path, sizeof path, "%s/%s", shared, name);
    f = fopen(path, "rb");
    ck_assert(f && data);
    *ret_len = fread(data, 1, max, f);
    fclose(f);
    return data;
}

START_TEST(rwkv7_tiny_gives_its_expected_logits)
{
    struct fw_checkpoint *c;
    struct testing *t;
    struct fw_model *m;
    struct fw_safetensors st;
    const struct fw_tensor *ids, *want;
    unsigned char *file;
    size_t len;
    float logits[256], worst = 0;
    void *block;

    if (!shared[0])
        return;
    t = open_real("rwkv7-tiny-834k", "{\"architecture\": \"rwkv7\", \"num_layers\": 12}", &c);
    m = testing_plan(c, NULL);
    block = testing_block(m);
    file = read_file("models/rwkv7-tiny-834k.expected.safetensors", 1 << 20, &len);
    ck_assert_int_eq(fw_safetensors_read(&st, file, len, NULL), 0);
    ids = fw_tensors_find(&st.tensors, "tokens");
    want = fw_tensors_find(&st.tensors, "logits_last");
    for (size_t i = 0; i < ids->shape[0]; i++) {
        uint32_t id = (uint32_t)((const int64_t *)ids->data)[i];

        fw_model_learn(m, block, &id, 1, NULL);
    }
    fw_model_logits(m, block, logits);
    for (size_t i = 0; i < 256; i++)
        worst = fmaxf(worst, fabsf(logits[i] - ((const float *)want->data)[i]));
    ck_assert_float_le(worst, 1e-4f);
    fw_safetensors_done(&st);
    free(file);
    close_real(t, m, c, block);
}
END_TEST

static uint32_t best(const struct fw_model *m, const void *block)
{
    float logits[12];
    uint32_t at = 0;

    fw_model_logits(m, block, logits);
    for (uint32_t i = 1; i < 12; i++)
        at = logits[i] > logits[at] ? i : at;
    return at;
}

START_TEST(rwkv7_reverse_recalls_up_to_60_digits_backwards)
{
    struct fw_checkpoint *c;
    struct testing *t;
    struct fw_model *m;
    uint64_t seed = 3;
    size_t wrong = 0;

    if (!shared[0])
        return;
    t = open_real("rwkv7-reverse",
                  "{\"architecture\": \"rwkv7\", \"num_layers\": 2, \"head_size\": 16}", &c);
    m = testing_plan(c, NULL);
    for (size_t round = 0; round < 30; round++) {
        size_t n = 2 * (round + 1);
        uint32_t token[64];
        void *block = testing_block(m);

        for (size_t i = 0; i < n; i++)
            token[i] = (uint32_t)((testing_random(&seed) + 1) * 4.999f);
        token[n] = 10; /* the comma */
        fw_model_learn(m, block, token, n + 1, NULL);
        for (size_t i = 0; i < n; i++) {
            uint32_t got = best(m, block);

            wrong += got != token[n - 1 - i];
            fw_model_learn(m, block, &got, 1, NULL);
        }
        free(block);
    }
    ck_assert_uint_eq(wrong, 0);
    close_real(t, m, c, NULL);
}
END_TEST

START_TEST(byte_gdn_dev_predicts_prose_as_well_as_it_was_measured_to)
{
    static const size_t cut[] = { 1000, 10000, 100000 };
    static const double want[] = { 2.284, 1.887, 1.847 };
    struct fw_checkpoint *c;
    struct testing *t;
    struct fw_model *m;
    unsigned char *text;
    uint32_t *token;
    double *logp, bits = 0;
    size_t len, n = getenv("FW_FULL") ? 100000 : 10000;
    void *block;

    if (!shared[0])
        return;
    t = open_real("byte-gdn-dev",
                  "{\"architecture\": \"gated_deltanet\", \"num_hidden_layers\": 4, "
                  "\"hidden_size\": 128, \"num_heads\": 4, \"head_dim\": 32, \"expand_v\": 1}",
                  &c);
    m = testing_plan(c, NULL);
    block = testing_block(m);
    text = read_file("corpora/prose-1m.txt", n, &len);
    ck_assert_uint_eq(len, n);
    token = calloc(n, sizeof *token);
    logp = calloc(n, sizeof *logp);
    for (size_t i = 0; i < n; i++)
        token[i] = text[i];
    fw_model_learn(m, block, token, n, logp);
    for (size_t i = 0, j = 0; i < n; i++) {
        bits -= i ? logp[i] / log(2) : 0; /* the first byte was not counted there */
        if (i + 1 == cut[j]) {
            ck_assert_double_eq_tol(bits / (double)i, want[j], 0.001);
            j++;
        }
    }
    ck_assert_int_eq(fw_model_validate(m, block, NULL), 0);
    free(text);
    free(token);
    free(logp);
    close_real(t, m, c, block);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("model/real");
    TCase *tc = tcase_create("real");

    fw_num_init();
    fw_num_thread();
    find_shared();
    tcase_set_timeout(tc, 300);
    tcase_add_test(tc, rwkv7_tiny_gives_its_expected_logits);
    tcase_add_test(tc, rwkv7_reverse_recalls_up_to_60_digits_backwards);
    tcase_add_test(tc, byte_gdn_dev_predicts_prose_as_well_as_it_was_measured_to);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
