/* edit.h - what a rule that writes or takes out a pair in its own way shares with edit.c. */
#ifndef EDIT_H
#define EDIT_H

#include "rule.h"

/* Folds the pending pair of one head into S and keeps its key, with e = 0. */
void fw_edit_fold(const struct fw_memory *m, void *block, size_t head);
/* Cuts S of one head, at what its rule keeps to between pairs, and counts it. */
void fw_edit_cut(const struct fw_memory *m, void *block, size_t head);

#endif
