/* path_test.c - percent-decoding and route patterns. */
#include "config.h"

#include "path.h"

#include <string.h>

#include "test_main.h"

static bool matches(const char *raw, const char *pattern, struct fw_http_text *capture)
{
    static struct path p; /* the last one's bytes are freed by the next call */
    struct fw_err err;

    path_done(&p);
    ck_assert_int_eq(path_split(&p, raw, &err), 0);
    return path_match(&p, pattern, capture);
}

START_TEST(a_pattern_captures_its_segments)
{
    struct fw_http_text c[PATH_CAPTURES];

    ck_assert(
        matches("/v1/sessions/a.b-c/snapshots/s1", "/v1/sessions/{id}/snapshots/{name}", c));
    ck_assert_str_eq(c[0].data, "a.b-c");
    ck_assert_str_eq(c[1].data, "s1");
    ck_assert(!matches("/v1/sessions", "/v1/sessions/{id}", c));
    ck_assert(!matches("/v1/sessions/", "/v1/sessions/{id}", c));
    ck_assert(!matches("/v1/sessions/a/", "/v1/sessions/{id}", c));
    ck_assert(!matches("/v1/sessions/a/b/c/d/e/f/g/h", "/v1/sessions/{id}", c));
    ck_assert(!matches("/", "/v1/sessions", c));
    ck_assert(!matches("/v1/sessionsx", "/v1/sessions", c));
}
END_TEST

START_TEST(an_encoded_slash_or_nul_stays_inside_its_segment)
{
    struct fw_http_text c[PATH_CAPTURES];

    ck_assert(matches("/v1/sessions/a%2Fb", "/v1/sessions/{id}", c));
    ck_assert_str_eq(c[0].data, "a/b");
    ck_assert(matches("/v1/sessions/a%00b", "/v1/sessions/{id}", c));
    ck_assert_uint_eq(c[0].len, 3);
    ck_assert_mem_eq(c[0].data, "a\0b", 4);
    ck_assert(matches("/v1/sessions/%2e%2E", "/v1/sessions/{id}", c));
    ck_assert_str_eq(c[0].data, "..");
    ck_assert(matches("/v1/se%73sions", "/v1/sessions", c));
}
END_TEST

START_TEST(malformed_escapes_are_refused)
{
    static const char *const bad[] = { "/%", "/a%2", "/%zz", "/%2/x", "*", "a/b", "/x/%-1" };
    struct fw_err err;
    struct path p;
    char out[8];
    size_t i, len;

    for (i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ck_assert_int_eq(path_split(&p, bad[i], &err), -1);
        ck_assert_int_eq(err.code, FW_ESYNTAX);
        path_done(&p);
    }
    ck_assert_int_eq(path_decode("a%2", out, &len), -1);
    ck_assert_int_eq(path_decode("a%2bc", out, &len), 0);
    ck_assert_str_eq(out, "a+c");
    ck_assert_uint_eq(len, 3);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("http/path");
    TCase *t = tcase_create("path");

    tcase_add_test(t, a_pattern_captures_its_segments);
    tcase_add_test(t, an_encoded_slash_or_nul_stays_inside_its_segment);
    tcase_add_test(t, malformed_escapes_are_refused);
    suite_add_tcase(s, t);
    return run_suite(s);
}
