/* store.c - what durability costs: checkpoints against raw pwrite + fdatasync, loads against a
 * flat pread, on the same disk in turn.
 *
 *     bench/store [--json] [DIR]     a scratch directory is made in DIR (default: here)
 *
 * Checkpoints are of 64 KiB with all bytes new each time: one after the other, and 16 sessions
 * at once. Loads are hot in the page cache, include the check of the hash, and go round 16
 * sessions; both sides read into memory that was just dropped, as an evicted session's is.
 * Rounds of both sides alternate and the median of their ratios counts. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fastweight/clock.h"
#include "fastweight/store.h"

#define BLOCK  ((size_t)64 << 10)
#define BIG    ((size_t)1 << 20)
#define GROUP  16
#define ROUNDS 9

struct bench {
    char dir[512];
    struct fw_store *store;
    int fd;                           /* of the flat file */
    unsigned char *block[GROUP], *in; /* (GROUP, BLOCK) to write; (BIG,) to read into */
    int64_t uid[GROUP], big[GROUP];
    uint64_t version;
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    int open; /* ops not yet done */
};

struct counted {
    struct fw_store_op op; /* first: done() gets it back */
    struct bench *bench;
};

static void die(const char *what)
{
    fprintf(stderr, "bench/store: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void on_done(struct fw_store_op *op)
{
    struct bench *b = ((struct counted *)op)->bench;

    if (op->failed) {
        fprintf(stderr, "bench/store: %s\n", op->err.msg);
        exit(1);
    }
    pthread_mutex_lock(&b->mutex);
    if (--b->open == 0)
        pthread_cond_signal(&b->cond);
    pthread_mutex_unlock(&b->mutex);
}

static void carry_out(struct bench *b, struct counted *op, int count)
{
    int i;

    b->open = count; /* nobody else looks while no op is submitted */
    for (i = 0; i < count; i++) {
        op[i].bench = b;
        op[i].op.done = on_done;
        fw_store_submit(b->store, &op[i].op);
    }
    pthread_mutex_lock(&b->mutex);
    while (b->open > 0)
        pthread_cond_wait(&b->cond, &b->mutex);
    pthread_mutex_unlock(&b->mutex);
}

static void renew(unsigned char *block, size_t bytes, uint64_t seed)
{
    uint64_t x = seed * 0x9e3779b97f4a7c15u + 1;
    size_t i;

    for (i = 0; i + 8 <= bytes; i += 8) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        memcpy(block + i, &x, 8);
    }
}

static void checkpoints(struct bench *b, int count)
{
    struct counted op[GROUP] = { 0 };
    int i;

    b->version++;
    for (i = 0; i < count; i++) {
        renew(b->block[i], BLOCK, b->version * GROUP + (uint64_t)i);
        op[i].op = (struct fw_store_op){ .verb = FW_STORE_CHECKPOINT,
                                         .uid = b->uid[i],
                                         .version = b->version,
                                         .block = b->block[i],
                                         .block_bytes = BLOCK,
                                         .hash = { 1, 1 } };
    }
    carry_out(b, op, count);
}

static int64_t create(struct bench *b, const char *id, const void *block, size_t bytes)
{
    struct fw_store_session row = { .uid = fw_store_next_uid(b->store),
                                    .owner = "default",
                                    .id = id,
                                    .model = "m",
                                    .config = "",
                                    .labels = "{}",
                                    .parent_id = "",
                                    .block_bytes = bytes,
                                    .hash = fw_hash128(block, bytes) };
    struct counted op = {
        .op = { .verb = FW_STORE_CREATE, .session = &row, .block = block, .block_bytes = bytes }
    };

    carry_out(b, &op, 1);
    return row.uid;
}

static void raw_write(struct bench *b, int n)
{
    renew(b->block[0], BLOCK, (uint64_t)n);
    if (pwrite(b->fd, b->block[0], BLOCK, (off_t)BLOCK * (n % GROUP)) != (ssize_t)BLOCK ||
        fdatasync(b->fd) < 0)
        die("pwrite");
}

static double seconds_since(uint64_t start)
{
    return (double)(fw_clock_mono_ns() - start) * 1e-9;
}

/* Checkpoints per second with `count` sessions at once, against raw writes per second. */
static double write_ratio(struct bench *b, int count, double *ret_raw, double *ret_ours)
{
    const int times = 48;
    uint64_t t = fw_clock_mono_ns();
    int i;

    for (i = 0; i < times; i++)
        raw_write(b, i);
    *ret_raw = times / seconds_since(t);
    t = fw_clock_mono_ns();
    for (i = 0; i < times; i++)
        checkpoints(b, count);
    *ret_ours = times * count / seconds_since(t);
    return *ret_ours / *ret_raw;
}

static void drop(struct bench *b)
{
    if (madvise(b->in, BIG, MADV_DONTNEED) < 0)
        die("madvise");
}

static void load(struct bench *b, int64_t uid, size_t bytes)
{
    struct fw_store_session row;
    struct fw_err err = { 0 };

    if (fw_store_load(b->store, uid, b->in, bytes, &row, &err) < 0 ||
        !fw_hash_equal(fw_hash128(b->in, bytes), row.hash)) {
        fprintf(stderr, "bench/store: load: %s\n", err.msg);
        exit(1);
    }
}

/* Time of a load, hash check included, over the time of a flat pread. */
static double load_ratio(struct bench *b, const int64_t *uid, size_t bytes, double *ret_raw,
                         double *ret_ours)
{
    const int times = 480;
    uint64_t t = fw_clock_mono_ns();
    int i;

    for (i = 0; i < times; i++) {
        drop(b);
        if (pread(b->fd, b->in, bytes, (off_t)bytes * (i % GROUP)) != (ssize_t)bytes)
            die("pread");
    }
    *ret_raw = seconds_since(t) * 1e6 / times;
    t = fw_clock_mono_ns();
    for (i = 0; i < times; i++) {
        drop(b);
        load(b, uid[i % GROUP], bytes);
    }
    *ret_ours = seconds_since(t) * 1e6 / times;
    return *ret_ours / *ret_raw;
}

static void set_up(struct bench *b, const char *where)
{
    struct fw_err err = { 0 };
    char path[600], id[16];
    int i;

    snprintf(b->dir, sizeof b->dir, "%s/bench_store_XXXXXX", where);
    if (!mkdtemp(b->dir))
        die(b->dir);
    if (fw_store_open(&b->store, b->dir, &err) < 0) {
        fprintf(stderr, "bench/store: %s\n", err.msg);
        exit(1);
    }
    snprintf(path, sizeof path, "%s/flat", b->dir);
    b->fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
    b->in = mmap(NULL, BIG, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (b->fd < 0 || b->in == MAP_FAILED)
        die(path);
    for (i = 0; i < GROUP; i++) {
        renew(b->in, BIG, (uint64_t)i);
        if (pwrite(b->fd, b->in, BIG, (off_t)BIG * i) != (ssize_t)BIG)
            die(path);
        snprintf(id, sizeof id, "big%d", i);
        b->big[i] = create(b, id, b->in, BIG);
        b->block[i] = aligned_alloc(64, BLOCK);
        if (!b->block[i])
            die("memory");
        renew(b->block[i], BLOCK, (uint64_t)i);
        snprintf(id, sizeof id, "small%d", i);
        b->uid[i] = create(b, id, b->block[i], BLOCK);
    }
    if (fsync(b->fd) < 0)
        die(path);
}

static void tear_down(struct bench *b)
{
    static const char *const name[] = { "flat", "lock", "fastweightd.db" };
    char path[600];
    size_t i;

    fw_store_close(b->store);
    close(b->fd);
    for (i = 0; i < sizeof name / sizeof name[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", b->dir, name[i]);
        unlink(path);
    }
    rmdir(b->dir);
    for (i = 0; i < GROUP; i++)
        free(b->block[i]);
    munmap(b->in, BIG);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Runs kind 0..3 ROUNDS times; prints medians; returns the median ratio. */
static double measure(struct bench *b, int kind, int json)
{
    static const char *const name[] = { "checkpoint_64k_single", "checkpoint_64k_group16",
                                        "load_64k", "load_1m" };
    static const char *const unit[] = { "per_s", "per_s", "us", "us" };
    double ratio[ROUNDS], raw[ROUNDS], ours[ROUNDS];
    int i;

    for (i = 0; i < ROUNDS; i++) {
        if (kind < 2)
            ratio[i] = write_ratio(b, kind ? GROUP : 1, &raw[i], &ours[i]);
        else
            ratio[i] = load_ratio(b, kind == 2 ? b->uid : b->big, kind == 2 ? BLOCK : BIG,
                                  &raw[i], &ours[i]);
    }
    qsort(ratio, ROUNDS, sizeof ratio[0], by_value);
    qsort(raw, ROUNDS, sizeof raw[0], by_value);
    qsort(ours, ROUNDS, sizeof ours[0], by_value);
    i = ROUNDS / 2;
    printf(json ? "{\"name\": \"%s\", \"raw_%s\": %.1f, \"store_%s\": %.1f, \"ratio\": %.3f}\n"
                : "%-22s raw_%s=%.1f store_%s=%.1f ratio=%.3f\n",
           name[kind], unit[kind], raw[i], unit[kind], ours[i], ratio[i]);
    return ratio[i];
}

/* Loads first: the checkpoints carry a dummy hash. */
static double run(struct bench *b, int json)
{
    double ratio;

    measure(b, 2, json);
    measure(b, 3, json);
    ratio = measure(b, 0, json);
    measure(b, 1, json);
    return ratio;
}

int main(int argc, char **argv)
{
    struct bench b = { .mutex = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER };
    int json = argc > 1 && strcmp(argv[1], "--json") == 0;
    double ratio;

    set_up(&b, argc > 1 + json ? argv[1 + json] : ".");
    ratio = run(&b, json);
    tear_down(&b);
    printf("store ratio=%.3f\n", ratio);
    return 0;
}
