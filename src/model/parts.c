/* parts.c - the loops of parts.h. Compiled at both levels: what a compiler vectorises here are
 * loops over independent elements, or over the 8 lanes of a sum. */
#include "config.h"

#include "parts.h"

#include <string.h>

#include "fastweight/activation.h"

#define LANES 8
#define STEP  16 /* a loop of so many has no rest: compilers vectorise it at -O2 already */

static inline double add_lanes(const double *lane)
{
    double sum = 0;

    for (size_t l = 0; l < LANES; l++)
        sum += lane[l];
    return sum;
}

static double sum_of(const float *x, size_t n)
{
    double lane[LANES] = { 0 };
    size_t i = 0;

    for (; i + LANES <= n; i += LANES)
        for (size_t l = 0; l < LANES; l++)
            lane[l] += (double)x[i + l];
    for (size_t l = 0; i + l < n; l++)
        lane[l] += (double)x[i + l];
    return add_lanes(lane);
}

/* sum (x - mean)^2; a product of floats is exact in double, one of differences is not. */
static double squares_around(const float *x, size_t n, double mean)
{
    double lane[LANES] = { 0 };
    size_t i = 0;

    for (; i + LANES <= n; i += LANES)
        for (size_t l = 0; l < LANES; l++) {
            double d = (double)x[i + l] - mean;

            lane[l] += d * d;
        }
    for (size_t l = 0; i + l < n; l++) {
        double d = (double)x[i + l] - mean;

        lane[l] += d * d;
    }
    return add_lanes(lane);
}

static void layer_norm(const float *x, size_t n, const float *w, const float *b, double eps,
                       float *y)
{
    double mean = sum_of(x, n) / (double)n, scale;

    scale = 1 / fw_sqrt(squares_around(x, n, mean) / (double)n + eps);
    for (size_t i = 0; i < n; i++)
        y[i] = (float)(((double)x[i] - mean) * scale) * w[i];
    for (size_t i = 0; b && i < n; i++)
        y[i] += b[i];
}

static void rms_norm(const float *x, size_t n, const float *w, double eps, float *y)
{
    double scale = 1 / fw_sqrt(squares_around(x, n, 0) / (double)n + eps);

    for (size_t i = 0; i < n; i++)
        y[i] = (float)((double)x[i] * scale) * w[i];
}

static void unit(float *x, size_t n, double eps)
{
    double length = fw_sqrt(squares_around(x, n, 0) + eps), scale;

    scale = 1 / (length > 1e-12 ? length : 1e-12);
    for (size_t i = 0; i < n; i++)
        x[i] = (float)((double)x[i] * scale);
}

static void mix(const float *x, const float *last, const float *mu, size_t n, float *y)
{
    for (size_t i = 0; i < n; i++)
        y[i] = __builtin_fmaf(mu[i], last[i] - x[i], x[i]);
}

static void conv(const float *x, const float *w, const float *b, size_t size, size_t rows,
                 size_t n, float *y)
{
    size_t whole = n - n % LANES;

    for (size_t t = 0; t < rows; t++, x += n, y += n) {
        for (size_t c = 0; c < whole; c += LANES) {
            float out[LANES];

            for (size_t l = 0; l < LANES; l++)
                out[l] = b ? b[c + l] : 0;
            for (size_t m = 0; m < size; m++)
                for (size_t l = 0; l < LANES; l++)
                    out[l] = __builtin_fmaf(w[m * n + c + l], x[m * n + c + l], out[l]);
            memcpy(y + c, out, sizeof out);
        }
        for (size_t c = whole; c < n; c++) {
            float out = b ? b[c] : 0;

            for (size_t m = 0; m < size; m++)
                out = __builtin_fmaf(w[m * n + c], x[m * n + c], out);
            y[c] = out;
        }
    }
}

static void add(float *x, const float *y, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] += y[i];
}

static void scale(float *x, const float *y, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] *= y[i];
}

static void add_product(float *x, const float *y, const float *z, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = __builtin_fmaf(y[i], z[i], x[i]);
}

#define MAP(name, function)                                                                    \
    static void name(float *x, size_t n)                                                       \
    {                                                                                          \
        size_t i = 0;                                                                          \
                                                                                               \
        for (; i + STEP <= n; i += STEP)                                                       \
            for (size_t l = 0; l < STEP; l++)                                                  \
                x[i + l] = function(x[i + l]);                                                 \
        for (; i < n; i++)                                                                     \
            x[i] = function(x[i]);                                                             \
    }

MAP(map_tanh, fw_tanhf)
MAP(map_sigmoid, fw_sigmoidf)
MAP(map_silu, fw_siluf)
MAP(map_softplus, fw_softplusf)
MAP(map_gelu, fw_geluf)
MAP(map_gelu_tanh, fw_gelu_tanhf)

static void relu_squared(float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        float r = x[i] > 0 ? x[i] : 0;

        x[i] = r * r;
    }
}

static inline float bounded(float x, float limit)
{
    float y = x > limit ? limit : x;

    y = y < -limit ? -limit : y;
    return y == y ? y : 0;
}

static void bound(float *x, size_t n, float limit)
{
    size_t i = 0;

    for (; i + STEP <= n; i += STEP)
        for (size_t l = 0; l < STEP; l++)
            x[i + l] = bounded(x[i + l], limit);
    for (; i < n; i++)
        x[i] = bounded(x[i], limit);
}

static double dot(const float *x, const float *y, size_t n)
{
    double lane[LANES] = { 0 };
    size_t i = 0;

    for (; i + LANES <= n; i += LANES)
        for (size_t l = 0; l < LANES; l++)
            lane[l] += (double)x[i + l] * (double)y[i + l];
    for (size_t l = 0; i + l < n; l++)
        lane[l] += (double)x[i + l] * (double)y[i + l];
    return add_lanes(lane);
}

static double log_sum_exp(const float *x, size_t n)
{
    double lane[LANES] = { 0 }, max;
    float top = x[0];
    size_t i = 0;

    for (size_t j = 1; j < n; j++)
        top = x[j] > top ? x[j] : top;
    max = (double)top;
    for (; i + LANES <= n; i += LANES)
        for (size_t l = 0; l < LANES; l++)
            lane[l] += fw_exp((double)x[i + l] - max);
    for (size_t l = 0; i + l < n; l++)
        lane[l] += fw_exp((double)x[i + l] - max);
    return max + fw_log(add_lanes(lane));
}

const struct fw_row_parts FW_AT(fw_parts) = {
    layer_norm, rms_norm,      unit,         mix,         conv,     add,
    scale,      add_product,   map_tanh,     map_sigmoid, map_silu, map_softplus,
    map_gelu,   map_gelu_tanh, relu_squared, bound,       dot,      log_sum_exp,
};
