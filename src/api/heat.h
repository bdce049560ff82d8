/* heat.h - a tensor as a picture. Any thread. */
#ifndef API_HEAT_H
#define API_HEAT_H

#include "fastweight/buf.h"
#include "fastweight/tensor.h"

enum { HEAT_MAX = 1024 }; /* pixels a side */

/* Appends a PNG: rows = all axes but the last, columns = the last; a single axis is folded to a
 * square. Blue below 0, white at 0, red above, black where a number is not finite. FW_ENOTSUP
 * for half floats, FW_EINVAL for an empty tensor. */
int heat_png(const struct fw_tensor *t, struct fw_buf *out, struct fw_err *err);

#endif
