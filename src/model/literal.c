/* literal.c - Python's '..' and b'..' as repr() writes them, with the escapes
 * \\ \' \" \a \b \f \n \r \t \v, \ooo, \xHH, and in text \uHHHH and \UHHHHHHHH.
 *
 * In text an escape is a code point and becomes UTF-8; a surrogate is refused. In bytes it is
 * the byte, and no byte above 0x7f stands for itself. */
#include "config.h"

#include "literal.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "fastweight/utf8.h"

struct reader {
    const unsigned char *p, *end;
    bool bytes;
};

static int digits(struct reader *r, unsigned base, size_t min, size_t max, uint32_t *ret)
{
    static const char hex[] = "0123456789abcdef";
    uint32_t c = 0;
    size_t n;

    for (n = 0; n < max && r->p < r->end && *r->p; n++, r->p++) {
        const unsigned lower = *r->p >= 'A' && *r->p <= 'F' ? *r->p + 32u : *r->p;
        const char *at = strchr(hex, (int)lower);

        if (!at || (unsigned)(at - hex) >= base)
            break;
        c = c * base + (uint32_t)(at - hex);
    }
    *ret = c;
    return n < min ? -1 : 0;
}

static int escape(struct reader *r, uint32_t *ret)
{
    static const char names[] = "\\'\"abfnrtv", values[] = "\\'\"\a\b\f\n\r\t\v";
    const unsigned char c = r->p < r->end ? *r->p : 0;
    const char *at = c ? strchr(names, c) : NULL;

    if (at) {
        r->p++;
        *ret = (unsigned char)values[at - names];
        return 0;
    }
    if (c >= '0' && c <= '7')
        return digits(r, 8, 1, 3, ret);
    r->p++;
    if (c == 'x')
        return digits(r, 16, 2, 2, ret);
    if (c == 'u' && !r->bytes)
        return digits(r, 16, 4, 4, ret);
    if (c == 'U' && !r->bytes)
        return digits(r, 16, 8, 8, ret);
    return -1;
}

/* The next character or byte of the literal; its length in ret, or 0. */
static size_t next(struct reader *r, unsigned char quote, unsigned char ret[4])
{
    bool valid;
    uint32_t c;
    size_t n;

    if (*r->p == quote)
        return 0;
    if (*r->p != '\\') {
        n = fw_utf8_piece(r->p, (size_t)(r->end - r->p), &valid);
        if (!valid || (r->bytes && n > 1))
            return 0;
        memcpy(ret, r->p, n);
        r->p += n;
        return n;
    }
    r->p++;
    if (escape(r, &c) < 0)
        return 0;
    if (r->bytes) {
        ret[0] = (unsigned char)c;
        return c < 256 ? 1 : 0;
    }
    return c > 0x10ffff || (c >= 0xd800 && c < 0xe000) ? 0 : fw_utf8_put(c, ret);
}

int literal_read(const unsigned char *p, size_t len, unsigned char *ret, size_t cap,
                 size_t *ret_len)
{
    struct reader r = { p, p + len, false };
    unsigned char quote, c[4];
    size_t used = 0;

    if (r.p < r.end && *r.p == 'b') {
        r.bytes = true;
        r.p++;
    }
    if (r.end - r.p < 2 || (*r.p != '\'' && *r.p != '"') || r.end[-1] != *r.p)
        return -1;
    quote = *r.p++;
    r.end--;
    while (r.p < r.end) {
        const size_t n = next(&r, quote, c);

        if (n == 0 || n > cap - used)
            return -1;
        memcpy(ret + used, c, n);
        used += n;
    }
    *ret_len = used;
    return 0;
}
