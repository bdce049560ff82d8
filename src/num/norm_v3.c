/* norm_v3.c - fw_sum_squares for x86-64-v3. The squares are exact, so fma rounds where norm.c's
 * addition does. */
#include "config.h"

#include "norm.h"

#include <immintrin.h>

static inline __m256d add_squares(const float *x, __m256d sum)
{
    __m256d d = _mm256_cvtps_pd(_mm_loadu_ps(x));

    return _mm256_fmadd_pd(d, d, sum);
}

double fw_sum_squares_v3(const float *x, size_t n)
{
    __m256d low = _mm256_setzero_pd(), high = low;
    double lane[8], sum = 0;
    size_t i = 0;

    for (; i + 8 <= n; i += 8) {
        low = add_squares(x + i, low);
        high = add_squares(x + i + 4, high);
    }
    _mm256_storeu_pd(lane, low);
    _mm256_storeu_pd(lane + 4, high);
    for (size_t l = 0; i + l < n; l++)
        lane[l] += (double)x[i + l] * (double)x[i + l];
    for (size_t l = 0; l < 8; l++)
        sum += lane[l];
    return sum;
}
