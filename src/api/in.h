/* in.h - reading JSON objects strictly: known fields only, each of its type. Any thread. */
#ifndef API_IN_H
#define API_IN_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "fastweight/buf.h"
#include "fastweight/params.h"

enum { IN_MAX_VALUES = 4 << 20 }; /* numbers, strings, ... in one body: bounds the tree */

/* A body that is a JSON object; the caller ends it with json_decref. FW_ESYNTAX, FW_EINVAL,
 * FW_ETOOBIG. Whitespace alone gives an empty object when `optional`. */
int in_parse(const void *data, size_t len, bool optional, json_t **ret, struct fw_err *err);

/* FW_EINVAL naming the first field that is not in the NULL-terminated list. */
int in_only(const json_t *object, const char *const *known, struct fw_err *err);

/* Each leaves *ret as it is when the field is absent; FW_EINVAL naming the field. */
int in_string(const json_t *object, const char *key, const char **ret, struct fw_err *err);
int in_bool(const json_t *object, const char *key, bool *ret, struct fw_err *err);
int in_size(const json_t *object, const char *key, uint64_t min, uint64_t max, uint64_t *ret,
            struct fw_err *err);
int in_number(const json_t *object, const char *key, double min, double max, double *ret,
              struct fw_err *err);
/* An object of numbers, strings and bools. */
int in_params(const json_t *object, const char *key, struct fw_params *ret, struct fw_err *err);

/* Copies an id or name into ret[129] after checking its grammar; FW_EINVAL "bad_id". */
int in_id(const char *text, size_t len, const char *param, char *ret, struct fw_err *err);
/* The field as an id; *ret stays when it is absent. */
int in_id_field(const json_t *object, const char *key, char *ret, struct fw_err *err);

#endif
