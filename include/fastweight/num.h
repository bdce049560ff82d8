/* fastweight/num.h - numbers: CPU level, floating-point mode, own functions, kernels.
 *
 * Everything a state depends on goes through this room (no libm, no BLAS on a learning path):
 * the plain reference equals the fast path to the bit. Inline exp/log/sqrt: fmath.h. */
#ifndef FW_NUM_H
#define FW_NUM_H

#include <stddef.h>
#include <stdint.h>

#include "fastweight/err.h"
#include "fastweight/level.h"

/* Once, before any thread: picks the level (the environment FW_CPU_LEVEL=base lowers it, for
 * tests) and sets OpenBLAS to one thread. */
void fw_num_init(void);
enum fw_level fw_num_level(void);
const char *fw_num_cpu_level(void); /* "x86-64-v3" or "baseline" */
/* In every thread that touches a state: flush-to-zero, denormals-are-zero, round to nearest. */
void fw_num_thread(void);

/* IEEE half and bfloat16, round to nearest even; NaN stays NaN. */
float fw_from_f16(uint16_t h);
uint16_t fw_to_f16(float x);
float fw_from_bf16(uint16_t h);
uint16_t fw_to_bf16(float x);

/* sum x_i^2 in double: 8 lanes (i mod 8), each in order, then lane 0 to 7. */
double fw_sum_squares(const float *x, size_t n);

/* The singular values of A (rows, cols), row-major, destroyed: sigma (min(rows, cols),),
 * descending. LAPACK, so for reports, never on a learning path. FW_ENOMEM; FW_EINTERNAL when it
 * does not converge. */
int fw_singular_values(double *A, size_t rows, size_t cols, double *sigma, struct fw_err *err);

/* A = U diag(sigma) Vt; U (rows, min), Vt (min, cols), row-major; else the same. */
int fw_singular_factors(double *A, size_t rows, size_t cols, double *U, double *sigma,
                        double *Vt, struct fw_err *err);

#endif
