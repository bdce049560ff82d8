/* tokenizer.c - the kinds of tokenizers, and what they share: all but bpe take the longest
 * token at each place of the text. Immutable once open; any thread. */
#include "config.h"

#include "tokens.h"

#include <stdlib.h>
#include <string.h>

#include "settings.h"

static const struct {
    const char *name;
    int (*open)(struct fw_tokenizer *t, const char *dir, struct fw_err *err);
} kinds[] = {
    { "bytes", tokens_open_bytes },
    { "chars", tokens_open_chars },
    { "rwkv_world", tokens_open_world },
    { "bpe", tokens_open_bpe },
};

int tokens_read(struct fw_buf *out, const char *dir, const char *name, struct fw_err *err)
{
    struct fw_err why;

    fw_buf_init(out, TOKENS_MAX_FILE);
    if (fw_model_file(out, dir, name, &why) == 0)
        return 0;
    return BAD_TOKENS(err, "%s", why.msg);
}

int tokens_unknown(struct fw_err *err, const unsigned char *text, size_t at)
{
    return fw_fail_param(err, FW_EINVAL, "text_not_in_vocabulary", "text",
                         "the text at byte %zu (0x%02x) is not in the model's vocabulary", at,
                         text[at]);
}

/* Each word is the text of its id. */
static int give_texts(struct fw_tokenizer *t, struct fw_err *err)
{
    for (size_t i = 0; i < t->words.count; i++) {
        const struct lexeme *w = &t->words.word[i];

        if (w->id >= t->vocab)
            return BAD_TOKENS(err, "token %u, but the model has %u", (unsigned)w->id,
                              (unsigned)t->vocab);
        if (t->text[w->id].bytes)
            return BAD_TOKENS(err, "token %u is there twice", (unsigned)w->id);
        t->text[w->id] = (struct token_text){ t->words.bytes.data + w->at, w->len };
    }
    return 0;
}

int tokens_open_bytes(struct fw_tokenizer *t, const char *dir, struct fw_err *err)
{
    (void)dir;
    for (unsigned b = 0; b < 256 && b < t->vocab; b++) {
        const unsigned char c = (unsigned char)b;

        if (lexicon_add(&t->words, b, &c, 1, err) < 0)
            return -1;
    }
    return lexicon_sort(&t->words, err);
}

static int open_kind(struct fw_tokenizer *t, const char *dir, const char *kind,
                     struct fw_err *err)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(kinds[i].name, kind) == 0)
            return kinds[i].open(t, dir, err);
    return BAD_TOKENS(err, "the tokenizer \"%.32s\" is none of bytes, chars, rwkv_world, bpe",
                      kind);
}

int fw_tokenizer_open(struct fw_tokenizer **ret, const char *dir, const char *kind,
                      uint32_t vocab, struct fw_err *err)
{
    struct fw_tokenizer *t;

    if (vocab == 0 || vocab > LEXICON_MAX_WORDS)
        return BAD_TOKENS(err, "a vocabulary has 1 to %zu tokens", LEXICON_MAX_WORDS);
    t = calloc(1, sizeof *t);
    if (t)
        t->text = calloc(vocab, sizeof *t->text);
    if (!t || !t->text) {
        free(t);
        return fw_fail(err, FW_ENOMEM, "out_of_memory", "no memory for a tokenizer");
    }
    t->vocab = vocab;
    lexicon_init(&t->words);
    if (open_kind(t, dir, kind, err) < 0 || give_texts(t, err) < 0 ||
        (t->bpe && bpe_give_texts(t, err) < 0)) {
        fw_tokenizer_close(t);
        return -1;
    }
    *ret = t;
    return 0;
}

void fw_tokenizer_close(struct fw_tokenizer *t)
{
    if (!t)
        return;
    bpe_free(t->bpe);
    lexicon_done(&t->words);
    free(t->text);
    free(t);
}

static int encode_greedy(const struct fw_tokenizer *t, const unsigned char *p, size_t len,
                         struct fw_buf *out, struct fw_err *err)
{
    uint32_t id = 0;

    for (size_t at = 0, n; at < len; at += n) {
        n = lexicon_longest(&t->words, p + at, len - at, &id);
        if (n == 0)
            return tokens_unknown(err, p, at);
        if (fw_buf_append(out, &id, sizeof id, err) < 0)
            return -1;
    }
    return 0;
}

int fw_tokenizer_encode(const struct fw_tokenizer *t, const void *text, size_t len,
                        struct fw_buf *out, struct fw_err *err)
{
    const size_t before = out->len;
    int rc;

    if (len > TOKENS_MAX_TEXT)
        return fw_fail(err, FW_ETOOBIG, "text_too_long", "a text has at most %zu bytes",
                       TOKENS_MAX_TEXT);
    rc = t->bpe ? bpe_encode(t, text, len, out, err) : encode_greedy(t, text, len, out, err);
    if (rc < 0)
        out->len = before;
    return rc;
}

const unsigned char *fw_tokenizer_bytes(const struct fw_tokenizer *t, uint32_t id,
                                        size_t *ret_len)
{
    static const unsigned char nothing[1];
    const struct token_text none = { nothing, 0 };
    const struct token_text *text = id < t->vocab && t->text[id].bytes ? &t->text[id] : &none;

    *ret_len = text->len;
    return text->bytes;
}
