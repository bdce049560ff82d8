/* gelu.c - x Phi(x) and its approximation by tanh, with derivatives.
 *
 * Phi is the normal distribution (activation.h). All in double, rounded once. Compiled at both
 * levels. */
#include "config.h"

#include "net.h"

#include "fastweight/activation.h"

static void exact(float *x, float *slope, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        double density, v = (double)x[i], Phi = fw_normal(v, &density);

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
