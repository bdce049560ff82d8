/* buf.c - a growing byte buffer with a hard maximum.
 *
 * Invariant: len <= cap <= max, and data is NULL exactly when cap is 0. Growth doubles, so that
 * appending n bytes costs O(n); it never passes max, and a failed append leaves the bytes as
 * they were. One thread at a time. */
#include "config.h"

#include "fastweight/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_CAP = 256 };

void fw_buf_init(struct fw_buf *b, size_t max)
{
    *b = (struct fw_buf){ .max = max };
}

void fw_buf_done(struct fw_buf *b)
{
    free(b->data);
    fw_buf_init(b, b->max);
}

int fw_buf_reserve(struct fw_buf *b, size_t more, struct fw_err *err)
{
    size_t need, cap;
    unsigned char *grown;

    if (more > b->max - b->len)
        return fw_fail(err, FW_ETOOBIG, "limit_exceeded", "over the limit of %zu bytes",
                       b->max);
    need = b->len + more;
    if (need <= b->cap)
        return 0;
    cap = b->cap > b->max / 2 ? b->max : 2 * b->cap;
    if (cap < FIRST_CAP)
        cap = b->max < FIRST_CAP ? b->max : FIRST_CAP;
    if (cap < need)
        cap = need;
    grown = realloc(b->data, cap);
    if (!grown)
        return fw_fail(err, FW_ENOMEM, "out_of_memory", "no memory for %zu bytes", cap);
    b->data = grown;
    b->cap = cap;
    return 0;
}

int fw_buf_append(struct fw_buf *b, const void *data, size_t len, struct fw_err *err)
{
    if (len == 0)
        return 0;
    if (fw_buf_reserve(b, len, err) < 0)
        return -1;
    memcpy(b->data + b->len, data, len);
    b->len += len;
    return 0;
}

int fw_buf_printf(struct fw_buf *b, struct fw_err *err, const char *fmt, ...)
{
    char small[256];
    char *text = small;
    va_list ap;
    int len, rc;

    va_start(ap, fmt);
    len = vsnprintf(small, sizeof small, fmt, ap);
    va_end(ap);
    if (len < 0)
        return fw_fail(err, FW_EINTERNAL, "bad_format", "text cannot be formatted");
    if ((size_t)len > b->max - b->len)
        return fw_fail(err, FW_ETOOBIG, "limit_exceeded", "over the limit of %zu bytes",
                       b->max);
    if ((size_t)len >= sizeof small) { /* not in place: the NUL may have no room below max */
        text = malloc((size_t)len + 1);
        if (!text)
            return fw_fail(err, FW_ENOMEM, "out_of_memory", "no memory for %d bytes", len);
        va_start(ap, fmt);
        vsnprintf(text, (size_t)len + 1, fmt, ap);
        va_end(ap);
    }
    rc = fw_buf_append(b, text, (size_t)len, err);
    if (text != small)
        free(text);
    return rc;
}

unsigned char *fw_buf_take(struct fw_buf *b, size_t *ret_len)
{
    unsigned char *data = b->data;

    *ret_len = b->len;
    fw_buf_init(b, b->max);
    return data;
}
