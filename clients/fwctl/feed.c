/* feed.c - sending a file to learn or score, with a progress bar on a terminal
 * (--progress: also elsewhere).
 *
 * A learn goes in pieces of about 64 KiB that end at a line's end when there is one (the bytes
 * of the state do not depend on where a stream is cut). Those of events have even length, so
 * that no id (two bytes) is cut. --follow waits for more, like tail.
 */
#include "config.h"

#include "fwctl.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define PIECE_BYTES ((size_t)64 << 10)

struct totals {
    uint64_t bytes, tokens, size; /* size: of the file, 0 when not known */
    double bits, first, last;     /* in all; means of the first and the last piece */
    json_int_t version;
    const char *media; /* of raw bytes, as the session takes them */
    bool associative, events;
};

static const char octets[] = "application/octet-stream";

int ctl_feed_options(struct ctl_feed *f, int *argc, char **argv)
{
    const char *lines = ctl_option(argc, argv, "--lines");

    f->progress = ctl_flag(argc, argv, "--progress") || isatty(STDERR_FILENO);
    if (ctl_flag(argc, argv, "--json"))
        f->whole = "application/json";
    if (ctl_flag(argc, argv, "--safetensors"))
        f->whole = "application/vnd.safetensors";
    if (lines) {
        char *end;
        unsigned long n = strtoul(lines, &end, 10);

        if (*end || n < 1 || n > 10000) {
            fputs("fwctl: --lines takes a number from 1 to 10000\n", stderr);
            return -1;
        }
        f->worst = n;
    }
    return 0;
}

static void show_progress(const struct totals *t)
{
    static const char bar[] = "##############################";
    int width = (int)sizeof bar - 1;
    int done = t->size ? (int)((double)t->bytes / (double)t->size * width) : width;

    fprintf(stderr, "\r[%-*.*s] %" PRIu64 " bytes, %.3f a token ", width,
            done < width ? done : width, bar, t->bytes,
            t->tokens ? t->bits / (double)t->tokens : 0);
}

static int send_piece(struct ctl *c, const struct ctl_feed *f, const struct fw_buf *piece,
                      struct totals *t, struct ctl_worst *worst)
{
    bool raw = !f->whole || strcmp(f->whole, octets) == 0;
    struct ctl_body body = { raw ? t->media : f->whole, piece->data, piece->len, NULL };
    json_t *reply, *surprise;
    json_int_t tokens = 0;
    char path[512];

    if (ctl_path(path, sizeof path, f->id, "/%s?%ssurprise=%s", f->verb, f->query,
                 worst ? "lines" : "mean"))
        return -1;
    if (ctl_call(c, "POST", path, &body))
        return -1;
    reply = json_loadb((const char *)c->reply.data, c->reply.len, 0, NULL);
    surprise = json_object_get(reply, "surprise");
    t->associative = !surprise;
    if (!surprise)
        surprise = json_object_get(reply, "residual");
    json_unpack(reply, "{s:I, s:I}", "version", &t->version, "tokens", &tokens);
    t->last = json_number_value(json_object_get(surprise, "mean"));
    if (!t->bytes)
        t->first = t->last;
    t->bits += t->last * (double)tokens;
    t->tokens += (uint64_t)tokens;
    t->bytes += piece->len;
    if (worst)
        ctl_worst_add(worst, json_object_get(surprise, "lines"), piece->data);
    json_decref(reply);
    return 0;
}

/* The end of the next piece: after its last newline, else as much as there is. */
static size_t cut(const struct fw_buf *b, bool last, bool events)
{
    size_t n = b->len < PIECE_BYTES ? b->len : PIECE_BYTES;

    if (last && n == b->len)
        return n;
    if (events)
        return n & ~(size_t)1;
    for (size_t i = n; i > 0; i--)
        if (b->data[i - 1] == '\n')
            return i;
    return n == PIECE_BYTES ? n : 0;
}

static void drop_front(struct fw_buf *b, size_t n)
{
    memmove(b->data, b->data + n, b->len - n);
    b->len -= n;
}

static int send_ready(struct ctl *c, const struct ctl_feed *f, struct fw_buf *b, bool last,
                      struct totals *t, struct ctl_worst *worst)
{
    size_t n;

    while (b->len && (n = cut(b, last, t->events)) > 0) {
        struct fw_buf piece = { .data = b->data, .len = n };

        if (send_piece(c, f, &piece, t, worst))
            return -1;
        if (f->progress)
            show_progress(t);
        drop_front(b, n);
    }
    return 0;
}

static int feed_stream(struct ctl *c, const struct ctl_feed *f, int fd, struct totals *t,
                       struct ctl_worst *worst)
{
    const struct timespec pause = { .tv_nsec = 200000000 };
    struct fw_buf b;
    char bytes[65536];
    ssize_t n;
    int rc = 0;

    fw_buf_init(&b, 4 * PIECE_BYTES);
    while (rc == 0) {
        n = read(fd, bytes, sizeof bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            perror(f->file);
            rc = -1;
        } else if (n > 0) {
            rc = fw_buf_append(&b, bytes, (size_t)n, NULL);
            if (rc == 0)
                rc = send_ready(c, f, &b, false, t, worst);
        } else if (f->follow) {
            nanosleep(&pause, NULL);
        } else {
            rc = send_ready(c, f, &b, true, t, worst);
            break;
        }
    }
    fw_buf_done(&b);
    return rc;
}

static int feed_whole(struct ctl *c, const struct ctl_feed *f, struct totals *t,
                      struct ctl_worst *worst)
{
    struct fw_buf b;
    int rc = ctl_read_file(f->file, &b);

    if (rc == 0)
        rc = send_piece(c, f, &b, t, worst);
    fw_buf_done(&b);
    return rc;
}

static void print_totals(const struct ctl_feed *f, const struct totals *t)
{
    const char *unit = t->associative ? "residual" : "bits a token";

    if (f->progress)
        fputc('\n', stderr);
    printf("%s: %" PRIu64 " tokens, %.4f %s (first piece %.4f, last %.4f), version %lld\n",
           f->verb, t->tokens, t->tokens ? t->bits / (double)t->tokens : 0, unit, t->first,
           t->last, (long long)t->version);
}

/* Text goes through the tokenizer of a model that has one of its own. */
static void ask_what_it_takes(struct ctl *c, const char *id, struct totals *t)
{
    char path[512];
    json_t *facts =
        ctl_path(path, sizeof path, id, "%s", "") ? NULL : ctl_json(c, "GET", path, NULL);
    const char *model = json_string_value(json_object_get(facts, "model"));
    const char *tokenizer = json_string_value(json_object_get(facts, "tokenizer"));

    t->events = model && strcmp(model, "events") == 0;
    t->media = tokenizer && strcmp(tokenizer, "bytes") != 0 ? "text/plain" : octets;
    json_decref(facts);
}

static int feed_file(struct ctl *c, const struct ctl_feed *f, struct totals *t,
                     struct ctl_worst *worst)
{
    struct stat st;
    int rc, fd = strcmp(f->file, "-") == 0 ? STDIN_FILENO : open(f->file, O_RDONLY);

    if (fd < 0) {
        perror(f->file);
        return -1;
    }
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
        t->size = (uint64_t)st.st_size;
    rc = feed_stream(c, f, fd, t, worst);
    if (fd != STDIN_FILENO)
        close(fd);
    return rc;
}

int ctl_feed(struct ctl *c, const struct ctl_feed *f)
{
    struct ctl_worst *worst = f->worst ? ctl_worst_new(f->worst) : NULL;
    struct totals t = { 0 };
    int rc;

    ask_what_it_takes(c, f->id, &t);
    rc = f->whole ? feed_whole(c, f, &t, worst) : feed_file(c, f, &t, worst);
    if (rc == 0) {
        print_totals(f, &t);
        if (worst)
            ctl_worst_print(worst);
    }
    ctl_worst_free(worst);
    return rc;
}
