/* options_test.c - flags, the file, and where an error stands. */
#include "config.h"

#include "options.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test_main.h"

#include "fastweight/log.h"

static struct options o;
static enum options_result result;
static struct fw_err err;

static int read_flags(const char *a, const char *b, const char *c)
{
    char words[4][128] = { "fastweightd" };
    char *argv[5] = { words[0] };
    const char *given[] = { a, b, c };
    int argc = 1;

    for (; argc < 4 && given[argc - 1]; argc++) {
        snprintf(words[argc], sizeof words[argc], "%s", given[argc - 1]);
        argv[argc] = words[argc];
    }
    return options_read(argc, argv, &o, &result, &err);
}

static char path[64];

static void write_file(const char *text)
{
    FILE *f;
    int fd;

    snprintf(path, sizeof path, "%s/fw-options-XXXXXX",
             getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    f = fdopen(fd, "w");
    fputs(text, f);
    fclose(f);
}

START_TEST(without_flags_the_defaults_hold)
{
    ck_assert_int_eq(read_flags(NULL, NULL, NULL), 0);
    ck_assert_str_eq(o.listen, "127.0.0.1:7787");
    ck_assert_uint_eq(o.max_resident_bytes, 1u << 30);
    ck_assert_uint_eq(o.journal_bytes, 256u << 10);
    ck_assert_uint_eq(o.log_level, FW_LOG_INFO);
    ck_assert_int_eq(result, OPTIONS_RUN);
}
END_TEST

START_TEST(a_flag_takes_its_value_either_way_and_sizes_have_units)
{
    ck_assert_int_eq(read_flags("--max-queue", "9", "--max-body-bytes=2M"), 0);
    ck_assert_uint_eq(o.max_queue, 9);
    ck_assert_uint_eq(o.max_body_bytes, 2u << 20);
    ck_assert_int_eq(read_flags("--log-level=debug", NULL, NULL), 0);
    ck_assert_uint_eq(o.log_level, FW_LOG_DEBUG);
    ck_assert_int_eq(read_flags("--help", NULL, NULL), 0);
    ck_assert_int_eq(result, OPTIONS_HELP);
    ck_assert_int_eq(read_flags("--version", NULL, NULL), 0);
    ck_assert_int_eq(result, OPTIONS_VERSION);
}
END_TEST

START_TEST(wrong_flags_are_named)
{
    static const char *const bad[][2] = { { "--no-such-flag", "1" },
                                          { "--max_queue", "1" },
                                          { "stray", NULL },
                                          { "--", NULL },
                                          { "--max-queue", NULL },
                                          { "--max-queue", "-1" },
                                          { "--max-queue", "0" },
                                          { "--max-queue", "1K" },
                                          { "--max-queue=", NULL },
                                          { "--max-body-bytes", "1T" },
                                          { "--max-body-bytes", "99999999999999999999" },
                                          { "--max-resident-bytes", "18014398509481984K" },
                                          { "--log-level", "loud" },
                                          { "--data-dir", "" },
                                          { "--config", "/nonexistent/file" } };
    size_t i;

    for (i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ck_assert_msg(read_flags(bad[i][0], bad[i][1], NULL) == -1, "%s", bad[i][0]);
        ck_assert_int_eq(err.code, FW_EINVAL);
    }
}
END_TEST

START_TEST(flags_override_the_file)
{
    write_file("# a comment\nmax_queue = 7\n; another\nmax_async_bytes=1M ; inline\n");
    ck_assert_int_eq(read_flags("--max-queue=8", "--config", path), 0);
    ck_assert_uint_eq(o.max_queue, 8);
    ck_assert_uint_eq(o.max_async_bytes, 1u << 20);
    unlink(path);
}
END_TEST

static void file_fails(const char *text, const char *line, const char *what)
{
    write_file(text);
    ck_assert_int_eq(read_flags("--config", path, NULL), -1);
    ck_assert_msg(strstr(err.msg, line) && strstr(err.msg, what), "%s", err.msg);
    unlink(path);
}

START_TEST(an_error_in_the_file_names_line_and_key)
{
    file_fails("max_queue = 7\nmax_quue = 8\n", ":2:", "max_quue");
    file_fails("max_queue = 7\n\nmax_queue = 8\n", ":3:", "twice");
    file_fails("[server]\nmax_queue = 7\n", ":2:", "sections");
    file_fails("max_queue = x\n", ":1:", "max_queue");
    file_fails("just words\n", ":1:", "KEY = VALUE");
    file_fails("max-queue = 3\n", ":1:", "max-queue");
}
END_TEST

START_TEST(the_documented_file_holds_every_key_with_its_default)
{
    const char *top = getenv("top_srcdir");
    char text[64], conf[512], line[256], *key;
    struct options defaults;
    FILE *in, *out;
    int fd, keys = 0;

    ck_assert_int_eq(read_flags(NULL, NULL, NULL), 0);
    defaults = o;
    snprintf(conf, sizeof conf, "%s/conf/fastweightd.conf", top ? top : ".");
    in = fopen(conf, "r");
    ck_assert_ptr_nonnull(in);
    snprintf(text, sizeof text, "/tmp/fw-options-XXXXXX");
    fd = mkstemp(text);
    ck_assert_int_ge(fd, 0);
    out = fdopen(fd, "w");
    while (fgets(line, sizeof line, in)) { /* "#key = value" is a setting commented out */
        key = line + 1;
        if (line[0] == '#' && key[0] >= 'a' && key[0] <= 'z' && strstr(key, " = ")) {
            fputs(key, out);
            keys++;
        }
    }
    fclose(in);
    fclose(out);
    ck_assert_int_eq(keys, 15);
    ck_assert_msg(read_flags("--config", text, NULL) == 0, "%s", err.msg);
    unlink(text);
    memset(defaults.data_dir, 0, sizeof defaults.data_dir); /* its default is built in */
    memset(o.data_dir, 0, sizeof o.data_dir);
    memset(defaults.models_dir, 0, sizeof defaults.models_dir); /* this one's too */
    memset(o.models_dir, 0, sizeof o.models_dir);
    ck_assert_mem_eq(&o, &defaults, sizeof o);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("daemon/options");
    TCase *t = tcase_create("options");

    unsetenv("STATE_DIRECTORY");
    tcase_add_test(t, without_flags_the_defaults_hold);
    tcase_add_test(t, a_flag_takes_its_value_either_way_and_sizes_have_units);
    tcase_add_test(t, wrong_flags_are_named);
    tcase_add_test(t, flags_override_the_file);
    tcase_add_test(t, an_error_in_the_file_names_line_and_key);
    tcase_add_test(t, the_documented_file_holds_every_key_with_its_default);
    suite_add_tcase(s, t);
    return run_suite(s);
}
