/* share.h - passes over one model's weights that several sessions share (share.c). */
#ifndef FW_ENGINE_SHARE_H
#define FW_ENGINE_SHARE_H

#include "engine_int.h"

void line_join(struct session *s);  /* (locked) */
bool line_leave(struct session *s); /* (locked) false: another worker has it */

bool session_steps(struct session *s); /* run.c (locked): its next turn is its head's verb */

/* (runner of a head whose turn is its verb) Is what it learns next short, and is the learner
 * one that learns for several at once? Then share_pass learns it, with that of others that wait
 * for a worker. A learn is finished by it: w is gone. */
bool share_wants(const struct fw_work *w);
void share_pass(struct fw_work *w);

/* What the verbs put in: false: nothing, the session's next turn says why. Then `took`. */
bool learn_offer(struct fw_work *w, struct fw_learner_part *ret);
void learn_took(struct fw_work *w); /* w is gone */
bool generate_samples(const struct fw_work *w);
bool generate_offer(struct fw_work *w, struct fw_learner_part *ret);
void generate_took(struct fw_work *w);

/* pass.c: what is left to learn, at most what a chunk may have; then, learned, its end. */
void pass_rest(const struct pass *p, void *block, struct fw_learner_part *ret);
void pass_end(struct pass *p);

#endif
