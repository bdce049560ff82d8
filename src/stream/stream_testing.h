/* stream_testing.h - what the tests of this room share: samples, plans, blocks. */
#ifndef STREAM_TESTING_H
#define STREAM_TESTING_H

#include "test_main.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "fastweight/hash.h"
#include "fastweight/num.h"
#include "fastweight/stream.h"

#pragma GCC diagnostic ignored "-Wunused-function" /* each program uses some of them */

#define MIB ((size_t)1 << 20)

static void start_numbers(void)
{
    fw_num_init();
    fw_num_thread();
}

/* tests/data/NAME; the caller frees. */
static uint8_t *read_sample(const char *name, size_t *ret_len)
{
    const char *top = getenv("top_srcdir");
    uint8_t *bytes = malloc(MIB);
    char path[512];
    FILE *f;

    snprintf(path, sizeof path, "%s/tests/data/%s", top ? top : ".", name);
    f = fopen(path, "rb");
    ck_assert_msg(f != NULL, "%s is missing", path);
    ck_assert_ptr_nonnull(bytes);
    *ret_len = fread(bytes, 1, MIB, f);
    fclose(f);
    return bytes;
}

static struct fw_stream *new_bytes(const char *preset, size_t state_bytes)
{
    struct fw_params config = { 0 }, resolved;
    struct fw_stream *s = NULL;
    struct fw_err err;

    ck_assert_int_eq(fw_params_set_string(&config, "preset", preset, &err), 0);
    ck_assert_int_eq(fw_params_set_number(&config, "state_bytes", (double)state_bytes, &err),
                     0);
    ck_assert_msg(fw_stream_new(&s, "bytes", &config, NULL, &resolved, &err) == 0, "%s",
                  err.msg);
    return s;
}

static size_t block_bytes(const struct fw_stream *s)
{
    return fw_stream_layout(s)->block_bytes;
}

static void *new_block(const struct fw_stream *s)
{
    void *block = aligned_alloc(64, block_bytes(s));

    ck_assert_ptr_nonnull(block);
    memset(block, 0, block_bytes(s));
    fw_stream_init(s, block);
    return block;
}

static void hash_block(const struct fw_stream *s, const void *block, char hex[FW_HASH_HEX])
{
    fw_hash_hex(fw_hash128(block, block_bytes(s)), hex);
}

/* Learns and returns bits per token. */
static double learn_bits(const struct fw_stream *s, void *block, const void *tokens, size_t n)
{
    double *logp = malloc(n * sizeof *logp), nats = 0;

    ck_assert_ptr_nonnull(logp);
    fw_stream_learn(s, block, tokens, n, logp);
    for (size_t i = 0; i < n; i++)
        nats -= logp[i];
    free(logp);
    return nats / (double)n / 0.69314718055994531;
}

#endif
