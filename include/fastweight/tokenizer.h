/* fastweight/tokenizer.h - text to token ids and back.
 *
 * Kinds: "bytes" (id = byte), "chars" (one id per character of config.json's `vocabulary`),
 * "rwkv_world" (greedy longest match over rwkv_vocab.txt), "bpe" (byte-level BPE from
 * tokenizer.json, PCRE2). Decoding is the concatenation of the tokens' bytes. Immutable; any
 * thread. */
#ifndef FW_TOKENIZER_H
#define FW_TOKENIZER_H

#include <stddef.h>
#include <stdint.h>

#include "fastweight/buf.h"
#include "fastweight/err.h"

struct fw_tokenizer;
/* kind: as config.json's "tokenizer"; files are looked for in dir. FW_EINVAL "bad_tokenizer".
 */
int fw_tokenizer_open(struct fw_tokenizer **ret, const char *dir, const char *kind,
                      uint32_t vocab, struct fw_err *err);
void fw_tokenizer_close(struct fw_tokenizer *t); /* NULL is allowed */
/* Appends uint32_t ids to out. FW_EINVAL "text_not_in_vocabulary" names the byte offset. */
int fw_tokenizer_encode(const struct fw_tokenizer *t, const void *text, size_t len,
                        struct fw_buf *out, struct fw_err *err);
/* Lends the bytes of one token; ids without text (special, unused) give length 0. */
const unsigned char *fw_tokenizer_bytes(const struct fw_tokenizer *t, uint32_t id,
                                        size_t *ret_len);

#endif
