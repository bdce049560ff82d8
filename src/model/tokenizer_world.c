/* tokenizer_world.c - the vocabulary file of the RWKV World models, rwkv_vocab*.txt.
 *
 * A line is `ID LITERAL LENGTH`: a Python literal, '..' or "..", whose characters count as
 * UTF-8, or b'..' of bytes, and how many bytes it has. Text is cut greedily, the longest token
 * first. */
#include "config.h"

#include "tokens.h"

#include <dirent.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "literal.h"

static int read_number(const unsigned char *p, size_t len, size_t *ret)
{
    size_t n = 0;

    if (len == 0 || len > 8)
        return -1;
    for (size_t i = 0; i < len; i++) {
        if (p[i] < '0' || p[i] > '9')
            return -1;
        n = n * 10 + (p[i] - '0');
    }
    *ret = n;
    return 0;
}

static int read_line(struct lexicon *l, const unsigned char *p, size_t len, size_t line,
                     struct fw_err *err)
{
    unsigned char bytes[LEXICON_MAX_WORD];
    const unsigned char *space = memchr(p, ' ', len);
    size_t id, length, said, end = len;

    while (end > 0 && p[end - 1] != ' ')
        end--;
    if (!space || end <= (size_t)(space - p) + 2 ||
        read_number(p, (size_t)(space - p), &id) < 0 ||
        read_number(p + end, len - end, &said) < 0)
        return BAD_TOKENS(err, "vocabulary, line %zu: not ID LITERAL LENGTH", line);
    if (literal_read(space + 1, (size_t)(p + end - 1 - (space + 1)), bytes, sizeof bytes,
                     &length) < 0)
        return BAD_TOKENS(err, "vocabulary, line %zu: no Python literal of 1 to %d bytes", line,
                          LEXICON_MAX_WORD);
    if (length != said)
        return BAD_TOKENS(err, "vocabulary, line %zu: %zu bytes, not %zu as it says", line,
                          length, said);
    return lexicon_add(l, (uint32_t)id, bytes, length, err);
}

static int read_lines(struct lexicon *l, const struct fw_buf *file, struct fw_err *err)
{
    size_t line = 0;

    for (size_t at = 0, len; at < file->len; at += len + 1) {
        const unsigned char *p = file->data + at;
        const unsigned char *end = memchr(p, '\n', file->len - at);
        size_t used;

        len = end ? (size_t)(end - p) : file->len - at;
        used = len > 0 && p[len - 1] == '\r' ? len - 1 : len;
        line++;
        if (used > 0 && read_line(l, p, used, line, err) < 0)
            return -1;
    }
    if (l->count == 0)
        return BAD_TOKENS(err, "the vocabulary is empty");
    return lexicon_sort(l, err);
}

int tokens_world_name(const char *dir, char ret[128])
{
    DIR *d = opendir(dir);
    size_t found = 0;

    for (struct dirent *e; d && (e = readdir(d));)
        if (fnmatch("rwkv_vocab*.txt", e->d_name, 0) == 0 && strlen(e->d_name) < 128) {
            snprintf(ret, 128, "%s", e->d_name);
            found++;
        }
    if (d)
        closedir(d);
    return found == 1 ? 0 : -1;
}

int tokens_open_world(struct fw_tokenizer *t, const char *dir, struct fw_err *err)
{
    struct fw_buf file;
    char name[128];
    int rc;

    if (tokens_world_name(dir, name) < 0)
        return BAD_TOKENS(err, "the directory must have one file rwkv_vocab*.txt");
    rc = tokens_read(&file, dir, name, err);
    if (rc == 0)
        rc = read_lines(&t->words, &file, err);
    fw_buf_done(&file);
    return rc;
}
