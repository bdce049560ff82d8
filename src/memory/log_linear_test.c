#include "config.h"

#include "test_main.h"

#include <math.h>

#include "rules_testing.h"

#define D   4
#define D_V 3

static struct fw_memory *open_levels(size_t levels)
{
    struct setup s = { "log_linear", 1, D, D_V, { { "levels", NULL, (double)levels } } };
    struct fw_memory *m;
    struct fw_err err = { .msg = "" };

    ck_assert_msg(new_memory(&m, &s, "log_linear", &err) == 0, "%s", err.msg);
    return m;
}

/* Which bucket token j lies in, seen from token i: Fenwick's, cut at the last level. */
static size_t level_of(size_t i, size_t j, size_t levels)
{
    for (size_t l = 1, end = i; j < i && l < 32; l++) {
        size_t size = (size_t)1 << (l - 1);

        if (!(i & size))
            continue;
        if (j >= end - size)
            return l < levels - 1 ? l : levels - 1;
        end -= size;
    }
    return 0;
}

/* The definition, token by token, in double. */
static void naive(const struct many *b, size_t i, size_t levels, double *o)
{
    const float *k = b->data[0], *v = b->data[1], *q = b->data[2], *g = b->data[3];
    const float *scale = b->data[4] + i * levels;

    memset(o, 0, D_V * sizeof *o);
    for (size_t j = 0; j <= i; j++) {
        double w = 0, log_g = 0;

        for (size_t d = 0; d < D; d++)
            w += (double)q[i * D + d] * (double)k[j * D + d];
        for (size_t t = j + 1; t <= i; t++)
            log_g += (double)g[t];
        w *= exp(log_g) * (double)scale[level_of(i, j, levels)];
        for (size_t d = 0; d < D_V; d++)
            o[d] += w * (double)v[j * D_V + d];
    }
}

START_TEST(a_read_is_the_definition_with_few_levels_and_with_many)
{
    static const size_t counts[] = { 2, 3, 5, 32 };
    size_t levels = counts[_i];
    struct fw_memory *m = open_levels(levels);
    void *block = new_block(m);
    float values[TOKENS * D_V];
    struct many b;
    double want[D_V];

    make_many(&b, m, TOKENS, true, 3);
    for (size_t t = 0; t < TOKENS; t++) /* so that old buckets count */
        b.data[3][t] *= 0.05f;
    fw_memory_learn(m, block, &b.in, 0, TOKENS, NULL, values);
    for (size_t t = 0; t < TOKENS; t++) {
        naive(&b, t, levels, want);
        for (size_t d = 0; d < D_V; d++)
            ck_assert_double_eq_tol((double)values[t * D_V + d], want[d], 1e-5);
    }
    free_many(&b);
    free(block);
    fw_memory_free(m);
}
END_TEST

START_TEST(used_bytes_follow_the_bits_of_the_count)
{
    struct fw_memory *m = open_levels(32);
    void *block = new_block(m);
    size_t none = fw_memory_layout(m)->block_bytes - 31 * D * D_V * sizeof(float);
    struct fw_memory_about about;
    struct many b;

    make_many(&b, m, 70, false, 3);
    for (size_t t = 0; t < 70; t++) {
        fw_memory_learn(m, block, &b.in, t, 1, NULL, NULL);
        fw_memory_about(m, block, &about);
        ck_assert_uint_eq(about.used_bytes,
                          none + (size_t)__builtin_popcountll(t) * D * D_V * sizeof(float));
    }
    free_many(&b);
    free(block);
    fw_memory_free(m);
}
END_TEST

START_TEST(the_state_is_what_a_recall_reads)
{
    struct fw_memory *m = open_levels(6);
    void *block = new_block(m);
    float S[D * D_V], o[D_V], q[D] = { 0 };
    struct fw_reads r = { .n = 1, .q = q, .q_stride = D, .o = o, .o_stride = D_V };
    struct many b;

    make_many(&b, m, 45, true, 3);
    fw_memory_learn(m, block, &b.in, 0, 45, NULL, NULL);
    fw_memory_state(m, block, S);
    for (size_t i = 0; i < D; i++) {
        q[i] = 1;
        m->rule->read(m, block, 0, &r);
        for (size_t j = 0; j < D_V; j++)
            ck_assert_float_eq_tol(o[j], S[i * D_V + j], 1e-6f);
        q[i] = 0;
    }
    free_many(&b);
    free(block);
    fw_memory_free(m);
}
END_TEST

START_TEST(a_level_that_cannot_be_there_is_refused)
{
    struct fw_memory *m = open_levels(6);
    void *block = new_block(m);
    struct many b;

    make_many(&b, m, 3, false, 3); /* the newest is number 2: level 2, not level 1 */
    fw_memory_learn(m, block, &b.in, 0, 3, NULL, NULL);
    ck_assert_int_eq(fw_memory_validate(m, block, NULL), 0);
    ((float *)field(m, block, "S_levels"))[0] = 1;
    ck_assert_int_eq(fw_memory_validate(m, block, NULL), -1);
    ((float *)field(m, block, "S_levels"))[0] = 0;
    ((double *)field(m, block, "level_log_g"))[0] = -1;
    ck_assert_int_eq(fw_memory_validate(m, block, NULL), -1);
    free_many(&b);
    free(block);
    fw_memory_free(m);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("memory/log_linear");
    TCase *tc = tcase_create("log_linear");

    fw_num_init();
    fw_num_thread();
    tcase_add_loop_test(tc, a_read_is_the_definition_with_few_levels_and_with_many, 0, 4);
    tcase_add_test(tc, used_bytes_follow_the_bits_of_the_count);
    tcase_add_test(tc, the_state_is_what_a_recall_reads);
    tcase_add_test(tc, a_level_that_cannot_be_there_is_refused);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
