#include "config.h"

#include "test_main.h"

#include <pthread.h>

#include "fastweight/fmath.h"
#include "fastweight/hash.h"
#include "models_testing.h"

#define N 150

static struct testing *gated(void)
{
    return testing_deltanet(true);
}

static struct testing *plain(void)
{
    return testing_deltanet(false);
}

static struct testing *rwkv(void)
{
    return testing_rwkv7(true);
}

static struct testing *rwkv_fla(void)
{
    return testing_rwkv7(false);
}

static struct testing *gpt(void)
{
    return testing_gpt2(false);
}

static struct testing *gpt_hf(void)
{
    return testing_gpt2(true);
}

/* hash: of the block after N tokens, the same with every compiler and level. */
static const struct {
    struct testing *(*make)(void);
    uint64_t hash;
} archs[] = {
    { gated, 0x377cb8d853c481a6u }, { plain, 0xd9ed31b5128924abu },
    { rwkv, 0x2e86ccab1fe9af7cu },  { rwkv_fla, 0x24be782f6ca367a1u },
    { gpt, 0x4a1173f37a34481eu },   { gpt_hf, 0x4a1173f37a34481eu },
};

#define ARCHS (sizeof archs / sizeof archs[0])

struct run { /* a model with a block that was fed N tokens in one call */
    struct testing *t;
    struct fw_checkpoint *c;
    struct fw_model *m;
    size_t bytes;
    void *block;
    uint32_t token[N];
    double logp[N];
};

static struct run start(struct testing *t, const char *rule)
{
    struct run r = { .t = t };

    r.c = testing_open(t);
    r.m = testing_plan(r.c, rule);
    r.bytes = fw_model_layout(r.m)->block_bytes;
    r.block = testing_block(r.m);
    testing_tokens(r.token, N, fw_model_vocab(r.m));
    fw_model_learn(r.m, r.block, r.token, N, r.logp);
    return r;
}

static void stop(struct run *r)
{
    free(r->block);
    fw_model_free(r->m);
    fw_checkpoint_close(r->c);
    testing_remove(r->t);
}

START_TEST(a_stream_cut_anywhere_gives_the_same_block_and_the_same_surprise)
{
    static const size_t step[] = { 1, 2, 31, 33, 64, 149 };
    struct run r = start(archs[_i].make(), NULL);

    for (size_t i = 0; i < sizeof step / sizeof step[0]; i++) {
        void *block = testing_block(r.m);
        double logp[N];

        for (size_t at = 0, n; at < N; at += n) {
            n = N - at < step[i] ? N - at : step[i];
            fw_model_learn(r.m, block, r.token + at, n, logp + at);
        }
        ck_assert_int_eq(memcmp(block, r.block, r.bytes), 0);
        ck_assert_int_eq(memcmp(logp, r.logp, sizeof logp), 0);
        free(block);
    }
    stop(&r);
}
END_TEST

START_TEST(the_bytes_are_those_of_every_compiler_and_level)
{
    struct run r = start(archs[_i].make(), NULL);

    ck_assert_uint_eq(fw_hash64(r.block, r.bytes) ^ fw_hash64(r.logp, sizeof r.logp),
                      archs[_i].hash);
    stop(&r);
}
END_TEST

START_TEST(weights_of_half_precision_run_as_the_floats_they_widen_to)
{
    static const enum fw_dtype types[] = { FW_F16, FW_BF16 };

    for (size_t i = 0; i < 2; i++) {
        struct testing *half = testing_deltanet(true), *full = testing_deltanet(true);
        struct run a, b;

        for (size_t w = 0; w < full->tensors.count; w++) {
            float *x = full->data[w];
            uint16_t *h = (uint16_t *)half->data[w];

            half->item[w].dtype = types[i];
            half->item[w].bytes /= 2;
            for (size_t j = 0; j < full->item[w].bytes / sizeof *x; j++) {
                h[j] = types[i] == FW_F16 ? fw_to_f16(x[j]) : fw_to_bf16(x[j]);
                x[j] = types[i] == FW_F16 ? fw_from_f16(h[j]) : fw_from_bf16(h[j]);
            }
        }
        a = start(half, NULL);
        b = start(full, NULL);
        ck_assert_int_eq(memcmp(a.block, b.block, a.bytes), 0);
        ck_assert_uint_lt(fw_checkpoint_shape(a.c)->weight_bytes,
                          fw_checkpoint_shape(b.c)->weight_bytes);
        stop(&a);
        stop(&b);
    }
}
END_TEST

START_TEST(both_namings_of_an_architecture_are_the_same_model)
{
    struct run a = start(testing_gpt2(false), NULL), b = start(testing_gpt2(true), NULL);

    ck_assert_int_eq(memcmp(a.block, b.block, a.bytes), 0);
    stop(&a);
    stop(&b);
    a = start(testing_rwkv7(true), NULL); /* eps: 64e-5 there, 8 * 8e-5 here; LN 1e-5, 8e-5 */
    b = start(testing_rwkv7(false), NULL);
    for (size_t i = 0; i < N; i++)
        ck_assert_double_eq_tol(a.logp[i], b.logp[i], 0.05);
    stop(&a);
    stop(&b);
}
END_TEST

START_TEST(predictions_are_what_learning_says_and_sum_to_one)
{
    struct run r = start(archs[_i].make(), NULL);
    uint32_t vocab = fw_model_vocab(r.m);
    void *block = testing_block(r.m);
    double logp[64], sum;
    float told[40 * 64], logits[64];
    struct fw_model_part part = { .block = testing_block(r.m), .tokens = r.token, .n = 40 };

    part.logits = told;
    fw_model_learn_many(r.m, &part, 1);
    free(part.block);
    for (size_t t = 0; t < 40; t++) {
        fw_model_logits(r.m, block, logits);
        ck_assert_mem_eq(logits, told + t * vocab, vocab * sizeof *logits);
        fw_model_predict(r.m, block, logp);
        ck_assert_uint_eq(fw_bits(logp[r.token[t]]), fw_bits(r.logp[t]));
        sum = 0;
        for (uint32_t i = 0; i < vocab; i++)
            sum += fw_exp(logp[i]);
        ck_assert_double_eq_tol(sum, 1, 1e-12);
        fw_model_learn(r.m, block, r.token + t, 1, NULL);
    }
    free(block);
    stop(&r);
}
END_TEST

START_TEST(before_the_first_token_everything_is_equally_likely)
{
    struct run r = start(archs[_i].make(), NULL);
    uint32_t vocab = fw_model_vocab(r.m);
    void *block = testing_block(r.m);
    double logp[64];
    float logits[64];

    fw_model_logits(r.m, block, logits);
    fw_model_predict(r.m, block, logp);
    for (uint32_t i = 0; i < vocab; i++) {
        ck_assert(logits[i] == 0);
        ck_assert_double_eq_tol(logp[i], -fw_log(vocab), 1e-15);
    }
    ck_assert(r.logp[0] == -fw_log(vocab));
    ck_assert_int_eq(fw_model_validate(r.m, block, NULL), 0);
    free(block);
    stop(&r);
}
END_TEST

/* One wrong byte or float at the first element of a field; validate must name it. */
static void must_name(const struct run *r, const char *field, const void *wrong, size_t bytes)
{
    const struct fw_field *f = fw_layout_find(fw_model_layout(r->m), field);
    char old[8];
    struct fw_err err = { .msg = "" };

    ck_assert_ptr_nonnull(f);
    memcpy(old, (char *)r->block + f->offset, bytes);
    memcpy((char *)r->block + f->offset, wrong, bytes);
    ck_assert_msg(fw_model_validate(r->m, r->block, &err) == -1, "%s", field);
    ck_assert_int_eq(err.code, FW_EINVAL);
    ck_assert_str_eq(err.param, field);
    memcpy((char *)r->block + f->offset, old, bytes);
    ck_assert_int_eq(fw_model_validate(r->m, r->block, NULL), 0);
}

START_TEST(a_foreign_block_is_checked_to_the_last_float)
{
    struct run r = start(archs[_i].make(), NULL);
    const float nan = __builtin_nanf(""), big = 1e30f;
    const uint64_t many = UINT64_MAX, other = 3;
    const struct fw_layout *l = fw_model_layout(r.m);

    ck_assert_int_eq(fw_model_validate(r.m, r.block, NULL), 0);
    must_name(&r, "hidden", &nan, 4);
    must_name(&r, "hidden", &big, 4);
    must_name(&r, "tokens", &many, 8);
    must_name(&r, "blocks.0.counters", &other, 8);
    must_name(&r, "blocks.1.counters", &many, 8);
    for (size_t i = 0; i < l->count; i++)
        if (l->field[i].dtype == FW_F32)
            must_name(&r, l->field[i].name, &nan, 4);
    ((char *)r.block)[r.bytes - 1] = 1; /* padding */
    ck_assert_int_eq(fw_model_validate(r.m, r.block, NULL), -1);
    stop(&r);
}
END_TEST

START_TEST(a_full_context_is_emptied_and_begins_again)
{
    struct run r = start(testing_gpt2(false), NULL);
    void *block = testing_block(r.m), *fresh = testing_block(r.m);
    double logp[64], again[64];

    fw_model_learn(r.m, block, r.token, 12, NULL); /* the context is full */
    fw_model_learn(r.m, block, r.token + 12, 5, NULL);
    fw_model_learn(r.m, fresh, r.token + 12, 5, NULL);
    fw_model_predict(r.m, block, logp);
    fw_model_predict(r.m, fresh, again);
    ck_assert_int_eq(memcmp(logp, again, 19 * sizeof *logp), 0);
    free(block);
    free(fresh);
    stop(&r);
}
END_TEST

START_TEST(a_context_may_be_shorter_than_the_checkpoint_allows)
{
    struct testing *t = testing_gpt2(false);
    struct fw_checkpoint *c = testing_open(t);
    struct fw_params p = { 0 }, full;
    struct fw_model *m;
    struct fw_err err;

    fw_params_set_number(&p, "max_context", 5, NULL);
    ck_assert_int_eq(fw_model_new(&m, c, &p, &full, &err), 0);
    ck_assert(fw_params_find(&full, "max_context")->number == 5);
    ck_assert_str_eq(fw_params_find(&full, "memory")->string, "softmax");
    fw_model_free(m);
    fw_params_set_number(&p, "max_context", 13, NULL);
    ck_assert_int_eq(fw_model_new(&m, c, &p, &full, &err), -1);
    ck_assert_str_eq(err.param, "config.max_context");
    fw_checkpoint_close(c);
    testing_remove(t);
    t = testing_deltanet(true); /* which has no such limit */
    c = testing_open(t);
    ck_assert_int_eq(fw_model_new(&m, c, &p, &full, &err), -1);
    ck_assert_str_eq(err.param, "config.max_context");
    fw_checkpoint_close(c);
    testing_remove(t);
}
END_TEST

static bool takes(struct testing *t, const char *rule)
{
    struct fw_checkpoint *c = testing_open(t);
    struct fw_params p = { 0 }, full;
    struct fw_model *m = NULL;
    struct fw_err err = { .param = "" };
    int rc;

    fw_params_set_string(&p, "memory", rule, NULL);
    rc = fw_model_new(&m, c, &p, &full, &err);
    if (rc < 0)
        ck_assert_str_eq(err.param, "config.memory");
    fw_model_free(m);
    fw_checkpoint_close(c);
    testing_remove(t);
    return rc == 0;
}

START_TEST(another_rule_is_taken_where_the_layer_makes_what_it_needs)
{
    ck_assert(takes(testing_deltanet(true), "delta"));
    ck_assert(takes(testing_deltanet(true), "softmax"));
    ck_assert(!takes(testing_deltanet(true), "wkv7")); /* needs a, b, w */
    ck_assert(!takes(testing_deltanet(true), "kda"));  /* a gate per row */
    ck_assert(takes(testing_deltanet(false), "gated_delta"));
    ck_assert(takes(testing_rwkv7(true), "dplr"));
    ck_assert(takes(testing_rwkv7(true), "delta"));
    ck_assert(takes(testing_gpt2(true), "window"));
    ck_assert(!takes(testing_gpt2(true), "delta_product")); /* several pairs a token */
    ck_assert(!takes(testing_gpt2(true), "nonsense"));
}
END_TEST

START_TEST(every_rule_that_is_taken_stays_finite_and_is_the_same_however_it_is_cut)
{
    for (size_t i = 0; fw_memory_rule(i); i++) {
        struct run r;
        void *block;

        if (!takes(archs[_i].make(), fw_memory_rule(i)))
            continue;
        r = start(archs[_i].make(), fw_memory_rule(i));
        block = testing_block(r.m);
        for (size_t t = 0; t < N; t += 10)
            fw_model_learn(r.m, block, r.token + t, 10, NULL);
        ck_assert_msg(memcmp(block, r.block, r.bytes) == 0, "%s", fw_memory_rule(i));
        ck_assert_msg(fw_model_validate(r.m, block, NULL) == 0, "%s", fw_memory_rule(i));
        for (size_t t = 0; t < N; t++)
            ck_assert(__builtin_isfinite(r.logp[t]));
        free(block);
        stop(&r);
    }
}
END_TEST

START_TEST(weights_that_overflow_give_no_broken_block)
{
    struct testing *t = archs[_i].make();
    struct run r;

    for (size_t w = 0; w < t->tensors.count; w++)
        for (size_t i = 0; i < t->item[w].bytes / sizeof(float); i++)
            t->data[w][i] *= w % 3 ? 1e30f : -3e37f;
    r = start(t, NULL);
    for (size_t i = 0; i < N; i++)
        ck_assert(__builtin_isfinite(r.logp[i]));
    ck_assert_int_eq(fw_model_validate(r.m, r.block, NULL), 0);
    stop(&r);
}
END_TEST

struct worker {
    const struct run *r;
    void *block;
};

static void *work(void *arg)
{
    struct worker *w = arg;

    fw_num_thread();
    fw_model_learn(w->r->m, w->block, w->r->token, N, NULL);
    return NULL;
}

START_TEST(threads_share_a_plan)
{
    struct run r = start(archs[_i].make(), NULL);
    struct worker w[4];
    pthread_t id[4];

    for (size_t i = 0; i < 4; i++) {
        w[i] = (struct worker){ &r, testing_block(r.m) };
        ck_assert_int_eq(pthread_create(&id[i], NULL, work, &w[i]), 0);
    }
    for (size_t i = 0; i < 4; i++) {
        pthread_join(id[i], NULL);
        ck_assert_int_eq(memcmp(w[i].block, r.block, r.bytes), 0);
        free(w[i].block);
    }
    stop(&r);
}
END_TEST

/* A random number of the tokens of each of a random choice of sessions, until all have N. */
START_TEST(sessions_that_share_passes_end_as_if_each_were_alone)
{
    enum { SESSIONS = 40 };
    static const size_t most[] = { 2, 9, 70 };
    struct run r = start(archs[_i].make(), NULL);
    uint64_t seed = 1;

    for (size_t k = 0; k < sizeof most / sizeof most[0]; k++) {
        struct fw_model_part part[SESSIONS];
        void *block[SESSIONS];
        double logp[SESSIONS][N];
        size_t at[SESSIONS] = { 0 }, parts;

        for (size_t i = 0; i < SESSIONS; i++)
            block[i] = testing_block(r.m);
        do {
            parts = 0;
            for (size_t i = 0; i < SESSIONS; i++) {
                size_t n =
                    (size_t)((testing_random(&seed) * 0.5f + 0.5f) * (float)(most[k] + 1));

                n = n < N - at[i] ? n : N - at[i];
                if (at[i] < N && testing_random(&seed) > -0.5f)
                    part[parts++] = (struct fw_model_part){
                        .block = block[i],
                        .tokens = r.token + at[i],
                        .n = n,
                        .logp = i % 3 ? logp[i] + at[i] : NULL,
                    };
                else
                    n = 0;
                at[i] += n;
            }
            fw_model_learn_many(r.m, part, parts);
            for (size_t i = 0; i < parts; i++)
                ck_assert_uint_eq(part[i].n, 0);
            parts = 0;
            for (size_t i = 0; i < SESSIONS; i++)
                parts += at[i] < N;
        } while (parts > 0);
        for (size_t i = 0; i < SESSIONS; i++) {
            ck_assert_int_eq(memcmp(block[i], r.block, r.bytes), 0);
            ck_assert(i % 3 == 0 || memcmp(logp[i], r.logp, sizeof r.logp) == 0);
            free(block[i]);
        }
    }
    stop(&r);
}
END_TEST

START_TEST(a_head_is_inspected_by_layer)
{
    struct run r = start(archs[_i].make(), NULL);
    struct fw_model_layer_stats s;

    for (uint32_t layer = 0; layer < 2; layer++)
        for (uint32_t head = 0; head < 2; head++) {
            ck_assert_int_eq(fw_model_layer_stats(r.m, r.block, layer, head, &s, NULL), 0);
            ck_assert(s.nonfinite == 0 && s.update_norm > 0);
            ck_assert(s.norm > 0 || strcmp(r.c->arch->rule, "softmax") == 0);
        }
    ck_assert_int_eq(fw_model_layer_stats(r.m, r.block, 2, 0, &s, NULL), -1);
    ck_assert_int_eq(fw_model_layer_stats(r.m, r.block, 0, 2, &s, NULL), -1);
    stop(&r);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("model/model");
    TCase *tc = tcase_create("model");

    fw_num_init();
    fw_num_thread();
    tcase_set_timeout(tc, 300);
#define EACH(test) tcase_add_loop_test(tc, test, 0, (int)ARCHS)
    EACH(a_stream_cut_anywhere_gives_the_same_block_and_the_same_surprise);
    EACH(the_bytes_are_those_of_every_compiler_and_level);
    tcase_add_test(tc, weights_of_half_precision_run_as_the_floats_they_widen_to);
    tcase_add_test(tc, both_namings_of_an_architecture_are_the_same_model);
    EACH(predictions_are_what_learning_says_and_sum_to_one);
    EACH(before_the_first_token_everything_is_equally_likely);
    EACH(a_foreign_block_is_checked_to_the_last_float);
    tcase_add_test(tc, a_full_context_is_emptied_and_begins_again);
    tcase_add_test(tc, a_context_may_be_shorter_than_the_checkpoint_allows);
    tcase_add_test(tc, another_rule_is_taken_where_the_layer_makes_what_it_needs);
    EACH(every_rule_that_is_taken_stays_finite_and_is_the_same_however_it_is_cut);
    EACH(weights_that_overflow_give_no_broken_block);
    EACH(threads_share_a_plan);
    EACH(sessions_that_share_passes_end_as_if_each_were_alone);
    EACH(a_head_is_inspected_by_layer);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
