/* steps.h - what each verb does at the head of its queue (runner).
 *
 * A step works until the deadline and comes back. It ends its request with work_finish or
 * work_fail, or leaves a store op or a wait behind, or is called again. */
#ifndef FW_ENGINE_STEPS_H
#define FW_ENGINE_STEPS_H

#include "parts.h"

void step_facts(struct fw_work *w, uint64_t deadline);
void step_label(struct fw_work *w, uint64_t deadline);
void step_learn(struct fw_work *w, uint64_t deadline);
void step_score(struct fw_work *w, uint64_t deadline);
void step_predict(struct fw_work *w, uint64_t deadline);
void step_recall(struct fw_work *w, uint64_t deadline);
void step_generate(struct fw_work *w, uint64_t deadline);
void step_inspect(struct fw_work *w, uint64_t deadline);
void step_tensor(struct fw_work *w, uint64_t deadline);
void step_snapshot(struct fw_work *w, uint64_t deadline);
void step_snapshot_list(struct fw_work *w, uint64_t deadline);
void step_snapshot_get(struct fw_work *w, uint64_t deadline);
void step_snapshot_drop(struct fw_work *w, uint64_t deadline);
void step_restore(struct fw_work *w, uint64_t deadline);
void step_export(struct fw_work *w, uint64_t deadline);
void step_import(struct fw_work *w, uint64_t deadline);
void step_fork(struct fw_work *w, uint64_t deadline);
void step_checkpoint(struct fw_work *w, uint64_t deadline);

#endif
