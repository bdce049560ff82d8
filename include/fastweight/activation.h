/* fastweight/activation.h - the nonlinear functions of network layers, the same bits
 * everywhere.
 *
 * As fmath.h: IEEE basic operations and explicit fma only; results below the smallest normal
 * number count as 0, NaN stays NaN. Errors against the exact value, in units of the last place
 * (activation_test): sigmoid, silu and softplus under 4, tanh and both gelus under 2. The plain
 * float ones vectorise; those in double are rounded once. Any thread. */
#ifndef FW_ACTIVATION_H
#define FW_ACTIVATION_H

#include <stddef.h>

#include "fastweight/fmath.h"

/* 1 / (1 + exp(-x)) */
static inline float fw_sigmoidf(float x)
{
    float y = 1 / (1 + fw_expf(-x));

    return y < 0x1p-126f ? 0 : y;
}

/* x sigmoid(x) */
static inline float fw_siluf(float x)
{
    float y = x * fw_sigmoidf(x);

    y = x < -0x1p120f ? 0 : y; /* -inf * 0 */
    return __builtin_fabsf(y) < 0x1p-126f ? 0 : y;
}

/* log(1 + exp(x)) = max(x, 0) + log(1 + e), e = exp(-|x|); what 1 + e lost is added again. */
static inline float fw_softplusf(float x)
{
    float e = fw_expf(x < 0 ? x : -x), u = 1 + e;
    float y = fw_logf(u) + (e - (u - 1)) / u;

    y = x > 0 ? x + y : y;
    return x != x ? x : y;
}

/* tanh(x) = 1 - 2 / (1 + exp(2x)), in double; below 2^-12 it is x. */
static inline float fw_tanhf(float x)
{
    float y = (float)(1 - 2 / (1 + fw_exp(2 * (double)x)));

    return __builtin_fabsf(x) < 0x1p-12f ? x : y;
}

/* The normal distribution Phi(x), right in relative terms to 4e-9 on both sides; *density is
 * its derivative. For y >= 0 the tail Phi(-y) is density(y) R(y) with Mills' ratio R, which
 * decreases slowly: t P(t), t = 1 / (1 + y / 4), P a Chebyshev interpolant. */
static inline double fw_normal(double x, double *density)
{
    static const double p[] = { -0x1.ce27f11955555p-6, 0x1.3b76c70eeaaaap-3,
                                -0x1.3ff2395388000p-2, 0x1.1af984b69aaaap-2,
                                -0x1.380d4fc549d55p-3, 0x1.0127f9c671555p-3,
                                0x1.7551b86dc4fffp-4,  0x1.4bd0708c0cdd4p-3,
                                0x1.9f6ddaa1a84cfp-3,  0x1.e007862317c61p-3,
                                0x1.ffffd88002b7dp-3,  0x1.00000011799eep-2 };
    const double root = 0x1.9884533d43651p-2; /* 1 / sqrt(2 pi) */
    double t = 1 / (1 + 0.25 * __builtin_fabs(x)), sum = p[0], tail;

    for (size_t i = 1; i < sizeof p / sizeof p[0]; i++)
        sum = __builtin_fma(sum, t, p[i]);
    *density = root * fw_exp(-0.5 * x * x);
    tail = *density * (t * sum);
    return x < 0 ? tail : 1 - tail;
}

/* x Phi(x) = x (1 + erf(x / sqrt 2)) / 2 */
static inline float fw_geluf(float x)
{
    double density, y = (double)x * fw_normal((double)x, &density);

    y = x < -0x1p40f ? 0 : y; /* -inf * 0 */
    return __builtin_fabs(y) < 0x1p-126 ? 0 : (float)y;
}

/* x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2 = x / (1 + exp(-2 sqrt(2 / pi) (..))) */
static inline float fw_gelu_tanhf(float x)
{
    const double root = 0x1.9884533d43651p+0; /* 2 sqrt(2 / pi) */
    double v = (double)x, inner = v + 0.044715 * (v * v) * v;
    double y = v / (1 + fw_exp(-root * inner));

    y = x < -0x1p40f ? 0 : y;
    return __builtin_fabs(y) < 0x1p-126 ? 0 : (float)y;
}

#endif
