/* listen.h - the listening socket: a loopback address, bound. One thread. */
#ifndef HTTP_LISTEN_H
#define HTTP_LISTEN_H

#include "fastweight/err.h"

enum { LISTEN_TEXT = 64 };

/* "127.0.0.1:80", "[::1]:80"; port 0 lets the system choose. Only 127.0.0.0/8 and ::1 can be
 * bound. *ret_fd is owned by the caller; text tells the address really bound. */
int listen_open(const char *address, int *ret_fd, char text[LISTEN_TEXT], struct fw_err *err);

#endif
