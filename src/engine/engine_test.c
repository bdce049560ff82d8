#include "config.h"

#include "engine_testing.h"

static const char prose[] = "The quick brown fox jumps over the lazy dog. A session is a name, "
                            "an owner, a model and a state.\nIts state is trained at test time "
                            "on everything it is sent.\n";

START_TEST(a_session_is_created_learns_predicts_and_tells_its_facts)
{
    struct call *c;
    struct fw_facts f;

    c = ok(create("a"));
    ck_assert_str_eq(c->r.facts.id, "a");
    ck_assert_str_eq(c->r.facts.kind, "stream");
    ck_assert_uint_eq(c->r.facts.state_bytes, 1 << 20);
    ck_assert_uint_eq(c->r.version, 0);
    call_free(c);
    c = ok(learn("a", prose));
    ck_assert_uint_eq(c->r.version, 1);
    ck_assert_uint_eq(c->r.tokens, strlen(prose));
    ck_assert(c->r.mean > 0 && c->r.mean < 9);
    ck_assert_uint_eq(c->r.facts.durable_version, 1);
    call_free(c);
    c = call_new(FW_PREDICT, "a");
    c->r.top = 5;
    ok(c);
    ck_assert_uint_eq(c->r.count, 5);
    ck_assert(c->r.logp[0] >= c->r.logp[1]);
    ck_assert_uint_eq(c->r.version, 1);
    call_free(c);
    f = facts_of("a");
    ck_assert_uint_eq(f.version, 1);
    ck_assert_uint_eq(f.tokens_seen, strlen(prose));
    ck_assert(f.resident);
}
END_TEST

START_TEST(a_session_is_there_after_close_and_open_with_the_same_hash)
{
    struct fw_hash before;
    struct fw_facts f;

    done(create("a"));
    done(learn("a", prose));
    before = hash_of("a");
    reopen_engine();
    f = facts_of("a");
    ck_assert_uint_eq(f.version, 1);
    ck_assert_uint_eq(f.durable_version, 1);
    ck_assert(!f.resident);
    ck_assert_hash_eq(hash_of("a"), before);
}
END_TEST

START_TEST(any_cut_of_a_stream_gives_the_same_hash)
{
    size_t n = strlen(prose), i;
    struct call *c;

    done(create("whole"));
    done(create("bytes"));
    done(learn("whole", prose));
    for (i = 0; i < n; i++) {
        c = with_bytes(call_new(FW_LEARN, "bytes"), prose + i, 1);
        c->r.async = i % 3 != 0;
        done(c);
    }
    ck_assert_hash_eq(hash_of("whole"), hash_of("bytes"));
    ck_assert_uint_eq(facts_of("bytes").version, n);
    ck_assert_uint_eq(facts_of("bytes").tokens_seen, n);
}
END_TEST

START_TEST(reads_leave_the_hash_and_name_the_version_they_read)
{
    struct fw_hash before;
    struct call *c;

    done(create("a"));
    done(learn("a", prose));
    before = hash_of("a");
    c = ok(with_text(call_new(FW_SCORE, "a"), prose));
    ck_assert_uint_eq(c->r.version, 1);
    call_free(c);
    c = with_text(call_new(FW_SCORE, "a"), prose);
    c->r.adapt = true;
    done(c);
    c = with_text(call_new(FW_PREDICT, "a"), "The ");
    c->r.full = true;
    done(c);
    c = call_new(FW_GENERATE, "a");
    c->r.max_tokens = 20;
    c->r.sampling.temperature = 1;
    done(c);
    done(call_new(FW_INSPECT, "a"));
    done(call_new(FW_EXPORT, "a"));
    done(call_new(FW_TENSOR, "a"));
    ck_assert_hash_eq(hash_of("a"), before);
    ck_assert_uint_eq(facts_of("a").version, 1);
}
END_TEST

START_TEST(score_with_adapt_equals_the_surprise_of_learn_to_the_bit)
{
    struct call *a, *b;
    size_t i;

    done(create("a"));
    a = with_text(call_new(FW_SCORE, "a"), prose);
    a->r.adapt = true;
    a->r.detail = FW_DETAIL_TOKENS;
    ok(a);
    b = learn("a", prose);
    b->r.detail = FW_DETAIL_TOKENS;
    ok(b);
    ck_assert_uint_eq(a->r.tokens, b->r.tokens);
    for (i = 0; i < a->r.tokens; i++)
        ck_assert(a->r.detail_value[i] == b->r.detail_value[i]);
    ck_assert(a->r.total == b->r.total && a->r.mean == b->r.mean);
    call_free(a);
    call_free(b);
}
END_TEST

START_TEST(surprise_by_lines_covers_every_token_and_sums_to_the_total)
{
    struct call *c;
    double sum = 0;
    uint64_t tokens = 0;
    size_t i;

    done(create("a"));
    c = learn("a", "one\ntwo\n\nthree");
    c->r.detail = FW_DETAIL_LINES;
    ok(c);
    ck_assert_uint_eq(c->r.lines, 4);
    for (i = 0; i < c->r.lines; i++) {
        ck_assert_uint_eq(c->r.line[i].start, tokens);
        tokens += c->r.line[i].tokens;
        sum += c->r.line[i].bits;
    }
    ck_assert_uint_eq(tokens, 14);
    ck_assert(sum > c->r.total * 0.999999 && sum < c->r.total * 1.000001);
    call_free(c);
}
END_TEST

START_TEST(requests_of_one_session_are_answered_in_the_order_they_came)
{
    enum { N = 40 };
    struct call *c[N];
    uint64_t version = 0;
    int i;

    done(create("a"));
    for (i = 0; i < N; i++) {
        c[i] = i % 4 == 3 ? call_new(FW_PREDICT, "a") : learn("a", "some words. ");
        c[i]->r.top = 1;
        c[i]->r.async = i % 5 == 0;
    }
    for (i = 0; i < N; i++)
        send_call(c[i]);
    for (i = 0; i < N; i++) {
        wait_call(c[i]);
        ck_assert(!c[i]->r.failed);
        version += c[i]->r.verb == FW_LEARN;
        ck_assert_uint_eq(c[i]->r.version, version);
        call_free(c[i]);
    }
}
END_TEST

START_TEST(what_cannot_be_is_refused_with_a_reason)
{
    struct call *c;

    done(create("a"));
    fails(create("a"), FW_EEXIST, "session_exists");
    fails(create("no/slash"), FW_EINVAL, "bad_name");
    c = create("b");
    snprintf(c->r.model, sizeof c->r.model, "nobody");
    fails(c, FW_ENOENT, "model_not_found");
    fails(learn("b", "x"), FW_ENOENT, "session_not_found");
    fails(learn("a", ""), FW_EINVAL, "empty_body");
    fails(call_new(FW_RECALL, "a"), FW_EINVAL, "not_associative");
    fails(named(FW_RESTORE, "a", "none"), FW_ENOENT, "snapshot_not_found");
    fails(named(FW_TENSOR, "a", "none"), FW_ENOENT, "tensor_not_found");
    c = learn("a", "x");
    c->r.has_match = true;
    c->r.match_uid = facts_of("a").uid;
    c->r.match_version = 7;
    fails(c, FW_EVERSION, "version_mismatch");
    ck_assert_uint_eq(facts_of("a").version, 0);
    ck_assert_int_eq(fw_engine_facts(engine, "b", &(struct fw_facts){ 0 }, NULL), -1);
}
END_TEST

START_TEST(a_deleted_id_starts_again_from_the_canonical_state)
{
    struct fw_hash fresh;

    done(create("a"));
    fresh = hash_of("a");
    done(learn("a", prose));
    ck_assert_hash_ne(hash_of("a"), fresh);
    done(call_new(FW_DELETE, "a"));
    fails(call_new(FW_DELETE, "a"), FW_ENOENT, "session_not_found");
    done(create("a"));
    ck_assert_hash_eq(hash_of("a"), fresh);
    ck_assert_uint_eq(facts_of("a").version, 0);
    reopen_engine();
    ck_assert_hash_eq(hash_of("a"), fresh);
}
END_TEST

START_TEST(a_drained_engine_refuses_and_is_not_ready)
{
    struct fw_err err = { 0 };

    done(create("a"));
    ck_assert_int_eq(fw_engine_ready(engine, &err), 0);
    fw_engine_drain(engine);
    fails(learn("a", "x"), FW_EAGAIN, "draining");
    fails(create("b"), FW_EAGAIN, "draining");
    ck_assert_int_eq(fw_engine_ready(engine, &err), -1);
    ck_assert_str_eq(err.reason, "draining");
}
END_TEST

START_TEST(once_reads_are_ended_only_they_are_refused)
{
    struct call *c;

    done(create("a"));
    fw_engine_end_reads(engine, 0);
    c = call_new(FW_GENERATE, "a");
    c->r.max_tokens = 65536;
    fails(c, FW_EAGAIN, "draining");
    done(learn("a", "x"));
    ck_assert_uint_eq(facts_of("a").version, 1);
}
END_TEST

START_TEST(sessions_are_listed_by_prefix_in_pages)
{
    static const char *const id[] = { "b1", "a2", "a1", "c", "a3" };
    struct fw_facts *page = calloc(2, sizeof *page);
    size_t i;
    bool more;

    for (i = 0; i < 5; i++)
        done(create(id[i]));
    ck_assert_uint_eq(fw_engine_list(engine, "a", "", 2, page, &more), 2);
    ck_assert(more);
    ck_assert_str_eq(page[1].id, "a2");
    ck_assert_uint_eq(fw_engine_list(engine, "a", "a2", 2, page, &more), 1);
    ck_assert(!more);
    ck_assert_str_eq(page[0].id, "a3");
    free(page);
}
END_TEST

START_TEST(labels_are_kept_across_a_restart)
{
    struct call *c;

    done(create("a"));
    c = call_new(FW_LABEL, "a");
    c->r.labels = "{\"k\":\"v\"}";
    done(c);
    ck_assert_str_eq(facts_of("a").labels, "{\"k\":\"v\"}");
    reopen_engine();
    ck_assert_str_eq(facts_of("a").labels, "{\"k\":\"v\"}");
}
END_TEST

START_TEST(a_memory_of_many_heads_learns_and_scores_within_its_buffers)
{
    enum { HEADS = 4096, TOKENS = 40 };
    static const float keys[TOKENS * HEADS];
    static float values[TOKENS * HEADS];
    struct call *c = create_small("a");

    fw_params_set_number(&c->r.config, "heads", HEADS, NULL);
    fw_params_set_number(&c->r.config, "d_k", 1, NULL);
    fw_params_set_number(&c->r.config, "d_v", 1, NULL);
    done(c);
    for (size_t i = 0; i < TOKENS * HEADS; i++)
        values[i] = 0.5f;
    for (int scores = 0; scores < 2; scores++) {
        c = call_new(scores ? FW_SCORE : FW_LEARN, "a");
        put_pairs(c, 0, "keys", keys, TOKENS);
        put_pairs(c, 1, "values", values, TOKENS);
        for (size_t i = 0; i < 2; i++) {
            c->item[i].ndim = 3;
            c->item[i].shape[1] = HEADS;
            c->item[i].shape[2] = 1;
            c->item[i].bytes = sizeof values;
        }
        c->r.detail = FW_DETAIL_MEAN;
        ok(c);
        ck_assert_uint_eq(c->r.tokens, TOKENS);
        ck_assert(c->r.mean == 0.5); /* keys of 0 recall 0 */
        call_free(c);
    }
}
END_TEST

START_TEST(queries_that_ask_for_more_values_than_a_reply_may_hold_are_refused)
{
    enum { D_V = 4096, MOST = (1 << 24) / D_V };
    static const float keys[MOST + 1];
    struct call *c = create_small("a");

    fw_params_set_number(&c->r.config, "d_k", 1, NULL);
    fw_params_set_number(&c->r.config, "d_v", D_V, NULL);
    done(c);
    for (unsigned more = 0; more < 2; more++) {
        c = call_new(FW_RECALL, "a");
        put_pairs(c, 0, "queries", keys, MOST + more);
        c->item[0].shape[1] = 1;
        c->item[0].bytes = (MOST + more) * sizeof *keys;
        if (more)
            fails(c, FW_ETOOBIG, "too_many_values");
        else
            done(c);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("engine");
    TCase *tc = tcase_create("all");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, a_session_is_created_learns_predicts_and_tells_its_facts);
    tcase_add_test(tc, a_session_is_there_after_close_and_open_with_the_same_hash);
    tcase_add_test(tc, any_cut_of_a_stream_gives_the_same_hash);
    tcase_add_test(tc, reads_leave_the_hash_and_name_the_version_they_read);
    tcase_add_test(tc, score_with_adapt_equals_the_surprise_of_learn_to_the_bit);
    tcase_add_test(tc, surprise_by_lines_covers_every_token_and_sums_to_the_total);
    tcase_add_test(tc, requests_of_one_session_are_answered_in_the_order_they_came);
    tcase_add_test(tc, what_cannot_be_is_refused_with_a_reason);
    tcase_add_test(tc, a_deleted_id_starts_again_from_the_canonical_state);
    tcase_add_test(tc, a_drained_engine_refuses_and_is_not_ready);
    tcase_add_test(tc, once_reads_are_ended_only_they_are_refused);
    tcase_add_test(tc, sessions_are_listed_by_prefix_in_pages);
    tcase_add_test(tc, labels_are_kept_across_a_restart);
    tcase_add_test(tc, a_memory_of_many_heads_learns_and_scores_within_its_buffers);
    tcase_add_test(tc, queries_that_ask_for_more_values_than_a_reply_may_hold_are_refused);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
