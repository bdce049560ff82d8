/* norm.c - sums of squares of floats. The square of a float is exact in double, so only the
 * additions round, in a fixed order: the same bits with every compiler and level. */
#include "config.h"

#include "norm.h"

#include <string.h>

#include "fastweight/level.h"

typedef double d8 __attribute__((vector_size(64)));

double fw_sum_squares_base(const float *x, size_t n)
{
    d8 lane = { 0 };
    double sum = 0;
    size_t i = 0;

    for (; i + 8 <= n; i += 8) {
        fw_f8 f;
        d8 d;

        memcpy(&f, x + i, sizeof f);
        d = __builtin_convertvector(f, d8);
        lane += d * d;
    }
    for (size_t l = 0; i + l < n; l++)
        lane[l] += (double)x[i + l] * (double)x[i + l];
    for (size_t l = 0; l < 8; l++)
        sum += lane[l];
    return sum;
}
