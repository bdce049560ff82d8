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

/* sum + lane 0 + lane 1, in order. */
static inline __m128d add_lanes(__m128d sum, __m128d lanes)
{
    sum = _mm_add_sd(sum, lanes);
    return _mm_add_sd(sum, _mm_unpackhi_pd(lanes, lanes));
}

/* The last n < 8 floats on top of the lanes: rare. */
static __attribute__((noinline)) double sum_rest(__m256d low, __m256d high, const float *x,
                                                 size_t n)
{
    double lane[8], sum = 0;

    _mm256_storeu_pd(lane, low);
    _mm256_storeu_pd(lane + 4, high);
    for (size_t l = 0; l < n; l++)
        lane[l] += (double)x[l] * (double)x[l];
    for (size_t l = 0; l < 8; l++)
        sum += lane[l];
    return sum;
}

double fw_sum_squares_v3(const float *x, size_t n)
{
    __m256d low = _mm256_setzero_pd(), high = low;
    __m128d sum = _mm_setzero_pd();
    size_t i = 0;

    for (; i + 8 <= n; i += 8) {
        low = add_squares(x + i, low);
        high = add_squares(x + i + 4, high);
    }
    if (i < n)
        return sum_rest(low, high, x + i, n - i);
    sum = add_lanes(sum, _mm256_castpd256_pd128(low));
    sum = add_lanes(sum, _mm256_extractf128_pd(low, 1));
    sum = add_lanes(sum, _mm256_castpd256_pd128(high));
    sum = add_lanes(sum, _mm256_extractf128_pd(high, 1));
    return _mm_cvtsd_f64(sum);
}
