#include "config.h"

#include "test_main.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "fastweight/arena.h"

enum { KIB = 1 << 10, MIB = 1 << 20 };

static struct fw_arena *arena;

static void *take(size_t bytes)
{
    void *block = NULL;
    struct fw_err e = { 0 };

    ck_assert_msg(fw_arena_take(arena, bytes, &block, &e) == 0, "%s", e.msg);
    ck_assert_uint_eq((uintptr_t)block % 64, 0);
    return block;
}

static int is_all(const unsigned char *p, size_t bytes, int value)
{
    return bytes == 0 || (p[0] == value && memcmp(p, p + 1, bytes - 1) == 0);
}

/* A line of /proc/self/status in bytes; anonymous resident memory is "RssAnon:". */
static double status_bytes(const char *name)
{
    char line[256];
    unsigned long kib = 0;
    FILE *f = fopen("/proc/self/status", "r");

    ck_assert_ptr_nonnull(f);
    while (fgets(line, sizeof line, f)) {
        if (strncmp(line, name, strlen(name)) == 0)
            kib = strtoul(line + strlen(name), NULL, 10);
    }
    fclose(f);
    return (double)kib * KIB;
}

static double overhead(double empty)
{
    return (status_bytes("RssAnon:") - empty) / (double)fw_arena_used(arena);
}

static size_t mappings(void)
{
    size_t n = 0;
    int c;
    FILE *f = fopen("/proc/self/maps", "r");

    ck_assert_ptr_nonnull(f);
    while ((c = getc(f)) != EOF)
        n += c == '\n';
    fclose(f);
    return n;
}

START_TEST(blocks_of_all_sizes_are_zeroed_aligned_and_do_not_overlap)
{
    static const size_t size[] = { 0,       1,    63,      64,      65,         4095,   4096,
                                   4097,    5000, 65536,   100000,  262143,     262144, 262145,
                                   MIB - 1, MIB,  MIB + 1, 2 * MIB, 3 * MIB + 5 };
    enum { SIZES = sizeof size / sizeof size[0], EACH = 5 };
    unsigned char *block[SIZES][EACH];
    size_t i, j;

    fw_arena_new(&arena, 256 * MIB, NULL);
    for (i = 0; i < SIZES; i++) {
        for (j = 0; j < EACH; j++) {
            block[i][j] = take(size[i]);
            ck_assert(is_all(block[i][j], size[i], 0));
            memset(block[i][j], (int)(i * EACH + j + 1), size[i]);
        }
    }
    for (i = 0; i < SIZES; i++) {
        for (j = 0; j < EACH; j++) {
            ck_assert(is_all(block[i][j], size[i], (int)(i * EACH + j + 1)));
            fw_arena_give(arena, block[i][j], size[i]);
        }
    }
    ck_assert_uint_eq(fw_arena_used(arena), 0);
    fw_arena_free(arena);
}
END_TEST

START_TEST(a_reused_block_is_zeroed_and_its_neighbours_are_untouched)
{
    static const size_t size[] = { 64, 192, 4096, 5056, 64 * KIB + 64, 300 * KIB };
    enum { BLOCKS = 40 };
    unsigned char *block[BLOCKS];
    size_t i, j, round;

    fw_arena_new(&arena, 64 * MIB, NULL);
    for (i = 0; i < sizeof size / sizeof size[0]; i++) {
        for (j = 0; j < BLOCKS; j++)
            memset(block[j] = take(size[i]), 0xff, size[i]);
        for (round = 0; round < 3; round++) {
            for (j = round; j < BLOCKS; j += 2 + round)
                fw_arena_give(arena, block[j], size[i]);
            for (j = round; j < BLOCKS; j += 2 + round) {
                block[j] = take(size[i]);
                ck_assert(is_all(block[j], size[i], 0));
                memset(block[j], 0xff, size[i]);
            }
        }
        for (j = 0; j < BLOCKS; j++) {
            ck_assert(is_all(block[j], size[i], 0xff));
            fw_arena_give(arena, block[j], size[i]);
        }
    }
    fw_arena_free(arena);
}
END_TEST

START_TEST(the_limit_counts_rounded_bytes_and_is_exact)
{
    struct fw_err e = { 0 };
    void *a, *b, *c = NULL;

    fw_arena_new(&arena, 192, NULL);
    ck_assert_uint_eq(fw_arena_limit(arena), 192);
    a = take(65);
    ck_assert_uint_eq(fw_arena_used(arena), 128);
    b = take(64);
    ck_assert_int_eq(fw_arena_take(arena, 1, &c, &e), -1);
    ck_assert_int_eq(e.code, FW_EAGAIN);
    ck_assert_str_eq(e.reason, "memory_full");
    ck_assert_ptr_null(c);
    fw_arena_give(arena, b, 64);
    c = take(1);
    fw_arena_give(arena, a, 65);
    fw_arena_give(arena, c, 1);
    fw_arena_give(arena, NULL, 77);
    ck_assert_uint_eq(fw_arena_used(arena), 0);
    fw_arena_free(arena);
}
END_TEST

START_TEST(huge_requests_and_empty_limits_are_ordinary_errors)
{
    struct fw_err e = { 0 };
    void *block = NULL;

    fw_arena_new(&arena, 0, NULL);
    ck_assert_int_eq(fw_arena_take(arena, 0, &block, &e), -1);
    fw_arena_free(arena);
    fw_arena_new(&arena, SIZE_MAX, NULL);
    ck_assert_int_eq(fw_arena_take(arena, SIZE_MAX, &block, &e), -1);
    ck_assert_int_eq(e.code, FW_EAGAIN);
    e.code = FW_OK;
    ck_assert_int_eq(fw_arena_take(arena, SIZE_MAX / 4, &block, &e), -1);
    ck_assert_int_eq(e.code, FW_ENOMEM);
    ck_assert_ptr_null(block);
    ck_assert_uint_eq(fw_arena_used(arena), 0);
    block = take(100);
    fw_arena_give(arena, block, 100);
    fw_arena_free(arena);
    fw_arena_free(NULL);
}
END_TEST

START_TEST(a_thousand_blocks_of_1_mib_are_resident_within_2_percent)
{
    enum { BLOCKS = 1000 };
    static void *block[BLOCKS];
    double empty = status_bytes("RssAnon:");
    size_t i;

    fw_arena_new(&arena, (size_t)BLOCKS * MIB, NULL);
    for (i = 0; i < BLOCKS; i++)
        memset(block[i] = take(MIB), 1, MIB);
    ck_assert_double_le(overhead(empty), 1.02);
    ck_assert_double_ge(overhead(empty), 0.99);
    for (i = 0; i < BLOCKS; i += 2)
        fw_arena_give(arena, block[i], MIB);
    ck_assert_double_le(overhead(empty), 1.02);
    for (i = 1; i < BLOCKS; i += 2)
        fw_arena_give(arena, block[i], MIB);
    fw_arena_free(arena);
    ck_assert_double_le(status_bytes("RssAnon:") - empty, MIB);
}
END_TEST

START_TEST(mixed_sizes_stay_resident_within_5_percent_when_every_other_is_replaced)
{
    static const size_t size[] = { 64 * KIB, 100 * KIB + 64, 256 * KIB, 300 * KIB, MIB,
                                   MIB + 64, 2 * MIB,        20 * KIB,  4 * MIB };
    enum { SIZES = sizeof size / sizeof size[0], BLOCKS = 500 };
    static struct {
        void *p;
        size_t bytes;
    } block[BLOCKS];
    double empty = status_bytes("RssAnon:");
    size_t i;

    fw_arena_new(&arena, (size_t)1024 * MIB, NULL);
    for (i = 0; i < BLOCKS; i++) {
        block[i].bytes = size[i % SIZES];
        memset(block[i].p = take(block[i].bytes), 1, block[i].bytes);
    }
    ck_assert_double_le(overhead(empty), 1.02);
    for (i = 0; i < BLOCKS; i += 2)
        fw_arena_give(arena, block[i].p, block[i].bytes);
    ck_assert_double_le(overhead(empty), 1.05);
    for (i = 0; i < BLOCKS; i += 2) {
        block[i].bytes = size[(i / 2 + 3) % SIZES] + 64 * (i % 3);
        memset(block[i].p = take(block[i].bytes), 1, block[i].bytes);
    }
    ck_assert_double_le(overhead(empty), 1.05);
    for (i = 0; i < BLOCKS; i++)
        fw_arena_give(arena, block[i].p, block[i].bytes);
    fw_arena_free(arena);
}
END_TEST

START_TEST(pages_shared_by_small_blocks_go_with_the_last_of_them)
{
    enum { BLOCKS = 20000, BYTES = 5056 };
    static void *block[BLOCKS];
    double empty = status_bytes("RssAnon:");
    size_t i;

    fw_arena_new(&arena, 256 * MIB, NULL);
    for (i = 0; i < BLOCKS; i++)
        memset(block[i] = take(BYTES), 1, BYTES);
    for (i = 0; i < BLOCKS; i++) {
        if (i % 100 != 0)
            fw_arena_give(arena, block[i], BYTES);
    }
    /* 200 blocks remain, each on at most three pages */
    ck_assert_double_le(status_bytes("RssAnon:") - empty, 200 * 3 * 4096 + MIB);
    for (i = 0; i < BLOCKS; i += 100)
        fw_arena_give(arena, block[i], BYTES);
    fw_arena_free(arena);
}
END_TEST

START_TEST(a_hundred_thousand_small_blocks_need_few_mappings)
{
    enum { BLOCKS = 100000, BYTES = 64 * KIB };
    static void *block[BLOCKS];
    size_t i;

    fw_arena_new(&arena, (size_t)BLOCKS * BYTES, NULL);
    for (i = 0; i < BLOCKS; i++)
        block[i] = take(BYTES); /* addresses only: no page is touched */
    ck_assert_uint_le(mappings(), 20000);
    for (i = 0; i < BLOCKS; i++) {
        if (i % 64 >= 16)
            fw_arena_give(arena, block[i], BYTES);
    }
    ck_assert_uint_le(mappings(), 20000);
    for (i = 0; i < BLOCKS; i++) {
        if (i % 64 < 16)
            fw_arena_give(arena, block[i], BYTES);
    }
    fw_arena_free(arena);
}
END_TEST

static void *churn(void *arg)
{
    enum { BLOCKS = 16, ROUNDS = 3000 };
    unsigned char *block[BLOCKS] = { NULL };
    size_t bytes[BLOCKS] = { 0 }, k;
    uint32_t x = *(const uint32_t *)arg;
    unsigned char mark = (unsigned char)x;
    void *fresh;
    int i;

    for (i = 0; i < ROUNDS; i++) {
        x = x * 1664525u + 1013904223u;
        k = x >> 24 & (BLOCKS - 1);
        if (block[k]) {
            if (block[k][0] != mark || block[k][bytes[k] - 1] != mark)
                return arg;
            fw_arena_give(arena, block[k], bytes[k]);
            block[k] = NULL;
        } else {
            bytes[k] = (size_t)1 << (x >> 16 & 15);
            if (fw_arena_take(arena, bytes[k], &fresh, NULL) < 0)
                continue;
            block[k] = fresh;
            if (!is_all(block[k], bytes[k], 0))
                return arg;
            memset(block[k], mark, bytes[k]);
        }
    }
    for (k = 0; k < BLOCKS; k++)
        fw_arena_give(arena, block[k], bytes[k]);
    return NULL;
}

START_TEST(threads_take_and_give_without_meeting_each_other)
{
    uint32_t seed[4] = { 1, 2, 3, 4 };
    pthread_t thread[4];
    void *failed;
    int i;

    fw_arena_new(&arena, MIB, NULL);
    for (i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&thread[i], NULL, churn, &seed[i]), 0);
    for (i = 0; i < 4; i++) {
        pthread_join(thread[i], &failed);
        ck_assert_ptr_null(failed);
    }
    ck_assert_uint_eq(fw_arena_used(arena), 0);
    fw_arena_free(arena);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("tensor/arena");
    TCase *tc = tcase_create("arena");

    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, blocks_of_all_sizes_are_zeroed_aligned_and_do_not_overlap);
    tcase_add_test(tc, a_reused_block_is_zeroed_and_its_neighbours_are_untouched);
    tcase_add_test(tc, the_limit_counts_rounded_bytes_and_is_exact);
    tcase_add_test(tc, huge_requests_and_empty_limits_are_ordinary_errors);
    if (may_measure_memory()) {
        tcase_add_test(tc, a_thousand_blocks_of_1_mib_are_resident_within_2_percent);
        tcase_add_test(tc,
                       mixed_sizes_stay_resident_within_5_percent_when_every_other_is_replaced);
        tcase_add_test(tc, pages_shared_by_small_blocks_go_with_the_last_of_them);
        tcase_add_test(tc, a_hundred_thousand_small_blocks_need_few_mappings);
    }
    tcase_add_test(tc, threads_take_and_give_without_meeting_each_other);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
