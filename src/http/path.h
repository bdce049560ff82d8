/* path.h - percent-decoding and route patterns. Pure functions; any thread. */
#ifndef HTTP_PATH_H
#define HTTP_PATH_H

#include "fastweight/http.h"

enum { PATH_SEGMENTS = 8, PATH_CAPTURES = 2 };

struct path {    /* a decoded path, cut at its slashes */
    char *bytes; /* owned */
    struct fw_http_text segment[PATH_SEGMENTS];
    size_t count; /* PATH_SEGMENTS + 1: deeper than any route */
};

/* Decodes %XX in place of `out` (strlen(raw) + 1 bytes), NUL-terminates. -1 when malformed. */
int path_decode(const char *raw, char *out, size_t *ret_len);
/* FW_ESYNTAX when malformed; the caller frees with path_done also then. */
int path_split(struct path *p, const char *raw, struct fw_err *err);
void path_done(struct path *p);
/* Does p match the pattern? capture[PATH_CAPTURES] lends the {captured} segments. */
bool path_match(const struct path *p, const char *pattern, struct fw_http_text *capture);

#endif
