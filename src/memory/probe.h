/* probe.h - config `probes`: a few pairs of every age, kept to see what of them is recalled. */
#ifndef PROBE_H
#define PROBE_H

#include "rule.h"

/* Reads the configuration; with probes sets m->probes and appends their fields. */
int fw_probe_plan(struct fw_memory *m, struct fw_config *c, struct fw_err *err);
/* After the rule learned a span. */
void fw_probe_note(const struct fw_memory *m, void *block, size_t head,
                   const struct fw_span *s);
/* Empties the places of key k, (rows,) mapped: what they hold is not so any more. */
void fw_probe_drop(const struct fw_memory *m, void *block, size_t head, const float *k);
int fw_probe_validate(const struct fw_memory *m, const void *block, size_t head,
                      struct fw_err *err);

#endif
