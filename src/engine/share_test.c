/* share_test.c - sessions of one checkpoint that learn and generate at the same time. */
#include "config.h"

#include "fastweight/models.h"

#include "../model/models_testing.h"
#include "engine_int.h"
#include "engine_testing.h"

#include <sys/stat.h>

/* GENERATED: longer than a slice as a rule, so that they meet. */
enum { SESSIONS = 16, TOKENS = 40, GENERATED = 500, VOCAB = 19 };

static struct testing *checkpoint;
static struct fw_models *models;
static uint32_t lesson[SESSIONS][TOKENS];
static char models_dir[64];

static void setup_model(void)
{
    fw_num_init();
    checkpoint = testing_deltanet(true);
    snprintf(models_dir, sizeof models_dir, "%s", checkpoint->dir);
    snprintf(checkpoint->dir, sizeof checkpoint->dir, "%.40s/tiny", models_dir);
    ck_assert_int_eq(mkdir(checkpoint->dir, 0700), 0);
    testing_save(checkpoint);
    ck_assert_int_eq(fw_models_open(&models, models_dir, NULL), 0);
    for (unsigned i = 0; i < SESSIONS; i++)
        for (unsigned t = 0; t < TOKENS; t++)
            lesson[i][t] = (t * t + i * (t + 3)) % VOCAB;
    memset(&config, 0, sizeof config);
    config.models = models;
    make_dir();
    open_engine();
}

static void teardown_model(void)
{
    teardown();
    fw_models_close(models);
    testing_remove(checkpoint);
    ck_assert_int_eq(rmdir(models_dir), 0);
}

/* ---- a gate: both workers stand still, so that whatever is sent waits on the pool */

static pthread_mutex_t gate_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t gate_cond = PTHREAD_COND_INITIALIZER;
static struct fw_task gate_task[2];
static unsigned gate_inside;
static bool gate_open;

static void stand(struct fw_task *task)
{
    (void)task;
    pthread_mutex_lock(&gate_mutex);
    gate_inside++;
    pthread_cond_broadcast(&gate_cond);
    while (!gate_open)
        pthread_cond_wait(&gate_cond, &gate_mutex);
    pthread_mutex_unlock(&gate_mutex);
}

static void close_gate(void)
{
    gate_open = false;
    gate_inside = 0;
    for (unsigned i = 0; i < 2; i++) {
        gate_task[i].run = stand;
        fw_pool_submit(pool, &gate_task[i]);
    }
    pthread_mutex_lock(&gate_mutex);
    while (gate_inside < 2)
        pthread_cond_wait(&gate_cond, &gate_mutex);
    pthread_mutex_unlock(&gate_mutex);
}

static void open_gate(void)
{
    pthread_mutex_lock(&gate_mutex);
    gate_open = true;
    pthread_cond_broadcast(&gate_cond);
    pthread_mutex_unlock(&gate_mutex);
}

/* ---- requests */

static const char *name_of(const char *prefix, unsigned i)
{
    static _Thread_local char name[16];

    snprintf(name, sizeof name, "%.8s%u", prefix, i);
    return name;
}

static struct call *create_tiny(const char *id)
{
    struct call *c = call_new(FW_CREATE, id);

    snprintf(c->r.model, sizeof c->r.model, "tiny");
    return c;
}

static void create_all(const char *prefix)
{
    for (unsigned i = 0; i < SESSIONS; i++)
        done(create_tiny(name_of(prefix, i)));
}

static struct call *with_ids(struct call *c, const uint32_t *ids, size_t n)
{
    c->item[0] = (struct fw_tensor){ .name = "tokens",
                                     .dtype = FW_U32,
                                     .ndim = 1,
                                     .shape = { n },
                                     .data = ids,
                                     .bytes = n * sizeof *ids };
    c->r.in.count = n > 0;
    return c;
}

static struct call *learn_ids(const char *id, const uint32_t *ids, size_t n)
{
    struct call *c = with_ids(call_new(FW_LEARN, id), ids, n);

    c->r.detail = FW_DETAIL_TOKENS;
    c->r.async = true; /* else hand-over waits for the disk, and few meet */
    return c;
}

static struct call *generate(const char *id, unsigned i, bool learn_it)
{
    struct call *c = with_ids(call_new(FW_GENERATE, id), lesson[i], i % 3);

    c->r.max_tokens = GENERATED + i;
    c->r.sampling.temperature = 0.9f;
    c->r.sampling.seed = i;
    c->r.sampling.top_k = i % 2 ? 5 : 0;
    c->r.learn = learn_it;
    return c;
}

static uint64_t shared_passes(void)
{
    struct fw_engine_stats st;

    fw_engine_stats(engine, &st);
    return st.shared_passes;
}

START_TEST(sessions_that_learn_token_by_token_together_keep_the_bytes_of_each_alone)
{
    static struct call *call[SESSIONS][TOKENS];

    create_all("alone");
    create_all("many");
    for (unsigned i = 0; i < SESSIONS; i++) /* so that they are in memory */
        hash_of(name_of("many", i));
    close_gate();
    for (unsigned t = 0; t < TOKENS; t++)
        for (unsigned i = 0; i < SESSIONS; i++) {
            call[i][t] = learn_ids(name_of("many", i), lesson[i] + t, 1);
            send_call(call[i][t]);
        }
    open_gate();
    for (unsigned i = 0; i < SESSIONS; i++) {
        struct call *whole = ok(learn_ids(name_of("alone", i), lesson[i], TOKENS));

        for (unsigned t = 0; t < TOKENS; t++) {
            wait_call(call[i][t]);
            ck_assert(!call[i][t]->r.failed);
            ck_assert_uint_eq(call[i][t]->r.version, t + 1);
            ck_assert(call[i][t]->r.detail_value[0] == whole->r.detail_value[t]);
            call_free(call[i][t]);
        }
        call_free(whole);
        ck_assert_hash_eq(hash_of(name_of("many", i)), hash_of(name_of("alone", i)));
    }
    ck_assert_uint_gt(shared_passes(), 0);
    reopen_engine();
    for (unsigned i = 0; i < SESSIONS; i++)
        ck_assert_hash_eq(hash_of(name_of("many", i)), hash_of(name_of("alone", i)));
}
END_TEST

/* They share from their second slice on: how many do is the machine's business. */
START_TEST(sessions_that_generate_together_get_what_each_gets_alone)
{
    struct call *call[SESSIONS];

    create_all("alone");
    create_all("many");
    close_gate();
    for (unsigned i = 0; i < SESSIONS; i++)
        send_call(call[i] = generate(name_of("many", i), i, i % 2));
    open_gate();
    for (unsigned i = 0; i < SESSIONS; i++) {
        struct call *alone;

        wait_call(call[i]);
        alone = ok(generate(name_of("alone", i), i, i % 2));
        ck_assert(!call[i]->r.failed);
        ck_assert_uint_eq(call[i]->r.count, alone->r.count);
        ck_assert_mem_eq(call[i]->r.ids, alone->r.ids, alone->r.count * sizeof *alone->r.ids);
        ck_assert(call[i]->r.total == alone->r.total);
        ck_assert_hash_eq(hash_of(name_of("many", i)), hash_of(name_of("alone", i)));
        call_free(alone);
        call_free(call[i]);
    }
}
END_TEST

/* Some learn, some generate, some are deleted or cancelled while others have them. */
START_TEST(whoever_is_deleted_or_cancelled_in_a_group_ends_and_disturbs_nobody)
{
    struct call *call[SESSIONS], *gone[SESSIONS] = { NULL };

    create_all("alone");
    create_all("many");
    close_gate();
    for (unsigned i = 0; i < SESSIONS; i++) {
        call[i] = i % 4 == 3 ? learn_ids(name_of("many", i), lesson[i], 20)
                             : generate(name_of("many", i), i, false);
        if (i % 4 != 3)
            call[i]->r.max_tokens = 2000;
        send_call(call[i]);
    }
    open_gate();
    for (unsigned i = 0; i < SESSIONS; i++) {
        if (i % 4 == 1)
            fw_engine_cancel(engine, &call[i]->r);
        if (i % 4 == 2)
            send_call(gone[i] = call_new(FW_DELETE, name_of("many", i)));
    }
    for (unsigned i = 0; i < SESSIONS; i++) {
        wait_call(call[i]);
        ck_assert(!call[i]->r.failed || i % 4 == 1 || i % 4 == 2);
        ck_assert(i % 4 != 0 || call[i]->r.count == 2000);
        call_free(call[i]);
        if (gone[i])
            call_free(wait_call(gone[i]));
        if (i % 4 != 3)
            continue;
        done(learn_ids(name_of("alone", i), lesson[i], 20));
        ck_assert_hash_eq(hash_of(name_of("many", i)), hash_of(name_of("alone", i)));
    }
}
END_TEST

/* What generates works on a copy, so there must be room for two. */
START_TEST(a_session_that_could_never_generate_is_refused_at_creation)
{
    size_t room;

    done(create_tiny("a"));
    room = 2 * fw_arena_room(engine->arena, facts_of("a").state_bytes);
    close_engine();
    config.max_resident_bytes = room - 1;
    open_engine();
    fails(create_tiny("b"), FW_EINVAL, "state_too_large");
    fails(call_new(FW_FORK, "a"), FW_EINVAL, "state_too_large");
    close_engine();
    config.max_resident_bytes = room;
    open_engine();
    done(create_tiny("b"));
    done(generate("b", 0, true));
    done(generate("a", 0, false));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("engine/share");
    TCase *tc = tcase_create("share");

    tcase_add_checked_fixture(tc, setup_model, teardown_model);
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc,
                   sessions_that_learn_token_by_token_together_keep_the_bytes_of_each_alone);
    tcase_add_test(tc, sessions_that_generate_together_get_what_each_gets_alone);
    tcase_add_test(tc, a_session_that_could_never_generate_is_refused_at_creation);
    tcase_add_test(tc, whoever_is_deleted_or_cancelled_in_a_group_ends_and_disturbs_nobody);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
