/* clock.c - the two clocks. Durations and deadlines come from the one that never goes back; the
 * wall clock is for what people read. Neither can fail on Linux with these clock ids. Any
 * thread. */
#include "config.h"

#include "fastweight/clock.h"

#include <time.h>

uint64_t fw_clock_mono_ns(void)
{
    struct timespec t = { 0 };

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

int64_t fw_clock_wall_ms(void)
{
    struct timespec t = { 0 };

    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}
