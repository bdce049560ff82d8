#include "config.h"

#include "stream_testing.h"

#include "fastweight/fmath.h"

/* ---- an expert from outside: counts of what followed the last byte */

struct toy {
    size_t counts, last; /* offsets in its block */
    struct fw_layout layout;
    struct fw_expert expert;
};

static void toy_init(const void *context, void *block)
{
    (void)context;
    *(uint8_t *)block = '.';
}

static int toy_validate(const void *context, const void *block, struct fw_err *err)
{
    (void)context;
    if (*(const uint8_t *)block == 255)
        return fw_fail(err, FW_EINVAL, "bad_state", "it ends with 255");
    return 0;
}

static void toy_logits(const void *context, const void *block, float *logits)
{
    const struct toy *t = context;
    const uint8_t last = *((const uint8_t *)block + t->last);
    const float *count = (const float *)((const char *)block + t->counts) + 256 * last;

    for (int i = 0; i < 256; i++)
        logits[i] = fw_logf(count[i] + 0.01F);
}

static void toy_learn(const void *context, void *block, const uint8_t *bytes, size_t n,
                      float *logits)
{
    const struct toy *t = context;
    uint8_t *last = (uint8_t *)block + t->last;
    float *count = (float *)((char *)block + t->counts);

    for (size_t i = 0; i < n; i++) {
        if (logits)
            toy_logits(t, block, logits + 256 * i);
        count[256 * *last + bytes[i]] += 1;
        *last = bytes[i];
    }
}

static struct toy toy;

static void setup_toy(void)
{
    const uint64_t one = 1, square[2] = { 256, 256 };
    struct fw_err err;

    start_numbers();
    fw_layout_init(&toy.layout);
    ck_assert_int_eq(fw_layout_add(&toy.layout, "last", FW_U8, 1, &one, &toy.last, &err), 0);
    ck_assert_int_eq(fw_layout_add(&toy.layout, "counts", FW_F32, 2, square, &toy.counts, &err),
                     0);
    ck_assert_int_eq(fw_layout_seal(&toy.layout, 0, &err), 0);
    toy.expert = (struct fw_expert){
        "toy", &toy.layout, &toy, toy_init, toy_validate, toy_learn, toy_logits,
    };
}

static void teardown_toy(void)
{
    fw_layout_done(&toy.layout);
}

/* ---- every plan there is */

static const struct {
    const char *expert;
    size_t state_bytes;
} plans[] = {
    { "none", MIB / 4 },   { "dense", MIB / 4 }, { "dense", MIB },
    { "dense", 16 * MIB }, { "toy", MIB },       { "toy", 4 * MIB },
};

static int plan_expert(struct fw_stream **ret, const char *expert, size_t state_bytes,
                       struct fw_err *err)
{
    struct fw_params config = { 0 }, resolved;

    ck_assert_int_eq(fw_params_set_string(&config, "expert", expert, err), 0);
    ck_assert_int_eq(fw_params_set_number(&config, "state_bytes", (double)state_bytes, err), 0);
    if (fw_stream_new(ret, "bytes", &config, &toy.expert, &resolved, err) < 0)
        return -1;
    ck_assert_str_eq(fw_params_find(&resolved, "expert")->string, expert);
    return 0;
}

static struct fw_stream *new_plan(int i)
{
    struct fw_stream *s = NULL;
    struct fw_err err;

    ck_assert_msg(plan_expert(&s, plans[i].expert, plans[i].state_bytes, &err) == 0, "%s",
                  err.msg);
    ck_assert_uint_eq(block_bytes(s), plans[i].state_bytes);
    return s;
}

static struct fw_stream_view *new_view(const struct fw_stream *s, const void *block)
{
    struct fw_stream_view *v = NULL;
    struct fw_err err;

    ck_assert_int_eq(fw_stream_view_new(&v, s, block, &err), 0);
    return v;
}

START_TEST(learn_scores_what_predict_said_to_the_bit)
{
    struct fw_stream *s = new_plan(_i);
    size_t n;
    uint8_t *text = read_sample("text.txt", &n);
    void *block = new_block(s);
    double predicted[256], fed, learned, sum;

    for (size_t i = 0; i < 3000; i += 60) {
        struct fw_stream_view *v = new_view(s, block);

        fw_stream_view_predict(v, predicted);
        fw_stream_view_feed(v, text + i, 1, &fed);
        fw_stream_view_free(v);
        sum = 0;
        for (int j = 0; j < 256; j++)
            sum += fw_exp(predicted[j]);
        ck_assert_double_eq_tol(sum, 1, 1e-9);
        fw_stream_learn(s, block, text + i, 1, &learned);
        ck_assert_double_eq(learned, predicted[text[i]]);
        ck_assert_double_eq(learned, fed);
        fw_stream_learn(s, block, text + i + 1, 59, NULL);
    }
    free(block);
    free(text);
    fw_stream_free(s);
}
END_TEST

START_TEST(the_cut_into_calls_leaves_no_trace)
{
    struct fw_stream *s = new_plan(_i);
    char whole[FW_HASH_HEX], pieces[FW_HASH_HEX];
    size_t n = 0, x = 1;
    uint8_t *text = read_sample("text.txt", &n);
    void *a = new_block(s), *b = new_block(s);

    n = 4000;
    fw_stream_learn(s, a, text, n, NULL);
    for (size_t from = 0, len; from < n; from += len) {
        x = x * 1103515245 + 12345;
        len = 1 + (x >> 16) % 70;
        len = len < n - from ? len : n - from;
        fw_stream_learn(s, b, text + from, len, NULL);
    }
    hash_block(s, a, whole);
    hash_block(s, b, pieces);
    ck_assert_str_eq(whole, pieces);
    free(a);
    free(b);
    free(text);
    fw_stream_free(s);
}
END_TEST

START_TEST(a_frozen_score_is_predict_after_each_prefix_and_changes_nothing)
{
    struct fw_stream *s = new_plan(_i);
    char before[FW_HASH_HEX], after[FW_HASH_HEX];
    size_t n;
    uint8_t *text = read_sample("text.txt", &n);
    void *block = new_block(s);
    struct fw_stream_view *whole, *steps;
    double score[100], logp[256];

    fw_stream_learn(s, block, text, 5000, NULL);
    hash_block(s, block, before);
    whole = new_view(s, block);
    steps = new_view(s, block);
    fw_stream_view_feed(whole, text + 5000, 100, score);
    for (size_t i = 0; i < 100; i++) {
        fw_stream_view_predict(steps, logp);
        ck_assert_double_eq(score[i], logp[text[5000 + i]]);
        fw_stream_view_feed(steps, text + 5000 + i, 1, NULL);
    }
    hash_block(s, block, after);
    ck_assert_str_eq(before, after);
    fw_stream_view_free(whole);
    fw_stream_view_free(steps);
    free(block);
    free(text);
    fw_stream_free(s);
}
END_TEST

START_TEST(both_levels_leave_the_same_bytes)
{
    struct fw_stream *s = new_plan(_i);
    char fast[FW_HASH_HEX], base[FW_HASH_HEX];
    size_t n;
    uint8_t *text = read_sample("text.txt", &n);
    void *a = new_block(s), *b = new_block(s);

    n = n < 20000 ? n : 20000;
    fw_stream_learn(s, a, text, n, NULL);
    ck_assert_int_eq(setenv("FW_CPU_LEVEL", "base", 1), 0);
    fw_num_init();
    fw_stream_learn(s, b, text, n, NULL);
    hash_block(s, a, fast);
    hash_block(s, b, base);
    ck_assert_str_eq(fast, base);
    free(a);
    free(b);
    free(text);
    fw_stream_free(s);
}
END_TEST

/* ---- what an expert is worth, and what is refused */

START_TEST(an_expert_lowers_the_code_length)
{
    struct fw_stream *s[3] = { NULL };
    double bits[3];
    size_t n;
    uint8_t *text = read_sample("text.txt", &n);
    struct fw_err err;
    static const char *const name[] = { "none", "dense", "toy" };

    for (int i = 0; i < 3; i++) {
        void *block;

        ck_assert_int_eq(plan_expert(&s[i], name[i], 4 * MIB, &err), 0);
        block = new_block(s[i]);
        bits[i] = learn_bits(s[i], block, text, n);
        free(block);
        fw_stream_free(s[i]);
    }
    ck_assert_double_lt(bits[1], bits[0]);
    ck_assert_double_lt(bits[2], bits[0] * 1.01); /* it knows nothing new */
    free(text);
}
END_TEST

START_TEST(the_expert_is_named_last_in_the_statistics)
{
    struct fw_stream *s = new_plan(3);
    void *block = new_block(s);
    struct fw_stream_stats st;

    fw_stream_stats(s, block, &st);
    ck_assert_uint_eq(st.heads, 15);
    ck_assert_str_eq(st.head_name[14], "dense");
    ck_assert_uint_gt(st.rows[14], 30000);
    ck_assert_double_gt(st.weight[14], 0);
    free(block);
    fw_stream_free(s);
}
END_TEST

START_TEST(an_unknown_or_too_large_expert_is_refused_by_name)
{
    struct fw_stream *s;
    struct fw_err err = { 0 };

    ck_assert_int_eq(plan_expert(&s, "nobody", MIB, &err), -1);
    ck_assert_int_eq(err.code, FW_EINVAL);
    ck_assert_str_eq(err.param, "config.expert");
    ck_assert_int_eq(plan_expert(&s, "toy", MIB / 4, &err), -1);
    ck_assert_str_eq(err.param, "config.expert");
}
END_TEST

static uint8_t *field(const struct fw_stream *s, void *block, const char *name)
{
    const struct fw_field *f = fw_layout_find(fw_stream_layout(s), name);

    ck_assert_msg(f != NULL, "no field %s", name);
    return (uint8_t *)block + f->offset;
}

START_TEST(a_nested_block_keeps_its_offsets_and_its_own_checks)
{
    struct fw_stream *s = new_plan(4);
    void *block = new_block(s);
    struct fw_err err;

    ck_assert_int_eq(field(s, block, "expert.last")[0], '.');
    ck_assert_ptr_eq(field(s, block, "expert.counts"),
                     field(s, block, "expert.last") + toy.counts);
    ck_assert_int_eq(fw_stream_validate(s, block, &err), 0);
    field(s, block, "expert.last")[0] = 255;
    ck_assert_int_eq(fw_stream_validate(s, block, &err), -1);
    free(block);
    fw_stream_free(s);
}
END_TEST

START_TEST(dense_values_must_be_finite_and_bounded)
{
    static const float bad[] = { __builtin_nanf(""), __builtin_inff(), -1e9F };
    static const char *const name[] = { "dense.rows", "dense.out", "dense.bias", "dense.sums" };
    struct fw_stream *s = new_plan(2);
    void *block = new_block(s);
    struct fw_err err;

    ck_assert_int_eq(fw_stream_validate(s, block, &err), 0);
    for (size_t i = 0; i < 3; i++)
        for (size_t j = 0; j < 4; j++) {
            memcpy(field(s, block, name[j]) + 68, &bad[i], 4);
            ck_assert_int_eq(fw_stream_validate(s, block, &err), -1);
            ck_assert_str_eq(err.param, name[j]);
            memset(field(s, block, name[j]) + 68, 0, 4);
            ck_assert_int_eq(fw_stream_validate(s, block, &err), 0);
        }
    free(block);
    fw_stream_free(s);
}
END_TEST

/* The largest values that validate, with signs from a hash. */
START_TEST(a_block_at_the_bounds_learns_on)
{
    static const char *const name[] = { "dense.rows", "dense.out", "dense.bias" };
    struct fw_stream *s = new_plan(2);
    size_t n;
    uint8_t *text = read_sample("text.txt", &n);
    void *block = new_block(s);
    struct fw_err err;
    uint64_t x = 1;
    double bits;

    for (size_t j = 0; j < 3; j++) {
        const struct fw_field *f = fw_layout_find(fw_stream_layout(s), name[j]);
        float *value = (float *)(void *)field(s, block, name[j]);

        for (size_t i = 0; i < f->bytes / 4; i++) {
            x = x * 6364136223846793005u + 1442695040888963407u;
            value[i] = x >> 63 ? 0x1p26F : -0x1p26F;
        }
    }
    ck_assert_int_eq(fw_stream_validate(s, block, &err), 0);
    bits = learn_bits(s, block, text, 20000);
    ck_assert(bits > 0 && bits < 20);
    ck_assert_msg(fw_stream_validate(s, block, &err) == 0, "%s", err.msg);
    free(block);
    free(text);
    fw_stream_free(s);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("expert");
    TCase *tc = tcase_create("expert");
    const int count = (int)(sizeof plans / sizeof plans[0]);

    tcase_add_checked_fixture(tc, setup_toy, teardown_toy);
    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, learn_scores_what_predict_said_to_the_bit, 0, count);
    tcase_add_loop_test(tc, the_cut_into_calls_leaves_no_trace, 0, count);
    tcase_add_loop_test(tc, a_frozen_score_is_predict_after_each_prefix_and_changes_nothing, 0,
                        count);
    tcase_add_loop_test(tc, both_levels_leave_the_same_bytes, 0, count);
    tcase_add_test(tc, an_expert_lowers_the_code_length);
    tcase_add_test(tc, the_expert_is_named_last_in_the_statistics);
    tcase_add_test(tc, an_unknown_or_too_large_expert_is_refused_by_name);
    tcase_add_test(tc, a_nested_block_keeps_its_offsets_and_its_own_checks);
    tcase_add_test(tc, dense_values_must_be_finite_and_bounded);
    tcase_add_test(tc, a_block_at_the_bounds_learns_on);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
