/* http_learner.c - what `bench/http` compares learning over HTTP with: the learner alone.
 *
 * FILE SECONDS SESSIONS STATE_BYTES: learns 1 KB pieces of the file, piece i in block
 * i % SESSIONS, with one thread for each core (a block always has the same thread). Prints the
 * pieces learned a second by all threads together, and the processor time of one in us. */
#include "config.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "fastweight/clock.h"
#include "fastweight/num.h"
#include "fastweight/stream.h"

enum { PIECE = 1024, MAX_SESSIONS = 64, MAX_THREADS = 64 };

struct run {
    const struct fw_stream *stream;
    const unsigned char *text;
    size_t pieces, sessions, threads;
    void *block[MAX_SESSIONS];
    uint64_t end_ns;
};

struct learner {
    struct run *run;
    size_t number;
    uint64_t learned;
};

static void *learn(void *arg)
{
    struct learner *l = arg;
    struct run *r = l->run;
    size_t i, session;

    fw_num_thread();
    for (i = 0; fw_clock_mono_ns() < r->end_ns; i++) {
        session = i % r->sessions;
        if (session % r->threads != l->number)
            continue;
        fw_stream_learn(r->stream, r->block[session], r->text + i % r->pieces * PIECE, PIECE,
                        NULL);
        l->learned++;
    }
    return NULL;
}

static unsigned char *read_text(const char *path, size_t *ret_pieces)
{
    FILE *f = fopen(path, "rb");
    unsigned char *text;
    long len;

    if (!f || fseek(f, 0, SEEK_END) != 0 || (len = ftell(f)) < PIECE)
        return NULL;
    rewind(f);
    text = malloc((size_t)len);
    *ret_pieces = (size_t)len / PIECE;
    if (text && fread(text, PIECE, *ret_pieces, f) != *ret_pieces)
        return NULL;
    fclose(f);
    return text;
}

static void measure(struct run *r, double seconds)
{
    struct learner l[MAX_THREADS];
    pthread_t thread[MAX_THREADS];
    uint64_t start = fw_clock_mono_ns(), learned = 0;
    size_t i;

    r->end_ns = start + (uint64_t)(seconds * 1e9);
    for (i = 0; i < r->threads; i++) {
        l[i] = (struct learner){ r, i, 0 };
        if (pthread_create(&thread[i], NULL, learn, &l[i]) != 0)
            exit(1);
    }
    for (i = 0; i < r->threads; i++) {
        pthread_join(thread[i], NULL);
        learned += l[i].learned;
    }
    printf("%.1f %.1f\n", (double)learned / ((double)(fw_clock_mono_ns() - start) / 1e9),
           (double)clock() / CLOCKS_PER_SEC * 1e6 / (double)learned);
}

int main(int argc, char **argv)
{
    struct fw_params config = { 0 }, resolved;
    struct run r = { 0 };
    struct fw_stream *s;
    struct fw_err err;
    size_t i, bytes;
    long cores = sysconf(_SC_NPROCESSORS_ONLN);

    if (argc != 5) {
        fputs("usage: http_learner FILE SECONDS SESSIONS STATE_BYTES\n", stderr);
        return 2;
    }
    fw_num_init();
    r.text = read_text(argv[1], &r.pieces);
    r.sessions = strtoul(argv[3], NULL, 10);
    r.threads = cores > 0 && cores < MAX_THREADS ? (size_t)cores : 1;
    if (!r.text || r.sessions == 0 || r.sessions > MAX_SESSIONS)
        return 2;
    if (fw_params_set_number(&config, "state_bytes", strtod(argv[4], NULL), &err) < 0 ||
        fw_stream_new(&s, "bytes", &config, NULL, &resolved, &err) < 0) {
        fprintf(stderr, "%s\n", err.msg);
        return 1;
    }
    r.stream = s;
    bytes = fw_stream_layout(s)->block_bytes;
    for (i = 0; i < r.sessions; i++) {
        r.block[i] = aligned_alloc(64, bytes);
        if (!r.block[i])
            return 1;
        memset(r.block[i], 0, bytes);
        fw_stream_init(s, r.block[i]);
    }
    measure(&r, strtod(argv[2], NULL));
    return 0;
}
