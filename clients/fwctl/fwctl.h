/* fwctl.h - what the verbs of fwctl share: one connection, its last reply, small helpers.
 *
 * One file per verb; each offers one function that takes the words after the verb and returns
 * the exit status. Single-threaded. */
#ifndef FWCTL_H
#define FWCTL_H

#include <curl/curl.h>
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "fastweight/buf.h"

struct ctl {
    CURL *curl;
    const char *server;          /* "http://127.0.0.1:7787", no slash at the end */
    struct fw_buf reply;         /* body of the last reply, or what is left of it */
    void (*more)(struct ctl *c); /* called as it grows; may take bytes away; or NULL */
    long status;
    bool failed; /* what `more` found in a reply that began well */
};

struct ctl_body {     /* what a call sends; all NULL for none */
    const char *type; /* content type */
    const void *data;
    size_t len;
    const char *accept; /* or NULL */
};

/* One HTTP call. 0 when the status is below 400; else the server's message on stderr and -1. */
int ctl_call(struct ctl *c, const char *method, const char *path, const struct ctl_body *body);
/* The same with a JSON body (taken) or NULL, and the reply as JSON (NULL on failure, message
 * printed; the caller owns it). */
json_t *ctl_json(struct ctl *c, const char *method, const char *path, json_t *body);
/* "/v1/sessions/ID" + tail, percent-encoded id; lends a static-size buffer of the caller. */
int ctl_path(char *out, size_t size, const char *id, const char *fmt, ...) FW_PRINTF(4, 5);
/* The same + "/snapshots/NAME" + tail, the name percent-encoded. Both print what is wrong. */
int ctl_snapshot_path(char *out, size_t size, const char *id, const char *name,
                      const char *tail);
/* POSTs a JSON file ("-": stdin) to "/v1/sessions/ID/VERB", prints the reply; exit status. */
int ctl_post_file(struct ctl *c, const char *id, const char *verb, const char *file);
void ctl_print(const json_t *value); /* indented, with a newline */

/* A whole file ("-": stdin) into b; prints the error. */
int ctl_read_file(const char *name, struct fw_buf *b);
/* The reply's bytes into a file ("-": stdout). */
int ctl_write_reply(const struct ctl *c, const char *name);

/* Options: `--name value` or `--name` anywhere among a verb's words. Takes it out of argv. */
const char *ctl_option(int *argc, char **argv, const char *name);
bool ctl_flag(int *argc, char **argv, const char *name);
/* The value of option `name` into *ret, which keeps its default when text is NULL; prints. */
int ctl_integer(const char *name, const char *text, json_int_t *ret);
int ctl_number(const char *name, const char *text, double *ret);
/* Exit status 2 with the usage unless argc is within [min, max] and no word is an option. */
int ctl_words(int argc, char **argv, int min, int max, const char *usage);

struct ctl_verb {
    const char *name;
    int (*run)(struct ctl *c, int argc, char **argv);
    const char *usage, *help;
};

#define CTL_VERBS(X)                                                                           \
    X(create, "create ID MODEL [--config JSON] [--from SESSION [--snapshot NAME]]",            \
      "make a session")                                                                        \
    X(ls, "ls [PREFIX]", "list sessions")                                                      \
    X(learn, "learn ID [FILE|-] [--follow] [--lines N] [--async] [--json|--safetensors]",      \
      "learn a file or stdin (pairs: --json or --safetensors); --lines shows the N most "      \
      "surprising lines; --progress: a bar")                                                   \
    X(score, "score ID [FILE|-] [--adapt] [--lines N] [--json|--safetensors]",                 \
      "surprise of a file; nothing is learned")                                                \
    X(predict, "predict ID [PREFIX] [--top N]", "what comes next")                             \
    X(recall, "recall ID FILE|-", "values for the queries in a JSON file")                     \
    X(edit, "edit ID FILE|-", "the key in a JSON file recalls its value from now on")          \
    X(forget, "forget ID FILE|-", "the key in a JSON file recalls zero from now on")           \
    X(generate,                                                                                \
      "generate ID N [--temperature T] [--seed S] [--prefix TEXT] [--stop TEXT] [--learn] "    \
      "[--stream]",                                                                            \
      "sample N tokens; --stream shows them as they come")                                     \
    X(inspect, "inspect ID", "health of a session")                                            \
    X(snapshot, "snapshot ID [NAME] [--rm]", "keep a named copy; without NAME: list")          \
    X(restore, "restore ID NAME", "go back to a snapshot")                                     \
    X(patch, "patch ID BASE NAME FILE|-", "what was learned from snapshot BASE to NAME")       \
    X(export, "export ID FILE|- [--snapshot NAME]", "whole state as safetensors")              \
    X(import, "import ID FILE|-", "replace the state from an export")                          \
    X(fork, "fork ID [NEW]", "copy to a new session")                                          \
    X(rm, "rm ID...", "delete sessions")

#define CTL_DECLARE(name, usage, help) int ctl_##name(struct ctl *c, int argc, char **argv);
CTL_VERBS(CTL_DECLARE)

/* learn and score: one file's way to the server, in pieces that end at a line's end. */
struct ctl_feed {
    const char *id, *file;
    const char *verb, *query; /* "learn", "durability=async&" */
    const char *whole;        /* content type when the file goes as one body, or NULL */
    bool follow, progress;
    size_t worst; /* how many of the most surprising lines to show at the end */
};
int ctl_feed_options(struct ctl_feed *f, int *argc, char **argv);
int ctl_feed(struct ctl *c, const struct ctl_feed *f);

struct ctl_worst; /* the N most surprising lines so far */
struct ctl_worst *ctl_worst_new(size_t n);
void ctl_worst_free(struct ctl_worst *w);
/* Takes in `surprise.lines` of a reply about the bytes in text; lines count on over calls. */
void ctl_worst_add(struct ctl_worst *w, const json_t *lines, const unsigned char *text);
void ctl_worst_print(const struct ctl_worst *w);

#endif
