/* tokenizer.c - text to token ids and back: the table of kinds, and the two simple ones.
 *
 * Every kind knows the bytes of each id, so decoding is the same for all: id i has the bytes
 * [at[i], at[i + 1]) of `text`. `sorted` holds the ids that have bytes, in byte order, for
 * encoders that look pieces up. Immutable once open. */
#include "config.h"

#include "fastweight/tokenizer.h"

#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "settings.h"

#define BAD(err, ...) fw_fail(err, FW_EINVAL, "bad_tokenizer", __VA_ARGS__)

enum { CONFIG_MAX = 1 << 20 };

struct kind {
    const char *name;
    int (*load)(struct fw_tokenizer *t, const char *dir, struct fw_err *err);
    int (*encode)(const struct fw_tokenizer *t, const unsigned char *text, size_t len,
                  struct fw_buf *out, struct fw_err *err);
};

struct fw_tokenizer {
    const struct kind *kind;
    uint32_t vocab;
    size_t *at;         /* (vocab + 1,) */
    struct fw_buf text; /* the bytes of all ids, one behind the other */
    uint32_t *sorted;   /* (sorted_count,) */
    size_t sorted_count;
};

static int no_memory(struct fw_err *err)
{
    return fw_fail(err, FW_ENOMEM, "out_of_memory", "no memory for a tokenizer");
}

const unsigned char *fw_tokenizer_bytes(const struct fw_tokenizer *t, uint32_t id,
                                        size_t *ret_len)
{
    if (id >= t->vocab) {
        *ret_len = 0;
        return t->text.data;
    }
    *ret_len = t->at[id + 1] - t->at[id];
    return t->text.data + t->at[id];
}

static int not_in_vocabulary(size_t at, struct fw_err *err)
{
    return fw_fail_param(err, FW_EINVAL, "text_not_in_vocabulary", "text",
                         "the text at byte %zu is not in the model's vocabulary", at);
}

/* ---- bytes: id = byte */

static int load_bytes(struct fw_tokenizer *t, const char *dir, struct fw_err *err)
{
    (void)dir;
    for (uint32_t id = 0; id < t->vocab; id++) {
        unsigned char byte = (unsigned char)id;

        if (id < 256 && fw_buf_append(&t->text, &byte, 1, err) < 0)
            return -1;
        t->at[id + 1] = t->text.len;
    }
    return 0;
}

static int encode_bytes(const struct fw_tokenizer *t, const unsigned char *text, size_t len,
                        struct fw_buf *out, struct fw_err *err)
{
    if (fw_buf_reserve(out, len * sizeof(uint32_t), err) < 0)
        return -1;
    for (size_t i = 0; i < len; i++) {
        uint32_t id = text[i];

        if (id >= t->vocab)
            return not_in_vocabulary(i, err);
        if (fw_buf_append(out, &id, sizeof id, err) < 0)
            return -1;
    }
    return 0;
}

/* ---- chars: one id per character of config.json's `vocabulary` */

/* Bytes of the UTF-8 character at p; what is none counts as one byte. */
static size_t char_len(const unsigned char *p, size_t len)
{
    size_t n = p[0] < 0xc0 ? 1 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;

    return n < len ? n : len;
}

static int add_chars(struct fw_tokenizer *t, const unsigned char *p, size_t len,
                     struct fw_err *err)
{
    uint32_t id = 0;
    size_t n;

    for (; len > 0 && id < t->vocab; id++, p += n, len -= n) {
        n = char_len(p, len);
        if (fw_buf_append(&t->text, p, n, err) < 0)
            return -1;
        t->at[id + 1] = t->text.len;
    }
    if (len > 0 || id < t->vocab)
        return BAD(err, "config.json: vocabulary must have %u characters, one per token",
                   (unsigned)t->vocab);
    return 0;
}

static int load_chars(struct fw_tokenizer *t, const char *dir, struct fw_err *err)
{
    const json_t *vocabulary;
    json_t *config = NULL;
    struct fw_buf text;
    int rc;

    fw_buf_init(&text, CONFIG_MAX);
    rc = fw_model_file(&text, dir, "config.json", err);
    if (rc == 0) {
        config = json_loadb((const char *)text.data, text.len, JSON_REJECT_DUPLICATES, NULL);
        vocabulary = json_object_get(config, "vocabulary");
        rc = json_is_string(vocabulary)
                 ? add_chars(t, (const unsigned char *)json_string_value(vocabulary),
                             json_string_length(vocabulary), err)
                 : BAD(err, "config.json: vocabulary must be a string, a character per token");
    }
    json_decref(config);
    fw_buf_done(&text);
    return rc;
}

static int compare(const unsigned char *a, size_t a_len, const unsigned char *b, size_t b_len)
{
    int c = memcmp(a, b, a_len < b_len ? a_len : b_len);

    return c ? c : (a_len > b_len) - (a_len < b_len);
}

/* The id with these bytes; -1 when there is none. */
static int find_piece(const struct fw_tokenizer *t, const unsigned char *piece, size_t len,
                      uint32_t *ret)
{
    size_t low = 0, high = t->sorted_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2, n;
        const unsigned char *p = fw_tokenizer_bytes(t, t->sorted[middle], &n);
        int c = compare(p, n, piece, len);

        if (c == 0) {
            *ret = t->sorted[middle];
            return 0;
        }
        if (c < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return -1;
}

static int encode_chars(const struct fw_tokenizer *t, const unsigned char *text, size_t len,
                        struct fw_buf *out, struct fw_err *err)
{
    size_t n;
    uint32_t id;

    for (size_t i = 0; i < len; i += n) {
        n = char_len(text + i, len - i);
        if (find_piece(t, text + i, n, &id) < 0)
            return not_in_vocabulary(i, err);
        if (fw_buf_append(out, &id, sizeof id, err) < 0)
            return -1;
    }
    return 0;
}

/* ---- */

static const struct kind kinds[] = {
    { "bytes", load_bytes, encode_bytes },
    { "chars", load_chars, encode_chars },
};

static int compare_ids(const void *a, const void *b, void *arg)
{
    size_t a_len, b_len;
    const unsigned char *x = fw_tokenizer_bytes(arg, *(const uint32_t *)a, &a_len);
    const unsigned char *y = fw_tokenizer_bytes(arg, *(const uint32_t *)b, &b_len);

    return compare(x, a_len, y, b_len);
}

/* Two ids with the same bytes would make a text two streams. */
static int sort_pieces(struct fw_tokenizer *t, struct fw_err *err)
{
    t->sorted = malloc(t->vocab * sizeof *t->sorted);
    if (!t->sorted)
        return no_memory(err);
    for (uint32_t id = 0; id < t->vocab; id++)
        if (t->at[id + 1] > t->at[id])
            t->sorted[t->sorted_count++] = id;
    qsort_r(t->sorted, t->sorted_count, sizeof *t->sorted, compare_ids, t);
    for (size_t i = 1; i < t->sorted_count; i++)
        if (compare_ids(&t->sorted[i - 1], &t->sorted[i], t) == 0)
            return BAD(err, "tokens %u and %u have the same bytes", (unsigned)t->sorted[i - 1],
                       (unsigned)t->sorted[i]);
    return 0;
}

int fw_tokenizer_open(struct fw_tokenizer **ret, const char *dir, const char *kind,
                      uint32_t vocab, struct fw_err *err)
{
    struct fw_tokenizer *t = calloc(1, sizeof *t);

    if (!t)
        return no_memory(err);
    fw_buf_init(&t->text, (size_t)64 << 20);
    t->vocab = vocab;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(kinds[i].name, kind) == 0)
            t->kind = &kinds[i];
    t->at = calloc((size_t)vocab + 1, sizeof *t->at);
    if (!t->at)
        no_memory(err);
    else if (!t->kind)
        BAD(err, "config.json: there is no tokenizer '%.31s'", kind);
    else if (t->kind->load(t, dir, err) == 0 && sort_pieces(t, err) == 0) {
        *ret = t;
        return 0;
    }
    fw_tokenizer_close(t);
    return -1;
}

void fw_tokenizer_close(struct fw_tokenizer *t)
{
    if (!t)
        return;
    fw_buf_done(&t->text);
    free(t->sorted);
    free(t->at);
    free(t);
}

int fw_tokenizer_encode(const struct fw_tokenizer *t, const void *text, size_t len,
                        struct fw_buf *out, struct fw_err *err)
{
    return t->kind->encode(t, text, len, out, err);
}
