/* words.c - the words and numbers of a command line, and files in and out. */
#include "config.h"

#include "fwctl.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_FILE_BYTES ((size_t)2 << 30)

static void drop_words(int *argc, char **argv, int at, int count)
{
    memmove(argv + at, argv + at + count, (size_t)(*argc - at - count) * sizeof *argv);
    *argc -= count;
}

static int find_word(int argc, char **argv, const char *name)
{
    for (int i = 0; i < argc; i++)
        if (strcmp(argv[i], name) == 0)
            return i;
    return -1;
}

const char *ctl_option(int *argc, char **argv, const char *name)
{
    int at = find_word(*argc, argv, name);
    const char *value;

    if (at < 0 || at + 1 >= *argc)
        return NULL;
    value = argv[at + 1];
    drop_words(argc, argv, at, 2);
    return value;
}

bool ctl_flag(int *argc, char **argv, const char *name)
{
    int at = find_word(*argc, argv, name);

    if (at < 0)
        return false;
    drop_words(argc, argv, at, 1);
    return true;
}

int ctl_integer(const char *name, const char *text, json_int_t *ret)
{
    char *end;
    long long n;

    if (!text)
        return 0;
    errno = 0;
    n = strtoll(text, &end, 10);
    if (end == text || *end || errno) {
        fprintf(stderr, "fwctl: %s takes a whole number, not '%s'\n", name, text);
        return -1;
    }
    *ret = n;
    return 0;
}

int ctl_number(const char *name, const char *text, double *ret)
{
    char *end;
    double x;

    if (!text)
        return 0;
    x = strtod(text, &end);
    if (end == text || *end || !isfinite(x)) {
        fprintf(stderr, "fwctl: %s takes a number, not '%s'\n", name, text);
        return -1;
    }
    *ret = x;
    return 0;
}

int ctl_words(int argc, char **argv, int min, int max, const char *usage)
{
    for (int i = 0; i < argc; i++)
        if (strncmp(argv[i], "--", 2) == 0) {
            fprintf(stderr, "fwctl: %s is not known or lacks its value\nusage: fwctl %s\n",
                    argv[i], usage);
            return 2;
        }
    if (argc < min || argc > max) {
        fprintf(stderr, "usage: fwctl %s\n", usage);
        return 2;
    }
    return 0;
}

int ctl_read_file(const char *name, struct fw_buf *b)
{
    FILE *f = strcmp(name, "-") == 0 ? stdin : fopen(name, "rb");
    struct fw_err err = { 0 };
    char piece[65536];
    size_t n;
    int rc = 0;

    fw_buf_init(b, MAX_FILE_BYTES);
    if (!f) {
        perror(name);
        return -1;
    }
    while (rc == 0 && (n = fread(piece, 1, sizeof piece, f)) > 0)
        rc = fw_buf_append(b, piece, n, &err);
    if (rc)
        fprintf(stderr, "fwctl: %s: %s\n", name, err.msg);
    else if (ferror(f)) {
        perror(name);
        rc = -1;
    }
    if (f != stdin)
        fclose(f);
    return rc;
}

int ctl_write_reply(const struct ctl *c, const char *name)
{
    FILE *f = strcmp(name, "-") == 0 ? stdout : fopen(name, "wb");
    int rc;

    if (!f) {
        perror(name);
        return -1;
    }
    rc = fwrite(c->reply.data, 1, c->reply.len, f) == c->reply.len ? 0 : -1;
    if ((f == stdout ? fflush(f) : fclose(f)) != 0)
        rc = -1;
    if (rc)
        perror(name);
    return rc;
}
