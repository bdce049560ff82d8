/* fastweight/fmath.h - exp, log and sqrt that give the same bits everywhere.
 *
 * Only IEEE basic operations, explicit fma and integer work on the bits: every compiler, level
 * and loop (vectorised or not) agrees, and the results do not depend on FTZ/DAZ: an argument
 * or result below the smallest normal number counts as 0. Errors stay under 2 ulp (fmath_test
 * finds 1.2). exp: NaN -> NaN, too large -> inf, too small -> 0. log: NaN and x < 0 -> NaN,
 * 0 -> -inf, inf -> inf. The polynomials are Chebyshev interpolants. Any thread. */
#ifndef FW_FMATH_H
#define FW_FMATH_H

#include <stdint.h>
#include <string.h>

static inline uint32_t fw_bitsf(float x)
{
    uint32_t u;

    memcpy(&u, &x, sizeof u);
    return u;
}

static inline float fw_unbitsf(uint32_t u)
{
    float x;

    memcpy(&x, &u, sizeof x);
    return x;
}

static inline uint64_t fw_bits(double x)
{
    uint64_t u;

    memcpy(&u, &x, sizeof u);
    return u;
}

static inline double fw_unbits(uint64_t u)
{
    double x;

    memcpy(&x, &u, sizeof x);
    return x;
}

/* Correctly rounded by IEEE 754; one instruction under -fno-math-errno. */
static inline float fw_sqrtf(float x)
{
    return __builtin_sqrtf(x);
}

static inline double fw_sqrt(double x)
{
    return __builtin_sqrt(x);
}

/* exp(x) = 2^n (1 + r + r^2 q(r)), r = x - n ln 2, |r| <= ln 2 / 2. 2^n goes in as two factors,
 * since n = 128 has no float of its own. */
static inline float fw_expf(float x)
{
    const float top = 0x1.62e430p+6f, low = -0x1.5d58a0p+6f, magic = 0x1.8p23f;
    float c = x > top ? top : x < low ? low : x;
    float t = __builtin_fmaf(c, 0x1.715476p+0f, magic), n = t - magic;
    float r = __builtin_fmaf(-n, 0x1.62e430p-1f, c), q = 0x1.6d113cp-10f, y;
    int32_t e = (int32_t)(fw_bitsf(t) - fw_bitsf(magic)), half = e >> 1;

    r = __builtin_fmaf(-n, -0x1.05c610p-29f, r);
    q = __builtin_fmaf(q, r, 0x1.120ba2p-7f);
    q = __builtin_fmaf(q, r, 0x1.55551ap-5f);
    q = __builtin_fmaf(q, r, 0x1.5554dcp-3f);
    q = __builtin_fmaf(q, r, 0x1p-1f);
    y = 1 + __builtin_fmaf(r * r, q, r);
    y *= fw_unbitsf((uint32_t)(half + 127) << 23);
    y *= fw_unbitsf((uint32_t)(e - half + 127) << 23);
    y = x > top ? __builtin_inff() : y;
    y = x < low ? 0 : y; /* two steps: compilers vectorise them */
    y = y < 0x1p-126f ? 0 : y;
    return x != x ? x : y;
}

static inline double fw_exp(double x)
{
    const double top = 0x1.62e42fefa39efp+9, low = -0x1.6232bdd7abcd3p+9, magic = 0x1.8p52;
    double c = x > top ? top : x < low ? low : x;
    double t = __builtin_fma(c, 0x1.71547652b82fep+0, magic), n = t - magic;
    double r = __builtin_fma(-n, 0x1.62e42fefa39efp-1, c), q = 0x1.af38d53857513p-26, y;
    int32_t e = (int32_t)(fw_bits(t) - fw_bits(magic)), half = e >> 1;

    r = __builtin_fma(-n, 0x1.abc9e3b39803fp-56, r);
    q = __builtin_fma(q, r, 0x1.2891a8c1d838dp-22);
    q = __builtin_fma(q, r, 0x1.71de0d9c145d0p-19);
    q = __builtin_fma(q, r, 0x1.a019b8ef67c6cp-16);
    q = __builtin_fma(q, r, 0x1.a01a01a7c8d47p-13);
    q = __builtin_fma(q, r, 0x1.6c16c17893833p-10);
    q = __builtin_fma(q, r, 0x1.11111111109adp-7);
    q = __builtin_fma(q, r, 0x1.5555555553d4fp-5);
    q = __builtin_fma(q, r, 0x1.5555555555556p-3);
    q = __builtin_fma(q, r, 0x1p-1);
    y = 1 + __builtin_fma(r * r, q, r);
    y *= fw_unbits((uint64_t)(half + 1023) << 52);
    y *= fw_unbits((uint64_t)(e - half + 1023) << 52);
    y = x > top ? __builtin_inf() : y;
    y = x < low ? 0 : y;
    y = y < 0x1p-1022 ? 0 : y;
    return x != x ? x : y;
}

/* log(2^k m) = k ln 2 + log(1 + f), m = 1 + f in [sqrt(1/2), sqrt 2); with s = f / (2 + f),
 * z = s^2: log(1 + f) = f - (f^2/2 - s (f^2/2 + z R(z))); ln 2 is split so that k hi is exact.
 */
static inline float fw_logf(float x)
{
    uint32_t u = fw_bitsf(x) - 0x3f3504f3u;
    float k = (float)((int32_t)u >> 23), f = fw_unbitsf((u & 0x7fffffu) + 0x3f3504f3u) - 1;
    float s = f / (2 + f), z = s * s, h = 0.5f * f * f, p = 0x1.ddd4dap-3f, y;

    p = __builtin_fmaf(p, z, 0x1.245c28p-2f);
    p = __builtin_fmaf(p, z, 0x1.9999ecp-2f);
    p = __builtin_fmaf(p, z, 0x1.555556p-1f);
    p = __builtin_fmaf(s, __builtin_fmaf(z, p, h), k * 0x1.0bfbe8p-15f);
    y = k * 0x1.62ep-1f - ((h - p) - f);
    y = x < 0x1p-126f ? -__builtin_inff() : y;
    y = x <= -0x1p-126f ? __builtin_nanf("") : y;
    return x <= 0x1.fffffep+127f ? y : x;
}

static inline double fw_log(double x)
{
    uint64_t u = fw_bits(x) - 0x3fe6a09e667f3bcdu;
    double k = (double)(int32_t)((int64_t)u >> 52);
    double f = fw_unbits((u & 0xfffffffffffffu) + 0x3fe6a09e667f3bcdu) - 1;
    double s = f / (2 + f), z = s * s, h = 0.5 * f * f, p = 0x1.0c0aff044a970p-3, y;

    p = __builtin_fma(p, z, 0x1.0fbde0f4ad17bp-3);
    p = __builtin_fma(p, z, 0x1.3b1c3c1c81c8fp-3);
    p = __builtin_fma(p, z, 0x1.745cf8e4bba1bp-3);
    p = __builtin_fma(p, z, 0x1.c71c7201a55d7p-3);
    p = __builtin_fma(p, z, 0x1.2492492476a1ap-2);
    p = __builtin_fma(p, z, 0x1.9999999999a39p-2);
    p = __builtin_fma(p, z, 0x1.5555555555555p-1);
    p = __builtin_fma(s, __builtin_fma(z, p, h), k * 0x1.fdf473de6af28p-22);
    y = k * 0x1.62e42p-1 - ((h - p) - f);
    y = x < 0x1p-1022 ? -__builtin_inf() : y;
    y = x <= -0x1p-1022 ? __builtin_nan("") : y;
    return x <= 0x1.fffffffffffffp+1023 ? y : x;
}

#endif
