/* fastweight/params.h - a small ordered set of typed named values: a session's configuration.
 *
 * It carries `config` from the API to a learner and from there to the store without JSON below
 * the api room. Values, no heap; copy by assignment. Any thread. */
#ifndef FW_PARAMS_H
#define FW_PARAMS_H

#include <stddef.h>

#include "fastweight/err.h"

#define FW_MAX_PARAMS  32
#define FW_PARAMS_TEXT 4096 /* bytes that hold any canonical text */

enum fw_param_type { FW_PARAM_NUMBER, FW_PARAM_STRING, FW_PARAM_BOOL };

struct fw_param {
    char key[32];
    enum fw_param_type type;
    double number; /* also 0/1 for a bool */
    char string[64];
};

struct fw_params {
    size_t count;
    struct fw_param item[FW_MAX_PARAMS]; /* sorted by key */
};

/* Set adds or replaces. They fail with FW_EINVAL when the set is full or a string too long. */
int fw_params_set_number(struct fw_params *p, const char *key, double v, struct fw_err *err);
int fw_params_set_string(struct fw_params *p, const char *key, const char *v,
                         struct fw_err *err);
int fw_params_set_bool(struct fw_params *p, const char *key, int v, struct fw_err *err);

/* Lends the item, or NULL. */
const struct fw_param *fw_params_find(const struct fw_params *p, const char *key);

/* Typed reads: *ret keeps its value (the default) when the key is absent; FW_EINVAL naming
 * "config.KEY" on a wrong type, a non-integer, or outside [min, max]. */
int fw_params_get_number(const struct fw_params *p, const char *key, double min, double max,
                         double *ret, struct fw_err *err);
int fw_params_get_size(const struct fw_params *p, const char *key, size_t min, size_t max,
                       size_t *ret, struct fw_err *err);
int fw_params_get_string(const struct fw_params *p, const char *key, const char **ret,
                         struct fw_err *err);
/* FW_EINVAL naming the first key of p that is not in the NULL-terminated list. */
int fw_params_only(const struct fw_params *p, const char *const *known, struct fw_err *err);

/* Canonical text, one `key=n:1.5`, `key=s:text` or `key=b:1` line each, sorted, numbers as
 * %.17g; the store keeps it and config_hash is taken over it. parse is its inverse. */
int fw_params_print(const struct fw_params *p, char *text, size_t size, struct fw_err *err);
int fw_params_parse(struct fw_params *ret, const char *text, struct fw_err *err);

#endif
