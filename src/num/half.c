/* half.c - IEEE half precision and bfloat16, by integers alone, round to nearest even.
 *
 * float: sign 1, exponent 8 (bias 127), fraction 23. f16: 1, 5 (bias 15), 10; bf16: the upper
 * half of a float. Integers keep the results free of the thread's FTZ/DAZ mode: a float
 * subnormal is far below the smallest f16 (0 there) and keeps its leading bits in bf16. A NaN
 * keeps its sign and leading payload bits and becomes quiet. */
#include "config.h"

#include "fastweight/num.h"

#include "fastweight/fmath.h"

/* Drops the low `drop` bits (1..31) of x, rounding to nearest, ties to even. */
static uint32_t round_off(uint32_t x, unsigned drop)
{
    uint32_t half = 1u << (drop - 1), rest = x & ((half << 1) - 1), kept = x >> drop;

    return kept + (rest > half || (rest == half && (kept & 1)));
}

float fw_from_f16(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16, e = h >> 10 & 31, m = h & 0x3ffu;

    if (e == 31) /* inf, or NaN made quiet */
        return fw_unbitsf(sign | 0x7f800000u | m << 13 | (m ? 0x400000u : 0));
    if (e == 0) { /* m 2^-24, exact in float */
        float x = (float)m * 0x1p-24f;

        return sign ? -x : x;
    }
    return fw_unbitsf(sign | (e + 112) << 23 | m << 13);
}

uint16_t fw_to_f16(float x)
{
    uint32_t u = fw_bitsf(x), sign = u >> 16 & 0x8000u, a = u & 0x7fffffffu, e = a >> 23;

    if (a > 0x7f800000u)
        return (uint16_t)(sign | 0x7e00u | (a >> 13 & 0x3ffu));
    if (e >= 143) /* 65536 and above, inf */
        return (uint16_t)(sign | 0x7c00u);
    if (e >= 113) /* normal; a carry walks into the exponent, up to inf */
        return (uint16_t)(sign | round_off(a - (112u << 23), 13));
    if (e < 102) /* below half of the smallest */
        return (uint16_t)sign;
    return (uint16_t)(sign | round_off((a & 0x7fffffu) | 0x800000u, 126 - e));
}

float fw_from_bf16(uint16_t h)
{
    uint32_t u = (uint32_t)h << 16;

    return fw_unbitsf((u & 0x7fffffffu) > 0x7f800000u ? u | 0x400000u : u);
}

uint16_t fw_to_bf16(float x)
{
    uint32_t u = fw_bitsf(x);

    if ((u & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)(u >> 16 | 0x40u);
    return (uint16_t)round_off(u, 16);
}
