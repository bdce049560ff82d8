#include "config.h"

#include "engine_testing.h"

#include <stdlib.h>

/* Sends the keyed learn of three pairs again; it must be told apart as a repeat. */
static void repeat(const char *key, uint64_t version, double mean)
{
    struct call *c = pairs(FW_LEARN, "a", 0, 3);

    snprintf(c->r.key, sizeof c->r.key, "%s", key);
    ok(c);
    ck_assert(c->r.replayed);
    ck_assert_uint_eq(c->r.version, version);
    ck_assert_double_eq(c->r.mean, mean);
    call_free(c);
}

static double first(const char *key, bool async)
{
    struct call *c = pairs(FW_LEARN, "a", 0, 3);
    double mean;

    snprintf(c->r.key, sizeof c->r.key, "%s", key);
    c->r.async = async;
    ok(c);
    ck_assert(!c->r.replayed);
    mean = c->r.mean;
    call_free(c);
    return mean;
}

START_TEST(a_repeat_answers_as_the_first_and_learns_nothing)
{
    struct fw_hash h;
    double mean;

    done(create_small("a"));
    done(pairs(FW_LEARN, "a", 7, 1));
    mean = first("k", false);
    h = hash_of("a");
    done(pairs(FW_LEARN, "a", 8, 1));
    repeat("k", 2, mean);
    repeat("k", 2, mean);
    ck_assert_uint_eq(facts_of("a").version, 3);
    ck_assert_hash_ne(hash_of("a"), h);
}
END_TEST

START_TEST(a_repeat_is_known_after_a_checkpoint_a_restart_and_a_restore)
{
    double mean;

    done(create_small("a"));
    done(named(FW_SNAPSHOT, "a", "empty"));
    mean = first("k", false);
    done(call_new(FW_CHECKPOINT, "a"));
    repeat("k", 1, mean);
    reopen_engine();
    repeat("k", 1, mean);
    done(named(FW_RESTORE, "a", "empty"));
    repeat("k", 1, mean);
    reopen_engine();
    repeat("k", 1, mean);
    ck_assert_uint_eq(facts_of("a").version, 2);
}
END_TEST

START_TEST(another_body_under_the_same_key_is_refused)
{
    struct call *c;

    done(create_small("a"));
    first("k", false);
    c = pairs(FW_LEARN, "a", 1, 3);
    snprintf(c->r.key, sizeof c->r.key, "k");
    fails(c, FW_EINVAL, "key_reused");
    done(call_new(FW_CHECKPOINT, "a"));
    c = pairs(FW_LEARN, "a", 1, 3);
    snprintf(c->r.key, sizeof c->r.key, "k");
    fails(c, FW_EINVAL, "key_reused");
    ck_assert_uint_eq(facts_of("a").version, 1);
}
END_TEST

START_TEST(the_same_key_in_flight_is_a_conflict)
{
    enum { N = 20000 };
    struct call *slow, *c;
    char *text = malloc(N);
    int i, conflicts = 0;

    memset(text, 'x', N);
    done(create("a"));
    slow = with_bytes(call_new(FW_LEARN, "a"), text, N);
    snprintf(slow->r.key, sizeof slow->r.key, "k");
    send_call(slow);
    for (i = 0; i < 3; i++) { /* the learn takes 50 ms, these take none */
        c = with_bytes(call_new(FW_LEARN, "a"), text, N);
        snprintf(c->r.key, sizeof c->r.key, "k");
        send_call(c);
        wait_call(c);
        conflicts += c->r.failed && c->r.err.code == FW_EINFLIGHT;
        call_free(c);
    }
    ck_assert_int_ge(conflicts, 1);
    ck_assert(!wait_call(slow)->r.failed);
    ck_assert_uint_eq(facts_of("a").version, 1);
    call_free(slow);
    free(text);
}
END_TEST

START_TEST(keys_are_not_copied_by_a_fork_nor_kept_by_a_new_incarnation)
{
    struct call *c;

    done(create_small("a"));
    first("k", false);
    c = call_new(FW_FORK, "a");
    snprintf(c->r.new_id, sizeof c->r.new_id, "b");
    done(c);
    c = pairs(FW_LEARN, "b", 0, 3);
    snprintf(c->r.key, sizeof c->r.key, "k");
    ok(c);
    ck_assert(!c->r.replayed);
    call_free(c);
    done(call_new(FW_DELETE, "a"));
    done(create_small("a"));
    first("k", false);
    ck_assert_uint_eq(facts_of("a").version, 1);
}
END_TEST

START_TEST(a_commit_repeat_of_an_async_learn_is_durable)
{
    double mean;

    done(create_small("a"));
    mean = first("k", true);
    repeat("k", 1, mean);
    ck_assert_uint_eq(facts_of("a").durable_version, 1);
}
END_TEST

START_TEST(a_refused_learn_does_not_use_its_key_up)
{
    struct call *c;

    done(create_small("a"));
    c = pairs(FW_LEARN, "a", 0, 3);
    snprintf(c->r.key, sizeof c->r.key, "k");
    c->r.has_match = true;
    fails(c, FW_EVERSION, "version_mismatch");
    first("k", false);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("keys");
    TCase *tc = tcase_create("all");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, a_repeat_answers_as_the_first_and_learns_nothing);
    tcase_add_test(tc, a_repeat_is_known_after_a_checkpoint_a_restart_and_a_restore);
    tcase_add_test(tc, another_body_under_the_same_key_is_refused);
    tcase_add_test(tc, the_same_key_in_flight_is_a_conflict);
    tcase_add_test(tc, keys_are_not_copied_by_a_fork_nor_kept_by_a_new_incarnation);
    tcase_add_test(tc, a_commit_repeat_of_an_async_learn_is_durable);
    tcase_add_test(tc, a_refused_learn_does_not_use_its_key_up);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
