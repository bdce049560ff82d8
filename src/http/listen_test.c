/* listen_test.c - which addresses can be bound. */
#include "config.h"

#include "listen.h"

#include <string.h>
#include <unistd.h>

#include "test_main.h"

static void refuses(const char *address, const char *reason)
{
    char text[LISTEN_TEXT];
    struct fw_err err;
    int fd;

    ck_assert_int_eq(listen_open(address, &fd, text, &err), -1);
    ck_assert_str_eq(err.reason, reason);
    ck_assert_int_eq(err.code, FW_EINVAL);
}

START_TEST(port_zero_is_told_as_the_port_really_bound)
{
    char text[LISTEN_TEXT];
    struct fw_err err;
    int fd, again;

    ck_assert_int_eq(listen_open("127.0.0.1:0", &fd, text, &err), 0);
    ck_assert_int_eq(strncmp(text, "127.0.0.1:", 10), 0);
    ck_assert_str_ne(text, "127.0.0.1:0");
    ck_assert_int_eq(listen_open(text, &again, text, &err), -1);
    ck_assert_str_eq(err.reason, "cannot_bind");
    close(fd);
}
END_TEST

START_TEST(only_loopback_can_be_bound)
{
    refuses("0.0.0.0:0", "not_loopback");
    refuses("192.168.1.1:80", "not_loopback");
    refuses("[::]:80", "not_loopback");
    refuses("[::ffff:127.0.0.1]:80", "not_loopback");
}
END_TEST

START_TEST(what_is_no_address_is_refused)
{
    static const char *const text[] = { "",
                                        "127.0.0.1",
                                        ":80",
                                        "x:80",
                                        "127.0.0.1:",
                                        "127.0.0.1:65536",
                                        "::1:80a",
                                        "[::1]",
                                        "127.0.0.1:-1",
                                        "localhost:80",
                                        "127.0.0.1:8 " };
    size_t i;

    for (i = 0; i < sizeof text / sizeof text[0]; i++)
        refuses(text[i], "bad_address");
}
END_TEST

int main(void)
{
    Suite *s = suite_create("http/listen");
    TCase *t = tcase_create("listen");

    tcase_add_test(t, port_zero_is_told_as_the_port_really_bound);
    tcase_add_test(t, only_loopback_can_be_bound);
    tcase_add_test(t, what_is_no_address_is_refused);
    suite_add_tcase(s, t);
    return run_suite(s);
}
