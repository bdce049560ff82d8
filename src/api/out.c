/* out.c - writing JSON straight into a buffer, without a tree: a reply may hold 65,536 numbers,
 * and a tree node for each would cost more than the learning it reports. */
#include "config.h"

#include "out.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base64.h"
#include "fastweight/utf8.h"

void out_begin(struct out *o, struct fw_buf *buf, struct fw_err *err)
{
    *o = (struct out){ .buf = buf, .err = err };
}

static void put(struct out *o, const void *data, size_t len)
{
    if (o->rc == 0)
        o->rc = fw_buf_append(o->buf, data, len, o->err);
}

static void put_string(struct out *o, const char *s)
{
    put(o, s, strlen(s));
}

/* In front of a value. */
static void lead_in(struct out *o, const char *key)
{
    if (key) {
        out_key(o, key);
    } else if (o->comma) {
        put(o, ",", 1);
    }
    o->comma = true;
}

void out_open(struct out *o, char bracket)
{
    lead_in(o, NULL);
    put(o, &bracket, 1);
    o->comma = false;
}

void out_close(struct out *o, char bracket)
{
    put(o, &bracket, 1);
    o->comma = true;
}

void out_key(struct out *o, const char *key)
{
    put(o, o->comma ? ",\"" : "\"", 1 + o->comma);
    put_string(o, key);
    put(o, "\":", 2);
    o->comma = false;
}

static void put_escape(struct out *o, unsigned char c)
{
    static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
    const char *p = c ? strchr(from, c) : NULL;
    char text[8];

    if (p)
        snprintf(text, sizeof text, "\\%c", to[p - from]);
    else
        snprintf(text, sizeof text, "\\u%04x", c);
    put_string(o, text);
}

void out_text(struct out *o, const char *key, const void *bytes, size_t len)
{
    const unsigned char *p = len ? bytes : (const unsigned char *)"";
    size_t i = 0, plain = 0, n; /* [plain, i) waits to be copied as it is */
    bool valid;

    lead_in(o, key);
    put(o, "\"", 1);
    while (i < len) {
        n = fw_utf8_piece(p + i, len - i, &valid);
        if (valid && p[i] >= 0x20 && p[i] != '"' && p[i] != '\\' && p[i] != 0x7f) {
            i += n;
            continue;
        }
        put(o, p + plain, i - plain);
        if (valid)
            put_escape(o, p[i]);
        else
            put(o, "\xef\xbf\xbd", 3); /* U+FFFD */
        i += n;
        plain = i;
    }
    put(o, p + plain, i - plain);
    put(o, "\"", 1);
}

void out_string(struct out *o, const char *key, const char *s)
{
    out_text(o, key, s, strlen(s));
}

void out_base64(struct out *o, const char *key, const void *bytes, size_t len)
{
    const unsigned char *p = bytes;
    char quad[4];
    size_t i;

    lead_in(o, key);
    put(o, "\"", 1);
    for (i = 0; i < len; i += 3) {
        base64_quad(p + i, len - i, quad);
        put(o, quad, 4);
    }
    put(o, "\"", 1);
}

void out_u64(struct out *o, const char *key, uint64_t v)
{
    char text[24], *at = text + sizeof text;

    do {
        *--at = (char)('0' + v % 10);
        v /= 10;
    } while (v);
    lead_in(o, key);
    put(o, at, (size_t)(text + sizeof text - at));
}

static void put_number(struct out *o, const char *key, double v, int digits)
{
    char text[40];

    if (!isfinite(v)) {
        out_null(o, key);
        return;
    }
    if (v >= 0 && v < 1e6 && !signbit(v) && v == (double)(uint32_t)v) {
        out_u64(o, key, (uint32_t)v); /* the same text, and most of a configuration */
        return;
    }
    snprintf(text, sizeof text, "%.*g", digits, v);
    lead_in(o, key);
    put_string(o, text);
}

void out_double(struct out *o, const char *key, double v)
{
    put_number(o, key, v, 17);
}

void out_float(struct out *o, const char *key, float v)
{
    put_number(o, key, (double)v, 9);
}

void out_bool(struct out *o, const char *key, bool v)
{
    out_raw(o, key, v ? "true" : "false");
}

void out_null(struct out *o, const char *key)
{
    out_raw(o, key, "null");
}

void out_raw(struct out *o, const char *key, const char *json)
{
    lead_in(o, key);
    put_string(o, json);
}

void out_hash(struct out *o, const char *key, struct fw_hash h)
{
    char hex[FW_HASH_HEX];

    fw_hash_hex(h, hex);
    out_string(o, key, hex);
}

void out_time(struct out *o, const char *key, int64_t wall_ms)
{
    time_t s = (time_t)(wall_ms / 1000);
    struct tm tm;
    char text[80];

    if (wall_ms < 0 || !gmtime_r(&s, &tm)) {
        out_null(o, key);
        return;
    }
    snprintf(text, sizeof text, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", tm.tm_year + 1900,
             tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec,
             (int)(wall_ms % 1000));
    out_string(o, key, text);
}

void out_params(struct out *o, const char *key, const struct fw_params *p)
{
    const struct fw_param *item;
    size_t i;

    out_key(o, key);
    out_open(o, '{');
    for (i = 0; i < p->count; i++) {
        item = &p->item[i];
        if (item->type == FW_PARAM_STRING)
            out_string(o, item->key, item->string);
        else if (item->type == FW_PARAM_BOOL)
            out_bool(o, item->key, item->number != 0);
        else
            out_double(o, item->key, item->number);
    }
    out_close(o, '}');
}
