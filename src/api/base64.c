/* base64.c - bytes that are no text, as RFC 4648 writes them. */
#include "config.h"

#include "base64.h"

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
