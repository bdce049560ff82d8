/* batch_test.c - bodies become tensors, and what is wrong is named. */
#include "config.h"

#include "batch.h"

#include <math.h>
#include <string.h>

#include "test_main.h"

static const struct intake bytes = {
    .bytes = true, .text = true, .raw = true, .token_bytes = 1, .vocab = 256
};
static const struct intake events = { .raw = true, .token_bytes = 2, .vocab = 1000 };
static const struct intake pairs = { .pairs = true };
static struct fw_err err;

static json_t *json(const char *text)
{
    json_t *v = json_loads(text, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);

    ck_assert_ptr_nonnull(v);
    return v;
}

static int tokens(struct batch *b, const struct intake *in, const char *text)
{
    json_t *v = json(text);
    int rc;

    *b = (struct batch){ 0 };
    rc = batch_tokens(b, in, v, "tokens", &err);
    json_decref(v);
    return rc;
}

START_TEST(tokens_come_as_text_or_ids)
{
    struct batch b;

    ck_assert_int_eq(tokens(&b, &bytes, "\"a\\u0000\xc3\xa4\""), 0);
    ck_assert_int_eq(b.item[0].dtype, FW_U8);
    ck_assert_mem_eq(b.item[0].data, "a\0\xc3\xa4", 4);
    ck_assert_uint_eq(b.item[0].shape[0], 4);
    batch_done(&b);
    ck_assert_int_eq(tokens(&b, &bytes, "[0, 255]"), 0);
    ck_assert_mem_eq(b.item[0].data, "\0\xff", 2);
    batch_done(&b);
    ck_assert_int_eq(tokens(&b, &events, "[999, 1]"), 0);
    ck_assert_int_eq(b.item[0].dtype, FW_U16);
    ck_assert_mem_eq(b.item[0].data, "\xe7\x03\x01\0", 4);
    batch_done(&b);
}
END_TEST

START_TEST(a_token_out_of_range_is_named)
{
    struct batch b;

    ck_assert_int_eq(tokens(&b, &bytes, "[1, 256]"), -1);
    ck_assert_ptr_nonnull(strstr(err.msg, "tokens[1]"));
    batch_done(&b);
    ck_assert_int_eq(tokens(&b, &events, "[1, 2, 1000]"), -1);
    ck_assert_ptr_nonnull(strstr(err.msg, "tokens[2] is 1000"));
    batch_done(&b);
    ck_assert_int_eq(tokens(&b, &events, "[-1]"), -1);
    batch_done(&b);
    ck_assert_int_eq(tokens(&b, &events, "[1.0]"), -1);
    batch_done(&b);
    ck_assert_int_eq(tokens(&b, &events, "\"text\""), -1);
    ck_assert_str_eq(err.reason, "wrong_kind");
    batch_done(&b);
    ck_assert_int_eq(tokens(&b, &pairs, "[1]"), -1);
    ck_assert_str_eq(err.reason, "wrong_kind");
    batch_done(&b);
    ck_assert_int_eq(tokens(&b, &bytes, "{}"), -1);
    batch_done(&b);
}
END_TEST

START_TEST(raw_events_are_two_bytes_each)
{
    struct batch b = { 0 };
    const uint16_t id[] = { 5, 999, 1000 };

    ck_assert_int_eq(batch_raw(&b, &events, id, 3, &err), -1);
    ck_assert_str_eq(err.reason, "odd_length");
    ck_assert_int_eq(batch_raw(&b, &events, id, 4, &err), 0);
    ck_assert_uint_eq(b.item[0].shape[0], 2);
    ck_assert_ptr_eq(b.item[0].data, id);
    batch_done(&b);
    ck_assert_int_eq(batch_raw(&b, &events, id, 6, &err), -1);
    ck_assert_str_eq(err.reason, "token_out_of_range");
    ck_assert_int_eq(batch_raw(&b, &pairs, id, 6, &err), -1);
    batch_done(&b);
}
END_TEST

static int floats(struct batch *b, const char *text)
{
    json_t *v = json(text);
    int rc;

    *b = (struct batch){ 0 };
    rc = batch_floats(b, "keys", v, &err);
    json_decref(v);
    return rc;
}

START_TEST(nested_arrays_become_f32)
{
    struct batch b;
    const float want[] = { 1, 2.5f, -3, 4 };

    ck_assert_int_eq(floats(&b, "[[[1, 2.5]], [[-3, 4]]]"), 0);
    ck_assert_uint_eq(b.item[0].ndim, 3);
    ck_assert_uint_eq(b.item[0].shape[0], 2);
    ck_assert_uint_eq(b.item[0].shape[1], 1);
    ck_assert_uint_eq(b.item[0].shape[2], 2);
    ck_assert_mem_eq(b.item[0].data, want, sizeof want);
    batch_done(&b);
    ck_assert_int_eq(floats(&b, "[0.1]"), 0);
    ck_assert_uint_eq(b.item[0].ndim, 1);
    batch_done(&b);
    ck_assert_int_eq(floats(&b, "[1e300]"), 0); /* the learner refuses it, naming the pair */
    ck_assert(isinf(*(const float *)b.item[0].data));
    batch_done(&b);
}
END_TEST

START_TEST(ragged_empty_and_mixed_arrays_are_refused)
{
    static const char *const bad[] = {
        "3",        "[]",      "[[]]",        "[[1], []]",    "[[1], [1,2]]", "[[1], 2]",
        "[1, [2]]", "[\"a\"]", "[[[[[1]]]]]", "[[[1]], [1]]", "[null]",       "{}"
    };
    struct batch b;
    size_t i;

    for (i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ck_assert_msg(floats(&b, bad[i]) == -1, "%s", bad[i]);
        ck_assert_int_eq(err.code, FW_EINVAL);
        ck_assert_str_eq(err.param, "keys");
        batch_done(&b);
    }
}
END_TEST

static void file_of(struct fw_buf *out, const char *name, enum fw_dtype dtype, const void *data,
                    size_t n)
{
    struct fw_tensor t = { .dtype = dtype,
                           .ndim = 1,
                           .shape = { n },
                           .data = data,
                           .bytes = n * fw_dtype_bytes(dtype) };
    struct fw_tensors ts = { 1, &t };

    memcpy(t.name, name, strlen(name) + 1);
    fw_buf_init(out, 1 << 20);
    ck_assert_int_eq(fw_safetensors_write(out, &ts, NULL, 0, &err), 0);
}

START_TEST(a_safetensors_body_is_converted)
{
    static const char *const names[] = { "tokens", "keys", NULL };
    const int64_t id[] = { 7, 999 }, far[] = { 7, 1000 };
    const double x[] = { 0.5, -2 };
    const float want[] = { 0.5f, -2 };
    struct batch b = { 0 };
    struct fw_buf f;

    file_of(&f, "tokens", FW_I64, id, 2);
    ck_assert_int_eq(batch_file(&b, &events, names, f.data, f.len, &err), 0);
    ck_assert_mem_eq(b.item[0].data, "\x07\0\xe7\x03", 4);
    batch_done(&b);
    ck_assert_int_eq(batch_file(&b, &events, names + 1, f.data, f.len, &err), -1);
    ck_assert_str_eq(err.reason, "unknown_field");
    batch_done(&b);
    ck_assert_int_eq(batch_file(&b, &events, names, f.data, f.len - 1, &err), -1);
    batch_done(&b);
    fw_buf_done(&f);
    file_of(&f, "tokens", FW_I64, far, 2);
    ck_assert_int_eq(batch_file(&b, &events, names, f.data, f.len, &err), -1);
    batch_done(&b);
    fw_buf_done(&f);
    file_of(&f, "tokens", FW_F32, want, 2);
    ck_assert_int_eq(batch_file(&b, &events, names, f.data, f.len, &err), -1);
    batch_done(&b);
    fw_buf_done(&f);
    file_of(&f, "keys", FW_F64, x, 2);
    ck_assert_int_eq(batch_file(&b, &pairs, names, f.data, f.len, &err), 0);
    ck_assert_mem_eq(b.item[0].data, want, sizeof want);
    batch_done(&b);
    fw_buf_done(&f);
    file_of(&f, "keys", FW_F32, want, 2);
    ck_assert_int_eq(batch_file(&b, &pairs, names, f.data, f.len, &err), 0);
    ck_assert_mem_eq(b.item[0].data, want, sizeof want);
    batch_done(&b);
    fw_buf_done(&f);
}
END_TEST

START_TEST(one_tensor_can_be_lent_alone)
{
    struct batch b;

    ck_assert_int_eq(floats(&b, "[1]"), 0);
    ck_assert_uint_eq(batch_lend_one(&b, "keys").count, 1);
    ck_assert_uint_eq(batch_lend_one(&b, "values").count, 0);
    ck_assert_uint_eq(batch_lend(&b).count, 1);
    batch_done(&b);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("api/batch");
    TCase *t = tcase_create("batch");

    tcase_add_test(t, tokens_come_as_text_or_ids);
    tcase_add_test(t, a_token_out_of_range_is_named);
    tcase_add_test(t, raw_events_are_two_bytes_each);
    tcase_add_test(t, nested_arrays_become_f32);
    tcase_add_test(t, ragged_empty_and_mixed_arrays_are_refused);
    tcase_add_test(t, a_safetensors_body_is_converted);
    tcase_add_test(t, one_tensor_can_be_lent_alone);
    suite_add_tcase(s, t);
    return run_suite(s);
}
