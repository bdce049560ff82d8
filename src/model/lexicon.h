/* lexicon.h - a set of byte strings with ids, sorted: exact and longest matches. */
#ifndef LEXICON_H
#define LEXICON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fastweight/buf.h"

#define LEXICON_MAX_WORDS ((size_t)1 << 20)
#define LEXICON_MAX_WORD  4096 /* bytes */

struct lexeme {
    size_t at; /* in bytes */
    uint32_t len, id;
};

struct lexicon {
    struct fw_buf bytes;
    struct lexeme *word; /* owned; (count,), in the order of bytes after lexicon_sort */
    size_t count, cap;
    size_t first[257]; /* words that begin with byte b: first[b] up to first[b + 1] */
};

void lexicon_init(struct lexicon *l);
void lexicon_done(struct lexicon *l);
/* len 1 to LEXICON_MAX_WORD. FW_EINVAL "bad_tokenizer", FW_ENOMEM. */
int lexicon_add(struct lexicon *l, uint32_t id, const void *bytes, size_t len,
                struct fw_err *err);
/* Once, after the last word; what is there twice is FW_EINVAL "bad_tokenizer". */
int lexicon_sort(struct lexicon *l, struct fw_err *err);
/* The length of the longest word that p begins with; 0: none. */
size_t lexicon_longest(const struct lexicon *l, const unsigned char *p, size_t len,
                       uint32_t *ret_id);
bool lexicon_find(const struct lexicon *l, const unsigned char *p, size_t len,
                  uint32_t *ret_id);

#endif
