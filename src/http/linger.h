/* linger.h - closing a connection whose client is still sending.
 *
 * Closing a socket with unread bytes resets the connection, and a client that only reads after
 * it has sent would never see the refusal. So the bytes are read and thrown away, for a while,
 * in a thread of its own. */
#ifndef HTTP_LINGER_H
#define HTTP_LINGER_H

#include "fastweight/err.h"

struct lingerer;

int linger_new(struct lingerer **ret, struct fw_err *err);
/* Takes a copy of the socket, which the caller goes on to close. Any thread; never blocks. */
void linger_add(struct lingerer *l, int fd);
void linger_free(struct lingerer *l); /* closes what is left; NULL is allowed */

#endif
