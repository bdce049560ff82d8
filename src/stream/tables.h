/* tables.h - the constant tables of a plan: the cell's state machine and stretch. */
#ifndef TABLES_H
#define TABLES_H

#include <stdint.h>

#include "fastweight/err.h"

#define STRETCH_BITS 12
#define MAP_P_BITS   22 /* a map entry: probability in the high bits, count in the low 10 */
#define MAP_N_MAX    1023u

struct tables {
    float stretch[1 << STRETCH_BITS]; /* ln(p / (1 - p)) at the middle of each step of p */
    uint32_t rate[MAP_N_MAX + 1];     /* 65536 / (n + 1.5) */
    uint8_t next[256][2];             /* [state][bit] */
    uint8_t aged[256];                /* the state with three quarters of the counts */
    uint8_t total[256];               /* n0 + n1 */
    uint32_t prior[256];              /* the map entry a state starts with */
    uint32_t states;                  /* valid states are below it */
};

int tables_new(struct tables **ret, struct fw_err *err); /* free with free() */

#endif
