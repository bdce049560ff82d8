/* inspect_memory.h - what `inspect` says of an associative memory. */
#ifndef INSPECT_MEMORY_H
#define INSPECT_MEMORY_H

#include "fastweight/memory.h"
#include "fastweight/report.h"

int fw_inspect_memory(const struct fw_memory *m, const void *block, struct fw_report *r,
                      struct fw_err *err);

#endif
