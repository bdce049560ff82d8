/* num.c - what is decided once: the CPU level and the floating-point mode.
 *
 * The level says which copy of the hot files runs (fastweight/level.h). We ask cpuid for every
 * feature of x86-64-v3 and xgetbv whether the system keeps the ymm registers, because the v3
 * copies are compiled with all of them allowed. The level is the one variable of this room: it
 * is written by fw_num_init, before any thread, and read-only afterwards.
 *
 * States are computed with subnormals flushed (FTZ, DAZ), rounding to nearest, so that a
 * decaying memory never slows down and every thread computes the same bits. */
#include "config.h"

#include "fastweight/num.h"

#include <stdlib.h>
#include <string.h>

#include <cblas.h>

#include "fastweight/kernel.h"

#include "norm.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

static enum fw_level level = FW_LEVEL_BASE;

#if defined(__x86_64__) && defined(HAVE_V3)

/* The system saves xmm and ymm: bits 1 and 2 of XCR0. */
static int os_keeps_ymm(void)
{
    unsigned lo, hi;

    __asm__ volatile("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
    return (lo & 6) == 6;
}

static int cpu_is_v3(void)
{
    /* sse3 ssse3 fma cx16 sse4.1 sse4.2 movbe popcnt osxsave avx f16c */
    const unsigned leaf1_ecx = 1u << 0 | 1u << 9 | 1u << 12 | 1u << 13 | 1u << 19 | 1u << 20 |
                               1u << 22 | 1u << 23 | 1u << 27 | 1u << 28 | 1u << 29;
    const unsigned leaf7_ebx = 1u << 3 | 1u << 5 | 1u << 8; /* bmi1 avx2 bmi2 */
    const unsigned ext1_ecx = 1u << 0 | 1u << 5;            /* lahf lzcnt */
    unsigned a, b, c, d;

    if (!__get_cpuid(1, &a, &b, &c, &d) || (c & leaf1_ecx) != leaf1_ecx || !os_keeps_ymm())
        return 0;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (b & leaf7_ebx) != leaf7_ebx)
        return 0;
    return __get_cpuid(0x80000001u, &a, &b, &c, &d) && (c & ext1_ecx) == ext1_ecx;
}

#else

static int cpu_is_v3(void)
{
    return 0;
}

#endif

void fw_num_init(void)
{
    const char *wish = getenv("FW_CPU_LEVEL");
    int lowered = wish && strcmp(wish, "base") == 0;

    level = cpu_is_v3() && !lowered ? FW_LEVEL_X86_64_V3 : FW_LEVEL_BASE;
    openblas_set_num_threads(1);
}

enum fw_level fw_num_level(void)
{
    return level;
}

const char *fw_num_cpu_level(void)
{
    return level == FW_LEVEL_X86_64_V3 ? "x86-64-v3" : "baseline";
}

const struct fw_kernels *fw_num_kernels(void)
{
#ifdef HAVE_V3
    if (level == FW_LEVEL_X86_64_V3)
        return &fw_kernels_v3;
#endif
    return &fw_kernels_base;
}

double fw_sum_squares(const float *x, size_t n)
{
#ifdef HAVE_V3
    if (level == FW_LEVEL_X86_64_V3)
        return fw_sum_squares_v3(x, n);
#endif
    return fw_sum_squares_base(x, n);
}

void fw_num_thread(void)
{
#if defined(__x86_64__)
    /* all exceptions masked, round to nearest, FTZ 0x8000, DAZ 0x0040 */
    _mm_setcsr(0x1f80u | 0x8000u | 0x0040u);
#endif
}
