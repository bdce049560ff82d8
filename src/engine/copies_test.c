#include "config.h"

#include "engine_testing.h"

#include <stdlib.h>

START_TEST(a_fork_has_the_state_at_its_place_and_goes_its_own_way)
{
    struct fw_hash h;
    struct fw_facts f;
    struct call *c;

    done(create_small("a"));
    done(pairs(FW_LEARN, "a", 0, 5));
    h = hash_of("a");
    c = call_new(FW_FORK, "a");
    snprintf(c->r.new_id, sizeof c->r.new_id, "b");
    ok(c);
    ck_assert_str_eq(c->r.facts.id, "b");
    ck_assert_uint_eq(c->r.version, 1);
    call_free(c);
    f = facts_of("b");
    ck_assert_str_eq(f.parent_id, "a");
    ck_assert_uint_eq(f.parent_version, 1);
    ck_assert_hash_eq(f.parent_hash, h);
    ck_assert_uint_eq(f.tokens_seen, 5);
    ck_assert_hash_eq(hash_of("b"), h);
    done(pairs(FW_LEARN, "b", 5, 1));
    ck_assert_uint_eq(facts_of("b").version, 2);
    ck_assert_hash_ne(hash_of("b"), h);
    ck_assert_hash_eq(hash_of("a"), h);
    reopen_engine();
    done(pairs(FW_LEARN, "a", 5, 1));
    ck_assert_hash_eq(hash_of("a"), hash_of("b"));
}
END_TEST

START_TEST(a_fork_without_a_name_gets_one_and_a_taken_name_is_refused)
{
    struct call *c;

    done(create_small("a"));
    c = ok(call_new(FW_FORK, "a"));
    ck_assert_uint_gt(strlen(c->r.facts.id), 2);
    call_free(c);
    c = call_new(FW_FORK, "a");
    snprintf(c->r.new_id, sizeof c->r.new_id, "a");
    fails(c, FW_EEXIST, "session_exists");
}
END_TEST

START_TEST(restore_brings_the_snapshot_back_as_a_new_version)
{
    struct fw_hash h;
    struct call *c;

    done(create_small("a"));
    done(pairs(FW_LEARN, "a", 0, 3));
    h = hash_of("a");
    c = ok(named(FW_SNAPSHOT, "a", "s1"));
    ck_assert_uint_eq(c->r.count, 1);
    ck_assert_str_eq(c->r.snapshot[0].name, "s1");
    ck_assert_uint_eq(c->r.snapshot[0].tokens_seen, 3);
    ck_assert_hash_eq(c->r.snapshot[0].hash, h);
    call_free(c);
    fails(named(FW_SNAPSHOT, "a", "s1"), FW_EEXIST, "snapshot_exists");
    done(pairs(FW_LEARN, "a", 3, 4));
    c = ok(named(FW_RESTORE, "a", "s1"));
    ck_assert_uint_eq(c->r.version, 3);
    ck_assert_uint_eq(c->r.facts.durable_version, 3);
    ck_assert_uint_eq(c->r.facts.tokens_seen, 3);
    ck_assert_hash_eq(c->r.facts.hash, h);
    call_free(c);
    reopen_engine();
    ck_assert_hash_eq(hash_of("a"), h);
    ck_assert_uint_eq(facts_of("a").version, 3);
    c = ok(call_new(FW_SNAPSHOT_LIST, "a"));
    ck_assert_uint_eq(c->r.count, 1);
    call_free(c);
    done(named(FW_SNAPSHOT_DROP, "a", "s1"));
    fails(named(FW_RESTORE, "a", "s1"), FW_ENOENT, "snapshot_not_found");
}
END_TEST

START_TEST(a_session_is_made_from_another_ones_snapshot)
{
    struct fw_hash h;
    struct call *c;

    done(create_small("a"));
    done(pairs(FW_LEARN, "a", 0, 3));
    h = hash_of("a");
    done(named(FW_SNAPSHOT, "a", "s1"));
    done(pairs(FW_LEARN, "a", 3, 3));
    c = named(FW_CREATE, "b", "s1");
    snprintf(c->r.from, sizeof c->r.from, "a");
    done(c);
    ck_assert_hash_eq(hash_of("b"), h);
    ck_assert_uint_eq(facts_of("b").tokens_seen, 3);
    ck_assert_uint_eq(facts_of("b").parent_version, 1);
}
END_TEST

/* The export bytes, to be freed. */
static unsigned char *export_of(const char *id, size_t *len)
{
    struct call *c = ok(call_new(FW_EXPORT, id));
    unsigned char *file = fw_buf_take(&c->r.bytes, len);

    call_free(c);
    return file;
}

static struct call *import(const char *id, const void *file, size_t len)
{
    struct call *c = call_new(FW_IMPORT, id);

    c->r.file = file;
    c->r.file_len = len;
    return c;
}

START_TEST(an_export_imports_into_an_equal_session_with_the_same_hash)
{
    struct fw_hash h;
    unsigned char *file;
    size_t len;

    done(create_small("a"));
    done(create_small("b"));
    file = export_of("a", &len); /* the empty state too */
    done(import("b", file, len));
    free(file);
    done(pairs(FW_LEARN, "a", 0, 5));
    h = hash_of("a");
    file = export_of("a", &len);
    done(pairs(FW_LEARN, "b", 9, 1));
    done(import("b", file, len));
    ck_assert_hash_eq(hash_of("b"), h);
    ck_assert_uint_eq(facts_of("b").version, 3);
    ck_assert_uint_eq(facts_of("b").tokens_seen, 5);
    reopen_engine();
    ck_assert_hash_eq(hash_of("b"), h);
    done(pairs(FW_LEARN, "a", 5, 2));
    done(pairs(FW_LEARN, "b", 5, 2));
    ck_assert_hash_eq(hash_of("b"), hash_of("a"));
    free(file);
}
END_TEST

START_TEST(any_flipped_or_missing_byte_of_an_import_is_refused_and_changes_nothing)
{
    struct fw_hash before;
    unsigned char *file;
    struct call *c;
    size_t len, i;

    done(create_small("a"));
    done(pairs(FW_LEARN, "a", 0, 5));
    file = export_of("a", &len);
    done(pairs(FW_LEARN, "a", 5, 1));
    before = hash_of("a");
    for (i = 0; i < len; i++) {
        file[i] ^= 1 << i % 8;
        c = import("a", file, len);
        send_call(c);
        wait_call(c);
        ck_assert_msg(c->r.failed && c->r.err.code == FW_EINVAL, "byte %zu", i);
        call_free(c);
        file[i] ^= 1 << i % 8;
        c = import("a", file, i);
        send_call(c);
        wait_call(c);
        ck_assert_msg(c->r.failed && c->r.err.code == FW_EINVAL, "cut at %zu", i);
        call_free(c);
    }
    ck_assert_hash_eq(hash_of("a"), before);
    ck_assert_uint_eq(facts_of("a").version, 2);
    done(import("a", file, len));
    free(file);
}
END_TEST

START_TEST(an_import_of_another_model_or_configuration_is_refused)
{
    unsigned char *file;
    struct call *c;
    size_t len;

    done(create_small("a"));
    file = export_of("a", &len);
    c = create_small("b");
    fw_params_set_number(&c->r.config, "beta", 0.5, NULL);
    done(c);
    fails(import("b", file, len), FW_EINVAL, "bad_import");
    done(create("c"));
    fails(import("c", file, len), FW_EINVAL, "bad_import");
    fails(import("nobody", file, len), FW_ENOENT, "session_not_found");
    free(file);
}
END_TEST

START_TEST(a_snapshot_reads_as_the_export_of_its_time)
{
    struct fw_hash h;
    struct call *c;

    done(create_small("a"));
    done(create_small("b"));
    done(pairs(FW_LEARN, "a", 0, 3));
    h = hash_of("a");
    done(named(FW_SNAPSHOT, "a", "s1"));
    done(pairs(FW_LEARN, "a", 3, 3));
    c = ok(named(FW_SNAPSHOT_GET, "a", "s1"));
    done(import("b", c->r.bytes.data, c->r.bytes.len));
    call_free(c);
    ck_assert_hash_eq(hash_of("b"), h);
}
END_TEST

START_TEST(learns_behind_an_import_are_learned_on_top_of_it)
{
    struct call *c[3];
    unsigned char *file;
    size_t len;
    int i;

    done(create_small("a"));
    done(create_small("b"));
    done(pairs(FW_LEARN, "a", 0, 5));
    file = export_of("a", &len);
    c[0] = pairs(FW_LEARN, "b", 20, 2);
    c[1] = import("b", file, len);
    c[2] = pairs(FW_LEARN, "b", 5, 2);
    for (i = 0; i < 3; i++)
        send_call(c[i]);
    for (i = 0; i < 3; i++) {
        ck_assert(!wait_call(c[i])->r.failed);
        ck_assert_uint_eq(c[i]->r.version, i + 1);
        call_free(c[i]);
    }
    done(pairs(FW_LEARN, "a", 5, 2));
    ck_assert_hash_eq(hash_of("a"), hash_of("b"));
    free(file);
}
END_TEST

START_TEST(generate_with_learn_learns_exactly_its_tokens_at_its_place)
{
    struct call *c, *again;
    unsigned char text[64];
    size_t i;

    done(create("a"));
    done(create("b"));
    done(learn("a", "abcabcabcabcabc"));
    done(learn("b", "abcabcabcabcabc"));
    c = call_new(FW_GENERATE, "a");
    c->r.max_tokens = 30;
    c->r.sampling.temperature = 1;
    c->r.sampling.seed = 7;
    again = call_new(FW_GENERATE, "a");
    again->r.max_tokens = 30;
    again->r.sampling.temperature = 1;
    again->r.sampling.seed = 7;
    ok(again);
    c->r.learn = true;
    send_call(c);
    done(learn("a", "after"));
    ck_assert(!wait_call(c)->r.failed);
    ck_assert_uint_eq(c->r.version, 2);
    ck_assert_uint_eq(c->r.count, 30);
    for (i = 0; i < 30; i++)
        text[i] = (unsigned char)c->r.ids[i];
    ck_assert_uint_eq(again->r.ids[0], c->r.ids[0]); /* later ones: one of them had learned */
    done(with_bytes(call_new(FW_LEARN, "b"), text, 30));
    done(learn("b", "after"));
    ck_assert_hash_eq(hash_of("a"), hash_of("b"));
    call_free(c);
    call_free(again);
    reopen_engine();
    ck_assert_hash_eq(hash_of("a"), hash_of("b"));
}
END_TEST

START_TEST(recall_and_learn_with_queries_read_values)
{
    struct call *c, *r;

    done(create_small("a"));
    c = pairs(FW_LEARN, "a", 0, 3);
    put_pairs(c, 2, "queries", c->own, 3);
    ok(c);
    ck_assert_uint_eq(c->r.values_shape[0], 3);
    ck_assert_uint_eq(c->r.values_shape[2], DIM);
    r = call_new(FW_RECALL, "a");
    put_pairs(r, 0, "queries", c->own + 2 * DIM, 1);
    ok(r);
    ck_assert(memcmp(r->r.values, c->r.values + 2 * DIM, DIM * sizeof(float)) == 0);
    call_free(r);
    call_free(c);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("copies");
    TCase *tc = tcase_create("all");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, a_fork_has_the_state_at_its_place_and_goes_its_own_way);
    tcase_add_test(tc, a_fork_without_a_name_gets_one_and_a_taken_name_is_refused);
    tcase_add_test(tc, restore_brings_the_snapshot_back_as_a_new_version);
    tcase_add_test(tc, a_session_is_made_from_another_ones_snapshot);
    tcase_add_test(tc, an_export_imports_into_an_equal_session_with_the_same_hash);
    tcase_add_test(tc, any_flipped_or_missing_byte_of_an_import_is_refused_and_changes_nothing);
    tcase_add_test(tc, an_import_of_another_model_or_configuration_is_refused);
    tcase_add_test(tc, a_snapshot_reads_as_the_export_of_its_time);
    tcase_add_test(tc, learns_behind_an_import_are_learned_on_top_of_it);
    tcase_add_test(tc, generate_with_learn_learns_exactly_its_tokens_at_its_place);
    tcase_add_test(tc, recall_and_learn_with_queries_read_values);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
