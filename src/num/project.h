/* project.h - the two copies behind fw_project. */
#ifndef PROJECT_H
#define PROJECT_H

#include "fastweight/project.h"

void fw_project_base(const struct fw_matrix *W, const float *x, size_t x_stride, size_t rows,
                     float *y, size_t y_stride);
void fw_project_v3(const struct fw_matrix *W, const float *x, size_t x_stride, size_t rows,
                   float *y, size_t y_stride); /* where HAVE_V3 */

#endif
