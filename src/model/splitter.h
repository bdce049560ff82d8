/* splitter.h - cutting a text into words, by patterns one after the other. */
#ifndef SPLITTER_H
#define SPLITTER_H

#include <stdbool.h>
#include <stddef.h>

#include "fastweight/err.h"

#define SPLITTER_MAX_STEPS 8

/* What Hugging Face's ByteLevel cuts by: GPT-2's pattern. */
extern const char splitter_gpt2[];

struct splitter {
    struct pcre2_real_code_8 *step[SPLITTER_MAX_STEPS]; /* owned */
    size_t steps;
    struct pcre2_real_match_context_8 *limits; /* owned */
    bool prefix; /* a space before each piece that has none, ahead of the last step */
    bool last;   /* the last step cuts; else it only puts the space */
};

/* Each word in order; a failure ends it. */
typedef int splitter_word(void *ctx, const unsigned char *p, size_t len, struct fw_err *err);

/* s: zeros at first. A pattern that cannot be compiled is FW_EINVAL "bad_tokenizer". */
int splitter_add(struct splitter *s, const char *pattern, size_t len, bool literal,
                 struct fw_err *err);
void splitter_done(struct splitter *s);
/* text: any bytes. What is no UTF-8 lies in words of its own, and so does what no pattern
 * matches: the words are the text. FW_EINVAL "text_too_hard", FW_ENOMEM. */
int splitter_run(const struct splitter *s, const unsigned char *text, size_t len,
                 splitter_word *word, void *ctx, struct fw_err *err);

#endif
