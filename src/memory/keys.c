/* keys.c - reading a configuration: each key that is read is noted, with the value in force, in
 * the resolved configuration; a key that nothing read is refused. A key left at its default
 * that older configurations did not have is not noted, so their hashes stay. */
#include "config.h"

#include "inside.h"

#include <stdio.h>
#include <string.h>

static int note_known(struct fw_config *c, const char *key, struct fw_err *err)
{
    if (c->known_count >= FW_MAX_PARAMS)
        return fw_fail(err, FW_EINTERNAL, "too_many_keys", "a rule reads too many keys");
    snprintf(c->known[c->known_count++], sizeof c->known[0], "%s", key);
    return 0;
}

int fw_config_number(struct fw_config *c, const char *key, double min, double max, double *ret,
                     struct fw_err *err)
{
    if (note_known(c, key, err) < 0 ||
        fw_params_get_number(c->given, key, min, max, ret, err) < 0)
        return -1;
    return fw_params_set_number(&c->resolved, key, *ret, err);
}

int fw_config_size(struct fw_config *c, const char *key, size_t min, size_t max, size_t *ret,
                   struct fw_err *err)
{
    if (note_known(c, key, err) < 0 ||
        fw_params_get_size(c->given, key, min, max, ret, err) < 0)
        return -1;
    return fw_params_set_number(&c->resolved, key, (double)*ret, err);
}

int fw_config_bool(struct fw_config *c, const char *key, bool *ret, struct fw_err *err)
{
    const struct fw_param *p = fw_params_find(c->given, key);
    char param[48];

    if (note_known(c, key, err) < 0)
        return -1;
    if (p && p->type != FW_PARAM_BOOL) {
        snprintf(param, sizeof param, "config.%s", key);
        return fw_fail_param(err, FW_EINVAL, "bad_type", param, "%s must be true or false",
                             param);
    }
    *ret = p ? p->number != 0 : *ret;
    return fw_params_set_bool(&c->resolved, key, *ret, err);
}

static int no_such_word(const char *key, const char *const *words, struct fw_err *err)
{
    char param[48], list[192];
    size_t len = 0;

    for (size_t i = 0; words[i] && len < sizeof list; i++)
        len += (size_t)snprintf(list + len, sizeof list - len, "%s%s", i ? ", " : "", words[i]);
    snprintf(param, sizeof param, "config.%s", key);
    return fw_fail_param(err, FW_EINVAL, "bad_value", param, "%s must be one of %s", param,
                         list);
}

int fw_config_word(struct fw_config *c, const char *key, const char *const *words, size_t *ret,
                   struct fw_err *err)
{
    const char *word = words[*ret];
    size_t i = 0;

    if (note_known(c, key, err) < 0 || fw_params_get_string(c->given, key, &word, err) < 0)
        return -1;
    while (words[i] && strcmp(words[i], word) != 0)
        i++;
    if (!words[i])
        return no_such_word(key, words, err);
    *ret = i;
    return fw_params_set_string(&c->resolved, key, word, err);
}

int fw_config_only(const struct fw_config *c, struct fw_err *err)
{
    const char *known[FW_MAX_PARAMS + 1] = { NULL };

    for (size_t i = 0; i < c->known_count; i++)
        known[i] = c->known[i];
    return fw_params_only(c->given, known, err);
}

void fw_config_forget(struct fw_config *c, const char *key)
{
    struct fw_params *p = &c->resolved;

    for (size_t i = 0; i < p->count; i++)
        if (strcmp(p->item[i].key, key) == 0) {
            memmove(&p->item[i], &p->item[i + 1], (p->count - i - 1) * sizeof p->item[0]);
            memset(&p->item[--p->count], 0, sizeof p->item[0]);
            return;
        }
}
