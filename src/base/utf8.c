/* utf8.c - which bytes form a character (RFC 3629, table 3-7 of Unicode: no surrogates, no
 * overlong forms, nothing above U+10FFFF). */
#include "config.h"

#include "fastweight/utf8.h"

/* The bounds of the second byte, and how many bytes follow the first; 0: no lead byte. */
static size_t lead(unsigned char c, unsigned char *lo, unsigned char *hi)
{
    *lo = c == 0xe0 ? 0xa0 : c == 0xf0 ? 0x90 : 0x80;
    *hi = c == 0xed ? 0x9f : c == 0xf4 ? 0x8f : 0xbf;
    if (c >= 0xc2 && c <= 0xdf)
        return 1;
    if (c >= 0xe0 && c <= 0xef)
        return 2;
    if (c >= 0xf0 && c <= 0xf4)
        return 3;
    return 0;
}

size_t fw_utf8_piece(const unsigned char *p, size_t len, bool *ret_valid)
{
    unsigned char lo, hi;
    size_t i, more;

    *ret_valid = p[0] < 0x80;
    if (*ret_valid)
        return 1;
    more = lead(p[0], &lo, &hi);
    for (i = 1; i <= more; i++) {
        if (i >= len || p[i] < lo || p[i] > hi)
            return i;
        lo = 0x80;
        hi = 0xbf;
    }
    *ret_valid = more > 0;
    return i;
}

uint32_t fw_utf8_get(const unsigned char *p, size_t len)
{
    uint32_t c = len == 1 ? p[0] : p[0] & (0x7fu >> len);

    for (size_t i = 1; i < len; i++)
        c = c << 6 | (p[i] & 0x3f);
    return c;
}

size_t fw_utf8_put(uint32_t c, unsigned char ret[4])
{
    const size_t len = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;

    for (size_t i = len - 1; i > 0; i--, c >>= 6)
        ret[i] = (unsigned char)(0x80 | (c & 0x3f));
    ret[0] = (unsigned char)(len == 1 ? c : (0xf00u >> len & 0xf0) | c);
    return len;
}

size_t fw_utf8_settled(const unsigned char *p, size_t len)
{
    unsigned char lo, hi;
    bool valid;

    for (size_t back = 1; back <= 3 && back <= len; back++) {
        const size_t at = len - back;

        if (lead(p[at], &lo, &hi) >= back)
            return fw_utf8_piece(p + at, back, &valid) == back ? at : len;
        if ((p[at] & 0xc0) != 0x80)
            return len;
    }
    return len;
}
