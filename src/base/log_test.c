#include "config.h"

#include "test_main.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "fastweight/log.h"

static char got[4096];

/* What one call writes, as a string. */
#define LOGGED(threshold, level, ...)                                                          \
    do {                                                                                       \
        int fd[2];                                                                             \
        ssize_t n;                                                                             \
        ck_assert_int_eq(pipe(fd), 0);                                                         \
        fw_log(&(struct fw_log){ fd[1], threshold }, level, __VA_ARGS__);                      \
        close(fd[1]);                                                                          \
        n = read(fd[0], got, sizeof got - 1);                                                  \
        ck_assert_int_ge(n, 0);                                                                \
        got[n] = 0;                                                                            \
        close(fd[0]);                                                                          \
    } while (0)

START_TEST(a_line_has_priority_text_and_one_newline)
{
    LOGGED(FW_LOG_DEBUG, FW_LOG_INFO, "listening on %s:%d", "127.0.0.1", 80);
    ck_assert_str_eq(got, "<6>listening on 127.0.0.1:80\n");
    LOGGED(FW_LOG_ERR, FW_LOG_ERR, "%s", "");
    ck_assert_str_eq(got, "<3>\n");
}
END_TEST

START_TEST(lines_above_the_threshold_are_dropped)
{
    LOGGED(FW_LOG_INFO, FW_LOG_DEBUG, "x");
    ck_assert_str_eq(got, "");
    LOGGED(FW_LOG_WARNING, FW_LOG_INFO, "x");
    ck_assert_str_eq(got, "");
}
END_TEST

START_TEST(control_characters_become_spaces)
{
    LOGGED(FW_LOG_DEBUG, FW_LOG_INFO, "id '%s'", "a\n<3>forged\r\x1b[31m\x7f\tb");
    ck_assert_str_eq(got, "<6>id 'a <3>forged  [31m  b'\n");
}
END_TEST

START_TEST(a_long_text_is_cut_at_1_kib)
{
    char text[3000];

    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = 0;
    LOGGED(FW_LOG_DEBUG, FW_LOG_INFO, "%s", text);
    ck_assert_uint_eq(strlen(got), 1024);
    ck_assert_int_eq(got[1023], '\n');
    ck_assert_ptr_eq(strchr(got, '\n'), got + 1023);
    text[1020] = 0; /* with "<6>" and '\n' exactly 1,024 bytes */
    LOGGED(FW_LOG_DEBUG, FW_LOG_INFO, "%s", text);
    ck_assert_uint_eq(strlen(got), 1024);
}
END_TEST

START_TEST(a_cut_never_splits_a_utf8_character)
{
    char text[3000];
    size_t i, shift;

    for (shift = 0; shift < 4; shift++) {
        memset(text, 'x', sizeof text);
        for (i = shift; i + 4 < sizeof text; i += 4)
            memcpy(text + i, "\xf0\x9f\x90\x84", 4);
        text[i] = 0;
        LOGGED(FW_LOG_DEBUG, FW_LOG_INFO, "%s", text);
        ck_assert_uint_ge(strlen(got), 1021);
        ck_assert_uint_eq((strlen(got) - 4 - shift) % 4, 0);
    }
}
END_TEST

START_TEST(a_null_log_and_a_closed_descriptor_are_harmless_and_keep_errno)
{
    struct fw_log closed = { -1, FW_LOG_DEBUG };

    fw_log(NULL, FW_LOG_ERR, "x");
    errno = ENOENT;
    fw_log(&closed, FW_LOG_ERR, "x");
    ck_assert_int_eq(errno, ENOENT);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("base/log");
    TCase *tc = tcase_create("log");

    tcase_add_test(tc, a_line_has_priority_text_and_one_newline);
    tcase_add_test(tc, lines_above_the_threshold_are_dropped);
    tcase_add_test(tc, control_characters_become_spaces);
    tcase_add_test(tc, a_long_text_is_cut_at_1_kib);
    tcase_add_test(tc, a_cut_never_splits_a_utf8_character);
    tcase_add_test(tc, a_null_log_and_a_closed_descriptor_are_harmless_and_keep_errno);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
