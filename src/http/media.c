/* media.c - media types by name. One table; names compare without case, up to the first ';' or
 * space. What curl -d sends when it is told nothing is read as JSON. A wildcard in Accept means
 * "what you like", which is JSON, so only a type's own name asks for another form. */
#include "config.h"

#include "media.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

static const struct {
    enum fw_http_media media;
    const char *name, *sent;
} table[] = {
    { FW_HTTP_JSON, "application/json", "application/json" },
    { FW_HTTP_TEXT, "text/plain", "text/plain; charset=utf-8" },
    { FW_HTTP_OCTETS, "application/octet-stream", "application/octet-stream" },
    { FW_HTTP_SAFETENSORS, "application/vnd.safetensors", "application/vnd.safetensors" },
    { FW_HTTP_PNG, "image/png", "image/png" },
    { FW_HTTP_JSON, "application/x-www-form-urlencoded", "" },
    { FW_HTTP_EVENTS, "text/event-stream", "text/event-stream" },
    { FW_HTTP_METRICS, "", "text/plain; version=0.0.4; charset=utf-8" },
};

enum { TYPES = sizeof table / sizeof table[0] };

static bool names(const char *value, size_t len, const char *name)
{
    return len > 0 && strlen(name) == len && strncasecmp(value, name, len) == 0;
}

/* Is every charset parameter in the rest of the value one that UTF-8 contains? */
static bool charset_is_good(const char *params)
{
    const char *p = strcasestr(params, "charset=");

    if (!p)
        return true;
    p += strlen("charset=");
    p += *p == '"';
    return strncasecmp(p, "utf-8", 5) == 0 || strncasecmp(p, "us-ascii", 8) == 0;
}

enum fw_http_media media_parse(const char *content_type)
{
    size_t i, len;

    content_type += strspn(content_type, " \t");
    len = strcspn(content_type, "; \t");
    for (i = 0; i < TYPES; i++) {
        if (names(content_type, len, table[i].name))
            return charset_is_good(content_type + len) ? table[i].media : 0;
    }
    return 0;
}

const char *media_name(enum fw_http_media media)
{
    size_t i;

    for (i = 0; i < TYPES; i++) {
        if (table[i].media == media)
            return table[i].sent;
    }
    return "application/octet-stream";
}

bool media_accepts(const char *accept, enum fw_http_media media)
{
    size_t i, len;

    while (accept && *accept) {
        accept += strspn(accept, " \t,");
        len = strcspn(accept, "; \t,");
        for (i = 0; i < TYPES; i++) {
            if (table[i].media == media && names(accept, len, table[i].name))
                return true;
        }
        accept += strcspn(accept, ",");
    }
    return false;
}

void media_list(unsigned set, char *text, size_t size)
{
    size_t i, at = 0;
    int n;

    text[0] = 0;
    for (i = 0; i < TYPES; i++) {
        if (!(set & table[i].media) || (i > 0 && table[i].media == table[0].media))
            continue;
        n = snprintf(text + at, size - at, "%s%s", at ? ", " : "", table[i].name);
        if (n < 0 || (size_t)n >= size - at)
            return;
        at += (size_t)n;
    }
}
