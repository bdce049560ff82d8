/* fmath_copy.c - the inline functions as loops, one copy per level, so that fmath_test.c can
 * ask whether the copies agree however a compiler vectorises them. */
#include "config.h"

#include "fmath_copy.h"

#include "fastweight/fmath.h"

#define MAP(type, name)                                                                        \
    static void map_##name(type *y, const type *x, size_t n)                                   \
    {                                                                                          \
        for (size_t i = 0; i < n; i++)                                                         \
            y[i] = fw_##name(x[i]);                                                            \
    }

MAP(float, expf)
MAP(float, logf)
MAP(float, sqrtf)
MAP(double, exp)
MAP(double, log)
MAP(double, sqrt)

const struct fmath_copy FW_AT(fmath_copy) = { map_expf, map_logf, map_sqrtf,
                                              map_exp,  map_log,  map_sqrt };
