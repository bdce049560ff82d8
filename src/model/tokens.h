/* tokens.h - what the kinds of tokenizers share.
 *
 * To add a kind: a file with its open, a row in the table of tokenizer.c, tests. */
#ifndef TOKENS_H
#define TOKENS_H

#include "fastweight/tokenizer.h"
#include "lexicon.h"

#define TOKENS_MAX_FILE      ((size_t)64 << 20)
#define TOKENS_MAX_TEXT      ((size_t)64 << 20)
#define BAD_TOKENS(err, ...) fw_fail(err, FW_EINVAL, "bad_tokenizer", __VA_ARGS__)

struct token_text {
    const unsigned char *bytes; /* lent by a lexicon; NULL: no text */
    size_t len;
};

struct fw_tokenizer {
    uint32_t vocab;
    struct token_text *text; /* owned; (vocab,) */
    struct lexicon words;    /* what encodes; of bpe: what words are merged into */
    struct bpe *bpe;         /* owned; NULL: greedy, the longest word at each place */
};

/* Each fills t->words (sorted), tokenizer_bpe.c also t->bpe. */
int tokens_open_bytes(struct fw_tokenizer *t, const char *dir, struct fw_err *err);
int tokens_open_chars(struct fw_tokenizer *t, const char *dir, struct fw_err *err);
int tokens_open_world(struct fw_tokenizer *t, const char *dir, struct fw_err *err);
int tokens_open_bpe(struct fw_tokenizer *t, const char *dir, struct fw_err *err);
/* The name of the one rwkv_vocab*.txt of a directory; -1: none or several. */
int tokens_world_name(const char *dir, char ret[128]);

/* A whole file of dir, refused as a tokenizer's. */
int tokens_read(struct fw_buf *out, const char *dir, const char *name, struct fw_err *err);
int tokens_unknown(struct fw_err *err, const unsigned char *text, size_t at);

int bpe_encode(const struct fw_tokenizer *t, const unsigned char *text, size_t len,
               struct fw_buf *out, struct fw_err *err);
/* The added tokens have texts too, except the special ones. */
int bpe_give_texts(struct fw_tokenizer *t, struct fw_err *err);
void bpe_free(struct bpe *b);

#endif
