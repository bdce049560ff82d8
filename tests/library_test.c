/* library_test.c - a program of somebody else's: includes the installed headers only, links
 * libfastweight.a, learns a text and is less surprised by it the second time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fastweight/arena.h"
#include "fastweight/num.h"
#include "fastweight/stream.h"

static double mean(const double *logp, size_t n)
{
    double sum = 0;
    size_t i;

    for (i = 0; i < n; i++)
        sum += logp[i];
    return sum / (double)n;
}

int main(void)
{
    static const char text[] =
        "the installed archive and its headers are enough to learn this. ";
    enum { LEN = sizeof text - 1 };
    struct fw_params config = { 0 }, resolved;
    struct fw_stream *s;
    struct fw_arena *arena;
    struct fw_err err = { 0 };
    double first[LEN], second[LEN];
    size_t bytes;
    void *block;

    fw_num_init();
    fw_num_thread();
    if (fw_stream_new(&s, "bytes", &config, NULL, &resolved, &err) < 0)
        goto failed;
    bytes = fw_stream_layout(s)->block_bytes;
    if (fw_arena_new(&arena, 2 * bytes, &err) < 0 ||
        fw_arena_take(arena, bytes, &block, &err) < 0)
        goto failed;
    fw_stream_init(s, block);
    fw_stream_learn(s, block, text, LEN, first);
    fw_stream_learn(s, block, text, LEN, second);
    fw_arena_give(arena, block, bytes);
    fw_arena_free(arena);
    fw_stream_free(s);
    printf("mean ln p: %.3f, then %.3f\n", mean(first, LEN), mean(second, LEN));
    return mean(second, LEN) > mean(first, LEN) ? EXIT_SUCCESS : EXIT_FAILURE;
failed:
    fprintf(stderr, "%s\n", err.msg);
    return EXIT_FAILURE;
}
