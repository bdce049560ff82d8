/* params.c - a session's configuration as a sorted set of typed named values.
 *
 * Canonical text, what the store keeps and config_hash is taken over: one line per item, sorted
 * by key, each ended by '\n':
 *     key=n:1.5     number as %.17g, which reads back as the same double; finite, never -0
 *     key=s:text    at most 63 bytes without control characters
 *     key=b:1       0 or 1
 * parse accepts exactly what print writes (it prints what it read and compares), so one set has
 * one text. Unused bytes of an item are zero. Numbers are written in the "C" locale, the only
 * one this program ever sets. Any thread. */
#include "config.h"

#include "fastweight/params.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int bad_value(struct fw_err *err, const char *key, const char *what)
{
    char param[sizeof err->param];

    snprintf(param, sizeof param, "config.%s", key);
    return fw_fail_param(err, FW_EINVAL, "bad_value", param, "%s %s", param, what);
}

static int key_is_good(const char *key)
{
    size_t len = strlen(key);

    return len > 0 && len < sizeof((struct fw_param *)0)->key &&
           strspn(key, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") ==
               len;
}

static int has_control(const char *text)
{
    for (; *text; text++) {
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            return 1;
    }
    return 0;
}

/* The first place whose key is not below `key`. */
static size_t place_of(const struct fw_params *p, const char *key)
{
    size_t i = 0;

    while (i < p->count && strcmp(p->item[i].key, key) < 0)
        i++;
    return i;
}

static int set(struct fw_params *p, const char *key, const struct fw_param *value,
               struct fw_err *err)
{
    size_t i;

    if (!key_is_good(key))
        return fw_fail_param(err, FW_EINVAL, "bad_key", "config",
                             "a config key must be 1 to 31 letters, digits and '_'");
    i = place_of(p, key);
    if (i == p->count || strcmp(p->item[i].key, key) != 0) {
        if (p->count == FW_MAX_PARAMS)
            return fw_fail_param(err, FW_EINVAL, "too_many_keys", "config",
                                 "config has more than %d keys", FW_MAX_PARAMS);
        memmove(&p->item[i + 1], &p->item[i], (p->count - i) * sizeof p->item[0]);
        p->count++;
    }
    p->item[i] = *value;
    snprintf(p->item[i].key, sizeof p->item[i].key, "%s", key);
    return 0;
}

int fw_params_set_number(struct fw_params *p, const char *key, double v, struct fw_err *err)
{
    struct fw_param value = { .type = FW_PARAM_NUMBER, .number = v };

    if (!__builtin_isfinite(v))
        return bad_value(err, key, "must be a finite number");
    if (v == 0)
        value.number = 0; /* -0 equals 0, so they must have one text */
    return set(p, key, &value, err);
}

int fw_params_set_string(struct fw_params *p, const char *key, const char *v,
                         struct fw_err *err)
{
    struct fw_param value = { .type = FW_PARAM_STRING };

    if (strlen(v) >= sizeof value.string)
        return bad_value(err, key, "must be at most 63 bytes long");
    if (has_control(v))
        return bad_value(err, key, "must not contain control characters");
    snprintf(value.string, sizeof value.string, "%s", v);
    return set(p, key, &value, err);
}

int fw_params_set_bool(struct fw_params *p, const char *key, int v, struct fw_err *err)
{
    struct fw_param value = { .type = FW_PARAM_BOOL, .number = v != 0 };

    return set(p, key, &value, err);
}

const struct fw_param *fw_params_find(const struct fw_params *p, const char *key)
{
    size_t i = place_of(p, key);

    return i < p->count && strcmp(p->item[i].key, key) == 0 ? &p->item[i] : NULL;
}

int fw_params_get_number(const struct fw_params *p, const char *key, double min, double max,
                         double *ret, struct fw_err *err)
{
    const struct fw_param *item = fw_params_find(p, key);
    char what[80];

    if (!item)
        return 0;
    if (item->type != FW_PARAM_NUMBER)
        return bad_value(err, key, "must be a number");
    if (!(item->number >= min && item->number <= max)) {
        snprintf(what, sizeof what, "must lie in [%.9g, %.9g]", min, max);
        return bad_value(err, key, what);
    }
    *ret = item->number;
    return 0;
}

int fw_params_get_size(const struct fw_params *p, const char *key, size_t min, size_t max,
                       size_t *ret, struct fw_err *err)
{
    const struct fw_param *item = fw_params_find(p, key);
    const double above = 18446744073709551616.0; /* 2^64: no size_t reaches it */
    char what[80];
    size_t n = 0;

    if (!item)
        return 0;
    if (item->type != FW_PARAM_NUMBER)
        return bad_value(err, key, "must be an integer");
    if (item->number >= 0 && item->number < above) {
        n = (size_t)item->number;
        if ((double)n != item->number)
            return bad_value(err, key, "must be an integer");
    }
    if (item->number < 0 || item->number >= above || n < min || n > max) {
        snprintf(what, sizeof what, "must lie in [%zu, %zu]", min, max);
        return bad_value(err, key, what);
    }
    *ret = n;
    return 0;
}

int fw_params_get_string(const struct fw_params *p, const char *key, const char **ret,
                         struct fw_err *err)
{
    const struct fw_param *item = fw_params_find(p, key);

    if (!item)
        return 0;
    if (item->type != FW_PARAM_STRING)
        return bad_value(err, key, "must be a string");
    *ret = item->string;
    return 0;
}

int fw_params_only(const struct fw_params *p, const char *const *known, struct fw_err *err)
{
    const char *const *k;
    size_t i;

    for (i = 0; i < p->count; i++) {
        for (k = known; *k && strcmp(*k, p->item[i].key) != 0; k++)
            ;
        if (!*k)
            return bad_value(err, p->item[i].key, "is not known to this model");
    }
    return 0;
}

static int print_item(const struct fw_param *item, char *text, size_t size)
{
    switch (item->type) {
    case FW_PARAM_NUMBER:
        return snprintf(text, size, "%s=n:%.17g\n", item->key, item->number);
    case FW_PARAM_STRING:
        return snprintf(text, size, "%s=s:%s\n", item->key, item->string);
    case FW_PARAM_BOOL:
        return snprintf(text, size, "%s=b:%d\n", item->key, item->number != 0);
    }
    return -1;
}

int fw_params_print(const struct fw_params *p, char *text, size_t size, struct fw_err *err)
{
    size_t i, at = 0;
    int len;

    assert(size > 0);
    text[0] = 0;
    for (i = 0; i < p->count; i++) {
        len = print_item(&p->item[i], text + at, size - at);
        if (len < 0 || (size_t)len >= size - at)
            return fw_fail(err, FW_EINTERNAL, "buffer_too_small",
                           "%zu bytes hold no canonical config", size);
        at += (size_t)len;
    }
    return 0;
}

/* One line without its '\n'. */
static int parse_line(struct fw_params *p, char *line, struct fw_err *err)
{
    char *value = strchr(line, '=');

    if (!value || value[1] == 0 || value[2] != ':')
        return fw_fail(err, FW_EINVAL, "bad_config_text", "no 'key=type:value' line");
    *value = 0;
    switch (value[1]) {
    case 'n':
        return fw_params_set_number(p, line, strtod(value + 3, NULL), err);
    case 's':
        return fw_params_set_string(p, line, value + 3, err);
    case 'b':
        return fw_params_set_bool(p, line, value[3] == '1', err);
    default:
        return fw_fail(err, FW_EINVAL, "bad_config_text", "no value type '%c'", value[1]);
    }
}

int fw_params_parse(struct fw_params *ret, const char *text, struct fw_err *err)
{
    struct fw_params p = { 0 };
    char line[FW_PARAMS_TEXT], again[FW_PARAMS_TEXT];
    const char *at, *end;

    for (at = text; *at; at = end + 1) {
        end = strchr(at, '\n');
        if (!end || (size_t)(end - at) >= sizeof line)
            return fw_fail(err, FW_EINVAL, "bad_config_text", "a line has no end");
        memcpy(line, at, (size_t)(end - at));
        line[end - at] = 0;
        if (parse_line(&p, line, err) < 0)
            return -1;
    }
    if (fw_params_print(&p, again, sizeof again, err) < 0)
        return -1;
    if (strcmp(again, text) != 0) /* order, repeats, other spellings of a value */
        return fw_fail(err, FW_EINVAL, "bad_config_text", "not in canonical form");
    *ret = p;
    return 0;
}
