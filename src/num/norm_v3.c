/* norm_v3.c - fw_sum_squares for x86-64-v3. */
#include "config.h"

#include "norm.h"

#include "squares.h"

/* The last n < 8 floats on top of the lanes: rare. */
static __attribute__((noinline)) double sum_rest(struct squares s, const float *x, size_t n)
{
    double lane[8], sum = 0;

    _mm256_storeu_pd(lane, s.low);
    _mm256_storeu_pd(lane + 4, s.high);
    for (size_t l = 0; l < n; l++)
        lane[l] += (double)x[l] * (double)x[l];
    for (size_t l = 0; l < 8; l++)
        sum += lane[l];
    return sum;
}

double fw_sum_squares_v3(const float *x, size_t n)
{
    struct squares s = fw_squares_none();
    size_t i = 0;

    for (; i + 8 <= n; i += 8)
        s = fw_squares_add(s, _mm256_loadu_ps(x + i));
    return i < n ? sum_rest(s, x + i, n - i) : fw_squares_sum(s);
}
