/* utf8.h - bytes as text: valid UTF-8 by pieces, base64. Pure functions; any thread. */
#ifndef API_UTF8_H
#define API_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* The length of the valid character at p, or of the broken piece there that one U+FFFD stands
 * for (Unicode 3.9, maximal subparts). len >= 1. */
size_t utf8_piece(const unsigned char *p, size_t len, bool *ret_valid);
/* 4 digits of base64 from up to 3 bytes, '=' padded. */
void base64_quad(const unsigned char *p, size_t len, char quad[4]);

#endif
