/* status_test.c - every error code has a status of its own kind. */
#include "config.h"

#include "status.h"

#include <string.h>

#include "test_main.h"

START_TEST(every_code_maps_to_a_status)
{
    int code;

    for (code = FW_OK; code <= FW_EINTERNAL; code++) {
        const struct status *s = status_of((enum fw_code)code);

        ck_assert_int_ge(s->status, 400);
        ck_assert_int_lt(s->status, 600);
        ck_assert_uint_gt(strlen(s->type), 0);
        ck_assert_int_eq(s->retry_after != NULL,
                         s->status == 429 || s->status == 503 || code == FW_EINFLIGHT);
    }
    ck_assert_int_eq(status_of((enum fw_code)999)->status, 500);
    ck_assert_int_eq(status_of(FW_EINVAL)->status, 422);
    ck_assert_int_eq(status_of(FW_ENOSPC)->status, 507);
    ck_assert_str_eq(status_of(FW_ECORRUPT)->type, "state_corrupt");
}
END_TEST

START_TEST(the_json_is_the_documented_one)
{
    struct fw_err e;
    struct fw_buf b;

    fw_buf_init(&b, 4096);
    fw_fail(&e, FW_ENOENT, "session_not_found", "no session '%s'", "a\"b");
    ck_assert_int_eq(status_print(&e, &b), 0);
    fw_buf_append(&b, "", 1, NULL);
    ck_assert_str_eq(
        (char *)b.data,
        "{\"error\":{\"code\":404,\"type\":\"not_found_error\",\"reason\":"
        "\"session_not_found\",\"message\":\"no session 'a\\\"b'\",\"param\":null}}");
    b.len = 0;
    fw_fail_param(&e, FW_EINVAL, "bad_value", "top_logprobs", "no");
    ck_assert_int_eq(status_print(&e, &b), 0);
    fw_buf_append(&b, "", 1, NULL);
    ck_assert_ptr_nonnull(strstr((char *)b.data, "\"param\":\"top_logprobs\"}}"));
    fw_buf_done(&b);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("api/status");
    TCase *t = tcase_create("status");

    tcase_add_test(t, every_code_maps_to_a_status);
    tcase_add_test(t, the_json_is_the_documented_one);
    suite_add_tcase(s, t);
    return run_suite(s);
}
