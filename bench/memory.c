/* memory.c - what a state costs in memory, and what bringing one back costs.
 *
 *     bench/memory [--json] [DIR]
 *
 * forks: a 1 MiB session learns until every page of its block was written; 999 forks of it each
 *     learn 1 KB. (RssAnon - empty) / sum of state_bytes; goal <= 1.02, below 0.99 the
 *     measurement itself is wrong (pages that nobody touched).
 * mixed: states of many sizes, every other one deleted, others created; goal <= 1.05.
 * restore: an evicted session read again (block read, hash and validation, as the engine counts
 *     it) against a flat pread of the same bytes into memory that was just dropped; goal <= 5.
 * The last line is the ratio of the forks. */
#include "config.h"

#include "engine_calls.h"

#include <fcntl.h>
#include <malloc.h>
#include <sys/mman.h>

enum { FORKS = 999, MIXED = 1200, ROUNDS = 9, LOADS = 40 };

#define MIB ((size_t)1 << 20)

static size_t rss_anon(void)
{
    FILE *f = fopen("/proc/self/status", "r");
    unsigned long kb = 0;
    char line[256];

    while (f && fgets(line, sizeof line, f)) {
        if (sscanf(line, "RssAnon: %lu kB", &kb) == 1)
            break;
    }
    if (f)
        fclose(f);
    if (!kb)
        die("/proc/self/status", "no RssAnon");
    return kb * 1024;
}

static struct fw_facts facts_of(struct bench *b, const char *id)
{
    struct fw_facts f;
    struct fw_err err;

    memset(&f, 0, sizeof f);
    if (fw_engine_facts(b->engine, id, &f, &err) < 0)
        die(id, err.msg);
    return f;
}

static const char *name(const char *what, int i)
{
    static char id[64];

    snprintf(id, sizeof id, "%s%d", what, i);
    return id;
}

/* Is there a page of the exported state that is still all zero? */
static bool has_empty_page(struct bench *b, const char *id)
{
    static const unsigned char zero[4096];
    struct call *c = call_run(b, call_new(FW_EXPORT, id));
    const struct fw_buf *file = &c->r.bytes;
    bool empty = false;
    size_t at;

    for (at = 0; at + sizeof zero <= file->len; at += sizeof zero)
        empty |= memcmp(file->data + at, zero, sizeof zero) == 0;
    call_free(c);
    return empty;
}

static void learn_until_full(struct bench *b, const char *id, uint64_t *x)
{
    char text[65536];
    size_t i;
    int rounds = 0;

    do {
        for (i = 0; i < sizeof text; i++)
            text[i] = (char)next_random(x);
        learn_bytes(b, id, text, sizeof text);
    } while (++rounds < 64 && has_empty_page(b, id));
    if (rounds == 64)
        die(id, "some pages of the state are never written");
}

static double measure_forks(const char *dir)
{
    struct bench b;
    char text[1024];
    uint64_t x = 1;
    size_t empty, payload = 0;
    double ratio;
    struct call *c;
    int i;

    bench_open(&b, dir, 4096 * MIB);
    empty = rss_anon();
    create_bytes(&b, "parent", MIB);
    learn_until_full(&b, "parent", &x);
    for (i = 0; i < FORKS; i++) {
        c = call_new(FW_FORK, "parent");
        snprintf(c->r.new_id, sizeof c->r.new_id, "%s", name("fork", i));
        call_free(call_run(&b, c));
    }
    for (i = 0; i < FORKS; i++) {
        fill_text(text, sizeof text, &x);
        learn_bytes(&b, name("fork", i), text, sizeof text);
    }
    for (i = 0; i < FORKS; i++) {
        if (!facts_of(&b, name("fork", i)).resident)
            die(name("fork", i), "is not resident");
        payload += facts_of(&b, name("fork", i)).state_bytes;
    }
    payload += facts_of(&b, "parent").state_bytes;
    ratio = (double)(rss_anon() - empty) / (double)payload;
    bench_close(&b);
    return ratio;
}

static void create_mixed(struct bench *b, int i)
{
    size_t dim = 16 + (size_t)(i * 37 % 12) * 16, heads = 1 + (size_t)i % 4;

    create_memory(b, name("mixed", i), heads, dim);
    learn_pairs(b, name("mixed", i), heads, dim, 8);
}

static double measure_mixed(const char *dir)
{
    struct bench b;
    size_t empty, payload = 0;
    double ratio;
    int i;

    bench_open(&b, dir, 4096 * MIB);
    empty = rss_anon();
    for (i = 0; i < MIXED; i++)
        create_mixed(&b, i);
    for (i = 0; i < MIXED; i += 2)
        call_free(call_run(&b, call_new(FW_DELETE, name("mixed", i))));
    for (i = MIXED; i < MIXED + MIXED / 2; i++)
        create_mixed(&b, i);
    for (i = 1; i < MIXED + MIXED / 2; i += i < MIXED - 1 ? 2 : 1)
        payload += facts_of(&b, name("mixed", i)).state_bytes;
    ratio = (double)(rss_anon() - empty) / (double)payload;
    bench_close(&b);
    return ratio;
}

/* ---- restore */

static uint64_t time_pread(int fd, void *memory, size_t bytes)
{
    uint64_t from, ns = 0;
    int i;

    for (i = 0; i < LOADS; i++) {
        madvise(memory, bytes, MADV_DONTNEED);
        from = fw_clock_mono_ns();
        if (pread(fd, memory, bytes, 0) != (ssize_t)bytes)
            die("pread", strerror(errno));
        ns += fw_clock_mono_ns() - from;
    }
    return ns / LOADS;
}

/* Two sessions and memory for one, which "two" has: every read restores the other one. */
static uint64_t time_restore(struct bench *b)
{
    struct fw_engine_stats before, after;
    struct call *c;
    int i;

    fw_engine_stats(b->engine, &before);
    for (i = 0; i < LOADS; i++) {
        /* The list of tensors: reads nothing, but has the state brought in. */
        c = call_new(FW_TENSOR, i % 2 ? "two" : "one");
        call_free(call_run(b, c));
    }
    fw_engine_stats(b->engine, &after);
    if (after.loads - before.loads != LOADS)
        die("restore", "a session was not evicted");
    return (after.load_ns - before.load_ns) / LOADS;
}

static int by_value(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

static size_t size_of(const char *dir, void (*create)(struct bench *b, const char *id))
{
    struct bench b;
    size_t bytes;

    bench_open(&b, dir, 64 * MIB);
    create(&b, "one");
    bytes = facts_of(&b, "one").state_bytes;
    bench_close(&b);
    return bytes;
}

static double measure_restore(const char *dir, void (*create)(struct bench *b, const char *id),
                              uint64_t *ret_ns)
{
    size_t bytes = size_of(dir, create);
    void *memory =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    double ratio[ROUNDS];
    uint64_t ns = 0, flat;
    char path[600];
    struct bench b;
    int fd, i;

    bench_open(&b, dir, bytes + 4096); /* large blocks end with their page */
    create(&b, "one");
    create(&b, "two");
    snprintf(path, sizeof path, "%s/flat", b.dir);
    fd = open(path, O_RDWR | O_CREAT, 0600);
    if (fd < 0 || memory == MAP_FAILED)
        die(path, strerror(errno));
    memset(memory, 1, bytes);
    if (pwrite(fd, memory, bytes, 0) != (ssize_t)bytes)
        die(path, strerror(errno));
    for (i = 0; i < ROUNDS; i++) {
        flat = time_pread(fd, memory, bytes);
        ns = time_restore(&b);
        ratio[i] = (double)ns / (double)flat;
    }
    qsort(ratio, ROUNDS, sizeof ratio[0], by_value);
    *ret_ns = ns;
    close(fd);
    munmap(memory, bytes);
    bench_close(&b);
    return ratio[ROUNDS / 2];
}

static void create_64k(struct bench *b, const char *id)
{
    create_memory(b, id, 1, 126);
    learn_pairs(b, id, 1, 126, 8);
    call_free(call_run(b, call_new(FW_CHECKPOINT, id)));
}

static void create_1m(struct bench *b, const char *id)
{
    create_memory(b, id, 4, 255);
    learn_pairs(b, id, 4, 255, 8);
    call_free(call_run(b, call_new(FW_CHECKPOINT, id)));
}

static void create_stream(struct bench *b, const char *id)
{
    uint64_t x = 1;

    create_bytes(b, id, MIB);
    learn_until_full(b, id, &x);
    call_free(call_run(b, call_new(FW_CHECKPOINT, id)));
}

static void tell(bool json, const char *what, double ratio, uint64_t ns)
{
    if (json)
        printf("{\"bench\": \"memory\", \"what\": \"%s\", \"ratio\": %.4f, \"ns\": %llu}\n",
               what, ratio, (unsigned long long)ns);
    else if (ns)
        printf("%-24s %.3f of a flat pread, %.1f us\n", what, ratio, (double)ns / 1000);
    else
        printf("%-24s %.4f of the payload\n", what, ratio);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    bool json = argc > 1 && strcmp(argv[1], "--json") == 0;
    const char *dir = argc > 1 + json ? argv[1 + json] : ".";
    double forks, ratio;
    uint64_t ns;

    forks = measure_forks(dir);
    tell(json, "forks", forks, 0);
    malloc_trim(0);
    tell(json, "mixed", measure_mixed(dir), 0);
    ratio = measure_restore(dir, create_64k, &ns);
    tell(json, "restore 64 KiB", ratio, ns);
    ratio = measure_restore(dir, create_1m, &ns);
    tell(json, "restore 1 MiB", ratio, ns);
    ratio = measure_restore(dir, create_stream, &ns);
    tell(json, "restore 1 MiB stream", ratio, ns);
    printf("memory ratio=%.4f\n", forks);
    return 0;
}
