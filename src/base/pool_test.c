#include "config.h"

#include "test_main.h"

#include <pthread.h>
#include <stdatomic.h>

#include "fastweight/pool.h"

enum { TASKS = 1000 };

struct counted {
    struct fw_task task; /* first: a task pointer is a counted pointer */
    struct fw_pool *pool;
    int id;
    int again; /* how often it resubmits itself */
};

static int order[TASKS]; /* by one worker only, or before any starts */
static atomic_int ran, started;
static struct fw_pool *pool;

static void note_start(void)
{
    atomic_fetch_add(&started, 1);
}

static void note_order(struct fw_task *task)
{
    order[atomic_fetch_add(&ran, 1)] = ((struct counted *)task)->id;
}

static void count(struct fw_task *task)
{
    struct counted *c = (struct counted *)task;

    atomic_fetch_add(&ran, 1);
    if (c->again-- > 0)
        fw_pool_submit(c->pool, task);
}

static void count_and_free(struct fw_task *task)
{
    atomic_fetch_add(&ran, 1);
    free(task);
}

static void open_pool(unsigned threads, void (*start)(void))
{
    atomic_store(&ran, 0);
    atomic_store(&started, 0);
    ck_assert_int_eq(fw_pool_new(&pool, threads, start, NULL), 0);
}

START_TEST(one_worker_runs_tasks_in_the_order_of_submission)
{
    static struct counted c[TASKS];
    int i;

    open_pool(1, NULL);
    for (i = 0; i < TASKS; i++) {
        c[i] = (struct counted){ .task.run = note_order, .id = i };
        fw_pool_submit(pool, &c[i].task);
    }
    fw_pool_free(pool);
    ck_assert_int_eq(atomic_load(&ran), TASKS);
    for (i = 0; i < TASKS; i++)
        ck_assert_int_eq(order[i], i);
}
END_TEST

START_TEST(every_worker_calls_thread_start_once_even_without_tasks)
{
    open_pool(3, note_start);
    fw_pool_free(pool);
    ck_assert_int_eq(atomic_load(&started), 3);
    ck_assert_int_eq(atomic_load(&ran), 0);
}
END_TEST

START_TEST(free_runs_what_is_queued_and_what_that_submits)
{
    static struct counted c[10];
    int i;

    open_pool(2, NULL);
    for (i = 0; i < 10; i++) {
        c[i] = (struct counted){ .task.run = count, .pool = pool, .again = 100 };
        fw_pool_submit(pool, &c[i].task);
    }
    fw_pool_free(pool);
    ck_assert_int_eq(atomic_load(&ran), 10 * 101);
}
END_TEST

START_TEST(a_task_may_free_itself)
{
    int i;

    open_pool(2, NULL);
    for (i = 0; i < TASKS; i++) {
        struct fw_task *task = calloc(1, sizeof *task);
        ck_assert_ptr_nonnull(task);
        task->run = count_and_free;
        fw_pool_submit(pool, task);
    }
    fw_pool_free(pool);
    ck_assert_int_eq(atomic_load(&ran), TASKS);
}
END_TEST

static void *submit_many(void *arg)
{
    struct counted *c = arg;
    int i;

    for (i = 0; i < TASKS; i++) {
        c[i] = (struct counted){ .task.run = count, .pool = pool };
        fw_pool_submit(pool, &c[i].task);
    }
    return NULL;
}

START_TEST(any_thread_may_submit_and_nothing_is_lost)
{
    static struct counted c[4][TASKS];
    pthread_t thread[4];
    int i;

    open_pool(3, note_start);
    for (i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&thread[i], NULL, submit_many, c[i]), 0);
    for (i = 0; i < 4; i++)
        pthread_join(thread[i], NULL);
    fw_pool_free(pool);
    ck_assert_int_eq(atomic_load(&ran), 4 * TASKS);
    ck_assert_int_eq(atomic_load(&started), 3);
}
END_TEST

static pthread_barrier_t together;

static void meet(struct fw_task *task)
{
    (void)task;
    pthread_barrier_wait(&together);
    atomic_fetch_add(&ran, 1);
}

START_TEST(as_many_tasks_run_at_once_as_there_are_workers)
{
    static struct counted c[4];
    int i;

    pthread_barrier_init(&together, NULL, 4); /* ends only when all four run together */
    open_pool(4, NULL);
    for (i = 0; i < 4; i++) {
        c[i] = (struct counted){ .task.run = meet };
        fw_pool_submit(pool, &c[i].task);
    }
    fw_pool_free(pool);
    ck_assert_int_eq(atomic_load(&ran), 4);
    pthread_barrier_destroy(&together);
}
END_TEST

struct counted_parts {
    struct fw_parts parts; /* first */
    atomic_int ran[TASKS];
};

static void count_part(struct fw_parts *parts, size_t i)
{
    atomic_fetch_add(&((struct counted_parts *)parts)->ran[i], 1);
}

/* Spreads so many parts; how many of them did not run once. */
static int spread_badly(size_t count)
{
    struct counted_parts c = { .parts = { .run = count_part, .count = count } };
    int bad = 0;

    fw_pool_spread(pool, &c.parts);
    for (size_t i = 0; i < TASKS; i++)
        bad += atomic_load(&c.ran[i]) != (i < count);
    return bad;
}

START_TEST(spread_runs_every_part_once_and_returns_when_all_ended)
{
    open_pool(3, NULL);
    ck_assert_int_eq(spread_badly(0), 0);
    ck_assert_int_eq(spread_badly(1), 0);
    ck_assert_int_eq(spread_badly(2), 0);
    ck_assert_int_eq(spread_badly(TASKS), 0);
    fw_pool_free(pool);
}
END_TEST

static void meet_part(struct fw_parts *parts, size_t i)
{
    (void)parts;
    (void)i;
    pthread_barrier_wait(&together);
}

START_TEST(workers_without_a_task_help_whoever_spreads)
{
    struct fw_parts parts = { .run = meet_part, .count = 4 };

    pthread_barrier_init(&together, NULL, 4); /* ends only when all four run together */
    open_pool(3, NULL);
    fw_pool_spread(pool, &parts);
    fw_pool_free(pool);
    pthread_barrier_destroy(&together);
}
END_TEST

static void meet_twice(struct fw_task *task)
{
    (void)task;
    pthread_barrier_wait(&together);
    pthread_barrier_wait(&together);
}

START_TEST(spread_ends_while_every_worker_is_busy)
{
    static struct counted c[2];
    int i;

    pthread_barrier_init(&together, NULL, 3);
    open_pool(2, NULL);
    for (i = 0; i < 2; i++) {
        c[i] = (struct counted){ .task.run = meet_twice };
        fw_pool_submit(pool, &c[i].task);
    }
    pthread_barrier_wait(&together); /* both are at it */
    ck_assert_int_eq(spread_badly(100), 0);
    pthread_barrier_wait(&together);
    fw_pool_free(pool);
    pthread_barrier_destroy(&together);
}
END_TEST

static void spread_task(struct fw_task *task)
{
    (void)task;
    atomic_fetch_add(&ran, spread_badly(50) == 0);
}

START_TEST(many_tasks_may_spread_at_once_also_while_the_pool_is_freed)
{
    static struct counted c[200];
    int i;

    open_pool(3, NULL);
    for (i = 0; i < 200; i++) {
        c[i] = (struct counted){ .task.run = spread_task };
        fw_pool_submit(pool, &c[i].task);
    }
    fw_pool_free(pool);
    ck_assert_int_eq(atomic_load(&ran), 200);
}
END_TEST

START_TEST(free_accepts_null)
{
    fw_pool_free(NULL);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("base/pool");
    TCase *tc = tcase_create("pool");

    tcase_add_test(tc, one_worker_runs_tasks_in_the_order_of_submission);
    tcase_add_test(tc, every_worker_calls_thread_start_once_even_without_tasks);
    tcase_add_test(tc, free_runs_what_is_queued_and_what_that_submits);
    tcase_add_test(tc, a_task_may_free_itself);
    tcase_add_test(tc, any_thread_may_submit_and_nothing_is_lost);
    tcase_add_test(tc, as_many_tasks_run_at_once_as_there_are_workers);
    tcase_add_test(tc, spread_runs_every_part_once_and_returns_when_all_ended);
    tcase_add_test(tc, workers_without_a_task_help_whoever_spreads);
    tcase_add_test(tc, spread_ends_while_every_worker_is_busy);
    tcase_add_test(tc, many_tasks_may_spread_at_once_also_while_the_pool_is_freed);
    tcase_add_test(tc, free_accepts_null);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
