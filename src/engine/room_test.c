#include "config.h"

#include "engine_testing.h"

#include <stdlib.h>

enum { SESSIONS = 24, ROUNDS = 6 };

static uint64_t small_bytes(void)
{
    return facts_of("size").state_bytes;
}

/* Room for `blocks` small states and no more. */
static void setup_small(size_t blocks)
{
    uint64_t bytes;

    fw_num_init();
    memset(&config, 0, sizeof config);
    make_dir();
    open_engine();
    done(create_small("size"));
    bytes = small_bytes();
    done(call_new(FW_DELETE, "size"));
    close_engine();
    config.max_resident_bytes = blocks * bytes;
    open_engine();
}

static void setup_three(void)
{
    setup_small(3);
}

static void setup_one(void)
{
    setup_small(1);
}

static const char *name(int i)
{
    static char id[32];

    snprintf(id, sizeof id, "s%d", i);
    return id;
}

/* The hash a session has that learned the same pairs alone. */
static struct fw_hash serial_hash(unsigned from, unsigned rounds)
{
    struct fw_hash h;
    unsigned r;

    done(create_small("serial"));
    for (r = 0; r < rounds; r++)
        done(pairs(FW_LEARN, "serial", from + r, 2));
    h = hash_of("serial");
    done(call_new(FW_DELETE, "serial"));
    return h;
}

static void expect_all_serial(void)
{
    int i;

    for (i = 0; i < SESSIONS; i++)
        ck_assert_hash_eq(hash_of(name(i)), serial_hash((unsigned)i, ROUNDS));
}

static void create_all(void)
{
    int i;

    for (i = 0; i < SESSIONS; i++)
        done(create_small(name(i)));
}

START_TEST(many_sessions_share_a_small_memory_and_keep_their_states)
{
    struct fw_engine_stats st;
    unsigned r;
    int i;

    create_all();
    for (r = 0; r < ROUNDS; r++) {
        for (i = 0; i < SESSIONS; i++)
            done(pairs(FW_LEARN, name(i), (unsigned)i + r, 2));
    }
    fw_engine_stats(engine, &st);
    ck_assert_uint_le(st.resident, config.max_resident_bytes / facts_of("s0").state_bytes);
    ck_assert_uint_gt(st.evictions, SESSIONS);
    expect_all_serial();
    reopen_engine();
    expect_all_serial();
}
END_TEST

START_TEST(more_busy_sessions_than_memory_wait_for_each_other)
{
    struct call *c[SESSIONS][ROUNDS];
    unsigned r;
    int i;

    create_all();
    for (r = 0; r < ROUNDS; r++) {
        for (i = 0; i < SESSIONS; i++) {
            c[i][r] = pairs(FW_LEARN, name(i), (unsigned)i + r, 2);
            c[i][r]->r.async = i % 2;
            send_call(c[i][r]);
        }
    }
    for (r = 0; r < ROUNDS; r++) {
        for (i = 0; i < SESSIONS; i++) {
            wait_call(c[i][r]);
            ck_assert_msg(!c[i][r]->r.failed, "%s", c[i][r]->r.err.msg);
            ck_assert_uint_eq(c[i][r]->r.version, r + 1);
            call_free(c[i][r]);
        }
    }
    expect_all_serial();
}
END_TEST

START_TEST(a_second_block_that_cannot_be_had_is_refused_and_the_session_goes_on)
{
    struct call *c;

    done(create_small("a"));
    done(pairs(FW_LEARN, "a", 0, 3));
    c = pairs(FW_SCORE, "a", 0, 3);
    c->r.adapt = true;
    fails(c, FW_EAGAIN, "memory_full");
    done(pairs(FW_SCORE, "a", 0, 3));
    done(pairs(FW_LEARN, "a", 3, 3));
    ck_assert_uint_eq(facts_of("a").version, 2);
}
END_TEST

START_TEST(a_state_larger_than_all_memory_is_refused_at_creation)
{
    fails(create("big"), FW_EINVAL, "state_too_large");
    ck_assert_int_eq(fw_engine_facts(engine, "big", &(struct fw_facts){ 0 }, NULL), -1);
}
END_TEST

START_TEST(a_read_of_an_evicted_session_brings_it_back)
{
    struct fw_hash h;

    done(create_small("a"));
    done(create_small("b"));
    done(pairs(FW_LEARN, "a", 0, 3));
    h = hash_of("a");
    done(pairs(FW_LEARN, "b", 0, 3));
    ck_assert(!facts_of("a").resident);
    ck_assert_hash_eq(hash_of("a"), h);
    ck_assert(facts_of("a").resident);
    ck_assert(!facts_of("b").resident);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("room");
    TCase *three = tcase_create("three blocks"), *one = tcase_create("one block");

    tcase_add_checked_fixture(three, setup_three, teardown);
    tcase_set_timeout(three, 120);
    tcase_add_test(three, many_sessions_share_a_small_memory_and_keep_their_states);
    tcase_add_test(three, more_busy_sessions_than_memory_wait_for_each_other);
    suite_add_tcase(s, three);
    tcase_add_checked_fixture(one, setup_one, teardown);
    tcase_set_timeout(one, 60);
    tcase_add_test(one, a_second_block_that_cannot_be_had_is_refused_and_the_session_goes_on);
    tcase_add_test(one, a_state_larger_than_all_memory_is_refused_at_creation);
    tcase_add_test(one, a_read_of_an_evicted_session_brings_it_back);
    suite_add_tcase(s, one);
    return run_suite(s);
}
