#include "config.h"

#include "test_main.h"

#include <stdio.h>

#include "safetensors_roundtrip.h"

static struct fw_buf out;
static struct fw_err e;

static void open_out(void)
{
    fw_buf_init(&out, 8 << 20);
    e = (struct fw_err){ 0 };
}

static void close_out(void)
{
    fw_buf_done(&out);
}

static struct fw_tensor tensor(const char *name, enum fw_dtype dtype, uint64_t n,
                               const void *data)
{
    struct fw_tensor t = { .dtype = dtype, .ndim = 1, .shape = { n }, .data = data };

    t.bytes = n * fw_dtype_bytes(dtype);
    snprintf(t.name, sizeof t.name, "%s", name);
    return t;
}

static int write_all(struct fw_tensor *item, size_t count)
{
    return fw_safetensors_write(&out, &(struct fw_tensors){ count, item }, NULL, 0, &e);
}

START_TEST(the_bytes_are_those_of_the_reference_writer)
{
    /* as huggingface/safetensors' serialize writes the same tensors */
    static const char expected[] =
        "\0\1\0\0\0\0\0\0"
        "{\"__metadata__\":{\"format\":\"mlx\"},"
        "\"n\":{\"dtype\":\"I64\",\"shape\":[1],\"data_offsets\":[0,8]},"
        "\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[8,12]},"
        "\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[12,16]},"
        "\"c\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[16,19]}}       "
        "iiiiiiiiaaaabbbbccc";
    struct fw_tensor item[4] = { tensor("c", FW_U8, 3, "ccc"), tensor("b", FW_F32, 1, "bbbb"),
                                 tensor("n", FW_I64, 1, "iiiiiiii"),
                                 tensor("a", FW_F32, 1, "aaaa") };
    struct fw_meta meta = { "format", "mlx" };

    ck_assert_int_eq(fw_safetensors_write(&out, &(struct fw_tensors){ 4, item }, &meta, 1, &e),
                     0);
    ck_assert_uint_eq(out.len, sizeof expected - 1);
    ck_assert_mem_eq(out.data, expected, out.len);
}
END_TEST

START_TEST(the_order_follows_the_dtype_then_the_name)
{
    static const enum fw_dtype order[] = { FW_U64,  FW_I64, FW_F64, FW_F32, FW_U32, FW_I32,
                                           FW_BF16, FW_F16, FW_U16, FW_I16, FW_I8,  FW_U8 };
    struct fw_tensor item[24];
    struct fw_safetensors st;
    char name[8];
    size_t i;

    for (i = 0; i < 24; i++) {
        snprintf(name, sizeof name, "%c", (int)('z' - i));
        item[i] = tensor(name, (enum fw_dtype)(i % 12), 1, "01234567");
    }
    ck_assert_int_eq(write_all(item, 24), 0);
    ck_assert_int_eq(fw_safetensors_read(&st, out.data, out.len, &e), 0);
    for (i = 0; i < 24; i++) {
        ck_assert(st.tensors.item[i].dtype == order[i / 2]);
        if (i % 2)
            ck_assert(st.tensors.item[i - 1].name[0] < st.tensors.item[i].name[0]);
    }
    fw_safetensors_done(&st);
}
END_TEST

START_TEST(every_tensor_of_a_file_is_aligned_to_its_width)
{
    struct fw_tensor item[3] = { tensor("a", FW_U8, 1, "x"), tensor("b", FW_U16, 1, "xx"),
                                 tensor("cc", FW_F64, 1, "12345678") };
    uint64_t n;
    size_t count;

    for (count = 0; count <= 3; count++) {
        out.len = 0;
        ck_assert_int_eq(write_all(item, count), 0);
        memcpy(&n, out.data, sizeof n);
        ck_assert_uint_eq((sizeof n + n) % 8, 0);
        ck_assert_int_eq(safetensors_roundtrip(out.data, out.len), 1);
    }
}
END_TEST

START_TEST(odd_names_and_metadata_survive)
{
    struct fw_tensor item[3] = { tensor("", FW_U8, 0, ""), tensor("a/b\"\\\n", FW_U8, 1, "x"),
                                 tensor("\xc3\xa4", FW_U8, 1, "y") };
    struct fw_meta meta[2] = { { "", "" }, { "\"k\"", "line\nline \xe2\x82\xac" } };
    struct fw_safetensors st;

    ck_assert_int_eq(fw_safetensors_write(&out, &(struct fw_tensors){ 3, item }, meta, 2, &e),
                     0);
    ck_assert_int_eq(safetensors_roundtrip(out.data, out.len), 1);
    ck_assert_int_eq(fw_safetensors_read(&st, out.data, out.len, &e), 0);
    ck_assert_str_eq(fw_safetensors_meta(&st, "\"k\""), "line\nline \xe2\x82\xac");
    ck_assert_ptr_nonnull(fw_tensors_find(&st.tensors, "a/b\"\\\n"));
    fw_safetensors_done(&st);
}
END_TEST

START_TEST(the_file_is_appended_behind_what_the_buffer_holds)
{
    struct fw_tensor item = tensor("a", FW_U8, 3, "abc");

    ck_assert_int_eq(fw_buf_append(&out, "head", 4, &e), 0);
    ck_assert_int_eq(write_all(&item, 1), 0);
    ck_assert_int_eq(memcmp(out.data, "head", 4), 0);
    ck_assert_int_eq(safetensors_roundtrip(out.data + 4, out.len - 4), 1);
}
END_TEST

START_TEST(what_the_reader_would_refuse_is_not_written)
{
    struct fw_tensor twice[2] = { tensor("a", FW_U8, 1, "x"), tensor("a", FW_F32, 1, "xxxx") };
    struct fw_tensor bad = tensor("__metadata__", FW_U8, 1, "x");
    struct fw_meta meta[2] = { { "k", "1" }, { "k", "2" } };

    ck_assert_int_eq(write_all(twice, 2), -1);
    ck_assert_ptr_nonnull(strstr(e.msg, "two entries are named 'a'"));
    ck_assert_int_eq(write_all(&bad, 1), -1);
    bad = tensor("\xff", FW_U8, 1, "x");
    ck_assert_int_eq(write_all(&bad, 1), -1);
    bad = tensor("a", FW_F32, 1, "xxxx");
    bad.bytes = 3;
    ck_assert_int_eq(write_all(&bad, 1), -1);
    bad = (struct fw_tensor){ .name = "a", .ndim = 2, .shape = { UINT64_MAX, 0 } };
    ck_assert_int_eq(write_all(&bad, 1), -1);
    bad.ndim = 5;
    ck_assert_int_eq(write_all(&bad, 1), -1);
    ck_assert_int_eq(fw_safetensors_write(&out, &(struct fw_tensors){ 0 }, meta, 2, &e), -1);
    ck_assert_int_eq(fw_safetensors_write(&out, &(struct fw_tensors){ 0 }, meta, 65, &e), -1);
    ck_assert_int_eq(write_all(twice, 4097), -1);
    ck_assert_int_eq(e.code, FW_EINVAL);
    ck_assert_uint_eq(out.len, 0);
}
END_TEST

START_TEST(a_header_over_1_mib_is_refused)
{
    static struct fw_tensor item[4096];
    char name[FW_NAME_MAX];
    size_t i;

    for (i = 0; i < 4096; i++) { /* each '\1' takes six bytes in JSON */
        memset(name, 1, sizeof name - 1);
        snprintf(name + 50, sizeof name - 50, "%zu", i);
        item[i] = tensor(name, FW_U8, 0, "");
    }
    ck_assert_int_eq(write_all(item, 4096), -1);
    ck_assert_int_eq(e.code, FW_EINVAL);
    ck_assert_ptr_nonnull(strstr(e.msg, "header"));
    ck_assert_int_eq(write_all(item, 1000), 0);
}
END_TEST

START_TEST(a_buffer_too_small_is_refused_and_stays_as_it_was)
{
    struct fw_tensor item = tensor("a", FW_U8, 100, (char[100]){ 0 });
    size_t need;

    ck_assert_int_eq(write_all(&item, 1), 0);
    need = out.len;
    fw_buf_done(&out);
    fw_buf_init(&out, need - 1);
    ck_assert_int_eq(write_all(&item, 1), -1);
    ck_assert_int_eq(e.code, FW_ETOOBIG);
    ck_assert_uint_eq(out.len, 0);
    fw_buf_init(&out, need);
    ck_assert_int_eq(write_all(&item, 1), 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("tensor/safetensors_write");
    TCase *tc = tcase_create("safetensors_write");

    tcase_add_checked_fixture(tc, open_out, close_out);
    tcase_add_test(tc, the_bytes_are_those_of_the_reference_writer);
    tcase_add_test(tc, the_order_follows_the_dtype_then_the_name);
    tcase_add_test(tc, every_tensor_of_a_file_is_aligned_to_its_width);
    tcase_add_test(tc, odd_names_and_metadata_survive);
    tcase_add_test(tc, the_file_is_appended_behind_what_the_buffer_holds);
    tcase_add_test(tc, what_the_reader_would_refuse_is_not_written);
    tcase_add_test(tc, a_header_over_1_mib_is_refused);
    tcase_add_test(tc, a_buffer_too_small_is_refused_and_stays_as_it_was);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
