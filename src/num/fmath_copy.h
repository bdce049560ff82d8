/* fmath_copy.h - fmath.h compiled once per level as plain loops, for fmath_test.c alone. */
#ifndef FMATH_COPY_H
#define FMATH_COPY_H

#include <stddef.h>

#include "fastweight/level.h"

struct fmath_copy { /* y[i] = f(x[i]) */
    void (*expf)(float *y, const float *x, size_t n);
    void (*logf)(float *y, const float *x, size_t n);
    void (*sqrtf)(float *y, const float *x, size_t n);
    void (*exp)(double *y, const double *x, size_t n);
    void (*log)(double *y, const double *x, size_t n);
    void (*sqrt)(double *y, const double *x, size_t n);
};

extern const struct fmath_copy fmath_copy_base;
extern const struct fmath_copy fmath_copy_v3;

#endif
