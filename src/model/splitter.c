/* splitter.c - cutting a text into words with PCRE2, as Hugging Face's Split (Isolated) does.
 *
 * A step cuts each piece that the step before made; matches and what lies between them are
 * pieces alike, so nothing is lost. Text is cut at what is no UTF-8 first: the patterns see
 * valid text only. Patterns are compiled in UTF and Unicode-property mode, just in time where
 * the system lets memory be executed; a pattern that tries too long is an error, not a wait.
 * Immutable once built; a run makes its own match data. */
#include "config.h"

#include "splitter.h"

#include <stdlib.h>
#include <string.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "fastweight/utf8.h"

#define MATCH_LIMIT 10000000u
#define HEAP_LIMIT  65536u /* KiB */
#define MAX_PATTERN 65536u

/* \s of PCRE2 has U+180E besides, which is no white space since Unicode 6.3. */
#define SPACES "\\p{Z}\\x{9}-\\x{d}\\x{85}"
const char splitter_gpt2[] = "'(?:[sdmt]|ll|ve|re)| ?\\p{L}+| ?\\p{N}+| ?[^" SPACES
                             "\\p{L}\\p{N}]+|[" SPACES "]+(?![^" SPACES "])|[" SPACES "]+";

struct run {
    const struct splitter *s;
    pcre2_match_data *data;
    splitter_word *word;
    void *ctx;
    bool prefix;
    struct fw_err *err;
};

static int no_memory(struct fw_err *err)
{
    return fw_fail(err, FW_ENOMEM, "out_of_memory", "no memory to cut a text into words");
}

static int make_limits(struct splitter *s, struct fw_err *err)
{
    if (s->limits)
        return 0;
    s->limits = pcre2_match_context_create(NULL);
    if (!s->limits)
        return no_memory(err);
    pcre2_set_match_limit(s->limits, MATCH_LIMIT);
    pcre2_set_depth_limit(s->limits, MATCH_LIMIT);
    pcre2_set_heap_limit(s->limits, HEAP_LIMIT);
    return 0;
}

int splitter_add(struct splitter *s, const char *pattern, size_t len, bool literal,
                 struct fw_err *err)
{
    const uint32_t options =
        PCRE2_UTF | (literal ? PCRE2_LITERAL : PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C);
    unsigned char why[96] = "too long";
    size_t at = 0;
    int code = 0;
    pcre2_code *made = NULL;

    if (s->steps == SPLITTER_MAX_STEPS)
        return fw_fail(err, FW_EINVAL, "bad_tokenizer",
                       "tokenizer.json: more than %d pre-tokenizers", SPLITTER_MAX_STEPS);
    if (len <= MAX_PATTERN) {
        made = pcre2_compile((PCRE2_SPTR)pattern, len, options, &code, &at, NULL);
        if (!made)
            pcre2_get_error_message(code, why, sizeof why);
    }
    if (!made)
        return fw_fail(err, FW_EINVAL, "bad_tokenizer",
                       "tokenizer.json: a pattern cannot be used: %s, at byte %zu",
                       (const char *)why, at);
    /* Where it may not compile (MemoryDenyWriteExecute) the pattern is interpreted. */
    (void)pcre2_jit_compile(made, PCRE2_JIT_COMPLETE);
    s->step[s->steps++] = made;
    return make_limits(s, err);
}

void splitter_done(struct splitter *s)
{
    for (size_t i = 0; i < s->steps; i++)
        pcre2_code_free(s->step[i]);
    pcre2_match_context_free(s->limits);
    *s = (struct splitter){ .steps = 0 };
}

/* The next match at or after `at`: 1 and its bounds, 0 when there is none. */
static int match(struct run *r, size_t step, const unsigned char *p, size_t len, size_t at,
                 size_t bounds[2])
{
    const pcre2_code *code = r->s->step[step];
    int rc = pcre2_match(code, p, len, at, PCRE2_NO_UTF_CHECK, r->data, r->s->limits);

    if (rc == PCRE2_ERROR_JIT_STACKLIMIT)
        rc = pcre2_match(code, p, len, at, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, r->data,
                         r->s->limits);
    if (rc == PCRE2_ERROR_NOMATCH)
        return 0;
    memcpy(bounds, pcre2_get_ovector_pointer(r->data), 2 * sizeof *bounds);
    if (rc < 0 || bounds[0] < at || bounds[1] < bounds[0])
        return fw_fail_param(r->err, FW_EINVAL, "text_too_hard", "text",
                             "the tokenizer's pattern gave up on the text (%d)", rc);
    return 1;
}

static int cut(struct run *r, size_t step, const unsigned char *p, size_t len);

/* The last step: a space before the piece when it has none, then its pattern if there is one.
 */
static int put_prefix(struct run *r, const unsigned char *p, size_t len)
{
    const size_t last = r->s->steps - (r->s->last ? 1 : 0);
    unsigned char *with = malloc(len + 1);
    int rc;

    if (!with)
        return no_memory(r->err);
    with[0] = ' ';
    memcpy(with + 1, p, len);
    rc = r->s->last ? cut(r, last, with, len + 1) : r->word(r->ctx, with, len + 1, r->err);
    free(with);
    return rc;
}

static int piece(struct run *r, size_t step, const unsigned char *p, size_t len)
{
    const size_t last = r->s->steps - (r->s->last ? 1 : 0);

    if (len == 0)
        return 0;
    if (step == last && r->prefix && p[0] != ' ')
        return put_prefix(r, p, len);
    if (step == r->s->steps)
        return r->word(r->ctx, p, len, r->err);
    return cut(r, step, p, len);
}

static int cut(struct run *r, size_t step, const unsigned char *p, size_t len)
{
    size_t begin = 0, at = 0, bounds[2];
    bool valid;
    int found = 0;

    while (at <= len && (found = match(r, step, p, len, at, bounds)) == 1) {
        if (piece(r, step + 1, p + begin, bounds[0] - begin) < 0 ||
            piece(r, step + 1, p + bounds[0], bounds[1] - bounds[0]) < 0)
            return -1;
        begin = at = bounds[1];
        if (bounds[0] == bounds[1]) /* a match of nothing cuts; the search goes on behind it */
            at += at < len ? fw_utf8_piece(p + at, len - at, &valid) : 1;
    }
    return found < 0 ? -1 : piece(r, step + 1, p + begin, len - begin);
}

/* How far the text from p is valid (or is not), and which. */
static size_t stretch(const unsigned char *p, size_t len, bool *ret_valid)
{
    size_t n = fw_utf8_piece(p, len, ret_valid);

    while (n < len) {
        bool valid;
        const size_t more = fw_utf8_piece(p + n, len - n, &valid);

        if (valid != *ret_valid)
            break;
        n += more;
    }
    return n;
}

int splitter_run(const struct splitter *s, const unsigned char *text, size_t len,
                 splitter_word *word, void *ctx, struct fw_err *err)
{
    struct run r = { s, pcre2_match_data_create(1, NULL), word, ctx, s->prefix, err };
    int rc = 0;

    if (!r.data)
        return no_memory(err);
    for (size_t at = 0, n; rc == 0 && at < len; at += n) {
        bool valid;

        n = stretch(text + at, len - at, &valid);
        rc = valid ? piece(&r, 0, text + at, n) : word(ctx, text + at, n, err);
        r.prefix = false; /* none in the middle of a text with stray bytes */
    }
    pcre2_match_data_free(r.data);
    return rc;
}
