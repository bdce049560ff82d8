#include "config.h"

#include "test_main.h"

#include <math.h>

#include "cache.h"
#include "rules_testing.h"

#define D     16
#define N     8
#define PAIRS 120

static struct fw_memory *open_rule(const char *rule, size_t cache)
{
    struct setup s = {
        rule, 2, D, D, { { "key_norm", "l2", 0 }, { "cache", NULL, (double)cache } }
    };
    struct fw_memory *m;
    struct fw_err err = { .msg = "" };

    ck_assert_msg(new_memory(&m, &s, rule, &err) == 0, "%s", err.msg);
    return m;
}

struct stream { /* random pairs of two heads */
    struct fw_memory *m;
    void *block;
    struct many b;
    double residual[PAIRS * 2];
};

static void open_stream(struct stream *s, const char *rule, size_t cache)
{
    s->m = open_rule(rule, cache);
    s->block = new_block(s->m);
    make_many(&s->b, s->m, PAIRS, false, 21);
    fw_memory_learn(s->m, s->block, &s->b.in, 0, PAIRS, s->residual, NULL);
}

static void close_stream(struct stream *s)
{
    free_many(&s->b);
    free(s->block);
    fw_memory_free(s->m);
}

/* |v - recall(k)| of pair t, head 0. */
static double miss(const struct stream *s, size_t t)
{
    struct fw_tensor q = s->b.item[0];
    struct fw_tensors in = { 1, &q };
    float o[2 * D];
    double sum = 0;

    snprintf(q.name, sizeof q.name, "queries");
    fw_memory_recall(s->m, s->block, &in, t, 1, o);
    for (size_t j = 0; j < D; j++)
        sum += pow((double)o[j] - (double)s->b.data[1][t * 2 * D + j], 2);
    return sqrt(sum);
}

/* How many pairs of head 0 surprised more than pair t (beta is 1 here). */
static size_t rank_of(const struct stream *s, size_t t)
{
    size_t more = 0;

    for (size_t i = 0; i < PAIRS; i++)
        more += s->residual[i * 2] > s->residual[t * 2];
    return more;
}

START_TEST(the_most_surprising_pairs_are_recalled_exactly)
{
    static const char *const rules[] = { "delta", "linear", "mesa", "huber", "log_linear" };
    struct stream with, without;

    open_stream(&with, rules[_i], N);
    open_stream(&without, rules[_i], 0);
    for (size_t t = 0; t < PAIRS - 1; t++)
        if (rank_of(&with, t) < N) {
            ck_assert_double_lt(miss(&with, t), 1e-2);
            ck_assert_double_gt(miss(&without, t), 0.1);
        }
    close_stream(&with);
    close_stream(&without);
}
END_TEST

START_TEST(a_rule_learns_the_same_beside_a_cache)
{
    struct stream with, without;
    const struct fw_layout *l;

    open_stream(&with, fw_rules[_i]->name, N);
    open_stream(&without, fw_rules[_i]->name, 0);
    l = fw_memory_layout(without.m);
    ck_assert_mem_eq(with.residual, without.residual, sizeof with.residual);
    for (size_t i = 0; i < l->count; i++)
        ck_assert_mem_eq(field(with.m, with.block, l->field[i].name),
                         (char *)without.block + l->field[i].offset, l->field[i].bytes);
    close_stream(&with);
    close_stream(&without);
}
END_TEST

static void learn_one(const struct fw_memory *m, void *block, const float *k, float v)
{
    struct many b;

    make_many(&b, m, 1, false, 5);
    for (size_t i = 0; i < 2 * D; i++) {
        b.data[0][i] = k[i % D];
        b.data[1][i] = v;
    }
    fw_memory_learn(m, block, &b.in, 0, 1, NULL, NULL);
    free_many(&b);
}

START_TEST(the_newest_value_of_a_key_takes_the_place_of_the_older)
{
    struct fw_memory *m = open_rule("linear", N);
    void *block = new_block(m);
    float k[D] = { 1 };
    struct fw_memory_about about;

    learn_one(m, block, k, 5);
    k[1] = 0.01f;
    learn_one(m, block, k, 1);
    fw_memory_about(m, block, &about);
    ck_assert_uint_eq(about.kept_pairs, 1);
    ck_assert_float_eq(((float *)field(m, block, "cache_v"))[0], 1);
    k[1] = 1;
    learn_one(m, block, k, 2);
    fw_memory_about(m, block, &about);
    ck_assert_uint_eq(about.kept_pairs, 2);
    free(block);
    fw_memory_free(m);
}
END_TEST

START_TEST(a_query_far_from_every_cached_key_reads_the_rule_alone)
{
    struct fw_memory *m = open_rule("delta", N);
    void *block = new_block(m);
    float k[D] = { 1 }, q[2 * D] = { 0, 1 }, alone[D], both[D];
    struct fw_reads r = { .n = 1, .q = q, .q_stride = D, .o = alone, .o_stride = D };

    for (size_t i = 0; i < 4; i++) {
        k[1] = 0.3f;
        k[2 + i] = 1;
        learn_one(m, block, k, (float)i + 1);
    }
    m->rule->read(m, block, 0, &r);
    memcpy(both, alone, sizeof both);
    r.o = both;
    fw_cache_read(m, block, 0, &r);
    for (size_t j = 0; j < D; j++)
        ck_assert_float_eq_tol(both[j], alone[j], 1e-3f);
    free(block);
    fw_memory_free(m);
}
END_TEST

static double length(const float *x, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += (double)x[i] * (double)x[i];
    return sqrt(sum);
}

START_TEST(an_edit_is_exact_and_drops_what_the_cache_holds_there)
{
    struct fw_memory *m = open_rule("linear", N);
    void *block = new_block(m);
    float k[2 * D] = { 1 }, before[2 * D], after[2 * D];
    struct fw_tensor key = { .name = "forget.key",
                             .dtype = FW_F32,
                             .ndim = 2,
                             .shape = { 2, D },
                             .data = k,
                             .bytes = sizeof k };
    struct fw_tensors in = { 1, &key };
    struct fw_memory_edited edited = { .before = before, .after = after };
    struct fw_memory_about about;

    k[D] = 1;
    learn_one(m, block, k, 3);
    k[0] = 0;
    k[1] = 1;
    learn_one(m, block, k, 4);
    k[0] = 1;
    k[1] = 0;
    ck_assert_int_eq(fw_memory_check_edit(m, &in, NULL), 0);
    fw_memory_edit(m, block, &in, NULL, &edited);
    ck_assert_float_eq_tol(before[0], 3, 1e-2f);
    ck_assert_double_lt(length(after, 2 * D), 1e-4);
    fw_memory_about(m, block, &about);
    ck_assert_uint_eq(about.kept_pairs, 1);
    ck_assert_int_eq(fw_memory_validate(m, block, NULL), 0);
    free(block);
    fw_memory_free(m);
}
END_TEST

START_TEST(used_bytes_grow_until_the_cache_is_full)
{
    struct stream s;
    struct fw_memory_about about;
    size_t all;

    open_stream(&s, "delta", N);
    all = fw_memory_layout(s.m)->block_bytes;
    fw_memory_about(s.m, s.block, &about);
    ck_assert_uint_eq(about.kept_pairs, N);
    ck_assert_uint_eq(about.used_bytes, all);
    fw_memory_init(s.m, s.block);
    fw_memory_about(s.m, s.block, &about);
    ck_assert_uint_eq(about.kept_pairs, 0);
    ck_assert_uint_eq(about.used_bytes, all - 2 * N * (2 * D * sizeof(float) + 8));
    close_stream(&s);
}
END_TEST

START_TEST(places_and_scores_of_a_foreign_block_are_checked)
{
    struct fw_memory *m = open_rule("delta", N);
    void *block = new_block(m);
    float k[D] = { 1 };
    double *score;

    learn_one(m, block, k, 5);
    score = field(m, block, "cache_score");
    ck_assert_int_eq(fw_memory_validate(m, block, NULL), 0);
    score[3] = 1; /* behind a free place */
    ck_assert_int_eq(fw_memory_validate(m, block, NULL), -1);
    score[3] = 0;
    ((float *)field(m, block, "cache_v"))[D] = 1; /* in a free place */
    ck_assert_int_eq(fw_memory_validate(m, block, NULL), -1);
    ((float *)field(m, block, "cache_v"))[D] = 0;
    score[0] = -1;
    ck_assert_int_eq(fw_memory_validate(m, block, NULL), -1);
    free(block);
    fw_memory_free(m);
}
END_TEST

START_TEST(a_cache_and_scaled_queries_make_no_sense_together)
{
    struct setup s = {
        "delta", 1, D, D, { { "cache", NULL, 4 }, { "query_scale", NULL, 0.5 } }
    };
    struct fw_memory *m;
    struct fw_err err;

    ck_assert_int_eq(new_memory(&m, &s, "delta", &err), -1);
    ck_assert_str_eq(err.param, "config.cache");
    s.config[0].key = "cache_bandwidth";
    s.config[0].number = 1;
    s.config[1].key = NULL;
    ck_assert_int_eq(new_memory(&m, &s, "delta", &err), -1);
    ck_assert_str_eq(err.param, "config.cache_bandwidth");
}
END_TEST

int main(void)
{
    Suite *s = suite_create("memory/cache");
    TCase *tc = tcase_create("cache");

    fw_num_init();
    fw_num_thread();
    tcase_add_loop_test(tc, the_most_surprising_pairs_are_recalled_exactly, 0, 5);
    tcase_add_loop_test(tc, a_rule_learns_the_same_beside_a_cache, 0, rule_count());
    tcase_add_test(tc, the_newest_value_of_a_key_takes_the_place_of_the_older);
    tcase_add_test(tc, a_query_far_from_every_cached_key_reads_the_rule_alone);
    tcase_add_test(tc, an_edit_is_exact_and_drops_what_the_cache_holds_there);
    tcase_add_test(tc, used_bytes_grow_until_the_cache_is_full);
    tcase_add_test(tc, places_and_scores_of_a_foreign_block_are_checked);
    tcase_add_test(tc, a_cache_and_scaled_queries_make_no_sense_together);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
