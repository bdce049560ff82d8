#include "config.h"

#include "test_main.h"

#include <stdio.h>

#include "safetensors_roundtrip.h"

static _Alignas(64) unsigned char file[3 << 20];
static struct fw_err e;

/* A file of this header and `body` bytes 1, 2, 3, ...; returns its length. */
static size_t make_file(const char *header, size_t body)
{
    uint64_t n = strlen(header);
    size_t i;

    e = (struct fw_err){ 0 };
    memcpy(file, &n, sizeof n);
    memcpy(file + sizeof n, header, n);
    for (i = 0; i < body; i++)
        file[sizeof n + n + i] = (unsigned char)(i + 1);
    return sizeof n + n + body;
}

static void must_refuse(const char *header, size_t body, const char *because)
{
    struct fw_safetensors st = { .copy = file };
    size_t len = make_file(header, body);

    ck_assert_msg(fw_safetensors_read(&st, file, len, &e) == -1, "accepted: %s", header);
    ck_assert_int_eq(e.code, FW_EINVAL);
    ck_assert_str_eq(e.reason, "bad_safetensors");
    ck_assert_msg(strstr(e.msg, because) != NULL, "'%s' instead of '%s'", e.msg, because);
    ck_assert_ptr_eq(st.copy, file); /* written only on success */
}

static struct fw_safetensors must_read(const char *header, size_t body)
{
    struct fw_safetensors st;
    size_t len = make_file(header, body);

    ck_assert_msg(fw_safetensors_read(&st, file, len, &e) == 0, "%s: %s", e.msg, header);
    memset(file, 0xee, len); /* the file may go */
    return st;
}

START_TEST(tensors_are_read_with_names_shapes_and_bytes)
{
    struct fw_safetensors st =
        must_read("{\"b\":{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[3,11]},"
                  "\"a\":{\"shape\":[3],\"dtype\":\"U8\",\"data_offsets\":[0,3]}}  ",
                  11);
    const struct fw_tensor *a = fw_tensors_find(&st.tensors, "a");
    const struct fw_tensor *b = fw_tensors_find(&st.tensors, "b");

    ck_assert_uint_eq(st.tensors.count, 2);
    ck_assert_ptr_eq(a, &st.tensors.item[0]); /* in the order of their bytes */
    ck_assert_int_eq(memcmp(a->data, "\1\2\3", 3), 0);
    ck_assert_int_eq(memcmp(b->data, "\4\5\6\7\10\11\12\13", 8), 0);
    ck_assert(b->dtype == FW_F32 && b->ndim == 2 && b->shape[0] == 1 && b->shape[1] == 2);
    ck_assert_uint_eq((uintptr_t)a->data % 64, 0);
    ck_assert_uint_eq((uintptr_t)b->data % 64, 0);
    fw_safetensors_done(&st);
    ck_assert_ptr_null(st.copy);
}
END_TEST

START_TEST(tensors_of_a_mapped_file_are_lent_where_they_lie_unless_one_is_not_aligned)
{
    static const char fits[] = "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],"
                               "\"data_offsets\":[0,8]}}          "; /* 64 bytes */
    struct fw_safetensors st;
    size_t len = make_file(fits, 8);

    ck_assert_int_eq(sizeof fits - 1, 64);
    ck_assert_int_eq(fw_safetensors_lend(&st, file, len, &e), 0);
    ck_assert_ptr_null(st.copy);
    ck_assert_ptr_eq(st.tensors.item[0].data, file + 8 + 64);
    fw_safetensors_done(&st);
    len = make_file(fits, 8);
    memmove(file + 1, file, len); /* a file that begins at an odd address */
    ck_assert_int_eq(fw_safetensors_lend(&st, file + 1, len, &e), 0);
    ck_assert_ptr_nonnull(st.copy);
    ck_assert_int_eq(memcmp(st.tensors.item[0].data, "\1\2\3\4\5\6\7\10", 8), 0);
    fw_safetensors_done(&st);
    ck_assert_int_eq(fw_safetensors_lend(&st, file + 1, len - 1, &e), -1);
    ck_assert_str_eq(e.reason, "bad_safetensors");
}
END_TEST

START_TEST(metadata_is_read_by_key)
{
    struct fw_safetensors st =
        must_read("{\"__metadata__\":{\"format\":\"pt\",\"\":\"empty \\u00e4\"}}", 0);

    ck_assert_uint_eq(st.meta_count, 2);
    ck_assert_uint_eq(st.tensors.count, 0);
    ck_assert_str_eq(fw_safetensors_meta(&st, "format"), "pt");
    ck_assert_str_eq(fw_safetensors_meta(&st, ""), "empty \xc3\xa4");
    ck_assert_ptr_null(fw_safetensors_meta(&st, "model"));
    fw_safetensors_done(&st);
}
END_TEST

START_TEST(scalars_empty_tensors_and_empty_files_are_allowed)
{
    struct fw_safetensors st = must_read("{}", 0);

    ck_assert_uint_eq(st.tensors.count, 0);
    fw_safetensors_done(&st);
    st = must_read("{\"z\":{\"dtype\":\"F64\",\"shape\":[5,0],\"data_offsets\":[0,0]},"
                   "\"s\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[0,8]},"
                   "\"y\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[8,8]}}",
                   8);
    ck_assert_uint_eq(fw_tensors_find(&st.tensors, "s")->ndim, 0);
    ck_assert_uint_eq(fw_tensors_find(&st.tensors, "z")->bytes, 0);
    ck_assert_ptr_nonnull(fw_tensors_find(&st.tensors, "y")->data);
    fw_safetensors_done(&st);
}
END_TEST

#define ONE(dtype, shape, offsets)                                                             \
    "{\"a\":{\"dtype\":" dtype ",\"shape\":" shape ",\"data_offsets\":" offsets "}}"

START_TEST(a_broken_entry_is_refused_with_its_reason)
{
    static const struct {
        const char *header;
        size_t body;
        const char *because;
    } bad[] = {
        { ONE("\"BOOL\"", "[1]", "[0,1]"), 1, "unsupported dtype" },
        { ONE("\"F8_E4M3\"", "[1]", "[0,1]"), 1, "unsupported dtype" },
        { ONE("7", "[1]", "[0,1]"), 1, "not exactly dtype" },
        { ONE("\"U8\"", "7", "[0,1]"), 1, "shape is no array" },
        { ONE("\"U8\"", "[1,1,1,1,1]", "[0,1]"), 1, "shape is no array of 0 to 4" },
        { ONE("\"U8\"", "[-1]", "[0,1]"), 1, "integers from 0" },
        { ONE("\"U8\"", "[1.0]", "[0,1]"), 1, "integers from 0" },
        { ONE("\"U8\"", "[\"1\"]", "[0,1]"), 1, "integers from 0" },
        { ONE("\"U8\"", "[1]", "[0]"), 1, "data_offsets is no array" },
        { ONE("\"U8\"", "[1]", "[0,1,1]"), 1, "data_offsets is no array" },
        { ONE("\"U8\"", "[1]", "{}"), 1, "data_offsets is no array" },
        { ONE("\"U8\"", "[1]", "[0,-1]"), 1, "integers from 0" },
        { ONE("\"U8\"", "[1]", "[1,0]"), 1, "its data_offsets are 1 to 0" },
        { ONE("\"U8\"", "[2]", "[0,1]"), 1, "its shape needs 2 bytes" },
        { ONE("\"F32\"", "[1]", "[0,1]"), 1, "its shape needs 4 bytes" },
        { ONE("\"U8\"", "[99999999999999999999]", "[0,1]"), 1, "no JSON" },
        { ONE("\"U8\"", "[4294967296,4294967296]", "[0,0]"), 0, "overflows" },
        { ONE("\"F64\"", "[9223372036854775807]", "[0,8]"), 8, "overflows" },
        { ONE("\"U8\"", "[9223372036854775807]", "[0,9223372036854775807]"), 1, "beyond" },
        { ONE("\"U8\"", "[2]", "[0,2]"), 1, "ends at 2, beyond the 1 bytes" },
        { ONE("\"U8\"", "[1]", "[0,1]"), 2, "1 bytes follow the last tensor" },
        { ONE("\"U8\"", "[1]", "[1,2]"), 2, "a hole" },
        { ONE("\"U8\"", "[1]", "[0,1],\"x\":1"), 1, "not exactly" },
        { "{\"a\":7}", 0, "not exactly" },
        { "{\"a\":{\"dtype\":\"U8\",\"shape\":[1]}}", 1, "not exactly" },
        { "{}", 1, "1 bytes follow" },
    };
    size_t i;

    for (i = 0; i < sizeof bad / sizeof bad[0]; i++)
        must_refuse(bad[i].header, bad[i].body, bad[i].because);
}
END_TEST

START_TEST(holes_and_overlaps_between_tensors_are_refused)
{
    static const char *const form =
        "{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},"
        "\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[%d,%d]}}";
    char header[256];

    snprintf(header, sizeof header, form, 3, 5);
    must_refuse(header, 5, "'b' begins at 3, the data before it ends at 2: a hole");
    snprintf(header, sizeof header, form, 1, 3);
    must_refuse(header, 3, "'b' begins at 1, the data before it ends at 2: an overlap");
    snprintf(header, sizeof header, form, 0, 2);
    must_refuse(header, 2, "an overlap");
    snprintf(header, sizeof header, form, 2, 4);
    must_refuse(header, 5, "1 bytes follow");
}
END_TEST

START_TEST(broken_json_is_refused)
{
    must_refuse("[]", 0, "does not begin with '{'");
    must_refuse(" {}", 0, "does not begin with '{'");
    must_refuse("{ ", 0, "no JSON");
    must_refuse("{}x", 0, "no JSON");
    must_refuse("{\"\xff\":1}", 0, "no JSON");
    must_refuse("{\"\\ud800\":1}", 0, "no JSON");
    must_refuse("{\"a\\u0000\":1}", 0, "no JSON");
    must_refuse("{\"__metadata__\":{},\"__metadata__\":{}}", 0, "repeated keys");
    must_refuse("{\"__metadata__\":{\"a\":\"1\",\"a\":\"1\"}}", 0, "repeated keys");
    must_refuse("{\"a\":{\"dtype\":\"U8\",\"dtype\":\"U8\"}}", 0, "repeated keys");
}
END_TEST

START_TEST(metadata_holds_strings_only_and_has_limits)
{
    char header[4096], text[2050];
    size_t at = 0;
    int i;

    must_refuse("{\"__metadata__\":7}", 0, "no object");
    must_refuse("{\"__metadata__\":{\"k\":1}}", 0, "'k' is no string");
    must_refuse("{\"__metadata__\":{\"k\":null}}", 0, "'k' is no string");
    memset(text, 'x', sizeof text);
    text[2048] = 0;
    snprintf(header, sizeof header, "{\"__metadata__\":{\"k\":\"%s\"}}", text);
    must_refuse(header, 0, "longer than 2047");
    text[64] = 0;
    snprintf(header, sizeof header, "{\"__metadata__\":{\"%s\":\"\"}}", text);
    must_refuse(header, 0, "longer than 63");
    for (i = 0; i < 65; i++)
        at += (size_t)snprintf(header + at, sizeof header - at, "%s\"k%d\":\"\"",
                               i ? "," : "{\"__metadata__\":{", i);
    snprintf(header + at, sizeof header - at, "}}");
    must_refuse(header, 0, "more than 64");
}
END_TEST

START_TEST(names_have_at_most_63_bytes)
{
    char header[256], name[65];
    struct fw_safetensors st;

    memset(name, 'n', 64);
    name[64] = 0;
    snprintf(header, sizeof header,
             "{\"%s\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", name);
    must_refuse(header, 1, "longer than 63");
    name[63] = 0;
    snprintf(header, sizeof header,
             "{\"%s\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", name);
    st = must_read(header, 1);
    ck_assert_str_eq(st.tensors.item[0].name, name);
    fw_safetensors_done(&st);
}
END_TEST

START_TEST(at_most_4096_tensors_are_accepted)
{
    static char header[1 << 20];
    struct fw_safetensors st;
    size_t at = 0;
    int i;

    for (i = 0; i < 4096; i++)
        at += (size_t)snprintf(
            header + at, sizeof header - at,
            "%s\"%d\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[%d,%d]}", i ? "," : "{",
            i, i, i + 1);
    snprintf(header + at, sizeof header - at, "}");
    st = must_read(header, 4096);
    ck_assert_uint_eq(st.tensors.count, 4096);
    fw_safetensors_done(&st);
    snprintf(header + at, sizeof header - at,
             ",\"x\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}");
    must_refuse(header, 4096, "more than 4096");
}
END_TEST

START_TEST(the_header_length_must_fit_the_file_and_the_limit)
{
    static const struct {
        uint64_t n;
        size_t len;
        const char *because;
    } bad[] = {
        { 2, 0, "no header length" },
        { 2, 7, "no header length" },
        { 0, 10, "not between" },
        { 1, 10, "not between" },
        { 3, 10, "beyond the file" },
        { 2, 9, "beyond the file" },
        { (1 << 20) + 1, 2 << 20, "not between" },
        { UINT64_MAX, 10, "not between" },
    };
    struct fw_safetensors st;
    size_t i, len;
    uint64_t n = 1 << 20;

    for (i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        make_file("{}", 0);
        memcpy(file, &bad[i].n, sizeof n);
        ck_assert_int_eq(fw_safetensors_read(&st, file, bad[i].len, &e), -1);
        ck_assert_msg(strstr(e.msg, bad[i].because) != NULL, "%s", e.msg);
    }
    len = make_file("{}", 0);
    memset(file + len, ' ', n);
    memcpy(file, &n, sizeof n); /* the largest header, all spaces but two */
    ck_assert_int_eq(fw_safetensors_read(&st, file, sizeof n + n, &e), 0);
    fw_safetensors_done(&st);
}
END_TEST

static const char small[] = "{\"__metadata__\":{\"format\":\"x\"},"
                            "\"w\":{\"dtype\":\"F32\",\"shape\":[2,1],\"data_offsets\":[0,8]},"
                            "\"b\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[8,9]}}   ";

START_TEST(every_flipped_bit_of_a_header_is_refused_or_leaves_something_consistent)
{
    size_t len = make_file(small, 9), bit, accepted = 0;
    unsigned char *exact;

    for (bit = 0; bit < 8 * (8 + strlen(small)); bit++) {
        exact = malloc(len); /* so that a sanitizer sees a read past the end */
        ck_assert_ptr_nonnull(exact);
        memcpy(exact, file, len);
        exact[bit / 8] ^= (unsigned char)(1u << bit % 8);
        accepted += (size_t)safetensors_roundtrip(exact, len);
        free(exact);
    }
    ck_assert_uint_lt(accepted, 200); /* letters within names and metadata */
    ck_assert_uint_gt(accepted, 0);
}
END_TEST

START_TEST(every_truncation_is_refused)
{
    size_t len = make_file(small, 9), cut;
    unsigned char *exact;

    ck_assert_int_eq(safetensors_roundtrip(file, len), 1);
    for (cut = 0; cut < len; cut++) {
        exact = malloc(cut + 1);
        ck_assert_ptr_nonnull(exact);
        memcpy(exact, file, cut);
        ck_assert_int_eq(safetensors_roundtrip(exact, cut), 0);
        free(exact);
    }
    ck_assert_int_eq(safetensors_roundtrip(file, len + 1), 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("tensor/safetensors");
    TCase *tc = tcase_create("safetensors");

    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, tensors_are_read_with_names_shapes_and_bytes);
    tcase_add_test(tc,
                   tensors_of_a_mapped_file_are_lent_where_they_lie_unless_one_is_not_aligned);
    tcase_add_test(tc, metadata_is_read_by_key);
    tcase_add_test(tc, scalars_empty_tensors_and_empty_files_are_allowed);
    tcase_add_test(tc, a_broken_entry_is_refused_with_its_reason);
    tcase_add_test(tc, holes_and_overlaps_between_tensors_are_refused);
    tcase_add_test(tc, broken_json_is_refused);
    tcase_add_test(tc, metadata_holds_strings_only_and_has_limits);
    tcase_add_test(tc, names_have_at_most_63_bytes);
    tcase_add_test(tc, at_most_4096_tensors_are_accepted);
    tcase_add_test(tc, the_header_length_must_fit_the_file_and_the_limit);
    tcase_add_test(tc, every_flipped_bit_of_a_header_is_refused_or_leaves_something_consistent);
    tcase_add_test(tc, every_truncation_is_refused);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
