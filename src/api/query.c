/* query.c - query parameters, read strictly: a misspelt one is an error, never ignored.
 *
 * Names and values are decoded bytes and may hold a NUL; query_only refuses those, and must be
 * called first: the other functions take values for C strings. */
#include "config.h"

#include "query.h"

#include <stdio.h>
#include <string.h>

int query_only(const struct fw_http_call *call, const char *const *known, struct fw_err *err)
{
    const char *const *k;
    size_t i, j, n;
    const struct fw_http_pair *q = fw_http_query(call, &n);

    for (i = 0; i < n; i++) {
        for (k = known; *k && strcmp(*k, q[i].name.data) != 0; k++)
            ;
        if (!*k || strlen(q[i].name.data) != q[i].name.len)
            return fw_fail_param(err, FW_EINVAL, "unknown_parameter", q[i].name.data,
                                 "'%.60s' is not a query parameter of this request",
                                 q[i].name.data);
        if (strlen(q[i].value.data) != q[i].value.len)
            return fw_fail_param(err, FW_EINVAL, "bad_value", *k, "%s contains a NUL", *k);
        for (j = 0; j < i; j++) {
            if (strcmp(q[i].name.data, q[j].name.data) == 0)
                return fw_fail_param(err, FW_EINVAL, "repeated_parameter", *k,
                                     "%s is given twice", *k);
        }
    }
    return 0;
}

const char *query_find(const struct fw_http_call *call, const char *name)
{
    size_t i, n;
    const struct fw_http_pair *q = fw_http_query(call, &n);

    for (i = 0; i < n; i++) {
        if (strcmp(q[i].name.data, name) == 0)
            return q[i].value.data;
    }
    return NULL;
}

int query_word(const struct fw_http_call *call, const char *name, const char *const *words,
               size_t *ret, struct fw_err *err)
{
    const char *value = query_find(call, name);
    char list[120];
    size_t i, at = 0;

    if (!value)
        return 0;
    for (i = 0; words[i]; i++) {
        if (strcmp(words[i], value) == 0) {
            *ret = i;
            return 0;
        }
    }
    for (i = 0; words[i] && at < sizeof list; i++)
        at += (size_t)snprintf(list + at, sizeof list - at, "%s%s", i ? ", " : "", words[i]);
    return fw_fail_param(err, FW_EINVAL, "bad_value", name, "%s must be one of %s", name, list);
}

int query_bool(const struct fw_http_call *call, const char *name, bool *ret, struct fw_err *err)
{
    static const char *const words[] = { "false", "true", NULL };
    size_t word = *ret;

    if (query_word(call, name, words, &word, err) < 0)
        return -1;
    *ret = word == 1;
    return 0;
}

int query_parse_size(const char *text, uint64_t max, uint64_t *ret)
{
    uint64_t n = 0;

    if (!*text)
        return -1;
    for (; *text; text++) {
        if (*text < '0' || *text > '9' || n > (max - (uint64_t)(*text - '0')) / 10)
            return -1;
        n = n * 10 + (uint64_t)(*text - '0');
    }
    *ret = n;
    return 0;
}

int query_size(const struct fw_http_call *call, const char *name, uint64_t min, uint64_t max,
               uint64_t *ret, struct fw_err *err)
{
    const char *value = query_find(call, name);
    uint64_t n;

    if (!value)
        return 0;
    if (query_parse_size(value, max, &n) < 0 || n < min)
        return fw_fail_param(err, FW_EINVAL, "bad_value", name,
                             "%s must be an integer in [%llu, %llu]", name,
                             (unsigned long long)min, (unsigned long long)max);
    *ret = n;
    return 0;
}
