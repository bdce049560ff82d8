/* stops.c - stop strings, looked for across the borders of tokens.
 *
 * After each token only the bytes that a new match can begin in are searched. Of the matches
 * the one that begins first ends the text. While the text's end could still become a stop
 * string, the tokens that touch that end are not `kept` and nobody is shown them. */
#include "config.h"

#include "stops.h"

#include <stdlib.h>
#include <string.h>

int stops_init(struct stops *t, const struct fw_sampling *s, size_t max_tokens,
               struct fw_err *err)
{
    t->s = s;
    fw_buf_init(&t->text, SIZE_MAX);
    t->end = calloc(max_tokens, sizeof *t->end);
    if (!t->end)
        return fw_fail(err, FW_ENOMEM, "out_of_memory", "no memory for stop strings");
    return 0;
}

void stops_done(struct stops *t)
{
    fw_buf_done(&t->text);
    free(t->end);
    t->end = NULL;
}

/* The first place from `from` on where the text holds the stop string, or as much of it as
 * there is text left; SIZE_MAX: none. *whole tells which. */
static size_t find(const struct fw_buf *text, const struct fw_stop *stop, size_t from,
                   bool *whole)
{
    size_t i, left;

    for (i = from; i < text->len; i++) {
        left = text->len - i;
        *whole = left >= stop->len;
        if (memcmp(text->data + i, stop->text, *whole ? stop->len : left) == 0)
            return i;
    }
    return SIZE_MAX;
}

static void keep_before(struct stops *t, size_t at)
{
    while (t->kept < t->tokens && t->end[t->kept] <= at)
        t->kept++;
}

int stops_add(struct stops *t, const void *bytes, size_t len, struct fw_err *err)
{
    size_t i, at, from, before = t->text.len, held, cut = SIZE_MAX;
    bool whole;

    if (len > 0 && fw_buf_append(&t->text, bytes, len, err) < 0)
        return -1;
    t->end[t->tokens++] = held = t->text.len;
    for (i = 0; i < t->s->stops; i++) {
        from = before >= t->s->stop[i].len ? before - t->s->stop[i].len + 1 : 0;
        at = find(&t->text, &t->s->stop[i], from, &whole);
        if (at < held)
            held = at;
        if (at < cut && whole)
            cut = at;
    }
    if (cut == SIZE_MAX) {
        keep_before(t, held);
        return 0;
    }
    keep_before(t, cut);
    t->cut = cut;
    return 1;
}
