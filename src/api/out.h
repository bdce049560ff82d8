/* out.h - writing JSON straight into a buffer, without a tree.
 *
 * Commas are put by themselves. A failure (no memory, buffer full) sticks in `rc`, and what
 * follows does nothing: a caller checks once, at the end. One thread. */
#ifndef API_OUT_H
#define API_OUT_H

#include <stdbool.h>
#include <stdint.h>

#include "fastweight/buf.h"
#include "fastweight/hash.h"
#include "fastweight/params.h"

struct out {
    struct fw_buf *buf; /* borrowed */
    struct fw_err *err;
    int rc;
    bool comma; /* the next value or key is not the first */
};

void out_begin(struct out *o, struct fw_buf *buf, struct fw_err *err);
void out_open(struct out *o, char bracket); /* '{' or '[' */
void out_close(struct out *o, char bracket);
void out_key(struct out *o, const char *key); /* plain ASCII */

/* Values; with a key in front where key is not NULL. */
void out_string(struct out *o, const char *key, const char *s);
/* Any bytes: what is not UTF-8 becomes U+FFFD. */
void out_text(struct out *o, const char *key, const void *bytes, size_t len);
void out_base64(struct out *o, const char *key, const void *bytes, size_t len);
void out_u64(struct out *o, const char *key, uint64_t v);
void out_double(struct out *o, const char *key, double v); /* 17 digits; non-finite is null */
void out_float(struct out *o, const char *key, float v);   /* 9 digits read back as the float */
void out_bool(struct out *o, const char *key, bool v);
void out_null(struct out *o, const char *key);
void out_raw(struct out *o, const char *key, const char *json); /* JSON text as it is */
void out_hash(struct out *o, const char *key, struct fw_hash h);
void out_time(struct out *o, const char *key, int64_t wall_ms); /* RFC 3339, UTC */
void out_params(struct out *o, const char *key, const struct fw_params *p);

#endif
