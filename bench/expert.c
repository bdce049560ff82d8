/* expert.c - what a pretrained model is worth to a stream, as the stream grows.
 *
 *     bench/expert [--state-bytes N] [--most BYTES] MODELS_DIR MODEL FILE...
 *
 * One pass: predict, score, learn, by the stream learner alone, by the model alone, and by the
 * stream with the model as its expert. Prints mean bits per byte of the first 1 KB, 10 KB,
 * 100 KB and 1 MB of each file, as rows of a table, and the KB/s of CPU time. The last line is
 * `expert ratio=`: at 10 KB and 100 KB, the smallest of the better part's bits over both's. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fastweight/learner.h"
#include "fastweight/models.h"
#include "fastweight/num.h"

#define STEP 1024

static const size_t mark[] = { 1000, 10000, 100000, 1000000 };
#define MARKS (sizeof mark / sizeof mark[0])

struct options {
    double state_bytes;
    size_t most;
};

struct run {
    double bits[MARKS]; /* 0: the file is shorter */
    double kb_per_s;
};

static void die(const char *what, const char *why) __attribute__((noreturn));

static void die(const char *what, const char *why)
{
    fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

static double cpu_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static unsigned char *read_file(const char *path, size_t most, size_t *ret_len)
{
    FILE *f = fopen(path, "rb");
    unsigned char *bytes = malloc(most);

    if (!f || !bytes || (*ret_len = fread(bytes, 1, most, f)) == 0)
        die(path, "cannot be read, or is empty");
    fclose(f);
    return bytes;
}

/* The body of tokens as the learner takes them. */
static void *body_of(const struct fw_learner *l, const unsigned char *bytes, size_t n,
                     struct fw_tensor *ret)
{
    uint32_t *id = malloc(n * sizeof *id);

    if (!id)
        die("body", "out of memory");
    *ret = (struct fw_tensor){ .name = "tokens", .ndim = 1, .shape = { n }, .data = id };
    ret->dtype = l->token_bytes == 1 ? FW_U8 : FW_U32;
    ret->bytes = n * l->token_bytes;
    for (size_t i = 0; i < n; i++)
        if (l->token_bytes == 1)
            ((uint8_t *)id)[i] = bytes[i];
        else
            id[i] = bytes[i];
    return id;
}

static struct run run_learner(const struct fw_learner *l, const unsigned char *bytes, size_t n)
{
    void *block = aligned_alloc(64, l->layout->block_bytes), *body;
    struct fw_tensor tokens;
    const struct fw_tensors in = { 1, &tokens };
    double bits[STEP], sum = 0, from;
    struct run ret = { { 0 }, 0 };
    size_t next = 0;

    body = body_of(l, bytes, n, &tokens);
    if (!block)
        die("block", "out of memory");
    memset(block, 0, l->layout->block_bytes);
    l->kind->init(l, block);
    from = cpu_s();
    for (size_t done = 0, count; done < n; done += count) {
        count = n - done < STEP ? n - done : STEP;
        l->kind->learn(l, block, &in, done, count, bits, NULL);
        for (size_t i = 0; i < count; i++) {
            sum += bits[i];
            if (next < MARKS && done + i + 1 == mark[next])
                ret.bits[next++] = sum / (double)(done + i + 1);
        }
    }
    ret.kb_per_s = (double)n / 1000 / (cpu_s() - from);
    free(block);
    free(body);
    return ret;
}

static struct run run_kind(const struct fw_learner_kind *kind, const struct fw_models *models,
                           const char *model, const struct fw_params *config,
                           const unsigned char *bytes, size_t n)
{
    struct fw_params full;
    struct fw_learner *l;
    struct fw_err err;
    struct run ret;

    if (kind->open(&l, models, model, config, &full, &err) < 0)
        die(err.param, err.msg);
    ret = run_learner(l, bytes, n);
    kind->close(l);
    return ret;
}

static void tell(const char *file, const char *who, const struct run *r)
{
    printf("| %s | %s |", file, who);
    for (size_t i = 0; i < MARKS; i++)
        printf(r->bits[i] > 0 ? " %.3f |" : " - |", r->bits[i]);
    printf(" %.0f |\n", r->kb_per_s);
    fflush(stdout);
}

/* Returns the smallest gain at 10 KB and 100 KB. */
static double run_file(const struct options *o, const struct fw_models *models,
                       const char *model, const char *file)
{
    struct fw_params plain = { 0 }, with, none = { 0 };
    struct run stream, alone, both;
    double least = 1e9;
    struct fw_err err;
    size_t n;
    unsigned char *bytes = read_file(file, o->most, &n);

    if (fw_params_set_number(&plain, "state_bytes", o->state_bytes, &err) < 0)
        die(err.param, err.msg);
    with = plain;
    if (fw_params_set_string(&with, "expert", model, &err) < 0)
        die(err.param, err.msg);
    stream = run_kind(&fw_learner_stream, models, "bytes", &plain, bytes, n);
    tell(file, "stream", &stream);
    alone = run_kind(&fw_learner_transformer, models, model, &none, bytes, n);
    tell(file, model, &alone);
    both = run_kind(&fw_learner_stream, models, "bytes", &with, bytes, n);
    tell(file, "both", &both);
    for (size_t i = 1; i < 3 && both.bits[i] > 0; i++) {
        double best = stream.bits[i] < alone.bits[i] ? stream.bits[i] : alone.bits[i];

        least = best / both.bits[i] < least ? best / both.bits[i] : least;
    }
    free(bytes);
    return least;
}

int main(int argc, char **argv)
{
    struct options o = { 4 << 20, 1000000 };
    struct fw_models *models;
    double least = 1e9;
    struct fw_err err;
    int i = 1;

    for (; i + 1 < argc && strncmp(argv[i], "--", 2) == 0; i += 2)
        if (strcmp(argv[i], "--state-bytes") == 0)
            o.state_bytes = strtod(argv[i + 1], NULL);
        else if (strcmp(argv[i], "--most") == 0)
            o.most = (size_t)strtoull(argv[i + 1], NULL, 10);
    if (argc - i < 3)
        die("usage", "bench/expert [--state-bytes N] [--most BYTES] MODELS_DIR MODEL FILE...");
    fw_num_init();
    fw_num_thread();
    if (fw_models_open(&models, argv[i], &err) < 0)
        die(argv[i], err.msg);
    puts("| file | who | 1 KB | 10 KB | 100 KB | 1 MB | KB/s |\n"
         "| --- | --- | --- | --- | --- | --- | --- |");
    for (int f = i + 2; f < argc; f++) {
        double gain = run_file(&o, models, argv[i + 1], argv[f]);

        least = gain < least ? gain : least;
    }
    fw_models_close(models);
    printf("expert ratio=%.3f\n", least);
    return 0;
}
