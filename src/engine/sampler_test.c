/* sampler_test.c - each option against the distribution that its definition gives. */
#include "config.h"

#include "sampler.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "test_main.h"

enum { DRAWS = 40000, VOCAB = 5 };

/* ids 0 to 4: ties at the top and in the middle */
static const double p5[VOCAB] = { 0.1, 0.3, 0.3, 0.1, 0.2 };

static void put(struct sampler *sm, const double *p, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++)
        sampler_logp(sm)[i] = log(p[i]);
}

/* The draws' frequencies must be `want`, and a token of probability 0 must never come. */
static void expect_of(const struct fw_sampling *s, const uint32_t *saw, size_t saws,
                      const double want[VOCAB])
{
    struct sampler *sm;
    struct fw_err err = { 0 };
    unsigned count[VOCAB] = { 0 };
    uint64_t rng = 12345;
    size_t i;

    ck_assert_int_eq(sampling_check(s, VOCAB, &err), 0);
    ck_assert_int_eq(sampler_new(&sm, s, VOCAB, &err), 0);
    for (i = 0; i < saws; i++)
        sampler_saw(sm, saw[i]);
    for (i = 0; i < DRAWS; i++) {
        double logp = 0;
        uint32_t token;

        put(sm, p5, VOCAB);
        token = sampler_draw(sm, &rng, &logp);
        ck_assert_double_eq(logp, log(p5[token]));
        count[token]++;
    }
    for (i = 0; i < VOCAB; i++) {
        ck_assert_msg(fabs(count[i] / (double)DRAWS - want[i]) < 0.01, "token %zu: %u of %d", i,
                      count[i], DRAWS);
        ck_assert(want[i] > 0 || count[i] == 0);
    }
    sampler_free(sm);
}

static void expect(const struct fw_sampling *s, const double want[VOCAB])
{
    expect_of(s, NULL, 0, want);
}

START_TEST(a_temperature_alone_leaves_the_draw_to_the_learner)
{
    struct fw_sampling s = { .temperature = 0.7f, .top_p = 1, .repetition_penalty = 1 };

    ck_assert(sampling_is_plain(&s));
    s.min_p = 0.1;
    ck_assert(!sampling_is_plain(&s));
}
END_TEST

START_TEST(greedy_takes_the_lower_id_of_two_equals)
{
    struct fw_sampling s = { .temperature = 0, .top_k = 3 };

    expect(&s, (double[]){ 0, 1, 0, 0, 0 });
}
END_TEST

START_TEST(temperature_raises_probabilities_to_its_inverse)
{
    struct fw_bias none = { 0, 0 };
    struct fw_sampling s = { .temperature = 0.5f, .bias = &none, .biases = 1 };
    double sum = 0.01 + 0.09 + 0.09 + 0.01 + 0.04;

    expect(&s, (double[]){ 0.01 / sum, 0.09 / sum, 0.09 / sum, 0.01 / sum, 0.04 / sum });
}
END_TEST

START_TEST(top_k_keeps_the_k_largest_and_the_lower_of_equal_ids)
{
    struct fw_sampling s = { .temperature = 1, .top_k = 2 };

    expect(&s, (double[]){ 0, 0.5, 0.5, 0, 0 });
    s.top_k = 4;
    expect(&s, (double[]){ 0.1 / 0.9, 0.3 / 0.9, 0.3 / 0.9, 0, 0.2 / 0.9 });
    s.top_k = 1;
    expect(&s, (double[]){ 0, 1, 0, 0, 0 });
    s.top_k = 100;
    expect(&s, p5);
}
END_TEST

START_TEST(top_p_keeps_the_fewest_that_reach_it)
{
    struct fw_sampling s = { .temperature = 1, .top_p = 0.7 };

    expect(&s, (double[]){ 0, 0.375, 0.375, 0, 0.25 });
    s.top_p = 0.25;
    expect(&s, (double[]){ 0, 1, 0, 0, 0 });
    s.top_p = 1e-9;
    expect(&s, (double[]){ 0, 1, 0, 0, 0 });
}
END_TEST

START_TEST(top_p_is_a_part_of_what_top_k_left)
{
    struct fw_sampling s = { .temperature = 1, .top_k = 3, .top_p = 0.8 };

    expect(&s, (double[]){ 0, 0.375, 0.375, 0, 0.25 }); /* 0.6 / 0.8 is less than 0.8 */
    s.top_p = 0.7;
    expect(&s, (double[]){ 0, 0.5, 0.5, 0, 0 });
}
END_TEST

START_TEST(min_p_is_a_part_of_the_largest)
{
    struct fw_sampling s = { .temperature = 1, .min_p = 0.5 };

    expect(&s, (double[]){ 0, 0.375, 0.375, 0, 0.25 });
    s.min_p = 0.7;
    expect(&s, (double[]){ 0, 0.5, 0.5, 0, 0 });
}
END_TEST

START_TEST(a_bias_multiplies_the_odds_by_its_exponential)
{
    struct fw_bias bias[] = { { 4, 1 }, { 1, -100 } };
    struct fw_sampling s = { .temperature = 1, .bias = bias, .biases = 2 };
    double four = 0.2 * exp(1), sum = 0.1 + 0.3 + 0.1 + four;

    expect(&s, (double[]){ 0.1 / sum, 0, 0.3 / sum, 0.1 / sum, four / sum });
    s.temperature = 0;
    expect(&s, (double[]){ 0, 0, 0, 0, 1 });
}
END_TEST

START_TEST(a_repeated_token_s_logit_is_moved_by_the_penalty_once)
{
    struct fw_sampling s = { .temperature = 1, .repetition_penalty = 2, .window = 3 };
    const uint32_t saw[] = { 3, 1, 0, 1 }; /* 3 has left the window */
    double z[VOCAB], mean = 0, sum = 0;
    size_t i;

    for (i = 0; i < VOCAB; i++)
        mean += log(p5[i]) / VOCAB;
    for (i = 0; i < VOCAB; i++)
        z[i] = log(p5[i]) - mean;
    z[0] *= 2; /* below the mean */
    z[1] /= 2;
    for (i = 0; i < VOCAB; i++)
        sum += z[i] = exp(z[i]);
    for (i = 0; i < VOCAB; i++)
        z[i] /= sum;
    expect_of(&s, saw, 4, z);
}
END_TEST

START_TEST(a_seed_decides_every_draw)
{
    struct fw_sampling s = { .temperature = 1.3f, .top_k = 50, .top_p = 0.9, .min_p = 0.01 };
    struct sampler *sm;
    uint32_t first[100];
    double p[200];
    uint64_t rng;
    size_t i, round;

    for (i = 0; i < 200; i++)
        p[i] = (double)(1 + i * 7919 % 31) / 3200;
    ck_assert_int_eq(sampler_new(&sm, &s, 200, NULL), 0);
    for (round = 0; round < 2; round++) {
        rng = 77;
        for (i = 0; i < 100; i++) {
            put(sm, p, 200);
            if (round == 0)
                first[i] = sampler_draw(sm, &rng, NULL);
            else
                ck_assert_uint_eq(sampler_draw(sm, &rng, NULL), first[i]);
        }
    }
    sampler_free(sm);
}
END_TEST

START_TEST(a_distribution_without_numbers_gives_some_token)
{
    struct fw_sampling s = { .temperature = 1, .top_k = 3, .top_p = 0.9 };
    double p[VOCAB] = { NAN, NAN, NAN, NAN, NAN }, zero[VOCAB] = { 0 };
    struct sampler *sm;
    uint64_t rng = 1;

    ck_assert_int_eq(sampler_new(&sm, &s, VOCAB, NULL), 0);
    put(sm, p, VOCAB);
    ck_assert_uint_lt(sampler_draw(sm, &rng, NULL), VOCAB);
    put(sm, zero, VOCAB);
    ck_assert_uint_lt(sampler_draw(sm, &rng, NULL), VOCAB);
    sampler_free(sm);
}
END_TEST

static void refused(const struct fw_sampling *s, const char *param)
{
    struct fw_err err = { 0 };

    ck_assert_int_eq(sampling_check(s, VOCAB, &err), -1);
    ck_assert_int_eq(err.code, FW_EINVAL);
    ck_assert_str_eq(err.param, param);
}

START_TEST(what_is_out_of_its_range_is_named)
{
    static struct fw_bias many[FW_BIASES_MAX + 1];
    static const uint32_t tokens[] = { 5 };
    const struct fw_bias far = { 5, 0 }, large = { 0, 101 };
    const struct fw_stop empty = { "", 0 }, one = { "x", 1 };

    refused(&(struct fw_sampling){ .temperature = -1 }, "temperature");
    refused(&(struct fw_sampling){ .temperature = NAN }, "temperature");
    refused(&(struct fw_sampling){ .top_p = 1.1 }, "top_p");
    refused(&(struct fw_sampling){ .min_p = -0.1 }, "min_p");
    refused(&(struct fw_sampling){ .repetition_penalty = 0.001 }, "repetition_penalty");
    refused(&(struct fw_sampling){ .window = 5000 }, "repetition_window");
    refused(&(struct fw_sampling){ .bias = many, .biases = FW_BIASES_MAX + 1 }, "logit_bias");
    refused(&(struct fw_sampling){ .bias = &far, .biases = 1 }, "logit_bias");
    refused(&(struct fw_sampling){ .bias = &large, .biases = 1 }, "logit_bias");
    refused(&(struct fw_sampling){ .stop = &empty, .stops = 1 }, "stop");
    refused(&(struct fw_sampling){ .stop = &one, .stops = 5 }, "stop");
    refused(&(struct fw_sampling){ .stop_token = tokens, .stop_tokens = 1 }, "stop_tokens");
    refused(&(struct fw_sampling){ .stop_token = tokens, .stop_tokens = 17 }, "stop_tokens");
}
END_TEST

int main(void)
{
    Suite *s = suite_create("engine/sampler");
    TCase *t = tcase_create("sampler");

    tcase_set_timeout(t, 60);
    tcase_add_test(t, a_temperature_alone_leaves_the_draw_to_the_learner);
    tcase_add_test(t, greedy_takes_the_lower_id_of_two_equals);
    tcase_add_test(t, temperature_raises_probabilities_to_its_inverse);
    tcase_add_test(t, top_k_keeps_the_k_largest_and_the_lower_of_equal_ids);
    tcase_add_test(t, top_p_keeps_the_fewest_that_reach_it);
    tcase_add_test(t, top_p_is_a_part_of_what_top_k_left);
    tcase_add_test(t, min_p_is_a_part_of_the_largest);
    tcase_add_test(t, a_bias_multiplies_the_odds_by_its_exponential);
    tcase_add_test(t, a_repeated_token_s_logit_is_moved_by_the_penalty_once);
    tcase_add_test(t, a_seed_decides_every_draw);
    tcase_add_test(t, a_distribution_without_numbers_gives_some_token);
    tcase_add_test(t, what_is_out_of_its_range_is_named);
    suite_add_tcase(s, t);
    return run_suite(s);
}
