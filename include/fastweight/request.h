/* fastweight/request.h - one request to a session: what is asked, what is answered.
 *
 * The asking side fills the first part, everything else zero; strings and tensors are borrowed
 * until done. The answer is owned by the request and freed by fw_request_done(). */
#ifndef FW_REQUEST_H
#define FW_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fastweight/buf.h"
#include "fastweight/hash.h"
#include "fastweight/params.h"
#include "fastweight/report.h"
#include "fastweight/sampling.h"
#include "fastweight/store.h"
#include "fastweight/tensor.h"

#define FW_LABELS_MAX 4096 /* bytes of the labels' JSON text with the NUL */
#define FW_KEY_MAX    256  /* idempotency key with the NUL */

enum fw_verb {
    FW_CREATE,
    FW_DELETE,
    FW_LABEL,
    FW_FACTS,
    FW_LEARN,
    FW_EDIT, /* edit and forget */
    FW_SCORE,
    FW_PREDICT,
    FW_RECALL,
    FW_GENERATE,
    FW_INSPECT,
    FW_TENSOR,
    FW_SNAPSHOT,
    FW_SNAPSHOT_LIST,
    FW_SNAPSHOT_GET,
    FW_SNAPSHOT_DROP,
    FW_RESTORE,
    FW_EXPORT,
    FW_IMPORT,
    FW_FORK,
    FW_CHECKPOINT
};

enum fw_detail { FW_DETAIL_NONE, FW_DETAIL_MEAN, FW_DETAIL_LINES, FW_DETAIL_TOKENS };

struct fw_facts { /* of one session, as GET tells them */
    char id[FW_ID_MAX], model[FW_ID_MAX], kind[16];
    int64_t uid;
    struct fw_params config;
    struct fw_hash config_hash;
    struct fw_about about;
    uint64_t state_bytes, version, durable_version, tokens_seen;
    int64_t created_ms;
    char labels[FW_LABELS_MAX]; /* a JSON object's text */
    char parent_id[FW_ID_MAX];  /* "" when none */
    uint64_t parent_version;
    struct fw_hash parent_hash;
    bool resident, has_hash;
    struct fw_hash hash;
};

struct fw_line { /* surprise=lines: one line of the body, its newline included */
    uint64_t start, tokens;
    double bits;
};

struct fw_request {
    /* Asked: set by the caller, borrowed until done. Unused fields are zero. */
    enum fw_verb verb;
    char id[FW_ID_MAX];
    char name[FW_ID_MAX];   /* snapshot, tensor ("": their list); CREATE: the snapshot
                               of `from`, or ""; SNAPSHOT_LIST: after this name */
    char new_id[FW_ID_MAX]; /* FORK: "" picks one (so does CREATE with id "") */
    char model[FW_ID_MAX];  /* CREATE; GENERATE with id "": from its first state, and no session
                             */
    char from[FW_ID_MAX];   /* CREATE from a session (as FORK) or its snapshot `name`;
                               SNAPSHOT_GET: "", or the base that a patch starts from */
    struct fw_params config;
    const char *labels;   /* CREATE, LABEL: canonical JSON object text, or NULL */
    struct fw_tensors in; /* streams: one tensor "tokens" (n,), U8 for bytes, U16 for events,
                             U32 for checkpoints;
                             PREDICT, GENERATE: the prefix, may be empty; associative: pairs;
                             EDIT: as fw_memory_check_edit says */
    struct fw_tensors probes; /* EDIT: "queries" whose change is measured, or none */
    enum fw_detail detail;
    bool async, want_hash, adapt, full, learn;
    size_t top, max_tokens;      /* top: of PREDICT; SNAPSHOT_LIST: at most so many, 0 = all */
    struct fw_sampling sampling; /* GENERATE */
    bool learn_prefix;           /* GENERATE with learn: the prefix and what came after it */
    /* GENERATE, or NULL: the first `ready` of ids and logp are there and will not change. On
     * the worker that samples; must not block. Not called any more once done is. */
    void (*progress)(struct fw_request *r, size_t ready);
    const void *file; /* IMPORT */
    size_t file_len;
    char key[FW_KEY_MAX]; /* Idempotency-Key or "" */
    bool has_match;       /* If-Match: refuse with FW_EVERSION unless both are current */
    int64_t match_uid;
    uint64_t match_version;
    void (*done)(struct fw_request *r); /* exactly once, any thread; must not block */
    void *arg;

    /* Answered: valid in done; freed by fw_request_done. */
    bool failed;
    struct fw_err err;
    struct fw_facts facts;
    uint64_t version, tokens; /* tokens: how many this request learned, scored, generated */
    double mean, total;       /* surprise in bits per token and in all; associative: residual */
    bool replayed;            /* the repeat of an idempotency key: status, version, mean only */
    double *detail_value;     /* TOKENS: (tokens, detail_width) */
    size_t detail_width;      /* 1, or heads */
    struct fw_line *line;
    size_t lines;
    uint32_t *ids;                 /* PREDICT top, GENERATE */
    double *logp;                  /* PREDICT: of ids, or with full (vocab,) */
    size_t count;                  /* of ids and logp */
    enum fw_finish finish;         /* GENERATE */
    double change_norm, disturbed; /* EDIT: fastweight/memory.h */
    float *values; /* RECALL, LEARN with queries: (tokens, heads, d_v); EDIT: (2, heads, d_v),
                      read at the key before and after */
    size_t values_count;
    uint64_t values_shape[3];
    struct fw_buf bytes; /* EXPORT, SNAPSHOT_GET, TENSOR: a safetensors file; GENERATE: what the
                            text has between its last token and the stop string */
    struct fw_report report;
    struct fw_store_snapshot *snapshot; /* SNAPSHOT (1), SNAPSHOT_LIST; `count` of them */
    struct fw_field *field;             /* TENSOR with name "": the block's; `count` of them */

    struct fw_request *next; /* the engine's from here on */
    bool cancelled;
    struct fw_work *work;
};

void fw_request_done(struct fw_request *r); /* frees the answer */

#endif
