/* lanes_double.h - 4 doubles at a time, as lanes.h does with 8 floats. */
#ifndef LANES_DOUBLE_H
#define LANES_DOUBLE_H

#include "lanes.h"

#ifdef FW_LEVEL_V3
typedef __m256d d4;

INLINE d4 load4(const double *x)
{
    return _mm256_loadu_pd(x);
}

INLINE d4 widen4(const float *x)
{
    return _mm256_cvtps_pd(_mm_loadu_ps(x));
}

INLINE void store4(double *x, d4 v)
{
    _mm256_storeu_pd(x, v);
}

INLINE d4 all4(double x)
{
    return _mm256_set1_pd(x);
}

INLINE d4 fma4(d4 a, d4 b, d4 c)
{
    return _mm256_fmadd_pd(a, b, c);
}
#else
typedef struct {
    double x[4];
} d4;

INLINE d4 load4(const double *x)
{
    d4 v;

    memcpy(v.x, x, sizeof v.x);
    return v;
}

INLINE d4 widen4(const float *x)
{
    return (d4){ { (double)x[0], (double)x[1], (double)x[2], (double)x[3] } };
}

INLINE void store4(double *x, d4 v)
{
    memcpy(x, v.x, sizeof v.x);
}

INLINE d4 all4(double x)
{
    return (d4){ { x, x, x, x } };
}

INLINE d4 fma4(d4 a, d4 b, d4 c)
{
    for (int l = 0; l < 4; l++)
        c.x[l] = __builtin_fma(a.x[l], b.x[l], c.x[l]);
    return c;
}
#endif

#endif
