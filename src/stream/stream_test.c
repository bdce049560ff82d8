#include "config.h"

#include "stream_testing.h"

START_TEST(the_defaults_are_told)
{
    struct fw_params none = { 0 }, resolved;
    struct fw_stream *s;
    struct fw_err err;

    ck_assert_int_eq(fw_stream_new(&s, "bytes", &none, NULL, &resolved, &err), 0);
    ck_assert_str_eq(fw_params_find(&resolved, "preset")->string, "auto");
    ck_assert_str_eq(fw_params_find(&resolved, "expert")->string, "none");
    ck_assert_double_eq(fw_params_find(&resolved, "state_bytes")->number, 4194304);
    ck_assert_uint_eq(block_bytes(s), 4 * MIB);
    ck_assert_uint_eq(fw_stream_token_bytes(s), 1);
    ck_assert_uint_eq(fw_stream_vocab(s), 256);
    fw_stream_free(s);
}
END_TEST

START_TEST(the_resolved_configuration_gives_the_same_plan)
{
    struct fw_params none = { 0 }, resolved, again;
    struct fw_stream *a, *b;
    struct fw_err err;

    ck_assert_int_eq(fw_stream_new(&a, "bytes", &none, NULL, &resolved, &err), 0);
    ck_assert_int_eq(fw_stream_new(&b, "bytes", &resolved, NULL, &again, &err), 0);
    ck_assert_uint_eq(again.count, resolved.count);
    ck_assert_uint_eq(fw_stream_layout(a)->count, fw_stream_layout(b)->count);
    fw_stream_free(a);
    fw_stream_free(b);
}
END_TEST

static void refuse(const char *model, const char *key, const char *text, double number,
                   const char *param)
{
    struct fw_params config = { 0 }, resolved;
    struct fw_stream *s;
    struct fw_err err = { 0 };

    if (text)
        ck_assert_int_eq(fw_params_set_string(&config, key, text, &err), 0);
    else if (key)
        ck_assert_int_eq(fw_params_set_number(&config, key, number, &err), 0);
    ck_assert_int_eq(fw_stream_new(&s, model, &config, NULL, &resolved, &err), -1);
    ck_assert_int_eq(err.code, FW_EINVAL);
    ck_assert_str_eq(err.param, param);
}

START_TEST(what_makes_no_sense_is_refused_by_name)
{
    refuse("letters", NULL, NULL, 0, "model");
    refuse("bytes", "preset", "fast", 0, "config.preset");
    refuse("bytes", "preset", NULL, 1, "config.preset");
    refuse("bytes", "state_bytes", NULL, 1000000, "config.state_bytes");
    refuse("bytes", "state_bytes", NULL, 0, "config.state_bytes");
    refuse("bytes", "state_bytes", NULL, 2097152, "config.state_bytes");
    refuse("bytes", "expert", "nobody", 0, "config.expert");
    refuse("bytes", "expert", NULL, 1, "config.expert");
    refuse("bytes", "colour", NULL, 1, "config.colour");
}
END_TEST

START_TEST(statistics_come_from_the_block)
{
    struct fw_stream *s = new_bytes("auto", MIB);
    struct fw_stream_stats st;
    size_t n;
    uint8_t *text = read_sample("text.txt", &n);
    void *block = new_block(s);
    double bits = learn_bits(s, block, text, n);

    fw_stream_stats(s, block, &st);
    ck_assert_uint_eq(st.tokens, n);
    ck_assert_double_eq_tol(st.bits_all, bits, 1e-9);
    ck_assert_double_lt(st.bits_1k, 3);
    ck_assert_double_lt(st.bits_100k, st.bits_all + 0.01);
    ck_assert_double_lt(st.calibration_error, 0.01);
    ck_assert_uint_eq(st.nonfinite, 0);
    ck_assert_uint_eq(st.heads, 14);
    ck_assert_str_eq(st.head_name[0], "order1");
    for (unsigned i = 0; i < st.heads; i++) {
        ck_assert_uint_le(st.used[i], st.rows[i]);
        ck_assert_double_gt(st.weight[i], 0);
    }
    ck_assert_uint_gt(st.replaced[3], 0);
    free(block);
    free(text);
    fw_stream_free(s);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("stream");
    TCase *tc = tcase_create("stream");

    tcase_add_checked_fixture(tc, start_numbers, NULL);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, the_defaults_are_told);
    tcase_add_test(tc, the_resolved_configuration_gives_the_same_plan);
    tcase_add_test(tc, what_makes_no_sense_is_refused_by_name);
    tcase_add_test(tc, statistics_come_from_the_block);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
