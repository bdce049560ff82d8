/* fastweight/num.h - numbers: CPU level, floating-point mode, own functions, kernels.
 *
 * Everything a state depends on goes through this room (no libm, no BLAS on a learning path):
 * the plain reference equals the fast path to the bit. Inline exp/log/sqrt: fmath.h. */
#ifndef FW_NUM_H
#define FW_NUM_H

#include <stddef.h>
#include <stdint.h>

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

#endif
