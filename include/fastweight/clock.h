/* fastweight/clock.h - the two clocks. Any thread. */
#ifndef FW_CLOCK_H
#define FW_CLOCK_H

#include <stdint.h>

uint64_t fw_clock_mono_ns(void); /* never goes back; for durations and deadlines */
int64_t fw_clock_wall_ms(void);  /* since 1970, UTC; for created_at, never for a decision */

#endif
