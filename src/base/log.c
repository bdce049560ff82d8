/* log.c - one line, one write(2), so that lines of several threads never mix.
 *
 * "<priority>text\n" in a fixed buffer of 1 KiB: journald reads the priority, a longer text is
 * cut (between UTF-8 characters). Control characters become spaces: a client's text can then
 * neither begin a line of its own nor steer a terminal. A failed write is lost; errno is kept,
 * for a log line often stands between a failure and its report. Any thread. */
#include "config.h"

#include "fastweight/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

enum { LINE_MAX_BYTES = 1024 };

/* The longest prefix of at most len bytes that does not end within a character. */
static size_t whole_characters(const char *text, size_t len)
{
    size_t start = len;

    while (start > 0 && len - start < 3 && ((unsigned char)text[start] & 0xc0) == 0x80)
        start--;
    return ((unsigned char)text[start] & 0xc0) == 0xc0 ? start : len;
}

void fw_log(const struct fw_log *log, enum fw_log_level level, const char *fmt, ...)
{
    char line[LINE_MAX_BYTES + 1]; /* one more: vsnprintf's NUL lies where '\n' goes */
    int saved = errno;
    int head, body;
    size_t i, len;
    ssize_t done;
    va_list ap;

    if (!log || level > log->threshold)
        return;
    head = snprintf(line, sizeof line, "<%d>", (int)level);
    va_start(ap, fmt);
    body = vsnprintf(line + head, sizeof line - (size_t)head, fmt, ap);
    va_end(ap);
    if (head < 0 || body < 0)
        return;
    len = (size_t)head + (size_t)body;
    if (len > LINE_MAX_BYTES - 1)
        len = whole_characters(line, LINE_MAX_BYTES - 1);
    for (i = (size_t)head; i < len; i++) {
        if ((unsigned char)line[i] < 0x20 || line[i] == 0x7f)
            line[i] = ' ';
    }
    line[len] = '\n';
    done = write(log->fd, line, len + 1);
    (void)done; /* there is nowhere to report it */
    errno = saved;
}
