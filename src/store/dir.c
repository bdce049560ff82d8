/* dir.c - the data directory: made if missing, locked, and its database ours or created whole.
 *
 * A new database is built under another name and renamed, so DIR/fastweightd.db is always
 * complete. One that lies there is judged by its first 100 bytes before SQLite may open it:
 * another program's file, or a newer version's, stays untouched to the last byte. (This file
 * opens and closes the database by itself, which would drop SQLite's POSIX locks, so all of it
 * runs before the first connection.) The lock is flock on DIR/lock: it ends with the process.
 */
#include "config.h"

#include "store_int.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEADER_BYTES 100 /* of a SQLite file */

static int fail_errno(struct fw_err *err, const char *what, const char *path)
{
    return fw_fail(err, FW_EIO, "data_dir_failed", "cannot %s %s: %s", what, path,
                   strerror(errno));
}

static int join(char *ret, const char *dir, const char *name, struct fw_err *err)
{
    int n = snprintf(ret, FW_STORE_PATH_MAX, "%s%s", dir, name);

    if (n < 0 || n >= FW_STORE_PATH_MAX)
        return fw_fail(err, FW_EIO, "data_dir_failed", "the data directory's path is too long");
    return 0;
}

static int lock(const char *dir, int *ret_fd, struct fw_err *err)
{
    char path[FW_STORE_PATH_MAX];
    int fd;

    if (join(path, dir, "/lock", err) < 0)
        return -1;
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return fail_errno(err, "open", path);
    if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        if (errno == EWOULDBLOCK)
            fw_fail(err, FW_EIO, "locked", "another daemon uses the data directory %s", dir);
        else
            fail_errno(err, "lock", path);
        close(fd);
        return -1;
    }
    *ret_fd = fd;
    return 0;
}

static uint32_t be32(const unsigned char *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* *ret_exists: 0 when there is no file or an empty one. */
static int judge(const char *path, int *ret_exists, struct fw_err *err)
{
    unsigned char head[HEADER_BYTES];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n;

    *ret_exists = 0;
    if (fd < 0)
        return errno == ENOENT ? 0 : fail_errno(err, "open", path);
    n = pread(fd, head, sizeof head, 0);
    if (n < 0)
        fail_errno(err, "read", path);
    close(fd);
    if (n <= 0)
        return (int)n;
    if (n < HEADER_BYTES || memcmp(head, "SQLite format 3", 16) != 0 ||
        be32(head + 68) != FW_STORE_APPLICATION_ID)
        return fw_fail(err, FW_EIO, "foreign_database",
                       "%s was not written by fastweightd (or its first page is damaged)",
                       path);
    if (be32(head + 60) > FW_STORE_USER_VERSION)
        return fw_fail(err, FW_EIO, "newer_database",
                       "%s has version %u, this program knows up to %d", path, be32(head + 60),
                       FW_STORE_USER_VERSION);
    *ret_exists = 1;
    return 0;
}

/* A WAL without its database would be applied to a new one. */
static int check_no_wal(const char *path, struct fw_err *err)
{
    char wal[FW_STORE_PATH_MAX];
    struct stat st;

    if (join(wal, path, "-wal", err) < 0)
        return -1;
    if (stat(wal, &st) == 0 && st.st_size > 0)
        return fw_fail(err, FW_EIO, "database_missing",
                       "%s is gone but its -wal is there: bring it back or move both away",
                       path);
    return 0;
}

static int sync_dir(const char *dir, struct fw_err *err)
{
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc;

    if (fd < 0)
        return fail_errno(err, "open", dir);
    rc = fsync(fd);
    if (rc < 0)
        fail_errno(err, "sync", dir);
    close(fd);
    return rc;
}

static int build(const char *path, struct fw_err *err)
{
    struct fw_sql c;
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), rc;

    if (fd < 0)
        return fail_errno(err, "create", path);
    close(fd);
    if (fw_sql_open(&c, path, SQLITE_OPEN_READWRITE, err) < 0)
        return -1;
    rc = fw_sql_exec(&c, "PRAGMA page_size = 16384; PRAGMA synchronous = FULL", err);
    if (rc == 0)
        rc = fw_schema_migrate(&c, FW_STORE_USER_VERSION, err);
    fw_sql_close(&c);
    return rc;
}

static int create(const char *dir, const char *path, struct fw_err *err)
{
    char fresh[FW_STORE_PATH_MAX], journal[FW_STORE_PATH_MAX];

    if (check_no_wal(path, err) < 0 || join(fresh, path, ".new", err) < 0 ||
        join(journal, fresh, "-journal", err) < 0)
        return -1;
    unlink(journal); /* what a crash here left behind */
    if (build(fresh, err) < 0)
        return -1;
    if (rename(fresh, path) < 0)
        return fail_errno(err, "rename", fresh);
    return sync_dir(dir, err);
}

int fw_dir_open(const char *dir, char path[FW_STORE_PATH_MAX], int *ret_lock_fd,
                struct fw_err *err)
{
    int exists, fd;

    if (mkdir(dir, 0700) < 0 && errno != EEXIST)
        return fail_errno(err, "create", dir);
    if (join(path, dir, "/fastweightd.db", err) < 0 || lock(dir, &fd, err) < 0)
        return -1;
    if (judge(path, &exists, err) < 0 || (!exists && create(dir, path, err) < 0)) {
        close(fd);
        return -1;
    }
    *ret_lock_fd = fd;
    return 0;
}
