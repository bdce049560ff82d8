/* lexicon.c - byte strings in sorted order, for the longest match.
 *
 * All words that begin with the same d bytes lie side by side, the shortest first. The longest
 * match keeps that range while it walks the text and narrows it byte by byte; a word that ends
 * at depth d is the first of the range. No table besides the words themselves. */
#include "config.h"

#include "lexicon.h"

#include <stdlib.h>
#include <string.h>

#define BAD(err, ...) fw_fail(err, FW_EINVAL, "bad_tokenizer", __VA_ARGS__)

void lexicon_init(struct lexicon *l)
{
    *l = (struct lexicon){ .count = 0 };
    fw_buf_init(&l->bytes, (size_t)1 << 27);
}

void lexicon_done(struct lexicon *l)
{
    fw_buf_done(&l->bytes);
    free(l->word);
    l->word = NULL;
    l->count = l->cap = 0;
}

int lexicon_add(struct lexicon *l, uint32_t id, const void *bytes, size_t len,
                struct fw_err *err)
{
    if (len == 0 || len > LEXICON_MAX_WORD)
        return BAD(err, "token %u has %zu bytes, a token has 1 to %d", (unsigned)id, len,
                   LEXICON_MAX_WORD);
    if (l->count == LEXICON_MAX_WORDS)
        return BAD(err, "more than %zu tokens", LEXICON_MAX_WORDS);
    if (l->count == l->cap) {
        const size_t cap = l->cap ? 2 * l->cap : 256;
        struct lexeme *word = realloc(l->word, cap * sizeof *word);

        if (!word)
            return fw_fail(err, FW_ENOMEM, "out_of_memory", "no memory for a vocabulary");
        l->word = word;
        l->cap = cap;
    }
    l->word[l->count] = (struct lexeme){ l->bytes.len, (uint32_t)len, id };
    if (fw_buf_append(&l->bytes, bytes, len, err) < 0)
        return -1;
    l->count++;
    return 0;
}

static int compare(const unsigned char *a, size_t a_len, const unsigned char *b, size_t b_len)
{
    const int c = memcmp(a, b, a_len < b_len ? a_len : b_len);

    return c ? c : (a_len > b_len) - (a_len < b_len);
}

static int order(const struct lexicon *l, const struct lexeme *a, const struct lexeme *b)
{
    return compare(l->bytes.data + a->at, a->len, l->bytes.data + b->at, b->len);
}

/* Heap sort: qsort_r is not POSIX, and what is compared lies in the lexicon. */
static void sift(struct lexicon *l, size_t i, size_t n)
{
    struct lexeme *w = l->word;

    for (size_t child; (child = 2 * i + 1) < n; i = child) {
        struct lexeme moved = w[i];

        if (child + 1 < n && order(l, &w[child], &w[child + 1]) < 0)
            child++;
        if (order(l, &moved, &w[child]) >= 0)
            return;
        w[i] = w[child];
        w[child] = moved;
    }
}

static void sort(struct lexicon *l)
{
    for (size_t i = l->count / 2; i-- > 0;)
        sift(l, i, l->count);
    for (size_t n = l->count; n > 1; n--) {
        const struct lexeme last = l->word[n - 1];

        l->word[n - 1] = l->word[0];
        l->word[0] = last;
        sift(l, 0, n - 1);
    }
}

int lexicon_sort(struct lexicon *l, struct fw_err *err)
{
    sort(l);
    for (size_t i = 1; i < l->count; i++)
        if (order(l, &l->word[i - 1], &l->word[i]) == 0)
            return BAD(err, "tokens %u and %u have the same bytes", (unsigned)l->word[i - 1].id,
                       (unsigned)l->word[i].id);
    for (size_t b = 0, i = 0; b < 257; b++) {
        while (i < l->count && l->bytes.data[l->word[i].at] < b)
            i++;
        l->first[b] = i;
    }
    return 0;
}

/* The first word of lo .. hi - 1 whose byte at depth is c or above; all are longer than depth.
 */
static size_t narrow(const struct lexicon *l, size_t lo, size_t hi, size_t depth, unsigned c)
{
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;

        if (l->bytes.data[l->word[mid].at + depth] < c)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

size_t lexicon_longest(const struct lexicon *l, const unsigned char *p, size_t len,
                       uint32_t *ret_id)
{
    size_t lo, hi, best = 0;

    if (len == 0)
        return 0;
    lo = l->first[p[0]];
    hi = l->first[p[0] + 1];
    for (size_t depth = 1; lo < hi; depth++) {
        if (l->word[lo].len == depth) {
            best = depth;
            *ret_id = l->word[lo++].id;
        }
        if (depth == len)
            break;
        lo = narrow(l, lo, hi, depth, p[depth]);
        hi = narrow(l, lo, hi, depth, p[depth] + 1u);
    }
    return best;
}

bool lexicon_find(const struct lexicon *l, const unsigned char *p, size_t len, uint32_t *ret_id)
{
    size_t lo = 0, hi = l->count;

    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        const struct lexeme *w = &l->word[mid];
        const int c = compare(l->bytes.data + w->at, w->len, p, len);

        if (c == 0) {
            *ret_id = w->id;
            return true;
        }
        if (c < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return false;
}
