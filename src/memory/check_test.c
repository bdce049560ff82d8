#include "config.h"

#include "test_main.h"

#include <math.h>

#include "memory_testing.h"

static const struct shape two_heads = { "gated_delta", "none", 2, 3, 4, 1 };

struct fixture {
    struct fw_memory *m;
    struct body b;
    struct fw_err err;
    size_t n;
};

static void start(struct fixture *f, const struct shape *s)
{
    *f = (struct fixture){ .m = make_memory(s) };
    make_body(&f->b, s, 5, 3);
    ck_assert_int_eq(fw_memory_check(f->m, &f->b.in, &f->n, &f->err), 0);
    ck_assert_uint_eq(f->n, 5);
}

static void stop(struct fixture *f)
{
    free_body(&f->b);
    fw_memory_free(f->m);
}

static void ck_refused(struct fixture *f, const char *reason, const char *param)
{
    ck_assert_int_eq(fw_memory_check(f->m, &f->b.in, &f->n, &f->err), -1);
    ck_assert_int_eq(f->err.code, FW_EINVAL);
    ck_assert_str_eq(f->err.reason, reason);
    ck_assert_str_eq(f->err.param, param);
}

START_TEST(bad_elements_are_named_with_pair_and_head)
{
    static const struct {
        int tensor;
        float value;
        const char *reason, *param;
    } cases[] = {
        { 0, NAN, "non_finite", "keys" },        { 0, -INFINITY, "non_finite", "keys" },
        { 0, 1.1e6f, "too_large", "keys" },      { 1, -1.1e6f, "too_large", "values" },
        { 1, NAN, "non_finite", "values" },      { 2, INFINITY, "non_finite", "queries" },
        { 2, 3e38f, "too_large", "queries" },    { 3, -0.1f, "bad_beta", "beta" },
        { 3, NAN, "non_finite", "beta" },        { 3, 2e6f, "too_large", "beta" },
        { 4, 0.001f, "bad_gate", "log_g" },      { 4, -2e6f, "too_large", "log_g" },
        { 4, -INFINITY, "non_finite", "log_g" },
    };
    struct fixture f;
    size_t inner = cases[_i].tensor == 1 ? 4 : cases[_i].tensor < 3 ? 3 : 1;
    float *x;

    start(&f, &two_heads);
    x = f.b.data[cases[_i].tensor] + (3 * 2 + 1) * inner + inner - 1;
    *x = cases[_i].value;
    ck_refused(&f, cases[_i].reason, cases[_i].param);
    ck_assert_ptr_nonnull(strstr(f.err.msg, "pair 3, head 1"));
    stop(&f);
}
END_TEST

START_TEST(a_step_of_two_over_the_squared_key_is_unstable)
{
    struct fixture f;
    float *k;

    start(&f, &two_heads);
    k = f.b.data[0] + (2 * 2 + 1) * 3;
    k[0] = 2;
    k[1] = k[2] = 0;
    f.b.data[3][2 * 2 + 1] = 0.5f; /* 0.5 * 4 = 2 */
    ck_refused(&f, "unstable_step", "beta");
    ck_assert_ptr_nonnull(strstr(f.err.msg, "pair 2, head 1"));
    f.b.data[3][2 * 2 + 1] = 0.4999999f;
    ck_assert_int_eq(fw_memory_check(f.m, &f.b.in, &f.n, &f.err), 0);
    stop(&f);
}
END_TEST

START_TEST(normalised_keys_may_be_long_but_their_beta_stays_below_two)
{
    struct shape s = two_heads;
    struct fixture f;

    s.key_norm = "l2";
    start(&f, &s);
    f.b.data[0][4] = 1e5f;
    ck_assert_int_eq(fw_memory_check(f.m, &f.b.in, &f.n, &f.err), 0);
    f.b.data[3][0] = 2;
    ck_refused(&f, "unstable_step", "beta");
    stop(&f);
}
END_TEST

START_TEST(the_default_beta_counts_too)
{
    struct fixture f;

    start(&f, &two_heads);
    f.b.item[3] = f.b.item[4]; /* no beta: 1 */
    f.b.in.count = 4;
    f.b.data[0][0] = 1.5f;
    ck_refused(&f, "unstable_step", "keys");
    stop(&f);
}
END_TEST

START_TEST(wrong_shapes_types_and_names_are_refused)
{
    struct fixture f;
    struct fw_tensor keep;

    start(&f, &two_heads);
    keep = f.b.item[0];
    f.b.item[0].shape[2] = 4;
    ck_refused(&f, "bad_shape", "keys");
    f.b.item[0] = keep;
    f.b.item[0].ndim = 2;
    ck_refused(&f, "bad_shape", "keys");
    f.b.item[0] = keep;
    f.b.item[0].dtype = FW_F64;
    ck_refused(&f, "bad_dtype", "keys");
    f.b.item[0] = keep;
    f.b.item[1].shape[0] = 4;
    ck_refused(&f, "bad_shape", "values");
    f.b.item[1].shape[0] = 5;
    memcpy(f.b.item[2].name, "query", 6);
    ck_refused(&f, "unknown_tensor", "query");
    f.b.item[2] = keep;
    ck_refused(&f, "duplicate_tensor", "keys");
    stop(&f);
}
END_TEST

START_TEST(a_rule_without_a_gate_takes_no_gate)
{
    struct shape s = two_heads;
    struct fw_memory *m;
    struct fixture f;

    s.rule = "delta";
    start(&f, &two_heads);
    m = make_memory(&s);
    ck_assert_int_eq(fw_memory_check(m, &f.b.in, &f.n, &f.err), -1);
    ck_assert_str_eq(f.err.param, "log_g");
    fw_memory_free(m);
    stop(&f);
}
END_TEST

START_TEST(missing_and_empty_bodies_are_refused)
{
    struct fixture f;

    start(&f, &two_heads);
    f.b.in.count = 1;
    ck_refused(&f, "missing_tensor", "values");
    f.b.in.count = 0;
    ck_refused(&f, "missing_tensor", "keys");
    f.b.in.count = 2;
    f.b.item[0].shape[0] = f.b.item[1].shape[0] = 0;
    ck_refused(&f, "empty_body", "");
    stop(&f);
}
END_TEST

START_TEST(with_one_head_the_heads_axis_may_be_left_out)
{
    struct shape s = { "delta", "none", 1, 3, 4, 1 };
    struct fixture f;

    start(&f, &s);
    for (size_t i = 0; i < f.b.in.count; i++) {
        f.b.item[i].shape[1] = f.b.item[i].shape[2];
        f.b.item[i].ndim--;
    }
    ck_assert_int_eq(fw_memory_check(f.m, &f.b.in, &f.n, &f.err), 0);
    stop(&f);
}
END_TEST

START_TEST(a_recall_takes_queries_alone)
{
    struct fixture f;
    struct fw_tensors queries;

    start(&f, &two_heads);
    queries = (struct fw_tensors){ 1, &f.b.item[2] };
    ck_assert_int_eq(fw_memory_check_queries(f.m, &queries, &f.n, &f.err), 0);
    ck_assert_uint_eq(f.n, 5);
    ck_assert_int_eq(fw_memory_check_queries(f.m, &f.b.in, &f.n, &f.err), -1);
    ck_assert_str_eq(f.err.reason, "unknown_tensor");
    queries.count = 0;
    ck_assert_int_eq(fw_memory_check_queries(f.m, &queries, &f.n, &f.err), -1);
    ck_assert_str_eq(f.err.reason, "missing_tensor");
    stop(&f);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("memory/check");
    TCase *tc = tcase_create("check");

    fw_num_init();
    tcase_add_loop_test(tc, bad_elements_are_named_with_pair_and_head, 0, 13);
    tcase_add_test(tc, a_step_of_two_over_the_squared_key_is_unstable);
    tcase_add_test(tc, normalised_keys_may_be_long_but_their_beta_stays_below_two);
    tcase_add_test(tc, the_default_beta_counts_too);
    tcase_add_test(tc, wrong_shapes_types_and_names_are_refused);
    tcase_add_test(tc, a_rule_without_a_gate_takes_no_gate);
    tcase_add_test(tc, missing_and_empty_bodies_are_refused);
    tcase_add_test(tc, with_one_head_the_heads_axis_may_be_left_out);
    tcase_add_test(tc, a_recall_takes_queries_alone);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
