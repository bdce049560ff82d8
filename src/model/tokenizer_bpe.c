/* tokenizer_bpe.c - byte-level BPE: added tokens first, then words, then merges of each word.
 *
 * Every byte is a symbol, so any bytes have tokens and come back, valid UTF-8 or not (a
 * vocabulary that lacks a byte refuses the text). Special tokens are found in the text like
 * any other added token; they have no text of their own when they are decoded. */
#include "config.h"

#include "bpe.h"

#include <stdlib.h>

struct encoding {
    const struct fw_tokenizer *t;
    struct merges_work *work;
    struct fw_buf *out;
};

void bpe_free(struct bpe *b)
{
    if (!b)
        return;
    lexicon_done(&b->added);
    lexicon_done(&b->with_text);
    merges_done(&b->merges);
    splitter_done(&b->splitter);
    free(b->special);
    free(b);
}

int tokens_open_bpe(struct fw_tokenizer *t, const char *dir, struct fw_err *err)
{
    struct fw_buf file;
    int rc = tokens_read(&file, dir, "tokenizer.json", err);

    if (rc == 0) {
        t->bpe = calloc(1, sizeof *t->bpe);
        if (t->bpe) {
            lexicon_init(&t->bpe->added);
            lexicon_init(&t->bpe->with_text);
            rc = bpe_read(t, t->bpe, (const char *)file.data, file.len, err);
        } else {
            rc = fw_fail(err, FW_ENOMEM, "out_of_memory", "no memory for a tokenizer");
        }
    }
    fw_buf_done(&file);
    return rc;
}

int bpe_give_texts(struct fw_tokenizer *t, struct fw_err *err)
{
    const struct lexicon *own = &t->bpe->with_text;

    for (size_t i = 0; i < own->count; i++) {
        struct token_text *text = &t->text[own->word[i].id];

        if (text->bytes)
            return BAD_TOKENS(err, "token %u is there twice", (unsigned)own->word[i].id);
        *text = (struct token_text){ own->bytes.data + own->word[i].at, own->word[i].len };
    }
    for (size_t i = 0; i < t->bpe->special_count; i++)
        t->text[t->bpe->special[i]] = (struct token_text){ NULL, 0 };
    return 0;
}

static int encode_word(void *ctx, const unsigned char *p, size_t len, struct fw_err *err)
{
    const struct encoding *e = ctx;
    const struct bpe *b = e->t->bpe;
    uint32_t id;

    if (b->ignore_merges && lexicon_find(&e->t->words, p, len, &id))
        return fw_buf_append(e->out, &id, sizeof id, err);
    return merges_encode(&b->merges, e->work, b->byte_id, p, len, e->out, err);
}

/* Up to the next added token, or the end; its length and id. */
static size_t next_added(const struct bpe *b, const unsigned char *p, size_t len,
                         size_t *ret_len, uint32_t *ret_id)
{
    size_t at = 0;

    *ret_len = 0;
    for (; at < len; at++) {
        *ret_len = lexicon_longest(&b->added, p + at, len - at, ret_id);
        if (*ret_len > 0)
            break;
    }
    return at;
}

static int encode_plain(struct encoding *e, const unsigned char *text, size_t from, size_t to,
                        struct fw_err *err)
{
    const struct bpe *b = e->t->bpe;

    for (size_t i = from; i < to; i++)
        if (b->byte_id[text[i]] == BPE_NO_BYTE)
            return tokens_unknown(err, text, i);
    return splitter_run(&b->splitter, text + from, to - from, encode_word, e, err);
}

int bpe_encode(const struct fw_tokenizer *t, const unsigned char *text, size_t len,
               struct fw_buf *out, struct fw_err *err)
{
    struct encoding e = { t, merges_work_new(err), out };
    int rc = e.work ? 0 : -1;
    uint32_t id = 0;

    for (size_t at = 0, n; rc == 0 && at < len; at += n) {
        const size_t plain = next_added(t->bpe, text + at, len - at, &n, &id);

        rc = encode_plain(&e, text, at, at + plain, err);
        if (rc == 0 && n > 0)
            rc = fw_buf_append(out, &id, sizeof id, err);
        n += plain;
    }
    merges_work_free(e.work);
    return rc;
}
