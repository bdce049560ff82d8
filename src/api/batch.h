/* batch.h - the tensors of a request's body, in the types the engine takes. Any thread.
 *
 * "tokens" (n,), U8 for bytes models, U16 for events, U32 for checkpoints, in range.
 * Associative: F32 "keys", "values", ... with the shapes as sent; the engine checks shapes and
 * values. */
#ifndef API_BATCH_H
#define API_BATCH_H

#include <jansson.h>
#include <stdbool.h>

#include "fastweight/engine.h"
#include "fastweight/safetensors.h"

enum { BATCH_TENSORS = 16, BATCH_NAMES = 64 };

struct batch {
    struct fw_tensor item[BATCH_TENSORS];
    void *owned[BATCH_TENSORS]; /* NULL: borrowed from the body or from `file` */
    size_t count;
    struct fw_safetensors file;
};

struct intake {         /* what a session learns from */
    bool pairs;         /* associative */
    bool bytes;         /* tokens are bytes in U8: a text is its tokens */
    bool text;          /* text is one form of tokens */
    bool raw;           /* so are an octet-stream's bytes */
    size_t token_bytes; /* of one in the engine's tensor */
    uint32_t vocab;
    const struct fw_engine *engine; /* for its tokenizers; borrowed */
    char model[FW_ID_MAX];
};

struct intake intake_of(const struct fw_engine *engine, const struct fw_facts *f);

/* Appends the bytes of a token's text; none where text is no form of tokens. */
int intake_text(const struct intake *in, uint32_t token, struct fw_buf *out,
                struct fw_err *err);

void batch_done(struct batch *b); /* a zeroed one is fine */

/* The fields a learn (or, without queries, a score) may have, and NULL; the first is "text" for
 * streams. */
void batch_fields(const struct intake *in, bool queries, const char *names[BATCH_NAMES]);
/* All fields of a learn's or score's JSON object. */
int batch_json(struct batch *b, const struct intake *in, const json_t *root,
               struct fw_err *err);
/* A JSON string or an array of token ids as "tokens"; param names it in errors. */
int batch_tokens(struct batch *b, const struct intake *in, const json_t *v, const char *param,
                 struct fw_err *err);
/* Raw bytes as "tokens"; borrows them. Events: u16 little-endian; a checkpoint's are a text. */
int batch_raw(struct batch *b, const struct intake *in, const void *data, size_t len,
              struct fw_err *err);
/* Nested arrays of numbers, at most 4 deep, as an F32 tensor. */
int batch_floats(struct batch *b, const char *name, const json_t *v, struct fw_err *err);
/* A safetensors file with tensors from the NULL-terminated list; integers become tokens, F64
 * becomes F32. */
int batch_file(struct batch *b, const struct intake *in, const char *const *known,
               const void *data, size_t len, struct fw_err *err);
/* Lends all tensors, or the one of that name, or none. */
struct fw_tensors batch_lend(struct batch *b);
struct fw_tensors batch_lend_one(struct batch *b, const char *name);

#endif
