/* worst.c - the N most surprising lines of a stream, kept in a small sorted array.
 *
 * A line's surprise is its bits a byte: long lines are not surprising for being long. A line
 * that was cut between two pieces counts as two; feed.c cuts at a line's end where it can. */
#include "config.h"

#include "fwctl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_MAX 160

struct worst_line {
    double bits; /* a byte */
    size_t number;
    char text[TEXT_MAX];
};

struct ctl_worst {
    size_t max, count, lines; /* lines: seen so far */
    struct worst_line line[]; /* descending */
};

struct ctl_worst *ctl_worst_new(size_t n)
{
    struct ctl_worst *w = calloc(1, sizeof *w + n * sizeof w->line[0]);

    if (w)
        w->max = n;
    return w;
}

void ctl_worst_free(struct ctl_worst *w)
{
    free(w);
}

static void copy_printable(char *out, const unsigned char *text, size_t n)
{
    size_t i;

    for (i = 0; i < n && i + 1 < TEXT_MAX && text[i] != '\n'; i++)
        out[i] = text[i] >= 32 && text[i] < 127 ? (char)text[i] : '.';
    out[i] = 0;
}

static void take_line(struct ctl_worst *w, double bits, const unsigned char *text, size_t n)
{
    size_t at = w->count;

    while (at > 0 && w->line[at - 1].bits < bits)
        at--;
    if (at == w->max)
        return;
    if (w->count < w->max)
        w->count++;
    memmove(w->line + at + 1, w->line + at, (w->count - 1 - at) * sizeof w->line[0]);
    w->line[at].bits = bits;
    w->line[at].number = w->lines;
    copy_printable(w->line[at].text, text, n);
}

void ctl_worst_add(struct ctl_worst *w, const json_t *lines, const unsigned char *text)
{
    json_t *row;
    size_t i;

    json_array_foreach (lines, i, row) {
        json_int_t start = 0, tokens = 0;
        double bits = 0;

        json_unpack(row, "{s:I, s:I, s:F}", "start", &start, "tokens", &tokens, "bits", &bits);
        w->lines++;
        if (tokens > 0)
            take_line(w, bits / (double)tokens, text + start, (size_t)tokens);
    }
}

void ctl_worst_print(const struct ctl_worst *w)
{
    for (size_t i = 0; i < w->count; i++)
        printf("%3zu. %6.3f bits/byte  line %-6zu %s\n", i + 1, w->line[i].bits,
               w->line[i].number, w->line[i].text);
}
