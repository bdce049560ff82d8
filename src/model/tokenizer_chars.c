/* tokenizer_chars.c - one token for each character of config.json's "vocabulary", in its order.
 */
#include "config.h"

#include "tokens.h"

#include <jansson.h>

#include "fastweight/utf8.h"

static int add_characters(struct fw_tokenizer *t, const unsigned char *p, size_t len,
                          struct fw_err *err)
{
    uint32_t id = 0;

    for (size_t at = 0, n; at < len; at += n) {
        bool valid;

        n = fw_utf8_piece(p + at, len - at, &valid);
        if (!valid)
            return BAD_TOKENS(err, "config.json: vocabulary is not UTF-8");
        if (lexicon_add(&t->words, id++, p + at, n, err) < 0)
            return -1;
    }
    if (id != t->vocab)
        return BAD_TOKENS(err, "config.json: vocabulary must have %u characters, one per token",
                          (unsigned)t->vocab);
    return lexicon_sort(&t->words, err);
}

int tokens_open_chars(struct fw_tokenizer *t, const char *dir, struct fw_err *err)
{
    struct fw_buf file;
    json_t *config = NULL, *v;
    int rc = tokens_read(&file, dir, "config.json", err);

    if (rc == 0) {
        config = json_loadb((const char *)file.data, file.len,
                            JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
        v = json_object_get(config, "vocabulary");
        rc = json_string_length(v) > 0
                 ? add_characters(t, (const unsigned char *)json_string_value(v),
                                  json_string_length(v), err)
                 : BAD_TOKENS(err, "config.json: vocabulary must be a string of the "
                                   "characters that are tokens");
    }
    json_decref(config);
    fw_buf_done(&file);
    return rc;
}
