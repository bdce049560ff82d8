/* tokenizer_json.c - reading Hugging Face's tokenizer.json, as far as it is byte-level BPE.
 *
 * What would change the tokens and is not built is refused by name: normalizers, byte_fallback,
 * dropout, prefixes and suffixes of words, other pre-tokenizers, added tokens that swallow
 * spaces. Post-processors are passed over: no token is added to a text. The vocabulary's
 * strings are bytes in GPT-2's alphabet: the printable ones of Latin-1 are themselves, the
 * other 68 are U+0100 and on, in order. */
#include "config.h"

#include "bpe.h"

#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "fastweight/utf8.h"

#define BAD(err, ...) BAD_TOKENS(err, "tokenizer.json: " __VA_ARGS__)

static bool printable(unsigned c)
{
    return (c >= 33 && c <= 126) || (c >= 161 && c <= 172) || (c >= 174 && c <= 255);
}

/* The byte that a code point of the alphabet stands for, or -1. */
static int alphabet(uint32_t c)
{
    unsigned other = 256;

    if (c < 256)
        return printable(c) ? (int)c : -1;
    for (unsigned b = 0; b < 256; b++)
        if (!printable(b) && other++ == c)
            return (int)b;
    return -1;
}

/* The bytes of a string of the alphabet; their number, or 0 when it is none. */
static size_t to_bytes(const char *s, size_t len, unsigned char ret[LEXICON_MAX_WORD])
{
    const unsigned char *p = (const unsigned char *)s;
    size_t n = 0;

    for (size_t at = 0, step; at < len; at += step) {
        bool valid;
        int byte;

        step = fw_utf8_piece(p + at, len - at, &valid);
        byte = valid ? alphabet(fw_utf8_get(p + at, step)) : -1;
        if (byte < 0 || n == LEXICON_MAX_WORD)
            return 0;
        ret[n++] = (unsigned char)byte;
    }
    return n;
}

/* ---- added tokens */

static int read_id(const struct fw_tokenizer *t, const json_t *v, uint32_t *ret,
                   struct fw_err *err)
{
    if (!json_is_integer(v) || json_integer_value(v) < 0 || json_integer_value(v) >= t->vocab)
        return BAD(err, "a token's id is no integer below the model's %u", (unsigned)t->vocab);
    *ret = (uint32_t)json_integer_value(v);
    return 0;
}

static int read_added(struct fw_tokenizer *t, struct bpe *b, const json_t *a,
                      const json_t *vocab, struct fw_err *err)
{
    static const char *const flags[] = { "lstrip", "rstrip", "single_word" };
    const json_t *content = json_object_get(a, "content");
    const char *s = json_string_value(content);
    const json_t *known = s ? json_object_get(vocab, s) : NULL;
    unsigned char bytes[LEXICON_MAX_WORD];
    uint32_t id;

    if (!s)
        return BAD(err, "added_tokens must be objects with a content");
    if (read_id(t, json_object_get(a, "id"), &id, err) < 0)
        return -1;
    for (size_t i = 0; i < 3; i++)
        if (json_is_true(json_object_get(a, flags[i])))
            return BAD(err, "%s of added token %u is not supported", flags[i], (unsigned)id);
    if (known && json_integer_value(known) != (json_int_t)id)
        return BAD(err, "added token %u has another id in the vocabulary", (unsigned)id);
    if (lexicon_add(&b->added, id, s, json_string_length(content), err) < 0)
        return -1;
    if (json_is_true(json_object_get(a, "special"))) {
        b->special[b->special_count++] = id;
        return 0;
    }
    if (known && to_bytes(s, json_string_length(content), bytes) > 0)
        return 0; /* the vocabulary gives it its text */
    return lexicon_add(&b->with_text, id, s, json_string_length(content), err);
}

static int read_all_added(struct fw_tokenizer *t, struct bpe *b, const json_t *added,
                          const json_t *vocab, struct fw_err *err)
{
    if (added && !json_is_null(added) && !json_is_array(added))
        return BAD(err, "added_tokens must be an array");
    b->special = calloc(json_array_size(added) + 1, sizeof *b->special);
    if (!b->special)
        return fw_fail(err, FW_ENOMEM, "out_of_memory", "no memory for added tokens");
    for (size_t i = 0; i < json_array_size(added); i++)
        if (read_added(t, b, json_array_get(added, i), vocab, err) < 0)
            return -1;
    return lexicon_sort(&b->added, err) < 0 ? -1 : lexicon_sort(&b->with_text, err);
}

/* ---- the vocabulary and the merges */

static bool is_special(const struct bpe *b, const char *s, uint32_t id)
{
    uint32_t found;

    return lexicon_find(&b->added, (const unsigned char *)s, strlen(s), &found) && found == id;
}

static int read_vocab(struct fw_tokenizer *t, struct bpe *b, json_t *vocab, struct fw_err *err)
{
    unsigned char bytes[LEXICON_MAX_WORD];
    const char *s;
    json_t *v;
    uint32_t id;

    json_object_foreach (vocab, s, v) {
        const size_t len = to_bytes(s, strlen(s), bytes);

        if (read_id(t, v, &id, err) < 0)
            return -1;
        if (len == 0 && !is_special(b, s, id))
            return BAD(err, "token %u is not of 1 to %d bytes in GPT-2's alphabet",
                       (unsigned)id, LEXICON_MAX_WORD);
        if (len > 0 && lexicon_add(&t->words, id, bytes, len, err) < 0)
            return -1;
    }
    if (lexicon_sort(&t->words, err) < 0)
        return -1;
    for (unsigned i = 0; i < 256; i++) {
        const unsigned char byte = (unsigned char)i;

        if (!lexicon_find(&t->words, &byte, 1, &b->byte_id[i]))
            b->byte_id[i] = BPE_NO_BYTE;
    }
    return 0;
}

/* The two halves of a merge: "left right" or ["left", "right"]. */
static int halves(const json_t *m, const char *half[2], size_t len[2])
{
    const char *s = json_string_value(m), *space = s ? strchr(s, ' ') : NULL;

    if (space) {
        half[0] = s;
        len[0] = (size_t)(space - s);
        half[1] = space + 1;
        len[1] = json_string_length(m) - len[0] - 1;
        return 0;
    }
    for (size_t i = 0; i < 2; i++) {
        const json_t *v = json_array_get(m, i);

        half[i] = json_string_value(v);
        len[i] = json_string_length(v);
    }
    return half[0] && half[1] && json_array_size(m) == 2 ? 0 : -1;
}

static int read_merge(struct fw_tokenizer *t, struct bpe *b, const json_t *m, uint32_t rank,
                      struct fw_err *err)
{
    unsigned char bytes[2 * LEXICON_MAX_WORD];
    const char *half[2];
    size_t len[2], n[2];
    uint32_t left, right, both;

    if (halves(m, half, len) < 0)
        return BAD(err, "merge %u is no pair", (unsigned)rank);
    n[0] = to_bytes(half[0], len[0], bytes);
    n[1] = to_bytes(half[1], len[1], bytes + n[0]);
    if (n[0] == 0 || n[1] == 0 || !lexicon_find(&t->words, bytes, n[0], &left) ||
        !lexicon_find(&t->words, bytes + n[0], n[1], &right) ||
        !lexicon_find(&t->words, bytes, n[0] + n[1], &both))
        return BAD(err, "merge %u is of tokens that the vocabulary lacks", (unsigned)rank);
    merges_add(&b->merges, left, right, rank, both);
    return 0;
}

static int read_merges(struct fw_tokenizer *t, struct bpe *b, const json_t *merges,
                       struct fw_err *err)
{
    const size_t count = json_array_size(merges);

    if (!json_is_array(merges) || count > LEXICON_MAX_WORDS)
        return BAD(err, "model.merges must be an array of up to %zu merges", LEXICON_MAX_WORDS);
    if (merges_init(&b->merges, count, err) < 0)
        return -1;
    for (size_t i = 0; i < count; i++)
        if (read_merge(t, b, json_array_get(merges, i), (uint32_t)i, err) < 0)
            return -1;
    return 0;
}

static int read_model(struct fw_tokenizer *t, struct bpe *b, const json_t *model,
                      struct fw_err *err)
{
    static const char *const plain[] = { "continuing_subword_prefix", "end_of_word_suffix" };
    const json_t *type = json_object_get(model, "type");
    const json_t *dropout = json_object_get(model, "dropout");

    if (!json_is_object(json_object_get(model, "vocab")) ||
        (type && (!json_is_string(type) || strcmp(json_string_value(type), "BPE") != 0)))
        return BAD(err, "model must be of type BPE, with a vocab");
    if (json_is_true(json_object_get(model, "byte_fallback")))
        return BAD(err, "byte_fallback is not supported: only byte-level BPE is");
    if (dropout && !json_is_null(dropout) && json_number_value(dropout) != 0)
        return BAD(err, "dropout is not supported");
    for (size_t i = 0; i < 2; i++)
        if (json_string_length(json_object_get(model, plain[i])) > 0)
            return BAD(err, "%s is not supported", plain[i]);
    b->ignore_merges = json_is_true(json_object_get(model, "ignore_merges"));
    if (read_vocab(t, b, json_object_get(model, "vocab"), err) < 0)
        return -1;
    return read_merges(t, b, json_object_get(model, "merges"), err);
}

/* ---- pre-tokenizers */

static const char *type_of(const json_t *v)
{
    const char *type = json_string_value(json_object_get(v, "type"));

    return type ? type : "";
}

static int read_split(struct splitter *s, const json_t *v, struct fw_err *err)
{
    const json_t *pattern = json_object_get(v, "pattern");
    const json_t *regex = json_object_get(pattern, "Regex");
    const json_t *text = regex ? regex : json_object_get(pattern, "String");
    const char *behavior = json_string_value(json_object_get(v, "behavior"));

    if (!behavior || strcmp(behavior, "Isolated") != 0 ||
        json_is_true(json_object_get(v, "invert")) || json_string_length(text) == 0)
        return BAD(err, "a Split must have a Regex or String and the behavior Isolated");
    return splitter_add(s, json_string_value(text), json_string_length(text), !regex, err);
}

static int read_byte_level(struct splitter *s, const json_t *v, struct fw_err *err)
{
    const json_t *prefix = json_object_get(v, "add_prefix_space");
    const json_t *use_regex = json_object_get(v, "use_regex");

    s->prefix = !prefix || json_is_true(prefix);
    s->last = !use_regex || json_is_true(use_regex);
    return s->last ? splitter_add(s, splitter_gpt2, strlen(splitter_gpt2), false, err) : 0;
}

static int read_digits(struct splitter *s, const json_t *v, struct fw_err *err)
{
    const char *pattern =
        json_is_true(json_object_get(v, "individual_digits")) ? "\\p{N}" : "\\p{N}+";

    return splitter_add(s, pattern, strlen(pattern), false, err);
}

/* One or a Sequence, of which ByteLevel is the last. */
static int read_pre_tokenizer(struct bpe *b, const json_t *v, struct fw_err *err)
{
    const json_t *list =
        strcmp(type_of(v), "Sequence") == 0 ? json_object_get(v, "pretokenizers") : NULL;
    const size_t n = list ? json_array_size(list) : 1;

    for (size_t i = 0; i < n; i++) {
        const json_t *one = list ? json_array_get(list, i) : v;
        const char *type = type_of(one);
        int rc;

        if (strcmp(type, "ByteLevel") == 0 && i + 1 == n)
            return read_byte_level(&b->splitter, one, err);
        if (strcmp(type, "Split") == 0)
            rc = read_split(&b->splitter, one, err);
        else if (strcmp(type, "Digits") == 0)
            rc = read_digits(&b->splitter, one, err);
        else
            rc =
                BAD(err,
                    "the pre_tokenizer \"%.32s\" is not supported there; the last is ByteLevel",
                    type);
        if (rc < 0)
            return -1;
    }
    return BAD(err, "the last pre_tokenizer must be ByteLevel");
}

static int read_root(struct fw_tokenizer *t, struct bpe *b, const json_t *root,
                     struct fw_err *err)
{
    const json_t *model = json_object_get(root, "model");
    const json_t *normalizer = json_object_get(root, "normalizer");

    if (normalizer && !json_is_null(normalizer))
        return BAD(err, "the normalizer %.32s is not supported", type_of(normalizer));
    if (read_all_added(t, b, json_object_get(root, "added_tokens"),
                       json_object_get(model, "vocab"), err) < 0 ||
        read_model(t, b, model, err) < 0 ||
        read_pre_tokenizer(b, json_object_get(root, "pre_tokenizer"), err) < 0)
        return -1;
    if (b->splitter.prefix && b->byte_id[' '] == BPE_NO_BYTE)
        return BAD(err, "add_prefix_space, but the vocabulary has no space");
    return 0;
}

int bpe_read(struct fw_tokenizer *t, struct bpe *b, const char *json, size_t len,
             struct fw_err *err)
{
    json_error_t at;
    json_t *root = json_loadb(json, len, JSON_REJECT_DUPLICATES, &at);
    int rc;

    if (!root)
        return BAD(err, "%.120s, at byte %d", at.text, at.position);
    rc = read_root(t, b, root, err);
    json_decref(root);
    return rc;
}
