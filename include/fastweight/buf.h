/* fastweight/buf.h - a growing byte buffer with a hard maximum. One thread at a time. */
#ifndef FW_BUF_H
#define FW_BUF_H

#include <stddef.h>

#include "fastweight/err.h"

struct fw_buf {
    unsigned char *data; /* owned; NULL while empty */
    size_t len, cap;
    size_t max; /* bytes; reaching it is FW_ETOOBIG */
};

void fw_buf_init(struct fw_buf *b, size_t max);
void fw_buf_done(struct fw_buf *b); /* frees; b is reusable after a new init */
int fw_buf_append(struct fw_buf *b, const void *data, size_t len, struct fw_err *err);
int fw_buf_printf(struct fw_buf *b, struct fw_err *err, const char *fmt, ...) FW_PRINTF(3, 4);
int fw_buf_reserve(struct fw_buf *b, size_t more,
                   struct fw_err *err); /* room for `more` bytes */
/* The caller takes the bytes (free()); b is empty afterwards. */
unsigned char *fw_buf_take(struct fw_buf *b, size_t *ret_len);

#endif
