#include "config.h"

#include "test_main.h"

#include <math.h>

#include "rules_testing.h"

/* What is particular to the rules that learn by mini-batches: ttt_linear, ttt_mlp, titans. */

static struct fw_memory *open_rule(const char *rule, const char *key, double value)
{
    const struct setup s = { rule, 1, 4, 4, { { key, NULL, value } } };
    struct fw_memory *m = NULL;
    struct fw_err err = { .msg = "" };

    ck_assert_msg(new_memory(&m, &s, rule, &err) == 0, "%s", err.msg);
    return m;
}

static float *data_of(const struct many *b, const char *name)
{
    for (size_t i = 0; i < b->in.count; i++)
        if (strcmp(b->item[i].name, name) == 0)
            return b->data[i];
    return NULL;
}

/* Takes a tensor out of the body. */
static void drop(struct many *b, const char *name)
{
    size_t i = 0;

    while (strcmp(b->item[i].name, name) != 0)
        i++;
    free(b->data[i]);
    b->in.count--;
    b->item[i] = b->item[b->in.count];
    b->data[i] = b->data[b->in.count];
}

static void *learn_all(const struct fw_memory *m, const struct many *b)
{
    void *block = new_block(m);

    fw_memory_learn(m, block, &b->in, 0, b->n, NULL, NULL);
    return block;
}

START_TEST(without_tau_the_i_th_token_steps_one_over_i)
{
    struct fw_memory *m = open_rule("ttt_linear", "mini_batch", 3);
    size_t bytes = fw_memory_layout(m)->block_bytes;
    struct many b;
    void *given, *absent;

    make_many(&b, m, 8, true, 3);
    for (size_t t = 0; t < b.n; t++)
        data_of(&b, "tau")[t] = 1 / (float)(t % 3 + 1);
    given = learn_all(m, &b);
    drop(&b, "tau");
    absent = learn_all(m, &b);
    ck_assert_mem_eq(given, absent, bytes);
    free(given);
    free(absent);
    free_many(&b);
    fw_memory_free(m);
}
END_TEST

START_TEST(a_layer_norm_that_was_given_once_stays)
{
    struct fw_memory *m = open_rule("ttt_mlp", "mini_batch", 3);
    struct many b;
    void *block;
    float w[4];

    make_many(&b, m, 5, true, 3);
    memcpy(w, data_of(&b, "ln_weight") + 4, sizeof w);
    block = new_block(m);
    ck_assert(((float *)field(m, block, "ln_weight"))[3] == 1);
    fw_memory_learn(m, block, &b.in, 0, 2, NULL, NULL);
    drop(&b, "ln_weight");
    fw_memory_learn(m, block, &b.in, 2, 3, NULL, NULL);
    ck_assert_mem_eq(field(m, block, "ln_weight"), w, sizeof w);
    free(block);
    free_many(&b);
    fw_memory_free(m);
}
END_TEST

static const struct {
    const char *rule, *key, *word;
    double number;
    size_t d_v;
    const char *param;
} refused[] = {
    { "ttt_linear", "variant", "other", 0, 4, "config.variant" },
    { "ttt_mlp", "variant", "fla", 0, 4, "config.variant" },
    { "ttt_linear", "hidden", NULL, 8, 4, "config.hidden" },
    { "ttt_linear", "mini_batch", NULL, 0, 4, "config.mini_batch" },
    { "ttt_linear", "tau", NULL, 1, 4, "config.tau" },
    { "ttt_linear", "eta", NULL, 1, 4, "config.eta" },
    { "ttt_mlp", "lr", NULL, -1, 4, "config.lr" },
    { "ttt_mlp", "mini_batch", NULL, 4, 5, "config.d_v" },
    { "ttt_mlp", "feature_map", "relu", 0, 4, "config.feature_map" },
    { "titans", "depth", NULL, 3, 4, "config.depth" },
    { "titans", "hidden", NULL, 8, 4, "config.hidden" },
    { "titans", "layer_norm", "true", 0, 5, "config.layer_norm" },
    { "titans", "layer_norm", NULL, 1, 4, "config.layer_norm" },
    { "titans", "chunk", NULL, 5000, 4, "config.chunk" },
    { "titans", "eta", NULL, 1.5, 4, "config.eta" },
    { "titans", "feature_map", "dpfp", 0, 4, "config.feature_map" },
};

START_TEST(configs_that_make_no_sense_are_refused_by_name)
{
    struct setup s = { refused[_i].rule, 1, 4, refused[_i].d_v, { { NULL, NULL, 0 } } };
    struct fw_memory *m = NULL;
    struct fw_err err = { .msg = "" };

    s.config[0].key = refused[_i].key;
    s.config[0].word = refused[_i].word;
    s.config[0].number = refused[_i].number;
    ck_assert_int_eq(new_memory(&m, &s, s.rule, &err), -1);
    ck_assert_int_eq(err.code, FW_EINVAL);
    ck_assert_str_eq(err.param, refused[_i].param);
}
END_TEST

START_TEST(a_batch_is_a_multiple_of_its_chunk)
{
    const struct setup s = {
        "titans", 1, 4, 4, { { "chunk", NULL, 4 }, { "batch", NULL, 6 } }
    };
    struct fw_memory *m = NULL;
    struct fw_err err = { .msg = "" };

    ck_assert_int_eq(new_memory(&m, &s, s.rule, &err), -1);
    ck_assert_str_eq(err.param, "config.batch");
}
END_TEST

START_TEST(a_foreign_block_must_fit_its_place_in_the_mini_batch)
{
    static const char *const rules[] = { "ttt_linear", "ttt_mlp", "titans" };
    static const char *const keys[] = { "mini_batch", "mini_batch", "chunk" };
    struct fw_memory *m = open_rule(rules[_i], keys[_i], 4);
    const char *grad = _i == 1 ? "grad_W2" : "grad_S", *now = _i == 1 ? "W1" : "S";
    struct fw_err err;
    struct many b;
    void *block;

    make_many(&b, m, 6, true, 3);
    block = learn_all(m, &b);
    ck_assert_int_eq(fw_memory_validate(m, block, NULL), 0); /* gradients and two weights */
    ((uint64_t *)field(m, block, "counters"))[0] = 8;
    ck_assert_int_eq(fw_memory_validate(m, block, &err), -1);
    ck_assert_int_eq(strncmp(err.param, "grad_", 5), 0);
    free(block);
    block = new_block(m);
    *(float *)field(m, block, now) = 0.5f;
    ck_assert_int_eq(fw_memory_validate(m, block, &err), -1);
    ck_assert_int_eq(strncmp(err.param, "start_", 6), 0);
    *(float *)field(m, block, now) = 2e12f;
    ck_assert_int_eq(fw_memory_validate(m, block, &err), -1);
    ck_assert_str_eq(err.param, now);
    *(float *)field(m, block, now) = 0;
    *(float *)field(m, block, grad) = 1;
    ck_assert_int_eq(fw_memory_validate(m, block, &err), -1);
    free(block);
    free_many(&b);
    fw_memory_free(m);
}
END_TEST

START_TEST(titans_of_depth_1_is_momentum_with_theta_over_half_of_d)
{
    struct fw_memory *titans = open_rule("titans", "theta", 1);
    struct fw_memory *momentum = open_rule("momentum", "theta", 0.2);
    struct many b;
    void *one, *two;
    double worst = 0;

    make_many(&b, titans, 50, true, 3);
    one = learn_all(titans, &b);
    for (size_t t = 0; t < b.n; t++)
        data_of(&b, "theta")[t] /= 2; /* 2 / d_v */
    two = learn_all(momentum, &b);
    for (size_t i = 0; i < 16; i++)
        worst = fmax(worst, fabs((double)((float *)field(titans, one, "S"))[i] -
                                 (double)((float *)field(momentum, two, "S"))[i]));
    ck_assert_double_le(worst, 1e-6);
    free(one);
    free(two);
    free_many(&b);
    fw_memory_free(titans);
    fw_memory_free(momentum);
}
END_TEST

START_TEST(a_theta_too_large_fills_the_memory_and_does_not_break_it)
{
    struct fw_memory *m = open_rule("titans", "depth", 2);
    struct many b;
    void *block;
    float values[4 * 500];
    size_t bad = 0;

    make_many(&b, m, 500, true, 3);
    for (size_t t = 0; t < b.n; t++) {
        data_of(&b, "theta")[t] = 1e6f;
        data_of(&b, "eta")[t] = 1;
    }
    for (size_t i = 0; i < 4 * b.n; i++)
        data_of(&b, "keys")[i] *= 1e5f;
    block = new_block(m);
    fw_memory_learn(m, block, &b.in, 0, b.n, NULL, values);
    for (size_t i = 0; i < 4 * b.n; i++)
        bad += !isfinite(values[i]);
    ck_assert_uint_eq(bad, 0);
    ck_assert_int_eq(fw_memory_validate(m, block, NULL), 0);
    free(block);
    free_many(&b);
    fw_memory_free(m);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("memory/ttt");
    TCase *tc = tcase_create("ttt");

    fw_num_init();
    fw_num_thread();
    tcase_add_test(tc, without_tau_the_i_th_token_steps_one_over_i);
    tcase_add_test(tc, a_layer_norm_that_was_given_once_stays);
    tcase_add_loop_test(tc, configs_that_make_no_sense_are_refused_by_name, 0,
                        sizeof refused / sizeof refused[0]);
    tcase_add_test(tc, a_batch_is_a_multiple_of_its_chunk);
    tcase_add_loop_test(tc, a_foreign_block_must_fit_its_place_in_the_mini_batch, 0, 3);
    tcase_add_test(tc, titans_of_depth_1_is_momentum_with_theta_over_half_of_d);
    tcase_add_test(tc, a_theta_too_large_fills_the_memory_and_does_not_break_it);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
