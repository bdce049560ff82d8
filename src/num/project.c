/* project.c - y = W x as plain loops: what fw_project means, and the reference of the fast
 * copy.
 *
 * Eight lanes carry a sum, element i in lane i mod 8, each lane one chain of fma from 0; the
 * lanes then meet as a tree. Nothing here depends on how many rows or outputs there are. */
#include "config.h"

#include "project.h"

#include <stdint.h>

#include "fastweight/level.h"
#include "fastweight/num.h"

static float weight(const struct fw_matrix *W, size_t at)
{
    uint16_t h;

    if (W->type == FW_WEIGHT_F32)
        return ((const float *)W->data)[at];
    h = ((const uint16_t *)W->data)[at];
    return W->type == FW_WEIGHT_F16 ? fw_from_f16(h) : fw_from_bf16(h);
}

static float sum(const struct fw_matrix *W, size_t o, const float *x)
{
    float lane[8] = { 0 };

    for (size_t i = 0; i < W->in; i++)
        lane[i % 8] = __builtin_fmaf(weight(W, o * W->in + i), x[i], lane[i % 8]);
    for (size_t half = 4; half > 0; half /= 2)
        for (size_t l = 0; l < half; l++)
            lane[l] += lane[l + half];
    return lane[0];
}

void fw_project_base(const struct fw_matrix *W, const float *x, size_t x_stride, size_t rows,
                     float *y, size_t y_stride)
{
    for (size_t r = 0; r < rows; r++)
        for (size_t o = 0; o < W->out; o++)
            y[r * y_stride + o] = sum(W, o, x + r * x_stride);
}

void fw_project(const struct fw_matrix *W, const float *x, size_t x_stride, size_t rows,
                float *y, size_t y_stride)
{
#ifdef HAVE_V3
    if (fw_num_level() == FW_LEVEL_X86_64_V3) {
        fw_project_v3(W, x, x_stride, rows, y, y_stride);
        return;
    }
#endif
    fw_project_base(W, x, x_stride, rows, y, y_stride);
}
