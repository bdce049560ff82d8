/* gelu.c - x Phi(x) and its approximation by tanh, with derivatives.
 *
 * Phi is the normal distribution. For y >= 0 its tail is phi(y) R(y) with Mills' ratio R, which
 * decreases slowly and is a polynomial of t = 1 / (1 + y / 4) to 4e-9; so Phi(x) is right in
 * relative terms for negative x, too. All in double, rounded once. Compiled at both levels. */
#include "config.h"

#include "net.h"

#include "fastweight/fmath.h"

/* Mills' ratio Phi(-y) / phi(y), y >= 0, as t P(t), t = 1 / (1 + y / 4): a Chebyshev
 * interpolant with relative error below 4e-9. */
static inline double mills(double y)
{
    static const double p[] = { -0x1.ce27f11955555p-6, 0x1.3b76c70eeaaaap-3,
                                -0x1.3ff2395388000p-2, 0x1.1af984b69aaaap-2,
                                -0x1.380d4fc549d55p-3, 0x1.0127f9c671555p-3,
                                0x1.7551b86dc4fffp-4,  0x1.4bd0708c0cdd4p-3,
                                0x1.9f6ddaa1a84cfp-3,  0x1.e007862317c61p-3,
                                0x1.ffffd88002b7dp-3,  0x1.00000011799eep-2 };
    double t = 1 / (1 + 0.25 * y), sum = p[0];

    for (size_t i = 1; i < sizeof p / sizeof p[0]; i++)
        sum = __builtin_fma(sum, t, p[i]);
    return t * sum;
}

static void exact(float *x, float *slope, size_t n)
{
    const double root = 0x1.9884533d43651p-2; /* 1 / sqrt(2 pi) */

    for (size_t i = 0; i < n; i++) {
        double v = (double)x[i], density = root * fw_exp(-0.5 * v * v);
        double tail = density * mills(__builtin_fabs(v)), Phi = v < 0 ? tail : 1 - tail;

        slope[i] = (float)__builtin_fma(v, density, Phi);
        x[i] = (float)(v * Phi);
    }
}

/* tanh(x) as 1 - 2 / (1 + exp(2 x)). */
static inline double tanh_of_half(double twice)
{
    return 1 - 2 / (1 + fw_exp(twice));
}

/* The forward constant is sqrt(2 / pi); those of the slope are as published (ttt.py). */
static void by_tanh(float *x, float *slope, size_t n)
{
    const double root = 0x1.9884533d43651p+0; /* 2 sqrt(2 / pi) */

    for (size_t i = 0; i < n; i++) {
        double v = (double)x[i], vv = v * v, inner = v + 0.044715 * vv * v;
        double back = tanh_of_half(2 * 0.79788456 * inner);
        double rise = (1 - back * back) * (0.79788456 + 0.1070322243 * vv);

        slope[i] = (float)(0.5 * v * rise + 0.5 * (1 + back));
        x[i] = (float)(0.5 * v * (1 + tanh_of_half(root * inner)));
    }
}

const struct fw_gelus FW_AT(fw_gelus) = { exact, by_tanh };
