/* parts.h - the functions that the files of this room lend each other.
 *
 * (locked): the caller holds the engine lock. (runner): on the worker that runs the session.
 * What the verbs do at the head of a queue is in steps.h. */
#ifndef FW_ENGINE_PARTS_H
#define FW_ENGINE_PARTS_H

#include "engine_int.h"

/* directory.c */
struct session *dir_find(struct fw_engine *e, const char *id); /* (locked) visible, or NULL */
int dir_reserve(struct fw_engine *e, const char *id, struct session **ret,
                struct fw_err *err);                   /* not visible yet */
void dir_show(struct fw_engine *e, struct session *s); /* (locked) */
void dir_drop(struct session *s);                      /* removes and frees it */
struct session *session_new(struct fw_engine *e, const char *id, int64_t uid); /* or NULL */
int dir_load(struct fw_engine *e, struct fw_err *err);                         /* at open */
void session_free(struct session *s);
void session_facts(const struct session *s, struct fw_facts *ret); /* (locked) */
int session_missing(const char *id, struct fw_err *err);
int name_check(const char *name, const char *param, struct fw_err *err);

/* recipe.c */
int recipe_open(struct fw_engine *e, const char *model, const struct fw_params *config,
                struct recipe **ret, struct fw_err *err);
struct recipe *recipe_ref(struct recipe *rc);              /* (locked) */
void recipe_unref(struct fw_engine *e, struct recipe *rc); /* NULL is allowed */
int recipe_of_row(struct fw_engine *e, const struct fw_store_session *row, struct recipe **ret,
                  struct fw_err *err);
int recipe_init_hash(struct fw_engine *e, struct recipe *rc, struct fw_err *err);
void recipe_about(const struct recipe *rc, struct fw_about *ret);
int recipes_open(struct fw_engine *e, struct fw_err *err);
void recipes_close(struct fw_engine *e);

/* body.c: the bytes of a journal row */
int body_encode(const struct fw_tensors *in, void **ret, size_t *ret_len, struct fw_err *err);
int body_decode(const void *body, size_t len, struct fw_tensor *item, size_t max,
                struct fw_tensors *ret, struct fw_err *err);

/* pass.c */
int pass_init(struct pass *p, const struct fw_learner *l, const struct fw_tensors *in,
              size_t tokens, enum fw_detail detail, struct fw_err *err);
void pass_done(struct pass *p);
bool pass_learn(struct pass *p, void *block, uint64_t deadline); /* true at the end */
bool pass_score(struct pass *p, struct fw_view *v, uint64_t deadline);
bool pass_recall(struct pass *p, struct fw_view *v, uint64_t deadline);
double pass_mean(const struct pass *p);
void pass_take(struct pass *p, struct fw_request *r); /* results into the answer */
int pass_values(struct pass *p, struct fw_err *err);  /* wants values */

/* run.c */
void session_run(struct fw_task *task);
void session_kick(struct session *s); /* (locked) something changed: run it if it can */
void session_enqueue(struct session *s, struct fw_request *r); /* (locked) */
void work_finish(struct fw_work *w);                           /* (runner) answers the head */
int work_fail(struct fw_work *w, const struct fw_err *err);    /* finishes with err; -1 */
void work_write(struct fw_work *w);                            /* (runner) submits w->op */
void task_submit(struct fw_engine *e, struct fw_task *task);   /* beside the queues */
void task_ended(struct fw_engine *e);                          /* (locked) */
bool session_boundary(const struct session *s);                /* (locked) between requests */
int out_of_memory(struct fw_err *err);

/* submit.c */
void request_refuse(struct fw_engine *e, struct fw_request *r, const struct fw_err *err);
struct fw_work *work_new(struct fw_request *r, struct fw_err *err);
int work_check(struct fw_work *w, const struct recipe *rc, struct fw_err *err); /* its body */
void work_free(struct fw_engine *e, struct fw_work *w);

/* journal.c */
enum hand {
    HAND_OK,
    HAND_KEY,
    HAND_FAILING,
    HAND_STATE,
    HAND_EVICT,
    HAND_CHECKPOINT,
    HAND_ASYNC
};
int row_new(struct fw_work *w, struct fw_err *err);
void row_release(struct row *row);                              /* (locked) NULL is allowed */
enum hand hand_over_stop(struct session *s, struct fw_work *w); /* (locked) */
void hand_over(struct session *s);                              /* (locked) */
void async_leave(struct session *s);                            /* (locked) */
bool row_take(struct fw_work *w);                               /* (locked) false: failed */
void disk_note(struct fw_engine *e, const struct fw_store_op *op); /* (locked) */

/* keys.c; all (locked) but the look-up */
int key_enter(struct fw_work *w, struct fw_err *err); /* at submit: new, repeat or refused */
void key_lookup(struct fw_work *w);
void key_leave(struct fw_work *w, bool learned);
int key_replayed(struct session *s, const struct fw_store_row *row, double mean,
                 struct fw_err *err);
int keys_results(struct session *s, uint64_t version, struct fw_store_result **ret,
                 size_t *ret_count, struct fw_err *err);
void keys_drop(struct session *s, uint64_t version);
void keys_free(struct session *s);
void step_repeat(struct fw_work *w, uint64_t deadline);

/* room.c */
int room_take(struct session *s, void **ret, struct fw_err *err); /* 1: parked, come again */
void room_give(struct fw_engine *e, void *block, size_t bytes);
void room_leave(struct session *s, bool refused);  /* (locked) */
void room_expire(struct fw_engine *e);             /* (locked) */
void resident_add(struct session *s, void *block); /* (locked) */
void *resident_remove(struct session *s);          /* (locked) */
void resident_touch(struct session *s);            /* (locked) */
void evict_mark(struct session *s);                /* (locked) */
void step_evict(struct session *s);
size_t block_bytes(const struct session *s);

/* load.c */
bool step_load(struct fw_work *w, uint64_t deadline); /* false: come again, or answered */
void load_free(struct session *s);

/* checkpoint.c (runner) */
int checkpoint_begin(struct session *s, const void *block, uint64_t version, uint64_t tokens,
                     const struct fw_hash *hash, struct fw_err *err);
int checkpoint_of(struct session *s, struct fw_err *err); /* of its state as it is */
int checkpoint_end(struct session *s, struct fw_err *err);
void checkpoint_cancel(struct session *s);   /* it could not begin */
bool session_dirty(const struct session *s); /* (locked) */

void learn_prepare(struct fw_work *w); /* learn.c: a checkpoint before hand-over */

/* exchange.c */
int export_write(const struct recipe *rc, const void *block, const struct fw_hash *hash,
                 uint64_t tokens_seen, int64_t created_ms, struct fw_buf *out,
                 struct fw_err *err);
int import_read(const struct recipe *rc, struct fw_request *r, void *block,
                struct fw_hash *ret_hash, uint64_t *ret_tokens, struct fw_err *err);

/* read.c; each 0, -1, or 1: come again */
int copy_take(struct fw_work *w, struct fw_err *err); /* of the block, into w->copy */
int view_take(struct fw_work *w, const void *block, struct fw_err *err);
int prefix_feed(struct fw_work *w, uint64_t deadline, struct fw_err *err);

/* create.c, passing.c */
void create_submit(struct fw_engine *e, struct fw_request *r);
void delete_submit(struct fw_engine *e, struct fw_request *r);
bool step_delete(struct session *s); /* false: the session is gone */
int session_fill(struct session *s, const char *labels, struct fw_err *err);
void session_forget(struct session *s); /* (runner) its block, and itself */
int passing_submit(struct fw_engine *e, struct fw_request *r, struct fw_err *err);
void session_row(const struct session *s, struct fw_store_session *ret);

/* snapshot.c: 0, -1, or 1: come again; into w->copy, w->hash, w->tokens_seen */
int snapshot_read(struct fw_work *w, const char *name, struct fw_store_snapshot *ret,
                  struct fw_err *err);

#endif
