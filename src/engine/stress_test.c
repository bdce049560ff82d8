#include "config.h"

#include "engine_testing.h"

#include <stdlib.h>

enum { CLIENTS = 6, STEPS = 150, SHARED = 5 };

static void setup_tight(void)
{
    uint64_t bytes;

    setup();
    done(create_small("size"));
    bytes = facts_of("size").state_bytes;
    close_engine();
    config.max_resident_bytes = 4 * bytes;
    config.journal_bytes = 3000;
    config.max_async_bytes = 1500;
    open_engine();
}

static unsigned next_random(unsigned *x)
{
    *x = *x * 1664525u + 1013904223u;
    return *x >> 16;
}

struct client {
    pthread_t thread;
    unsigned seed, learned;
    char own[16];
};

/* Anything may be refused here but by these codes; what counts is that it is answered. */
static void any(struct call *c)
{
    send_call(c);
    wait_call(c);
    if (c->r.failed)
        ck_assert_msg(c->r.err.code == FW_ENOENT || c->r.err.code == FW_EEXIST ||
                          c->r.err.code == FW_EAGAIN || c->r.err.code == FW_EBUSY,
                      "code %d %s: %s", (int)c->r.err.code, c->r.err.reason, c->r.err.msg);
    call_free(c);
}

static struct call *async_call(struct call *c, bool async)
{
    c->r.async = async;
    return c;
}

/* One of what happens to sessions that all clients share, create and delete. */
static void disturb(unsigned *x)
{
    char id[16], other[16];
    struct call *c;

    snprintf(id, sizeof id, "shared%u", next_random(x) % SHARED);
    snprintf(other, sizeof other, "shared%u", next_random(x) % SHARED);
    switch (next_random(x) % 12) {
    case 0:
        any(create_small(id));
        break;
    case 1:
        any(call_new(FW_DELETE, id));
        break;
    case 2:
        c = call_new(FW_FORK, id);
        snprintf(c->r.new_id, sizeof c->r.new_id, "%s", other);
        any(c);
        break;
    case 3:
        any(named(FW_SNAPSHOT, id, "s"));
        break;
    case 4:
        any(named(FW_RESTORE, id, "s"));
        break;
    case 5:
        any(named(FW_SNAPSHOT_DROP, id, "s"));
        break;
    case 6:
        c = pairs(FW_SCORE, id, 0, 3);
        c->r.adapt = true;
        any(c);
        break;
    case 7:
        any(call_new(FW_CHECKPOINT, id));
        break;
    case 8:
        any(call_new(FW_EXPORT, id));
        break;
    default:
        any(async_call(pairs(FW_LEARN, id, next_random(x), 2), next_random(x) % 2));
        break;
    }
}

/* The client's own session: refused for memory, a learn is sent again. */
static void learn_own(struct client *cl)
{
    struct call *c;
    bool again;

    do {
        c = pairs(FW_LEARN, cl->own, cl->learned, 1);
        c->r.async = cl->learned % 3 == 0;
        snprintf(c->r.key, sizeof c->r.key, "k%u", cl->learned);
        send_call(c);
        wait_call(c);
        again = c->r.failed;
        ck_assert_msg(!again || c->r.err.code == FW_EAGAIN, "%s", c->r.err.msg);
        ck_assert(again || c->r.version == cl->learned + 1);
        call_free(c);
    } while (again);
    cl->learned++;
}

static void *run_client(void *arg)
{
    struct client *cl = arg;
    int i;

    for (i = 0; i < STEPS; i++) {
        if (next_random(&cl->seed) % 2)
            learn_own(cl);
        else
            disturb(&cl->seed);
    }
    return NULL;
}

START_TEST(clients_that_disturb_each_other_are_all_answered_and_keep_their_states)
{
    struct client cl[CLIENTS];
    struct fw_hash h;
    unsigned i, j;

    for (i = 0; i < CLIENTS; i++) {
        cl[i] = (struct client){ .seed = 17 * i + 1 };
        snprintf(cl[i].own, sizeof cl[i].own, "own%u", i);
        done(create_small(cl[i].own));
    }
    for (i = 0; i < CLIENTS; i++)
        ck_assert_int_eq(pthread_create(&cl[i].thread, NULL, run_client, &cl[i]), 0);
    for (i = 0; i < CLIENTS; i++)
        pthread_join(cl[i].thread, NULL);
    reopen_engine();
    for (i = 0; i < CLIENTS; i++) {
        done(create_small("serial"));
        for (j = 0; j < cl[i].learned; j++)
            done(async_call(pairs(FW_LEARN, "serial", j, 1), true));
        h = hash_of("serial");
        done(call_new(FW_DELETE, "serial"));
        ck_assert_hash_eq(hash_of(cl[i].own), h);
        ck_assert_uint_eq(facts_of(cl[i].own).version, cl[i].learned);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("stress");
    TCase *tc = tcase_create("all");

    tcase_add_checked_fixture(tc, setup_tight, teardown);
    tcase_set_timeout(tc, 240);
    tcase_add_test(tc, clients_that_disturb_each_other_are_all_answered_and_keep_their_states);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
