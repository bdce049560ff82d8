/* lanes.h - 8 floats at a time, elementwise, for files compiled once per level. */
#ifndef LANES_H
#define LANES_H

#include <string.h>

#define INLINE static inline __attribute__((always_inline))
#define WIDE   4 /* vectors abreast */

/* A loop over what stands abreast, n a constant where it is used. gcc does not undo such loops
 * by itself at -O2, and then the vectors go through memory, which takes twice the time. */
#ifdef __clang__
#define ABREAST(c, n) for (int c = 0; c < (n); c++)
#else
#define ABREAST(c, n) _Pragma("GCC unroll 8") for (int c = 0; c < (n); c++)
#endif

#ifdef FW_LEVEL_V3
#include <immintrin.h>

typedef __m256 f8;

INLINE f8 load(const float *x)
{
    return _mm256_loadu_ps(x);
}

INLINE void store(float *x, f8 v)
{
    _mm256_storeu_ps(x, v);
}

INLINE f8 all(float x)
{
    return _mm256_set1_ps(x);
}

INLINE f8 mul8(f8 a, f8 b)
{
    return _mm256_mul_ps(a, b);
}

INLINE f8 fma8(f8 a, f8 b, f8 c)
{
    return _mm256_fmadd_ps(a, b, c);
}

INLINE f8 clamp8(f8 x, float limit) /* keeps a NaN, as clamp_one does */
{
    return _mm256_max_ps(all(-limit), _mm256_min_ps(all(limit), x));
}
#else
typedef struct {
    float x[8];
} f8;

INLINE f8 load(const float *x)
{
    f8 v;

    memcpy(v.x, x, sizeof v.x);
    return v;
}

INLINE void store(float *x, f8 v)
{
    memcpy(x, v.x, sizeof v.x);
}

INLINE f8 all(float x)
{
    return (f8){ { x, x, x, x, x, x, x, x } };
}

INLINE f8 mul8(f8 a, f8 b)
{
    for (int l = 0; l < 8; l++)
        a.x[l] *= b.x[l];
    return a;
}

INLINE f8 fma8(f8 a, f8 b, f8 c)
{
    for (int l = 0; l < 8; l++)
        c.x[l] = __builtin_fmaf(a.x[l], b.x[l], c.x[l]);
    return c;
}

INLINE f8 clamp8(f8 x, float limit)
{
    for (int l = 0; l < 8; l++)
        x.x[l] = x.x[l] > limit ? limit : x.x[l] < -limit ? -limit : x.x[l];
    return x;
}
#endif

INLINE float clamp_one(float x, float limit)
{
    return x > limit ? limit : x < -limit ? -limit : x;
}

#endif
