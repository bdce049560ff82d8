#include "config.h"

#include "store_testing.h"

#include <signal.h>
#include <stdint.h>
#include <sys/wait.h>

/* The shim is linked in; its constructor has made it the default VFS. */
static void use_vfs(const char *name)
{
    ck_assert_int_eq(sqlite3_vfs_register(sqlite3_vfs_find(name), 1), SQLITE_OK);
}

static void set_up(void)
{
    use_vfs("unix");
    make_dir();
}

/* Learns until it is killed; a byte down the pipe for every acknowledged row. */
static void learn_until_killed(int out)
{
    static unsigned char block[100000];
    struct fw_store *s;
    char key[32];
    int64_t uid;
    uint64_t v;

    use_vfs("lossy");
    s = open_store();
    uid = create(s, "a", sizeof block);
    for (v = 1;; v++) {
        snprintf(key, sizeof key, "key-%d", (int)v);
        ck_assert_int_eq(append(s, uid, v, "some text to be learned", key), FW_OK);
        if (v % 10 == 0)
            ck_assert_int_eq(checkpoint(s, uid, v, block, sizeof block), FW_OK);
        if (write(out, "x", 1) != 1)
            _exit(1);
    }
}

/* How many rows the child was told are durable. */
static uint64_t run_and_kill(uint64_t at_least)
{
    uint64_t acknowledged = 0;
    int to_us[2], status;
    pid_t child;
    char byte;

    ck_assert_int_eq(pipe(to_us), 0);
    child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        close(to_us[0]);
        learn_until_killed(to_us[1]);
    }
    close(to_us[1]);
    while (acknowledged < at_least && read(to_us[0], &byte, 1) == 1)
        acknowledged++;
    kill(child, SIGKILL);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFSIGNALED(status));
    while (read(to_us[0], &byte, 1) == 1)
        acknowledged++;
    close(to_us[0]);
    return acknowledged;
}

struct found {
    int sessions;
    uint64_t last; /* the last version of the first session */
};

static int look(void *arg, const struct fw_store_session *row)
{
    struct found *f = arg;

    f->sessions++;
    f->last = row->version + row->journal_rows;
    return 0;
}

static struct found what_is_left(void)
{
    struct fw_store *s = open_store();
    struct found f = { 0 };
    struct fw_err e = { 0 };

    ck_assert_msg(fw_store_sessions(s, look, &f, &e) == 0, "%s", e.msg);
    if (f.sessions)
        ck_assert_int_ge(journal_rows(s, 1, f.last / 10 * 10, NULL), 0);
    fw_store_close(s);
    return f;
}

START_TEST(every_acknowledged_row_is_there_after_a_kill_that_takes_all_unsynced_writes)
{
    uint64_t told = run_and_kill(57);
    struct found f = what_is_left();

    ck_assert_int_eq(f.sessions, 1);
    ck_assert_uint_ge(f.last, told);
    ck_assert_uint_le(f.last, told + 1); /* at most the one in flight */
}
END_TEST

START_TEST(without_syncs_the_kill_takes_acknowledged_rows_too)
{
    uint64_t told;

    setenv("FW_VFS_IGNORE_SYNC", "1", 1);
    told = run_and_kill(57);
    unsetenv("FW_VFS_IGNORE_SYNC");
    ck_assert_uint_lt(what_is_left().last, told);
}
END_TEST

START_TEST(a_normal_exit_loses_nothing)
{
    pid_t child = fork();
    struct fw_store *s;
    int status;

    if (child == 0) {
        setenv("FW_VFS_IGNORE_SYNC", "1", 1);
        use_vfs("lossy");
        s = open_store();
        append(s, create(s, "a", 64), 1, "x", NULL);
        fw_store_close(s);
        exit(0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    ck_assert_uint_eq(what_is_left().last, 1);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("tests/vfs_lossy");
    TCase *tc = tcase_create("vfs_lossy");

    tcase_add_checked_fixture(tc, set_up, remove_dir);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc,
                   every_acknowledged_row_is_there_after_a_kill_that_takes_all_unsynced_writes);
    tcase_add_test(tc, without_syncs_the_kill_takes_acknowledged_rows_too);
    tcase_add_test(tc, a_normal_exit_loses_nothing);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
