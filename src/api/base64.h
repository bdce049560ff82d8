/* base64.h - bytes as base64. A pure function; any thread. */
#ifndef API_BASE64_H
#define API_BASE64_H

#include <stddef.h>

/* 4 digits of base64 from up to 3 bytes, '=' padded. */
void base64_quad(const unsigned char *p, size_t len, char quad[4]);

#endif
