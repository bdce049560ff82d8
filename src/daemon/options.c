/* options.c - the configuration: one table for the file's keys and the flags.
 *
 * A key `max_queue` is the flag `--max-queue`. Sizes may end in K, M or G (powers of 1024).
 * Whatever is not known, malformed or out of range is an error with the place where it stands:
 * a misspelt limit must not be silently absent. inih reports the line of the first error; the
 * handler keeps its text. */
#include "config.h"

#include "options.h"

#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <ini.h>

#include "fastweight/log.h"

enum kind { TEXT, SIZE, COUNT, LEVEL };

struct row {
    const char *key;
    enum kind kind;
    size_t at;
    uint64_t min, max;
    const char *preset; /* the default, as one would write it */
    const char *help;
};

#define AT(field) offsetof(struct options, field)
#define KIB       (UINT64_C(1) << 10)
#define MIB       (UINT64_C(1) << 20)
#define TIB       (UINT64_C(1) << 40)

/* clang-format off */
static const struct row table[] = {
    { "listen", TEXT, AT(listen), 0, 0, "127.0.0.1:7787",
      "loopback address and port; port 0 takes a free one" },
    { "data_dir", TEXT, AT(data_dir), 0, 0, FW_STATE_DIR,
      "where sessions are kept; made if missing" },
    { "models_dir", TEXT, AT(models_dir), 0, 0, FW_MODELS_DIR,
      "directories of checkpoint directories, separated by ':'" },
    { "max_resident_bytes", SIZE, AT(max_resident_bytes), MIB, 64 * TIB, "1G",
      "memory for sessions' states" },
    { "max_sessions", COUNT, AT(max_sessions), 1, 100000000, "100000", "sessions in all" },
    { "max_queue", COUNT, AT(max_queue), 1, 1000000, "64", "requests waiting per session" },
    { "max_async_bytes", SIZE, AT(max_async_bytes), 64 * KIB, TIB, "64M",
      "learned and not yet on disk, in all" },
    { "journal_bytes", SIZE, AT(journal_bytes), 4 * KIB, TIB, "256K",
      "journal per session before a checkpoint" },
    { "max_body_bytes", SIZE, AT(max_body_bytes), KIB, 1024 * MIB, "16M",
      "largest request body (an import: state_bytes + 1M)" },
    { "max_inflight_bytes", SIZE, AT(max_inflight_bytes), MIB, TIB, "256M",
      "all request bodies in memory together" },
    { "max_connections", COUNT, AT(max_connections), 1, 100000, "512", "clients at a time" },
    { "connection_timeout_s", COUNT, AT(connection_timeout_s), 1, 86400, "60",
      "idle seconds before a connection is closed" },
    { "drain_timeout_s", COUNT, AT(drain_timeout_s), 0, 86400, "10",
      "seconds that a stop waits for bodies on their way and for reads" },
    { "workers", COUNT, AT(workers), 0, 1024, "0", "worker threads; 0: one per core" },
    { "log_level", LEVEL, AT(log_level), 0, 0, "info", "err, warning, info or debug" },
};
/* clang-format on */

enum { ROWS = sizeof table / sizeof table[0] };

static const struct row *find(const char *key)
{
    size_t i;

    for (i = 0; i < ROWS; i++) {
        if (strcmp(table[i].key, key) == 0)
            return &table[i];
    }
    return NULL;
}

static int parse_number(const char *text, enum kind kind, uint64_t *ret)
{
    static const char units[] = "KMG";
    const char *unit;
    uint64_t n = 0, digit;

    if (!isdigit((unsigned char)*text))
        return -1;
    for (; isdigit((unsigned char)*text); text++) {
        digit = (uint64_t)(*text - '0');
        if (n > (UINT64_MAX - digit) / 10)
            return -1;
        n = n * 10 + digit;
    }
    if (*text && kind == SIZE && (unit = strchr(units, *text)) != NULL) {
        if (n > UINT64_MAX >> (10 * (unit - units + 1)))
            return -1;
        n <<= 10 * (unit - units + 1);
        text++;
    }
    *ret = n;
    return *text ? -1 : 0;
}

static int parse_level(const char *text, uint64_t *ret)
{
    static const struct {
        const char *name;
        enum fw_log_level level;
    } levels[] = { { "err", FW_LOG_ERR },
                   { "warning", FW_LOG_WARNING },
                   { "info", FW_LOG_INFO },
                   { "debug", FW_LOG_DEBUG } };
    size_t i;

    for (i = 0; i < sizeof levels / sizeof levels[0]; i++) {
        if (strcmp(levels[i].name, text) == 0) {
            *ret = (uint64_t)levels[i].level;
            return 0;
        }
    }
    return -1;
}

/* name: how the user wrote the key, for the error. */
static int set(struct options *o, const struct row *r, const char *name, const char *value,
               struct fw_err *err)
{
    char *field = (char *)o + r->at;
    uint64_t n;

    if (r->kind == TEXT) {
        if (!*value || strlen(value) >= OPTION_TEXT)
            return fw_fail(err, FW_EINVAL, "bad_option", "%s needs a text of at most %d bytes",
                           name, OPTION_TEXT - 1);
        memcpy(field, value, strlen(value) + 1);
        return 0;
    }
    if (r->kind == LEVEL) {
        if (parse_level(value, &n) < 0)
            return fw_fail(err, FW_EINVAL, "bad_option", "%s must be %s, not '%.40s'", name,
                           r->help, value);
    } else if (parse_number(value, r->kind, &n) < 0 || n < r->min || n > r->max) {
        return fw_fail(err, FW_EINVAL, "bad_option",
                       "%s must be a %s in [%llu, %llu], not '%.40s'", name,
                       r->kind == SIZE ? "size (as 64M)" : "whole number",
                       (unsigned long long)r->min, (unsigned long long)r->max, value);
    }
    memcpy(field, &n, sizeof n);
    return 0;
}

static int set_defaults(struct options *o, struct fw_err *err)
{
    const char *systemd_dir = getenv("STATE_DIRECTORY");
    size_t i;

    *o = (struct options){ 0 };
    for (i = 0; i < ROWS; i++) {
        if (set(o, &table[i], table[i].key, table[i].preset, err) < 0)
            return -1;
    }
    return systemd_dir && *systemd_dir
               ? set(o, find("data_dir"), "STATE_DIRECTORY", systemd_dir, err)
               : 0;
}

struct reader {
    struct options *o;
    unsigned seen; /* a bit for each row */
    bool failed;
    struct fw_err err; /* of the first error */
};

static int on_line(void *arg, const char *section, const char *key, const char *value)
{
    struct reader *r = arg;
    const struct row *row = find(key);
    struct fw_err *err = r->failed ? NULL : &r->err;
    int rc;

    if (*section)
        rc = fw_fail(err, FW_EINVAL, "bad_option", "there are no [sections]");
    else if (!row)
        rc = fw_fail(err, FW_EINVAL, "bad_option", "unknown key '%.80s'", key);
    else if (r->seen & 1u << (row - table))
        rc = fw_fail(err, FW_EINVAL, "bad_option", "%s is given twice", key);
    else
        rc = set(r->o, row, key, value, err);
    if (row)
        r->seen |= 1u << (row - table);
    r->failed = r->failed || rc < 0;
    return rc == 0;
}

static int read_file(const char *path, struct options *o, struct fw_err *err)
{
    struct reader r = { .o = o };
    int line = ini_parse(path, on_line, &r);

    if (line == 0)
        return 0;
    if (line < 0)
        return fw_fail(err, FW_EINVAL, "no_config", "--config: cannot read %.180s", path);
    return fw_fail(err, FW_EINVAL, "bad_option", "%.80s:%d: %.150s", path, line,
                   r.err.msg[0] ? r.err.msg : "neither KEY = VALUE nor a comment");
}

struct flag {
    char flag[64], key[64]; /* "--max-queue", "max_queue" */
    const char *value;
};

/* "--max-queue" or "--max-queue=9"; value: behind the '=', or NULL. */
static int split_flag(const char *word, struct flag *ret)
{
    size_t i, len = strcspn(word, "=");

    if (strncmp(word, "--", 2) != 0 || len < 3 || len >= sizeof ret->flag ||
        memchr(word, '_', len))
        return -1;
    memcpy(ret->flag, word, len);
    ret->flag[len] = 0;
    for (i = 2; i <= len; i++)
        ret->key[i - 2] = ret->flag[i] == '-' ? '_' : ret->flag[i];
    ret->value = word[len] ? word + len + 1 : NULL;
    return 0;
}

/* One flag and its value; returns how many arguments it takes, or -1. */
static int next_flag(int argc, char **argv, int i, struct flag *ret, struct fw_err *err)
{
    bool config;

    if (split_flag(argv[i], ret) < 0)
        return fw_fail(err, FW_EINVAL, "bad_option", "'%.80s' is no flag; try --help", argv[i]);
    if (!ret->value && (strcmp(ret->key, "help") == 0 || strcmp(ret->key, "version") == 0))
        return 1;
    config = strcmp(ret->key, "config") == 0;
    if (!config && !find(ret->key))
        return fw_fail(err, FW_EINVAL, "bad_option", "unknown flag '%.80s'; try --help",
                       argv[i]);
    if (ret->value)
        return 1;
    if (i + 1 >= argc)
        return fw_fail(err, FW_EINVAL, "bad_option", "%.80s needs a value", argv[i]);
    ret->value = argv[i + 1];
    return 2;
}

int options_read(int argc, char **argv, struct options *ret, enum options_result *ret_result,
                 struct fw_err *err)
{
    const char *config = NULL;
    struct flag f;
    int i, n;

    *ret_result = OPTIONS_RUN;
    for (i = 1; i < argc; i += n) {
        n = next_flag(argc, argv, i, &f, err);
        if (n < 0)
            return -1;
        if (strcmp(f.key, "help") == 0)
            *ret_result = OPTIONS_HELP;
        else if (strcmp(f.key, "version") == 0)
            *ret_result = OPTIONS_VERSION;
        else if (strcmp(f.key, "config") == 0)
            config = f.value;
    }
    if (*ret_result != OPTIONS_RUN)
        return 0;
    if (set_defaults(ret, err) < 0 || (config && read_file(config, ret, err) < 0))
        return -1;
    for (i = 1; i < argc; i += n) {
        n = next_flag(argc, argv, i, &f, err);
        if (strcmp(f.key, "config") != 0 && set(ret, find(f.key), f.flag, f.value, err) < 0)
            return -1;
    }
    return 0;
}

void options_help(FILE *to)
{
    char flag[64];
    size_t i, k;

    fputs("Usage: fastweightd [--config FILE] [--FLAG VALUE]...\n"
          "Serves sessions that learn, over HTTP on this machine, until SIGTERM.\n\n"
          "  --config FILE                read these settings first, as KEY = VALUE\n",
          to);
    for (i = 0; i < ROWS; i++) {
        for (k = 0; table[i].key[k]; k++)
            flag[k] = table[i].key[k] == '_' ? '-' : table[i].key[k];
        flag[k] = 0;
        fprintf(to, "  --%-26s %s (%s)\n", flag, table[i].help, table[i].preset);
    }
    fputs("  --help, --version\n\nSizes take K, M or G. See fastweightd(8).\n", to);
}
