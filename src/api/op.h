/* op.h - one call on its way through the engine and back.
 *
 * A worker runs op_run: it reads the request (`ask`), submits it and lets go; `done` comes in
 * whatever thread the engine is in, makes the reply (`answer`) and frees the op. An answer that
 * is long work of its own does it in `slice`, on the pool, a piece at a time. */
#ifndef API_OP_H
#define API_OP_H

#include "fastweight/api.h"

#include "batch.h"
#include "out.h"

enum { OP_REPLY_MAX = 1 << 30 };

struct completion;
struct events;
struct op;
struct ranking;
struct sampling_options;

struct endpoint { /* the `arg` of a route whose handler is op_run */
    enum fw_verb verb;
    const char *const *query;                         /* parameters it knows; NULL: none */
    int (*ask)(struct op *op, struct fw_err *err);    /* fills op->r; NULL: id and name do */
    bool (*slice)(struct op *op);                     /* NULL, or: true while there is more */
    int (*answer)(struct op *op, struct fw_err *err); /* fills op->out and op->reply */
    /* One event's JSON: the tokens [from, to) of a generation, and the text they add. */
    int (*tell)(struct op *op, struct out *o, size_t from, size_t to,
                const struct fw_http_text *text);
};

struct op {
    struct fw_request r; /* first: done casts back */
    struct fw_task task;
    const struct fw_api *api;
    struct fw_http_call *call;
    const struct endpoint *endpoint;
    struct fw_facts facts; /* of the session when the body was read; see op_facts */
    struct intake intake;
    json_t *root;
    struct batch batch;
    char *labels;                      /* owned JSON text */
    struct sampling_options *sampling; /* generate, or NULL; owned */
    bool wants_file;                   /* the reply as safetensors */
    struct ranking *ranking;           /* recall, or NULL; owned */
    struct events *events;             /* the reply is a stream of them; or NULL; owned */
    struct completion *completion;     /* or NULL; owned */
    struct fw_buf out;                 /* the reply's body */
    struct fw_http_reply reply;
    char etag[64], location[32 + FW_ID_MAX];
};

void op_run(struct fw_http_call *call);
void op_free(struct op *op);

/* For ask: the session's facts as they are now, and what it takes in. */
int op_facts(struct op *op, struct fw_err *err);
/* The JSON body into op->root; known fields only. */
int op_json(struct op *op, bool optional, const char *const *known, struct fw_err *err);
/* The Idempotency-Key, if there is one. */
int op_key(struct op *op, struct fw_err *err);

/* For answer. */
void op_etag(struct op *op, int64_t uid, uint64_t version);
void op_header(struct op *op, const char *name, const char *value); /* borrowed until reply */
void op_created(struct op *op); /* 201 and Location of facts.id */
int op_file(struct op *op);     /* r.bytes as the reply: a safetensors file */

void reply_error(struct fw_http_call *call, const struct fw_err *e);
/* Answers with the buffer's JSON; rc < 0: with the error. */
void reply_json(struct fw_http_call *call, struct fw_buf *json, int rc, struct fw_err *e);

/* values.c: arrays and scalars of a reply */
void out_tokens(struct out *o, const struct fw_request *r); /* r.ids */
/* "text" and "bytes_base64" of n tokens and the tail (or NULL), where text is one form of them.
 */
int out_token_text(struct out *o, const struct intake *in, const uint32_t *ids, size_t n,
                   const struct fw_buf *tail, struct fw_err *err);
void out_values(struct out *o, const struct fw_request *r); /* "values" */
struct fw_tensor values_tensor(const struct fw_request *r);
void meta_u64(struct fw_meta *m, const char *key, uint64_t v);
void meta_double(struct fw_meta *m, const char *key, double v);
void meta_hash(struct fw_meta *m, const char *key, struct fw_hash h);

void out_report(struct out *o, const struct fw_report *r); /* inspect.c */

/* facts.c */
void out_about(struct out *o, const struct fw_about *a); /* of the open object */
void out_facts(struct out *o, const struct fw_facts *f);
void out_facts_fields(struct out *o, const struct fw_facts *f); /* of the open object */
int answer_facts(struct op *op, struct fw_err *err);

/* The endpoints and handlers, by file; routes.c names them all. */
extern const struct endpoint api_create, api_facts, api_label, api_delete, api_fork,
    api_checkpoint;                                /* sessions.c */
extern const struct endpoint api_learn, api_score; /* learn.c */
extern const struct endpoint api_edit, api_forget; /* edit.c */
extern const struct endpoint api_predict;          /* predict.c */
extern const struct endpoint api_generate;         /* generate.c */
extern const struct endpoint api_completions;      /* completions.c */
/* Reads the fields that both have, tokens under `prefix`; needs op->intake. */
int generate_read(struct op *op, const char *prefix, uint64_t max_tokens, struct fw_err *err);
extern const struct endpoint api_recall; /* recall.c */
void ranking_free(struct ranking *r);
extern const struct endpoint api_inspect;             /* inspect.c */
extern const struct endpoint api_tensors, api_tensor; /* tensors.c */
extern const struct endpoint api_snapshot, api_snapshots, api_snapshot_get, api_snapshot_drop,
    api_patch, api_restore, api_export, api_import; /* snapshots.c */
bool api_facts_now(struct fw_http_call *call);
void api_list(struct fw_http_call *call);
int api_import_limit(struct fw_http_call *call, size_t *ret, struct fw_err *err);
bool api_healthz(struct fw_http_call *call); /* server.c */
bool api_readyz(struct fw_http_call *call);
bool api_version(struct fw_http_call *call);
bool api_models(struct fw_http_call *call);
bool api_metrics(struct fw_http_call *call); /* metrics.c */

#endif
