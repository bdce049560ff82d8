/* in.c - reading JSON objects strictly.
 *
 * A misspelt field is an error, never ignored; so is a duplicate. The parser makes a node of
 * about 32 bytes for each value, so values are counted first: a body of 16 MiB of "1," would
 * become 300 MB of tree. More numbers than that travel as safetensors, octets or text. */
#include "config.h"

#include "in.h"

#include <string.h>

#include "fastweight/engine.h"

/* Commas and opening brackets outside strings: an upper bound of the values, within a few. */
static size_t count_values(const unsigned char *p, size_t len)
{
    size_t i, count = 0;
    bool quoted = false;

    for (i = 0; i < len; i++) {
        if (quoted) {
            if (p[i] == '\\')
                i++;
            else if (p[i] == '"')
                quoted = false;
        } else if (p[i] == '"') {
            quoted = true;
        } else {
            count += p[i] == ',' || p[i] == '[' || p[i] == '{' || p[i] == ':';
        }
    }
    return count;
}

static int parse_failed(const json_error_t *e, struct fw_err *err)
{
    enum fw_code code = FW_ESYNTAX;
    const char *reason = "bad_json";

    if (json_error_code(e) == json_error_out_of_memory) {
        code = FW_ENOMEM;
        reason = "out_of_memory";
    } else if (json_error_code(e) == json_error_numeric_overflow) {
        code = FW_EINVAL;
        reason = "number_out_of_range";
    }
    return fw_fail_param(err, code, reason, "body", "line %d, column %d: %s", e->line,
                         e->column, e->text);
}

static bool is_blank(const unsigned char *p, size_t len)
{
    size_t i;

    for (i = 0; i < len; i++) {
        if (p[i] != ' ' && p[i] != '\t' && p[i] != '\r' && p[i] != '\n')
            return false;
    }
    return true;
}

int in_parse(const void *data, size_t len, bool optional, json_t **ret, struct fw_err *err)
{
    json_error_t e;
    json_t *root;

    if (is_blank(data, len)) {
        if (!optional)
            return fw_fail_param(err, FW_EINVAL, "empty_body", "body", "the body is empty");
        *ret = json_object();
        return *ret ? 0 : fw_fail(err, FW_ENOMEM, "out_of_memory", "no memory for JSON");
    }
    if (count_values(data, len) > IN_MAX_VALUES)
        return fw_fail_param(err, FW_ETOOBIG, "too_many_values", "body",
                             "a JSON body holds at most %d values; send more as "
                             "application/vnd.safetensors",
                             (int)IN_MAX_VALUES);
    root = json_loadb(data, len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &e);
    if (!root)
        return parse_failed(&e, err);
    if (!json_is_object(root)) {
        json_decref(root);
        return fw_fail_param(err, FW_EINVAL, "not_an_object", "body",
                             "the body must be a JSON object");
    }
    *ret = root;
    return 0;
}

int in_only(const json_t *object, const char *const *known, struct fw_err *err)
{
    const char *const *k;
    const char *key;
    void *iter;

    /* jansson's iterator takes a mutable object but does not change it */
    for (iter = json_object_iter((json_t *)(uintptr_t)object); iter;
         iter = json_object_iter_next((json_t *)(uintptr_t)object, iter)) {
        key = json_object_iter_key(iter);
        for (k = known; *k && strcmp(*k, key) != 0; k++)
            ;
        if (!*k)
            return fw_fail_param(err, FW_EINVAL, "unknown_field", key,
                                 "'%.60s' is not a field of this request", key);
    }
    return 0;
}

static int wrong(struct fw_err *err, const char *key, const char *what)
{
    return fw_fail_param(err, FW_EINVAL, "bad_value", key, "%s must be %s", key, what);
}

int in_string(const json_t *object, const char *key, const char **ret, struct fw_err *err)
{
    const json_t *v = json_object_get(object, key);

    if (!v)
        return 0;
    if (!json_is_string(v) || strlen(json_string_value(v)) != json_string_length(v))
        return wrong(err, key, "a string without NUL");
    *ret = json_string_value(v);
    return 0;
}

int in_bool(const json_t *object, const char *key, bool *ret, struct fw_err *err)
{
    const json_t *v = json_object_get(object, key);

    if (!v)
        return 0;
    if (!json_is_boolean(v))
        return wrong(err, key, "true or false");
    *ret = json_is_true(v);
    return 0;
}

int in_size(const json_t *object, const char *key, uint64_t min, uint64_t max, uint64_t *ret,
            struct fw_err *err)
{
    const json_t *v = json_object_get(object, key);
    json_int_t n = json_integer_value(v);

    if (!v)
        return 0;
    if (!json_is_integer(v) || n < 0 || (uint64_t)n < min || (uint64_t)n > max)
        return fw_fail_param(err, FW_EINVAL, "bad_value", key,
                             "%s must be an integer in [%llu, %llu]", key,
                             (unsigned long long)min, (unsigned long long)max);
    *ret = (uint64_t)n;
    return 0;
}

int in_number(const json_t *object, const char *key, double min, double max, double *ret,
              struct fw_err *err)
{
    const json_t *v = json_object_get(object, key);
    double x = json_number_value(v);

    if (!v)
        return 0;
    if (!json_is_number(v) || !(x >= min && x <= max))
        return fw_fail_param(err, FW_EINVAL, "bad_value", key,
                             "%s must be a number in [%.9g, %.9g]", key, min, max);
    *ret = x;
    return 0;
}

static int set_param(struct fw_params *p, const char *key, const json_t *v, struct fw_err *err)
{
    if (json_is_boolean(v))
        return fw_params_set_bool(p, key, json_is_true(v), err);
    if (json_is_number(v))
        return fw_params_set_number(p, key, json_number_value(v), err);
    if (json_is_string(v) && strlen(json_string_value(v)) == json_string_length(v))
        return fw_params_set_string(p, key, json_string_value(v), err);
    return fw_fail_param(err, FW_EINVAL, "bad_value", "config",
                         "config.%.32s must be a number, a string, true or false", key);
}

int in_params(const json_t *object, const char *key, struct fw_params *ret, struct fw_err *err)
{
    json_t *v = json_object_get(object, key);
    void *iter;

    if (!v)
        return 0;
    if (!json_is_object(v))
        return wrong(err, key, "an object");
    for (iter = json_object_iter(v); iter; iter = json_object_iter_next(v, iter)) {
        if (set_param(ret, json_object_iter_key(iter), json_object_iter_value(iter), err) < 0)
            return -1;
    }
    return 0;
}

static bool is_alnum(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

int in_id(const char *text, size_t len, const char *param, char *ret, struct fw_err *err)
{
    bool good = len > 0 && len < FW_ID_MAX && is_alnum(text[0]);
    size_t i;

    for (i = 1; good && i < len; i++)
        good = is_alnum(text[i]) || text[i] == '.' || text[i] == '_' || text[i] == '-';
    if (!good)
        return fw_fail_param(err, FW_EINVAL, "bad_id", param,
                             "%s must be a letter or digit, then up to 127 letters, digits, "
                             "'.', '_' or '-'",
                             param);
    memcpy(ret, text, len);
    ret[len] = 0;
    return 0;
}

int in_id_field(const json_t *object, const char *key, char *ret, struct fw_err *err)
{
    const json_t *v = json_object_get(object, key);

    if (!v)
        return 0;
    if (!json_is_string(v))
        return wrong(err, key, "a string");
    return in_id(json_string_value(v), json_string_length(v), key, ret, err);
}
