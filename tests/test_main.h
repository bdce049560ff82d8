/* test_main.h - what every unit test program shares: running its suite. */
#ifndef TEST_MAIN_H
#define TEST_MAIN_H

#include <check.h>
#include <stdlib.h>
#include <string.h>

#pragma GCC diagnostic ignored "-Wdouble-promotion" /* ck_assert_float_* promote */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

/* Whether a test may measure its resident memory and mappings: not where a sanitizer adds its
 * own, nor without a process of its own, as under valgrind. */
static inline int may_measure_memory(void)
{
    const char *fork = getenv("CK_FORK");

    return !SANITIZED && !(fork && strcmp(fork, "no") == 0);
}

/* How many rounds, or how long a stream, of n: all, or with FW_TEST_SHORT=1 (inside valgrind
 * all is thirty times as slow) a `part`-th of them, but some. */
static inline size_t rounds_of(size_t n, size_t part)
{
    const char *wish = getenv("FW_TEST_SHORT");

    return wish && strcmp(wish, "1") == 0 ? (n + part - 1) / part : n;
}

/* TAP on stdout carries the verdict, so we exit 0 whenever the run completed. */
static int run_suite(Suite *s)
{
    SRunner *sr = srunner_create(s);
    const char *tap = getenv("CK_TAP_LOG_FILE_NAME");
    int failed;

    srunner_run_all(sr, tap ? CK_SILENT : CK_ENV);
    failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return tap || !failed ? EXIT_SUCCESS : EXIT_FAILURE;
}

#endif
