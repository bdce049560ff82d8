/* stream.c - how well and how fast the stream learner predicts.
 *
 *     bench/stream [--json] [--preset P] [--expert E] [--state-bytes N] [--vocab V] [--alone]
 * FILE...
 *
 * One pass: predict, score, learn. A file of bytes gives
 *     FILE PRESET STATE_BYTES BITS_PER_BYTE KB_PER_S
 * and beside it the bits per byte of 7z PPMd, xz and zstd -19 at a memory or window of
 * STATE_BYTES, where installed (--alone leaves them out). A `.u16` file (little-endian ids)
 * gives FILE events STATE_BYTES NATS_PER_EVENT HIT1 HIT10 EVENTS_PER_S where hits are counted
 * in a second pass over a sample of at most 100,000 events. Speed is CPU time of learning
 * alone. The last line is `stream ratio=`: the geometric mean, over the files of bytes, of the
 * best compressor's bits over ours (8 bits where none is installed). */
#define _GNU_SOURCE
#include "config.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "fastweight/num.h"
#include "fastweight/stream.h"

#define COMPRESSORS 3
enum { HIT_SAMPLE = 100000 };

struct options {
    int json, alone;
    const char *preset, *expert;
    double state_bytes, vocab;
};

struct data {
    unsigned char *bytes;
    size_t len;
};

struct result {
    double nats, seconds, hit1, hit10;
    double other[COMPRESSORS]; /* bits per byte, 0: not installed */
};

static const char *const other_name[COMPRESSORS] = { "7z_ppmd", "xz", "zstd" };

static void die(const char *fmt, ...) __attribute__((noreturn, format(printf, 1, 2)));

static void die(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
    exit(1);
}

static struct data read_file(const char *path)
{
    struct data d = { NULL, 0 };
    struct stat st;
    FILE *f = fopen(path, "rb");

    if (!f || fstat(fileno(f), &st) != 0 || st.st_size == 0)
        die("%s: cannot be read, or is empty", path);
    d.len = (size_t)st.st_size;
    d.bytes = malloc(d.len);
    if (!d.bytes || fread(d.bytes, 1, d.len, f) != d.len)
        die("%s: cannot be read", path);
    fclose(f);
    return d;
}

static double cpu_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- ours */

static struct fw_stream *plan(const struct options *o, int events)
{
    struct fw_params config = { 0 }, resolved;
    struct fw_stream *s;
    struct fw_err err;

    if (fw_params_set_number(&config, "state_bytes", o->state_bytes, &err) != 0 ||
        (!events && fw_params_set_string(&config, "preset", o->preset, &err) != 0) ||
        (!events && o->expert &&
         fw_params_set_string(&config, "expert", o->expert, &err) != 0) ||
        (events && o->vocab > 0 &&
         fw_params_set_number(&config, "vocab", o->vocab, &err) != 0) ||
        fw_stream_new(&s, events ? "events" : "bytes", &config, NULL, &resolved, &err) != 0)
        die("%s: %s", err.param, err.msg);
    return s;
}

static void *fresh_block(const struct fw_stream *s)
{
    size_t bytes = fw_stream_layout(s)->block_bytes;
    void *block = aligned_alloc(64, bytes);

    if (!block)
        die("out of memory");
    memset(block, 0, bytes);
    fw_stream_init(s, block);
    return block;
}

static void learn_all(const struct fw_stream *s, const struct data *d, struct result *ret)
{
    size_t n = d->len / fw_stream_token_bytes(s);
    double *logp = malloc(n * sizeof *logp), from;
    void *block = fresh_block(s);

    if (!logp)
        die("out of memory");
    from = cpu_s();
    fw_stream_learn(s, block, d->bytes, n, logp);
    ret->seconds = cpu_s() - from;
    for (size_t i = 0; i < n; i++)
        ret->nats -= logp[i];
    ret->nats /= (double)n;
    free(logp);
    free(block);
}

static size_t rank_of(const struct fw_stream *s, const void *block, uint16_t id)
{
    struct fw_stream_view *v;
    uint32_t ids[10];
    double logp[10];
    struct fw_err err;
    size_t count, i;

    if (fw_stream_view_new(&v, s, block, &err) != 0)
        die("%s", err.msg);
    count = fw_stream_view_top(v, 10, ids, logp);
    for (i = 0; i < count && ids[i] != id; i++)
        continue;
    fw_stream_view_free(v);
    return i;
}

static void count_hits(const struct fw_stream *s, const struct data *d, struct result *ret)
{
    size_t n = d->len / 2, step = n / HIT_SAMPLE + 1, asked = 0;
    void *block = fresh_block(s);

    for (size_t i = 0; i < n; i++) {
        const unsigned char *at = d->bytes + 2 * i;
        uint16_t id = (uint16_t)(at[0] | at[1] << 8);

        if (i % step == 0) {
            size_t rank = rank_of(s, block, id);

            asked++;
            ret->hit1 += rank < 1;
            ret->hit10 += rank < 10;
        }
        fw_stream_learn(s, block, &id, 1, NULL);
    }
    ret->hit1 /= (double)asked;
    ret->hit10 /= (double)asked;
    free(block);
}

/* ---- theirs */

/* FILE as one word of a shell command. */
static char *quoted(const char *path)
{
    char *text = malloc(4 * strlen(path) + 3), *p = text;

    if (!text)
        die("out of memory");
    *p++ = '\'';
    for (; *path; path++) {
        if (*path == '\'') {
            memcpy(p, "'\\''", 4);
            p += 4;
        } else {
            *p++ = *path;
        }
    }
    *p++ = '\'';
    *p = 0;
    return text;
}

/* The number a command prints, or 0. */
static double number_from(const char *command)
{
    FILE *f = popen(command, "r");
    double x = 0;

    if (!f)
        return 0;
    if (fscanf(f, "%lf", &x) != 1)
        x = 0;
    return pclose(f) == 0 ? x : 0;
}

static void run_compressors(const char *path, size_t len, size_t memory, struct result *ret)
{
    char *file = quoted(path), *command;
    int window = 10;

    while (window < 27 && (size_t)2 << window <= memory)
        window++;
    for (int i = 0; i < COMPRESSORS; i++) {
        int size =
            i == 0   ? asprintf(&command,
                                "command -v 7z >/dev/null || exit 1; d=$(mktemp -d) && "
                                  "7z a -bd -m0=PPMd:mem=%zub:o=6 \"$d/a.7z\" %s >/dev/null && "
                                  "wc -c <\"$d/a.7z\"; rm -rf \"$d\"",
                                memory, file)
            : i == 1 ? asprintf(&command,
                                "command -v xz >/dev/null || exit 1; "
                                "xz -c --format=raw --lzma2=preset=9e,dict=%zu <%s | wc -c",
                                memory, file)
                     : asprintf(&command,
                                "command -v zstd >/dev/null || exit 1; "
                                "zstd -q -19 -c --zstd=wlog=%d <%s | wc -c",
                                window, file);

        if (size < 0)
            die("out of memory");
        ret->other[i] = 8 * number_from(command) / (double)len;
        free(command);
    }
    free(file);
}

/* ---- telling */

static void tell_bytes(const struct options *o, const char *file, const struct result *r,
                       size_t len)
{
    double bits = r->nats / log(2), speed = (double)len / r->seconds / 1000;

    if (o->json)
        printf("{\"file\": \"%s\", \"preset\": \"%s\", \"state_bytes\": %.0f, "
               "\"bits_per_byte\": %.4f, \"kb_per_s\": %.0f",
               file, o->preset, o->state_bytes, bits, speed);
    else
        printf("%s %s %.0f %.4f %.0f", file, o->preset, o->state_bytes, bits, speed);
    for (int i = 0; i < COMPRESSORS; i++)
        if (r->other[i] > 0)
            printf(o->json ? ", \"%s\": %.4f" : " %s=%.4f", other_name[i], r->other[i]);
    puts(o->json ? "}" : "");
}

static void tell_events(const struct options *o, const char *file, const struct result *r,
                        size_t count)
{
    double speed = (double)count / r->seconds;

    if (o->json)
        printf("{\"file\": \"%s\", \"model\": \"events\", \"state_bytes\": %.0f, "
               "\"nats_per_event\": %.4f, \"hit1\": %.4f, \"hit10\": %.4f, "
               "\"events_per_s\": %.0f}\n",
               file, o->state_bytes, r->nats, r->hit1, r->hit10, speed);
    else
        printf("%s events %.0f %.4f %.4f %.4f %.0f\n", file, o->state_bytes, r->nats, r->hit1,
               r->hit10, speed);
}

static double best_other(const struct result *r)
{
    double best = 8;

    for (int i = 0; i < COMPRESSORS; i++)
        if (r->other[i] > 0 && r->other[i] < best)
            best = r->other[i];
    return best;
}

/* Returns ln(best other / ours), 0 for events. */
static double run_file(const struct options *o, const char *path)
{
    size_t name = strlen(path);
    int events = name > 4 && strcmp(path + name - 4, ".u16") == 0;
    struct data d = read_file(path);
    struct fw_stream *s = plan(o, events);
    struct result r = { 0 };

    learn_all(s, &d, &r);
    if (events) {
        count_hits(s, &d, &r);
        tell_events(o, path, &r, d.len / 2);
    } else {
        if (!o->alone)
            run_compressors(path, d.len, (size_t)o->state_bytes, &r);
        tell_bytes(o, path, &r, d.len);
    }
    fflush(stdout);
    fw_stream_free(s);
    free(d.bytes);
    return events ? 0 : log(best_other(&r) * log(2) / r.nats);
}

static int parse_options(int argc, char **argv, struct options *o)
{
    int i = 1;

    for (; i < argc && strncmp(argv[i], "--", 2) == 0; i++) {
        if (strcmp(argv[i], "--json") == 0)
            o->json = 1;
        else if (strcmp(argv[i], "--alone") == 0)
            o->alone = 1;
        else if (i + 1 < argc && strcmp(argv[i], "--preset") == 0)
            o->preset = argv[++i];
        else if (i + 1 < argc && strcmp(argv[i], "--expert") == 0)
            o->expert = argv[++i];
        else if (i + 1 < argc && strcmp(argv[i], "--state-bytes") == 0)
            o->state_bytes = strtod(argv[++i], NULL);
        else if (i + 1 < argc && strcmp(argv[i], "--vocab") == 0)
            o->vocab = strtod(argv[++i], NULL);
        else
            return argc;
    }
    return i;
}

int main(int argc, char **argv)
{
    struct options o = { .preset = "auto", .state_bytes = 4 << 20 };
    int first = parse_options(argc, argv, &o), files = 0;
    double sum = 0;

    if (first >= argc)
        die("usage: bench/stream [--json] [--preset P] [--expert E] [--state-bytes N] [--vocab "
            "V] [--alone] "
            "FILE...");
    fw_num_init();
    fw_num_thread();
    for (int i = first; i < argc; i++) {
        double ratio = run_file(&o, argv[i]);

        sum += ratio;
        files += ratio != 0;
    }
    printf("stream ratio=%.3f\n", files ? exp(sum / files) : 1.0);
    return 0;
}
