/* query.h - query parameters, read strictly. In a handler. */
#ifndef API_QUERY_H
#define API_QUERY_H

#include "fastweight/http.h"

/* FW_EINVAL naming the first parameter that is not in the NULL-terminated list, or repeated. */
int query_only(const struct fw_http_call *call, const char *const *known, struct fw_err *err);
/* The value, or NULL when it is absent. */
const char *query_find(const struct fw_http_call *call, const char *name);
/* Each leaves *ret when the parameter is absent. */
int query_bool(const struct fw_http_call *call, const char *name, bool *ret,
               struct fw_err *err);
int query_size(const struct fw_http_call *call, const char *name, uint64_t min, uint64_t max,
               uint64_t *ret, struct fw_err *err);
/* One of the NULL-terminated words; *ret becomes its index. */
int query_word(const struct fw_http_call *call, const char *name, const char *const *words,
               size_t *ret, struct fw_err *err);
int query_parse_size(const char *text, uint64_t max, uint64_t *ret); /* digits only; -1 */

#endif
