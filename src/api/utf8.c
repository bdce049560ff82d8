/* utf8.c - which bytes form a character (RFC 3629, table 3-7 of Unicode: no surrogates, no
 * overlong forms, nothing above U+10FFFF). */
#include "config.h"

#include "utf8.h"

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

size_t utf8_piece(const unsigned char *p, size_t len, bool *ret_valid)
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

void base64_quad(const unsigned char *p, size_t len, char quad[4])
{
    static const char digit[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    unsigned b0 = p[0], b1 = len > 1 ? p[1] : 0, b2 = len > 2 ? p[2] : 0;

    quad[0] = digit[b0 >> 2];
    quad[1] = digit[(b0 & 3) << 4 | b1 >> 4];
    quad[2] = len > 1 ? digit[(b1 & 15) << 2 | b2 >> 6] : '=';
    quad[3] = len > 2 ? digit[b2 & 63] : '=';
}
