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

enum { WIDE_HEADS = 8, WIDE_DIM = 48, WIDE_PAIRS = 900, WIDE_STEP = 10 };

static struct call *create_wide(const char *id)
{
    struct call *c = call_new(FW_CREATE, id);

    snprintf(c->r.model, sizeof c->r.model, "associative");
    fw_params_set_string(&c->r.config, "rule", "momentum", NULL);
    fw_params_set_number(&c->r.config, "heads", WIDE_HEADS, NULL);
    fw_params_set_number(&c->r.config, "d_k", WIDE_DIM, NULL);
    fw_params_set_number(&c->r.config, "d_v", WIDE_DIM, NULL);
    return c;
}

/* Pairs [from, from + n) of a stream, read after each. */
static struct call *wide_pairs(const char *id, unsigned from, unsigned n)
{
    static const char *const names[] = { "keys", "values", "queries" };
    size_t row = (size_t)WIDE_HEADS * WIDE_DIM, count = n * row;
    struct call *c = call_new(FW_LEARN, id);

    c->own = malloc(3 * count * sizeof *c->own);
    ck_assert_ptr_nonnull(c->own);
    for (size_t k = 0; k < 3; k++) {
        float *x = c->own + k * count;

        for (size_t i = 0; i < count; i++)
            x[i] = (float)((from * row + i) * (7 + 4 * k) % 101) * (1.0f / 2048);
        c->item[k] = (struct fw_tensor){ .dtype = FW_F32,
                                         .ndim = 3,
                                         .shape = { n, WIDE_HEADS, WIDE_DIM },
                                         .data = x,
                                         .bytes = count * sizeof *x };
        snprintf(c->item[k].name, sizeof c->item[k].name, "%s", names[k]);
    }
    c->r.in.count = 3;
    c->r.detail = FW_DETAIL_TOKENS;
    c->r.async = true;
    return c;
}

/* What small learns, which no worker is woken for, made of the stream. */
static void learn_wide_slowly(double *surprise, float *values)
{
    size_t width = (size_t)WIDE_HEADS * WIDE_DIM;

    done(create_wide("slow"));
    for (unsigned i = 0; i < WIDE_PAIRS; i += WIDE_STEP) {
        struct call *c = ok(wide_pairs("slow", i, WIDE_STEP));

        memcpy(surprise + i * WIDE_HEADS, c->r.detail_value,
               sizeof *surprise * WIDE_STEP * WIDE_HEADS);
        memcpy(values + i * width, c->r.values, sizeof *values * WIDE_STEP * width);
        call_free(c);
    }
}

START_TEST(long_learns_that_share_the_workers_give_the_bits_of_short_ones)
{
    static double surprise[WIDE_PAIRS * WIDE_HEADS];
    static float values[WIDE_PAIRS * WIDE_HEADS * WIDE_DIM];
    struct call *c[CLIENTS];
    char id[16];

    learn_wide_slowly(surprise, values);
    for (unsigned i = 0; i < CLIENTS; i++) {
        snprintf(id, sizeof id, "wide%u", i);
        done(create_wide(id));
        c[i] = wide_pairs(id, 0, WIDE_PAIRS);
    }
    for (unsigned i = 0; i < CLIENTS; i++)
        send_call(c[i]);
    for (unsigned i = 0; i < CLIENTS; i++) {
        wait_call(c[i]);
        ck_assert_msg(!c[i]->r.failed, "%s", c[i]->r.err.msg);
        ck_assert_mem_eq(c[i]->r.detail_value, surprise, sizeof surprise);
        ck_assert_mem_eq(c[i]->r.values, values, sizeof values);
        ck_assert_hash_eq(hash_of(c[i]->r.id), hash_of("slow"));
        call_free(c[i]);
    }
    for (int round = 0; round < 3; round++) { /* one alone: the other worker is idle */
        done(create_wide("one"));
        done(wide_pairs("one", 0, WIDE_PAIRS));
        ck_assert_hash_eq(hash_of("one"), hash_of("slow"));
        done(call_new(FW_DELETE, "one"));
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
    tc = tcase_create("long");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 240);
    tcase_add_test(tc, long_learns_that_share_the_workers_give_the_bits_of_short_ones);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
