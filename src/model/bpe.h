/* bpe.h - the parts of a byte-level BPE, as tokenizer.json says them. */
#ifndef BPE_H
#define BPE_H

#include "lexicon.h"
#include "merges.h"
#include "splitter.h"
#include "tokens.h"

struct bpe {
    struct lexicon added;     /* matched in the text before all else */
    struct lexicon with_text; /* those of them that are not special, nor in the vocabulary */
    uint32_t *special;        /* owned; (special_count,): ids that decode to nothing */
    size_t special_count;
    struct merges merges;
    struct splitter splitter;
    uint32_t byte_id[256]; /* BPE_NO_BYTE: the vocabulary lacks it */
    bool ignore_merges;    /* a word that is a token is that token */
};
#define BPE_NO_BYTE UINT32_MAX

/* From the text of a whole tokenizer.json into t->words and b, which is all zeros but for
 * lexicons that were initialised. FW_EINVAL "bad_tokenizer", FW_ENOMEM. */
int bpe_read(struct fw_tokenizer *t, struct bpe *b, const char *json, size_t len,
             struct fw_err *err);

#endif
