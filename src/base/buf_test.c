#include "config.h"

#include "test_main.h"

#include <stdint.h>
#include <string.h>

#include "fastweight/buf.h"

START_TEST(an_empty_buffer_owns_nothing)
{
    struct fw_buf b;

    fw_buf_init(&b, 10);
    ck_assert_ptr_null(b.data);
    ck_assert_uint_eq(b.len, 0);
    ck_assert_int_eq(fw_buf_append(&b, NULL, 0, NULL), 0);
    ck_assert_ptr_null(b.data);
    fw_buf_done(&b);
}
END_TEST

START_TEST(appended_bytes_stay_in_order_over_many_growths)
{
    struct fw_buf b;
    size_t i;
    unsigned char piece[7];

    fw_buf_init(&b, 7 * 1000);
    for (i = 0; i < 1000; i++) {
        memset(piece, (int)(i & 255), sizeof piece);
        ck_assert_int_eq(fw_buf_append(&b, piece, sizeof piece, NULL), 0);
        ck_assert(b.len <= b.cap && b.cap <= b.max);
    }
    for (i = 0; i < b.len; i++)
        ck_assert_uint_eq(b.data[i], i / 7 & 255);
    fw_buf_done(&b);
}
END_TEST

START_TEST(the_maximum_can_be_reached_and_not_passed)
{
    struct fw_buf b;
    struct fw_err e = { 0 };

    fw_buf_init(&b, 5);
    ck_assert_int_eq(fw_buf_append(&b, "12345", 5, &e), 0);
    ck_assert_int_eq(fw_buf_append(&b, "6", 1, &e), -1);
    ck_assert_int_eq(e.code, FW_ETOOBIG);
    ck_assert_ptr_nonnull(strstr(e.msg, "5 bytes"));
    ck_assert_uint_eq(b.len, 5);
    ck_assert_int_eq(memcmp(b.data, "12345", 5), 0);
    ck_assert_int_eq(fw_buf_append(&b, "", 0, &e), 0);
    fw_buf_done(&b);
}
END_TEST

START_TEST(a_huge_request_cannot_overflow_the_sum)
{
    struct fw_buf b;
    struct fw_err e = { 0 };

    fw_buf_init(&b, 100);
    ck_assert_int_eq(fw_buf_append(&b, "abc", 3, &e), 0);
    ck_assert_int_eq(fw_buf_reserve(&b, SIZE_MAX, &e), -1);
    ck_assert_int_eq(fw_buf_reserve(&b, SIZE_MAX - 2, &e), -1);
    ck_assert_int_eq(e.code, FW_ETOOBIG);
    ck_assert_uint_eq(b.len, 3);
    fw_buf_done(&b);
}
END_TEST

/* Under the sanitizers malloc, too, returns NULL where it would otherwise abort. */
const char *__asan_default_options(void);
const char *__tsan_default_options(void);

const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

const char *__tsan_default_options(void)
{
    return "allocator_may_return_null=1";
}

START_TEST(a_failed_allocation_is_an_ordinary_error)
{
    struct fw_buf b;
    struct fw_err e = { 0 };

    fw_buf_init(&b, SIZE_MAX);
    ck_assert_int_eq(fw_buf_append(&b, "abc", 3, &e), 0);
    ck_assert_int_eq(fw_buf_reserve(&b, SIZE_MAX / 4, &e), -1);
    ck_assert_int_eq(e.code, FW_ENOMEM);
    ck_assert_int_eq(memcmp(b.data, "abc", 3), 0);
    fw_buf_done(&b);
}
END_TEST

START_TEST(reserve_makes_room_without_adding_bytes)
{
    struct fw_buf b;
    const unsigned char *data;

    fw_buf_init(&b, 4096);
    ck_assert_int_eq(fw_buf_reserve(&b, 1000, NULL), 0);
    ck_assert_uint_ge(b.cap, 1000);
    ck_assert_uint_eq(b.len, 0);
    data = b.data;
    ck_assert_int_eq(fw_buf_append(&b, (char[1000]){ 0 }, 1000, NULL), 0);
    ck_assert_ptr_eq(b.data, data);
    fw_buf_done(&b);
}
END_TEST

START_TEST(printf_appends_short_and_long_text_up_to_the_exact_maximum)
{
    struct fw_buf b;
    char text[1000];
    struct fw_err e = { 0 };

    memset(text, 'y', sizeof text - 1);
    text[sizeof text - 1] = 0;
    fw_buf_init(&b, 3 + sizeof text - 1);
    ck_assert_int_eq(fw_buf_printf(&b, &e, "%d;", 42), 0);
    ck_assert_int_eq(fw_buf_printf(&b, &e, "%s", text), 0);
    ck_assert_uint_eq(b.len, 3 + sizeof text - 1);
    ck_assert_int_eq(memcmp(b.data, "42;yyy", 6), 0);
    ck_assert_int_eq(fw_buf_printf(&b, &e, "x"), -1);
    ck_assert_int_eq(e.code, FW_ETOOBIG);
    ck_assert_int_eq(fw_buf_printf(&b, &e, "%s", ""), 0);
    fw_buf_done(&b);
}
END_TEST

START_TEST(take_hands_over_the_bytes_and_leaves_an_empty_buffer)
{
    struct fw_buf b;
    unsigned char *taken;
    size_t len;

    fw_buf_init(&b, 10);
    ck_assert_int_eq(fw_buf_append(&b, "ab", 2, NULL), 0);
    taken = fw_buf_take(&b, &len);
    ck_assert_uint_eq(len, 2);
    ck_assert_int_eq(memcmp(taken, "ab", 2), 0);
    free(taken);
    ck_assert_ptr_null(fw_buf_take(&b, &len));
    ck_assert_uint_eq(len, 0);
    ck_assert_int_eq(fw_buf_append(&b, "0123456789", 10, NULL), 0);
    fw_buf_done(&b);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("base/buf");
    TCase *tc = tcase_create("buf");

    tcase_add_test(tc, an_empty_buffer_owns_nothing);
    tcase_add_test(tc, appended_bytes_stay_in_order_over_many_growths);
    tcase_add_test(tc, the_maximum_can_be_reached_and_not_passed);
    tcase_add_test(tc, a_huge_request_cannot_overflow_the_sum);
    tcase_add_test(tc, a_failed_allocation_is_an_ordinary_error);
    tcase_add_test(tc, reserve_makes_room_without_adding_bytes);
    tcase_add_test(tc, printf_appends_short_and_long_text_up_to_the_exact_maximum);
    tcase_add_test(tc, take_hands_over_the_bytes_and_leaves_an_empty_buffer);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
