#include "config.h"

#include "test_main.h"

#include "memory_testing.h"

START_TEST(an_empty_config_resolves_to_the_defaults)
{
    struct fw_params none = { 0 }, full = { 0 };
    struct fw_memory *m;

    ck_assert_int_eq(fw_memory_new(&m, &none, &full, NULL), 0);
    ck_assert_str_eq(fw_params_find(&full, "rule")->string, "delta");
    ck_assert_str_eq(fw_params_find(&full, "key_norm")->string, "none");
    ck_assert(fw_params_find(&full, "query_scale")->number == 1);
    ck_assert(fw_params_find(&full, "beta")->number == 1);
    ck_assert_uint_eq(fw_memory_heads(m), 4);
    ck_assert_uint_eq(fw_memory_d_k(m), 64);
    ck_assert_uint_eq(fw_memory_d_v(m), 64);
    fw_memory_free(m);
    ck_assert_int_eq(fw_memory_new(&m, &full, &none, NULL),
                     0); /* resolved resolves to itself */
    ck_assert_mem_eq(&none, &full, sizeof full);
    fw_memory_free(m);
}
END_TEST

START_TEST(bad_configs_are_refused_by_key)
{
    static const struct {
        const char *key, *text;
        double number;
    } cases[] = {
        { "rule", "hebb", 0 }, { "key_norm", "l1", 0 },   { "heads", NULL, 0 },
        { "d_k", NULL, 4097 }, { "d_v", NULL, 2.5 },      { "query_scale", NULL, -1 },
        { "beta", NULL, -1 },  { "learning", NULL, 0.1 }, { "rule", NULL, 3 },
    };
    struct fw_params p = { 0 }, full = { 0 };
    struct fw_err err = { .code = FW_OK };
    struct fw_memory *m = NULL;
    char param[64] = "config.";

    if (cases[_i].text)
        fw_params_set_string(&p, cases[_i].key, cases[_i].text, NULL);
    else
        fw_params_set_number(&p, cases[_i].key, cases[_i].number, NULL);
    ck_assert_int_eq(fw_memory_new(&m, &p, &full, &err), -1);
    ck_assert_int_eq(err.code, FW_EINVAL);
    strncat(param, cases[_i].key, sizeof param - 8);
    ck_assert_str_eq(err.param, param);
    ck_assert_ptr_null(m);
    ck_assert_uint_eq(full.count, 0);
}
END_TEST

START_TEST(a_state_beyond_a_gibibyte_is_refused)
{
    struct fw_params p = { 0 }, full;
    struct fw_err err;
    struct fw_memory *m;

    fw_params_set_number(&p, "heads", 4096, NULL);
    fw_params_set_number(&p, "d_k", 4096, NULL);
    fw_params_set_number(&p, "d_v", 4096, NULL);
    ck_assert_int_eq(fw_memory_new(&m, &p, &full, &err), -1);
    ck_assert_str_eq(err.reason, "state_too_large");
}
END_TEST

START_TEST(the_layout_names_what_the_next_pair_depends_on)
{
    static const char *const names[] = {
        "S", "pending_k", "pending_e", "pending_valid", "log_g_sum", "last_residual", "counters"
    };
    struct shape s = { "gated_delta", "none", 3, 5, 7, 1 };
    struct fw_memory *m = make_memory(&s);
    const struct fw_layout *l = fw_memory_layout(m);
    void *block = make_block(m);

    ck_assert_uint_eq(l->count, 7);
    for (size_t i = 0; i < 7; i++)
        ck_assert_str_eq(l->field[i].name, names[i]);
    ck_assert_uint_eq(l->field[0].bytes, 3 * 5 * 7 * 4);
    ck_assert_int_eq(fw_layout_check_padding(l, block, NULL), 0);
    ck_assert_int_eq(fw_memory_validate(m, block, NULL), 0);
    free(block);
    fw_memory_free(m);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("memory/plan");
    TCase *tc = tcase_create("plan");

    tcase_add_test(tc, an_empty_config_resolves_to_the_defaults);
    tcase_add_loop_test(tc, bad_configs_are_refused_by_key, 0, 9);
    tcase_add_test(tc, a_state_beyond_a_gibibyte_is_refused);
    tcase_add_test(tc, the_layout_names_what_the_next_pair_depends_on);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
