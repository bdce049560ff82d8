#include "config.h"

#include "stream_testing.h"

#include "fastweight/fmath.h"

static struct fw_stream *s;
static void *block;
static uint8_t *text;
static size_t len;

/* A state in the middle of a log. */
static void setup(void)
{
    start_numbers();
    s = new_bytes("auto", MIB);
    block = new_block(s);
    text = read_sample("log.txt", &len);
    fw_stream_learn(s, block, text, 20000, NULL);
}

static void teardown(void)
{
    free(block);
    free(text);
    fw_stream_free(s);
}

static struct fw_stream_view *new_view(void)
{
    struct fw_stream_view *v;
    struct fw_err err;

    ck_assert_int_eq(fw_stream_view_new(&v, s, block, &err), 0);
    return v;
}

START_TEST(predict_sums_to_one)
{
    struct fw_stream_view *v = new_view();
    double logp[256], sum = 0;

    fw_stream_view_predict(v, logp);
    for (int i = 0; i < 256; i++) {
        ck_assert_double_lt(logp[i], 0);
        ck_assert_double_gt(logp[i], -100);
        sum += fw_exp(logp[i]);
    }
    ck_assert_double_eq_tol(sum, 1, 1e-9);
    fw_stream_view_free(v);
}
END_TEST

START_TEST(learn_scores_what_predict_said_to_the_bit)
{
    for (size_t i = 20000; i < 20200; i++) {
        struct fw_stream_view *v = new_view();
        double predicted[256], fed, learned;

        fw_stream_view_predict(v, predicted);
        fw_stream_view_feed(v, text + i, 1, &fed);
        fw_stream_view_free(v);
        fw_stream_learn(s, block, text + i, 1, &learned);
        ck_assert_double_eq(learned, predicted[text[i]]);
        ck_assert_double_eq(learned, fed);
    }
}
END_TEST

START_TEST(a_frozen_score_is_predict_after_each_prefix)
{
    struct fw_stream_view *whole = new_view(), *steps = new_view();
    double score[300], logp[256];

    fw_stream_view_feed(whole, text + 50000, 300, score);
    for (size_t i = 0; i < 300; i++) {
        fw_stream_view_predict(steps, logp);
        ck_assert_double_eq(score[i], logp[text[50000 + i]]);
        fw_stream_view_feed(steps, text + 50000 + i, 1, NULL);
    }
    fw_stream_view_free(whole);
    fw_stream_view_free(steps);
}
END_TEST

START_TEST(a_view_leaves_the_block_as_it_was)
{
    struct fw_stream_view *v = new_view();
    char before[FW_HASH_HEX], after[FW_HASH_HEX];
    uint64_t rng = 1;
    double logp[256];
    uint32_t ids[4];
    uint8_t byte;

    hash_block(s, block, before);
    fw_stream_view_feed(v, text, 30000, NULL);
    fw_stream_view_predict(v, logp);
    fw_stream_view_top(v, 4, ids, logp);
    for (int i = 0; i < 50; i++) {
        byte = (uint8_t)fw_stream_view_sample(v, 1, &rng);
        fw_stream_view_feed(v, &byte, 1, NULL);
    }
    fw_stream_view_free(v);
    hash_block(s, block, after);
    ck_assert_str_eq(before, after);
}
END_TEST

START_TEST(top_is_the_head_of_predict)
{
    struct fw_stream_view *v = new_view();
    double logp[256], top[300];
    uint32_t ids[300];

    fw_stream_view_predict(v, logp);
    ck_assert_uint_eq(fw_stream_view_top(v, 300, ids, top), 256);
    for (int i = 0; i < 256; i++) {
        ck_assert_double_eq(top[i], logp[ids[i]]);
        ck_assert(i == 0 || top[i] < top[i - 1] ||
                  (top[i] == top[i - 1] && ids[i] > ids[i - 1]));
    }
    ck_assert_uint_eq(fw_stream_view_top(v, 0, ids, top), 0);
    fw_stream_view_free(v);
}
END_TEST

START_TEST(temperature_zero_takes_the_likeliest)
{
    struct fw_stream_view *v = new_view();
    uint64_t rng = 7;
    uint32_t id;
    double logp;

    fw_stream_view_top(v, 1, &id, &logp);
    ck_assert_uint_eq(fw_stream_view_sample(v, 0, &rng), id);
    ck_assert_uint_eq(fw_stream_view_sample(v, 1e-30F, &rng), id);
    fw_stream_view_free(v);
}
END_TEST

START_TEST(samples_follow_the_distribution_and_the_seed)
{
    struct fw_stream_view *v = new_view();
    uint64_t rng = 7, same = 7;
    double logp, share = 0;
    uint32_t id;

    fw_stream_view_top(v, 1, &id, &logp);
    for (int i = 0; i < 2000; i++) {
        uint32_t drawn = fw_stream_view_sample(v, 1, &rng);

        ck_assert_uint_eq(drawn, fw_stream_view_sample(v, 1, &same));
        share += drawn == id;
    }
    ck_assert_double_eq_tol(share / 2000, fw_exp(logp), 0.04);
    fw_stream_view_free(v);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("view");
    TCase *tc = tcase_create("view");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, predict_sums_to_one);
    tcase_add_test(tc, learn_scores_what_predict_said_to_the_bit);
    tcase_add_test(tc, a_frozen_score_is_predict_after_each_prefix);
    tcase_add_test(tc, a_view_leaves_the_block_as_it_was);
    tcase_add_test(tc, top_is_the_head_of_predict);
    tcase_add_test(tc, temperature_zero_takes_the_likeliest);
    tcase_add_test(tc, samples_follow_the_distribution_and_the_seed);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
