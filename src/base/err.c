/* err.c - filling a caller's struct fw_err. Fixed buffers, so the error path cannot allocate;
 * a text that does not fit is cut. No thread of its own, no state. */
#include "config.h"

#include "fastweight/err.h"

#include <stdarg.h>
#include <stdio.h>

#undef fw_fail /* here are the functions themselves */
#undef fw_fail_param

static FW_PRINTF(5, 0) void fill(struct fw_err *err, enum fw_code code, const char *reason,
                                 const char *param, const char *fmt, va_list ap)
{
    err->code = code;
    snprintf(err->reason, sizeof err->reason, "%s", reason);
    snprintf(err->param, sizeof err->param, "%s", param);
    vsnprintf(err->msg, sizeof err->msg, fmt, ap);
}

int fw_fail(struct fw_err *err, enum fw_code code, const char *reason, const char *fmt, ...)
{
    va_list ap;

    if (err) {
        va_start(ap, fmt);
        fill(err, code, reason, "", fmt, ap);
        va_end(ap);
    }
    return -1;
}

int fw_fail_param(struct fw_err *err, enum fw_code code, const char *reason, const char *param,
                  const char *fmt, ...)
{
    va_list ap;

    if (err) {
        va_start(ap, fmt);
        fill(err, code, reason, param, fmt, ap);
        va_end(ap);
    }
    return -1;
}
