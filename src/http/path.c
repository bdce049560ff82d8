/* path.c - percent-decoding and route patterns.
 *
 * A path is cut at its raw slashes first and decoded piece by piece, so an id that holds an
 * encoded slash, a NUL or ".." stays one segment: the handler sees it whole and refuses it,
 * it never reaches another route. An empty segment matches no capture. */
#include "config.h"

#include "path.h"

#include <stdlib.h>
#include <string.h>

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

/* Decodes raw[0..len) to out; returns the decoded length or -1. */
static long decode(const char *raw, size_t len, char *out)
{
    size_t i, n = 0;
    int hi, lo;

    for (i = 0; i < len; i++) {
        if (raw[i] != '%') {
            out[n++] = raw[i];
            continue;
        }
        if (len - i < 3)
            return -1;
        hi = hex_digit(raw[i + 1]);
        lo = hex_digit(raw[i + 2]);
        if (hi < 0 || lo < 0)
            return -1;
        out[n++] = (char)(hi * 16 + lo);
        i += 2;
    }
    return (long)n;
}

int path_decode(const char *raw, char *out, size_t *ret_len)
{
    long n = decode(raw, strlen(raw), out);

    if (n < 0)
        return -1;
    out[n] = 0;
    *ret_len = (size_t)n;
    return 0;
}

int path_split(struct path *p, const char *raw, struct fw_err *err)
{
    const char *end;
    char *out;
    long n;

    *p = (struct path){ 0 };
    p->bytes = out = malloc(strlen(raw) + 2); /* a NUL replaces each slash */
    if (!out)
        return fw_fail(err, FW_ENOMEM, "out_of_memory", "no memory for a path");
    while (*raw == '/') {
        raw++;
        end = raw + strcspn(raw, "/");
        if (p->count == PATH_SEGMENTS) {
            p->count++;
            return 0;
        }
        n = decode(raw, (size_t)(end - raw), out);
        if (n < 0)
            return fw_fail(err, FW_ESYNTAX, "bad_path", "malformed %%XX in the path");
        p->segment[p->count++] = (struct fw_http_text){ out, (size_t)n };
        out[n] = 0;
        out += n + 1;
        raw = end;
    }
    if (*raw)
        return fw_fail(err, FW_ESYNTAX, "bad_path", "a path begins with '/'");
    return 0;
}

void path_done(struct path *p)
{
    free(p->bytes);
    *p = (struct path){ 0 };
}

bool path_match(const struct path *p, const char *pattern, struct fw_http_text *capture)
{
    size_t i, len, captures = 0;
    const char *at = pattern;

    for (i = 0; *at == '/'; i++) {
        at++;
        len = strcspn(at, "/");
        if (i >= p->count || i >= PATH_SEGMENTS || p->segment[i].len == 0)
            return false;
        if (*at == '{' && captures < PATH_CAPTURES)
            capture[captures++] = p->segment[i];
        else if (p->segment[i].len != len || memcmp(p->segment[i].data, at, len) != 0)
            return false;
        at += len;
    }
    return i == p->count;
}
