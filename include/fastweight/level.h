/* fastweight/level.h - one source, compiled once per CPU level (docs/design.md).
 *
 * A file on a learning path is compiled twice: as it is, and with -march=x86-64-v3
 * -DFW_LEVEL_V3. FW_AT(f) names its copy; a table chosen once at start (fw_num_level) holds the
 * right one. Both copies write the same bytes: explicit fma (libm's fmaf is correctly rounded
 * where the hardware has none), fixed lane order, -ffp-contract=off. */
#ifndef FW_LEVEL_H
#define FW_LEVEL_H

enum fw_level { FW_LEVEL_BASE, FW_LEVEL_X86_64_V3 };

#if defined(FW_LEVEL_V3)
#define FW_AT(name) name##_v3
#else
#define FW_AT(name) name##_base
#endif

/* 8 floats: GNU C vectors, elementwise, so gcc, clang and the plain loop agree to the bit. */
typedef float fw_f8 __attribute__((vector_size(32)));

#endif
