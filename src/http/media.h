/* media.h - media types by name: of bodies, of replies, in Accept. Any thread. */
#ifndef HTTP_MEDIA_H
#define HTTP_MEDIA_H

#include "fastweight/http.h"

/* The media of a Content-Type value; parameters are ignored but for charset, which must be
 * utf-8 (us-ascii is part of it). 0 when it is none of ours. */
enum fw_http_media media_parse(const char *content_type);
const char *media_name(enum fw_http_media media); /* a Content-Type value */
/* Does an Accept value (or NULL) name this type itself, not by a wildcard? */
bool media_accepts(const char *accept, enum fw_http_media media);
/* "application/json, text/plain" for a set of bits. */
void media_list(unsigned set, char *text, size_t size);

#endif
