/* options.h - the configuration: one table for the file's keys and the flags. One thread. */
#ifndef DAEMON_OPTIONS_H
#define DAEMON_OPTIONS_H

#include <stdint.h>
#include <stdio.h>

#include "fastweight/err.h"

enum { OPTION_TEXT = 1024 };

struct options {
    char listen[OPTION_TEXT];
    char data_dir[OPTION_TEXT];
    char models_dir[OPTION_TEXT];
    uint64_t max_resident_bytes, max_sessions, max_queue, max_async_bytes, journal_bytes;
    uint64_t max_body_bytes, max_inflight_bytes, max_connections;
    uint64_t connection_timeout_s, drain_timeout_s, workers;
    uint64_t log_level; /* enum fw_log_level */
};

enum options_result { OPTIONS_RUN, OPTIONS_HELP, OPTIONS_VERSION };

/* Defaults, then the file of --config, then the other flags. FW_EINVAL names FILE:LINE and key,
 * or the flag. */
int options_read(int argc, char **argv, struct options *ret, enum options_result *ret_result,
                 struct fw_err *err);
void options_help(FILE *to);

#endif
