/* literal.h - a Python literal of text or bytes. */
#ifndef LITERAL_H
#define LITERAL_H

#include <stddef.h>

/* p: the whole literal with its quotes. Writes up to cap bytes; -1: no such literal, or more.
 */
int literal_read(const unsigned char *p, size_t len, unsigned char *ret, size_t cap,
                 size_t *ret_len);

#endif
