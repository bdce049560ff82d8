/* status.h - from an error to its HTTP status: the one table. Any thread. */
#ifndef API_STATUS_H
#define API_STATUS_H

#include "fastweight/buf.h"

struct status {
    int status;
    const char *type;
    const char *retry_after; /* seconds, or NULL */
};

const struct status *status_of(enum fw_code code);
/* The error's JSON, as docs/api.md has it. Never fails but for memory. */
int status_print(const struct fw_err *e, struct fw_buf *out);

#endif
