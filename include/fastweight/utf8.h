/* fastweight/utf8.h - which bytes form a character (RFC 3629). Pure functions; any thread. */
#ifndef FW_UTF8_H
#define FW_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The length of the valid character at p, or of the broken piece there that one U+FFFD stands
 * for (Unicode 3.9, maximal subparts). len >= 1. */
size_t fw_utf8_piece(const unsigned char *p, size_t len, bool *ret_valid);
/* The code point of the valid character of len bytes at p. */
uint32_t fw_utf8_get(const unsigned char *p, size_t len);
/* Writes the character of a code point up to U+10FFFF that is no surrogate; its length. */
size_t fw_utf8_put(uint32_t c, unsigned char ret[4]);
/* How many of the bytes can be shown already, when more may follow: all but a last character
 * that is begun and may still become whole. The rest is at most 3 bytes. */
size_t fw_utf8_settled(const unsigned char *p, size_t len);

#endif
