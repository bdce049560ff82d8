/* squares.h - sums of squares as fw_sum_squares has them, for x86-64-v3: 8 lanes of doubles.
 * The squares are exact, so fma rounds where norm.c's addition does. */
#ifndef SQUARES_H
#define SQUARES_H

#include <immintrin.h>

struct squares {
    __m256d low, high; /* lanes 0 to 3, 4 to 7 */
};

static inline struct squares fw_squares_none(void)
{
    return (struct squares){ _mm256_setzero_pd(), _mm256_setzero_pd() };
}

static inline struct squares fw_squares_add(struct squares s, __m256 x)
{
    __m256d low = _mm256_cvtps_pd(_mm256_castps256_ps128(x));
    __m256d high = _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1));

    return (struct squares){ _mm256_fmadd_pd(low, low, s.low),
                             _mm256_fmadd_pd(high, high, s.high) };
}

/* sum + lane 0 + lane 1, in order. */
static inline __m128d fw_squares_two(__m128d sum, __m128d lanes)
{
    sum = _mm_add_sd(sum, lanes);
    return _mm_add_sd(sum, _mm_unpackhi_pd(lanes, lanes));
}

/* Lane 0 to 7, in order; from lane 0 on, which is not -0, so 0 + lane 0 would be the same. */
static inline double fw_squares_sum(struct squares s)
{
    __m128d sum = _mm256_castpd256_pd128(s.low);

    sum = _mm_add_sd(sum, _mm_unpackhi_pd(sum, sum));
    sum = fw_squares_two(sum, _mm256_extractf128_pd(s.low, 1));
    sum = fw_squares_two(sum, _mm256_castpd256_pd128(s.high));
    return _mm_cvtsd_f64(fw_squares_two(sum, _mm256_extractf128_pd(s.high, 1)));
}

#endif
