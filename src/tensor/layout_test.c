#include "config.h"

#include "test_main.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "fastweight/tensor.h"

static struct fw_layout l;
static struct fw_err e;

static void open_layout(void)
{
    fw_layout_init(&l);
    e = (struct fw_err){ 0 };
}

static void close_layout(void)
{
    fw_layout_done(&l);
}

START_TEST(an_empty_layout_has_an_empty_block)
{
    ck_assert_uint_eq(l.block_bytes, 0);
    ck_assert_int_eq(fw_layout_check_padding(&l, "", &e), 0);
    ck_assert_int_eq(fw_layout_seal(&l, 0, &e), 0);
    ck_assert_uint_eq(l.block_bytes, 0);
    ck_assert_ptr_null(fw_layout_find(&l, "x"));
}
END_TEST

START_TEST(fields_follow_each_other_on_multiples_of_64)
{
    size_t at[5];

    ck_assert_int_eq(fw_layout_add(&l, "a", FW_F32, 2, (uint64_t[]){ 4, 4 }, &at[0], &e), 0);
    ck_assert_int_eq(fw_layout_add(&l, "b", FW_U8, 1, (uint64_t[]){ 1 }, &at[1], &e), 0);
    ck_assert_int_eq(fw_layout_add(&l, "c", FW_U64, 0, NULL, &at[2], &e), 0);
    ck_assert_int_eq(fw_layout_add(&l, "d", FW_F32, 1, (uint64_t[]){ 0 }, &at[3], &e), 0);
    ck_assert_int_eq(fw_layout_add(&l, "e", FW_U8, 1, (uint64_t[]){ 65 }, &at[4], &e), 0);
    ck_assert_uint_eq(at[0], 0);
    ck_assert_uint_eq(at[1], 64);
    ck_assert_uint_eq(at[2], 128);
    ck_assert_uint_eq(at[3], 192);
    ck_assert_uint_eq(at[4], 192);
    ck_assert_uint_eq(l.block_bytes, 192 + 128);
    ck_assert_uint_eq(l.field[2].bytes, 8);
}
END_TEST

START_TEST(many_fields_keep_their_places)
{
    char name[FW_NAME_MAX];
    size_t i, at;

    for (i = 0; i < 4096; i++) {
        snprintf(name, sizeof name, "f%zu", i);
        ck_assert_int_eq(fw_layout_add(&l, name, FW_U8, 0, NULL, &at, &e), 0);
        ck_assert_uint_eq(at, 64 * i);
    }
    ck_assert_int_eq(fw_layout_add(&l, "one more", FW_U8, 0, NULL, &at, &e), -1);
    ck_assert_uint_eq(fw_layout_find(&l, "f4095")->offset, 64 * 4095);
}
END_TEST

START_TEST(bad_names_and_too_many_dimensions_are_refused)
{
    char name[FW_NAME_MAX + 1];
    uint64_t shape[5] = { 1, 1, 1, 1, 1 };

    memset(name, 'x', sizeof name);
    name[FW_NAME_MAX] = 0;
    ck_assert_int_eq(fw_layout_add(&l, name, FW_U8, 0, NULL, NULL, &e), -1);
    ck_assert_int_eq(fw_layout_add(&l, "", FW_U8, 0, NULL, NULL, &e), -1);
    ck_assert_int_eq(fw_layout_add(&l, "a", FW_U8, 5, shape, NULL, &e), -1);
    name[FW_NAME_MAX - 1] = 0;
    ck_assert_int_eq(fw_layout_add(&l, name, FW_U8, 4, shape, NULL, &e), 0);
    ck_assert_int_eq(fw_layout_add(&l, name, FW_U8, 4, shape, NULL, &e), -1);
    ck_assert_int_eq(e.code, FW_EINVAL);
    ck_assert_ptr_nonnull(strstr(e.msg, "two fields"));
    ck_assert_uint_eq(l.count, 1);
}
END_TEST

START_TEST(sizes_that_overflow_are_refused_and_add_nothing)
{
    uint64_t huge = UINT64_C(1) << 60;

    ck_assert_int_eq(fw_layout_add(&l, "a", FW_F64, 2, (uint64_t[]){ huge, 16 }, NULL, &e), -1);
    ck_assert_int_eq(fw_layout_add(&l, "a", FW_F64, 2, (uint64_t[]){ huge, 2 }, NULL, &e), -1);
    ck_assert_int_eq(fw_layout_add(&l, "a", FW_U8, 1, (uint64_t[]){ UINT64_MAX }, NULL, &e),
                     -1);
    ck_assert_int_eq(fw_layout_add(&l, "a", FW_U8, 1, (uint64_t[]){ SIZE_MAX - 62 }, NULL, &e),
                     -1);
    ck_assert_uint_eq(l.count, 0);
    ck_assert_int_eq(fw_layout_add(&l, "a", FW_U8, 1, (uint64_t[]){ SIZE_MAX - 63 }, NULL, &e),
                     0);
    ck_assert_int_eq(fw_layout_add(&l, "b", FW_U8, 0, NULL, NULL, &e), -1);
    ck_assert_int_eq(e.code, FW_EINVAL);
    ck_assert_uint_eq(l.count, 1);
}
END_TEST

START_TEST(seal_fixes_the_block_at_the_promised_size)
{
    ck_assert_int_eq(fw_layout_add(&l, "a", FW_U8, 1, (uint64_t[]){ 100 }, NULL, &e), 0);
    ck_assert_int_eq(fw_layout_seal(&l, 64, &e), -1);
    ck_assert_ptr_nonnull(strstr(e.msg, "128"));
    ck_assert_int_eq(fw_layout_seal(&l, 130, &e), -1);
    ck_assert_uint_eq(l.block_bytes, 128);
    ck_assert_int_eq(fw_layout_seal(&l, 128, &e), 0);
    ck_assert_int_eq(fw_layout_seal(&l, 1024, &e), 0);
    ck_assert_uint_eq(l.block_bytes, 1024);
}
END_TEST

START_TEST(every_byte_of_padding_must_be_zero_and_no_other)
{
    unsigned char block[512] = { 0 };
    size_t i;

    fw_layout_add(&l, "a", FW_U8, 1, (uint64_t[]){ 3 }, NULL, &e);
    fw_layout_add(&l, "b", FW_U16, 1, (uint64_t[]){ 37 }, NULL, &e);
    ck_assert_int_eq(fw_layout_seal(&l, sizeof block, &e), 0);
    for (i = 0; i < sizeof block; i++) {
        int field = i < 3 || (i >= 64 && i < 64 + 74);
        char text[32];
        snprintf(text, sizeof text, "byte %zu ", i);
        block[i] = 0x80;
        ck_assert_int_eq(fw_layout_check_padding(&l, block, &e), field ? 0 : -1);
        if (!field)
            ck_assert_ptr_nonnull(strstr(e.msg, text));
        block[i] = 0;
    }
}
END_TEST

START_TEST(a_view_shows_the_field_in_the_block)
{
    unsigned char block[192] = { 0 };
    struct fw_tensor t;

    fw_layout_add(&l, "a", FW_U8, 0, NULL, NULL, &e);
    fw_layout_add(&l, "w", FW_F32, 2, (uint64_t[]){ 2, 3 }, NULL, &e);
    t = fw_layout_view(fw_layout_find(&l, "w"), block);
    ck_assert_str_eq(t.name, "w");
    ck_assert_ptr_eq(t.data, block + 64);
    ck_assert_uint_eq(t.bytes, 24);
    ck_assert(t.dtype == FW_F32 && t.ndim == 2 && t.shape[0] == 2 && t.shape[1] == 3);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("tensor/layout");
    TCase *tc = tcase_create("layout");

    tcase_add_checked_fixture(tc, open_layout, close_layout);
    tcase_add_test(tc, an_empty_layout_has_an_empty_block);
    tcase_add_test(tc, fields_follow_each_other_on_multiples_of_64);
    tcase_add_test(tc, many_fields_keep_their_places);
    tcase_add_test(tc, bad_names_and_too_many_dimensions_are_refused);
    tcase_add_test(tc, sizes_that_overflow_are_refused_and_add_nothing);
    tcase_add_test(tc, seal_fixes_the_block_at_the_promised_size);
    tcase_add_test(tc, every_byte_of_padding_must_be_zero_and_no_other);
    tcase_add_test(tc, a_view_shows_the_field_in_the_block);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
