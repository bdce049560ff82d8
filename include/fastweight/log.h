/* fastweight/log.h - a log sink that the daemon owns and lends downward.
 *
 * Rooms below daemon log at debug only. The sink formats one line into a fixed buffer (a longer
 * one is cut) and writes it with one write(2); journald priorities "<6>" in front. Any thread.
 */
#ifndef FW_LOG_H
#define FW_LOG_H

#include "fastweight/err.h"

enum fw_log_level { FW_LOG_ERR = 3, FW_LOG_WARNING = 4, FW_LOG_INFO = 6, FW_LOG_DEBUG = 7 };

struct fw_log {
    int fd;                      /* borrowed */
    enum fw_log_level threshold; /* lines above it are dropped */
};

/* log may be NULL: nothing is written. Newlines in the text become spaces. */
void fw_log(const struct fw_log *log, enum fw_log_level level, const char *fmt, ...)
    FW_PRINTF(3, 4);

#endif
