/* norm.h - the two copies behind fw_sum_squares. */
#ifndef NORM_H
#define NORM_H

#include <stddef.h>

double fw_sum_squares_base(const float *x, size_t n);
double fw_sum_squares_v3(const float *x, size_t n); /* where HAVE_V3 */

#endif
