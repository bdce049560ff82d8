/* generate_test.c - where a generation ends, what it learns and what is told on the way. */
#include "config.h"

#include "engine_testing.h"

static const char lesson[] = "one two. one two. one two. one two. one two. one two. one";

static struct call *generate(size_t max_tokens)
{
    struct call *c = call_new(FW_GENERATE, "a");

    c->r.max_tokens = max_tokens; /* temperature 0: the likeliest */
    return c;
}

static void expect_ids(const struct fw_request *r, const char *text)
{
    size_t i;

    ck_assert_uint_eq(r->count, strlen(text));
    for (i = 0; i < r->count; i++)
        ck_assert_int_eq((int)r->ids[i], text[i]);
}

static void teach(void)
{
    done(create("a"));
    done(learn("a", lesson));
}

START_TEST(a_text_ends_before_the_stop_string)
{
    const struct fw_stop stop[] = { { ". one", 5 }, { "zzz", 3 } };
    struct call *c, *whole;

    teach();
    whole = generate(4);
    ok(whole);
    expect_ids(&whole->r, " two");
    ck_assert_int_eq(whole->r.finish, FW_FINISH_LENGTH);
    c = generate(30);
    c->r.sampling.stop = stop;
    c->r.sampling.stops = 2;
    ok(c);
    expect_ids(&c->r, " two");
    ck_assert_int_eq(c->r.finish, FW_FINISH_STOP);
    ck_assert_uint_eq(c->r.bytes.len, 0);
    ck_assert_double_eq(c->r.total, whole->r.total);
    ck_assert_mem_eq(c->r.logp, whole->r.logp, 4 * sizeof(double));
    call_free(c);
    call_free(whole);
}
END_TEST

START_TEST(a_stop_token_ends_it_and_is_left_out)
{
    const uint32_t token = '.';
    struct call *c;

    teach();
    c = generate(30);
    c->r.sampling.stop_token = &token;
    c->r.sampling.stop_tokens = 1;
    ok(c);
    expect_ids(&c->r, " two");
    ck_assert_int_eq(c->r.finish, FW_FINISH_STOP);
    call_free(c);
}
END_TEST

START_TEST(what_stopped_at_once_learns_nothing)
{
    const struct fw_stop stop = { " ", 1 };
    struct call *c;

    teach();
    c = generate(30);
    c->r.learn = true;
    c->r.sampling.stop = &stop;
    c->r.sampling.stops = 1;
    ok(c);
    ck_assert_uint_eq(c->r.count, 0);
    ck_assert_uint_eq(c->r.version, 1);
    ck_assert_double_eq(c->r.mean, 0);
    call_free(c);
    c = learn("a", "x");
    ok(c);
    ck_assert_uint_eq(c->r.version, 2);
    call_free(c);
}
END_TEST

START_TEST(with_learn_a_stopped_text_is_learned_up_to_its_end)
{
    const struct fw_stop stop = { ". ", 2 };
    struct call *c;

    teach();
    done(create("b"));
    done(learn("b", lesson));
    c = with_bytes(generate(30), " two. one", 9);
    c->r.learn = true;
    c->r.learn_prefix = true;
    c->r.sampling.stop = &stop;
    c->r.sampling.stops = 1;
    ok(c);
    expect_ids(&c->r, " two");
    ck_assert_uint_eq(c->r.version, 2);
    ck_assert_uint_eq(c->r.facts.tokens_seen, sizeof lesson - 1 + 13);
    call_free(c);
    done(learn("b", " two. one two"));
    ck_assert_hash_eq(hash_of("a"), hash_of("b"));
    reopen_engine();
    ck_assert_hash_eq(hash_of("a"), hash_of("b"));
}
END_TEST

static void on_progress(struct fw_request *r, size_t ready)
{
    struct call *c = (struct call *)r;

    ck_assert_uint_gt(ready, c->r.top);
    c->r.top = ready; /* which generate does not use */
}

START_TEST(progress_tells_every_token_that_stays)
{
    const struct fw_stop stop = { "two. one two. one", 17 };
    struct call *c;

    teach();
    c = generate(30);
    c->r.progress = on_progress;
    ok(c);
    ck_assert_uint_eq(c->r.top, 30);
    call_free(c);
    c = generate(30);
    c->r.progress = on_progress;
    c->r.sampling.stop = &stop;
    c->r.sampling.stops = 1;
    ok(c);
    ck_assert_uint_eq(c->r.top, 1);
    expect_ids(&c->r, " ");
    call_free(c);
}
END_TEST

static struct call *passing(const char *model)
{
    struct call *c = call_new(FW_GENERATE, "");

    snprintf(c->r.model, sizeof c->r.model, "%s", model);
    fw_params_set_number(&c->r.config, "state_bytes", 1 << 20, NULL);
    c->r.max_tokens = 20;
    return with_text(c, lesson);
}

START_TEST(without_a_session_it_starts_from_the_model_s_first_state)
{
    struct call *c, *twin;

    done(create("a"));
    twin = with_text(generate(20), lesson);
    ok(twin);
    c = passing("bytes");
    ok(c);
    ck_assert_uint_eq(c->r.count, 20);
    ck_assert_mem_eq(c->r.ids, twin->r.ids, 20 * sizeof *c->r.ids);
    call_free(twin);
    call_free(c);
    fails(passing("none"), FW_ENOENT, "model_not_found");
    fails(passing("associative"), FW_EINVAL, "bad_value");
    c = passing("bytes");
    c->r.learn = true;
    fails(c, FW_EINVAL, "needs_session");
    done(create("b")); /* it took nobody's place */
}
END_TEST

START_TEST(many_without_a_session_share_a_small_memory)
{
    struct call *c[32];
    size_t i;

    close_engine();
    config.max_resident_bytes = 3 << 20;
    open_engine();
    teach();
    for (i = 0; i < 32; i++) {
        c[i] = passing("bytes");
        send_call(c[i]);
    }
    for (i = 0; i < 32; i++) {
        wait_call(c[i]);
        if (c[i]->r.failed) /* it waited too long for the others */
            ck_assert_str_eq(c[i]->r.err.reason, "memory_full");
        else
            ck_assert_mem_eq(c[i]->r.ids, c[0]->r.ids, 20 * sizeof *c[i]->r.ids);
    }
    for (i = 0; i < 32; i++)
        call_free(c[i]);
    done(learn("a", "x"));
}
END_TEST

START_TEST(a_cancelled_generation_ends_and_learns_nothing)
{
    struct fw_engine_stats stats;
    struct call *c;
    int learns;

    teach();
    for (learns = 0; learns < 2; learns++) {
        c = generate(65536);
        c->r.learn = learns;
        send_call(c);
        fw_engine_cancel(engine, &c->r);
        wait_call(c);
        ck_assert(c->r.failed);
        ck_assert_str_eq(c->r.err.reason, "cancelled");
        call_free(c);
    }
    ck_assert_uint_eq(facts_of("a").version, 1);
    fw_engine_stats(engine, &stats);
    ck_assert_uint_eq(stats.cancelled, 2);
}
END_TEST

START_TEST(options_are_checked_against_the_vocabulary)
{
    const struct fw_bias bias = { 256, 1 };
    struct call *c;

    teach();
    c = generate(1);
    c->r.sampling.bias = &bias;
    c->r.sampling.biases = 1;
    send_call(c);
    ck_assert(wait_call(c)->r.failed);
    ck_assert_str_eq(c->r.err.param, "logit_bias");
    call_free(c);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("engine/generate");
    TCase *t = tcase_create("generate");

    tcase_set_timeout(t, 120);
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, a_text_ends_before_the_stop_string);
    tcase_add_test(t, a_stop_token_ends_it_and_is_left_out);
    tcase_add_test(t, what_stopped_at_once_learns_nothing);
    tcase_add_test(t, with_learn_a_stopped_text_is_learned_up_to_its_end);
    tcase_add_test(t, progress_tells_every_token_that_stays);
    tcase_add_test(t, without_a_session_it_starts_from_the_model_s_first_state);
    tcase_add_test(t, many_without_a_session_share_a_small_memory);
    tcase_add_test(t, a_cancelled_generation_ends_and_learns_nothing);
    tcase_add_test(t, options_are_checked_against_the_vocabulary);
    suite_add_tcase(s, t);
    return run_suite(s);
}
