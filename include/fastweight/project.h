/* fastweight/project.h - dense projections y = W x over weights in their stored type.
 *
 * W (out, in) is row-major as a checkpoint file has it, and borrowed, read-only. Each element
 * of y is one sum: lane l (of 8) is a chain of fma over i = l, l + 8, l + 16, ... in order, a
 * lane beyond `in` stays 0; then s = lane[l] + lane[l + 4] (l < 4), then s[l] + s[l + 2], then
 * s[0] + s[1]. So a row's result does not depend on how many rows share the call (promise 2),
 * and the plain reference equals the fast path to the bit. F16 and BF16 widen exactly. Calls
 * allocate nothing; any thread that has called fw_num_thread(). */
#ifndef FW_PROJECT_H
#define FW_PROJECT_H

#include <stddef.h>

enum fw_weight { FW_WEIGHT_F32, FW_WEIGHT_F16, FW_WEIGHT_BF16 };

struct fw_matrix {
    const void *data; /* (out, in); aligned to the element */
    enum fw_weight type;
    size_t out, in;
};

/* y[r][o] = sum_i W[o][i] x[r][i], r < rows; rows lie `stride` floats apart; y and x apart. */
void fw_project(const struct fw_matrix *W, const float *x, size_t x_stride, size_t rows,
                float *y, size_t y_stride);

#endif
