/* generate.c - fwctl generate: samples tokens and writes their bytes, or ids, to stdout; with
 * --stream as server-sent events bring them. */
#include "config.h"

#include "fwctl.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "generate ID N [--temperature T] [--seed S] [--prefix TEXT] [--stop TEXT] [--learn] "
    "[--stream]";

static void print_base64(const char *text)
{
    static const char digits[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    unsigned bits = 0, have = 0;
    const char *at;

    for (; *text && (at = strchr(digits, *text)) != NULL; text++) {
        bits = (bits << 6 | (unsigned)(at - digits)) & 0xffff;
        have += 6;
        if (have >= 8) {
            have -= 8;
            putchar((int)(bits >> have & 0xff));
        }
    }
}

static void print_ids(const json_t *tokens)
{
    const json_t *token;
    size_t i;

    json_array_foreach (tokens, i, token)
        printf("%lld\n", (long long)json_integer_value(token));
}

static void print_reply(const json_t *reply)
{
    const char *bytes = json_string_value(json_object_get(reply, "bytes_base64"));

    if (bytes) {
        print_base64(bytes);
        putchar('\n');
    } else {
        print_ids(json_object_get(reply, "tokens"));
    }
}

/* ---- as events */

static void print_event(struct ctl *c, const json_t *event)
{
    const json_t *text = json_object_get(event, "text");
    const char *message = NULL;

    json_unpack((json_t *)(uintptr_t)event, "{s:{s:s}}", "error", "message", &message);
    c->failed |= message != NULL;
    if (message)
        fprintf(stderr, "fwctl: %s\n", message);
    else if (json_object_get(event, "finish_reason")) /* all of it again */
        fputs(text ? "\n" : "", stdout);
    else if (text)
        fwrite(json_string_value(text), 1, json_string_length(text), stdout);
    else
        print_ids(json_object_get(event, "tokens"));
    fflush(stdout);
}

/* Whole lines of events; what is no event stays in the reply. */
static void print_events(struct ctl *c)
{
    char *line = (char *)c->reply.data, *end;
    size_t left = c->reply.len;
    json_t *event;

    while ((end = memchr(line, '\n', left)) != NULL && *line != '{') {
        *end = 0;
        if (strncmp(line, "data: {", 7) == 0) {
            event = json_loads(line + 6, JSON_ALLOW_NUL, NULL);
            print_event(c, event);
            json_decref(event);
        }
        left -= (size_t)(end + 1 - line);
        line = end + 1;
    }
    memmove(c->reply.data, line, left);
    c->reply.len = left;
}

static int stream(struct ctl *c, const char *path, json_t *body)
{
    char *text = json_dumps(body, JSON_COMPACT);
    struct ctl_body b = { "application/json", text, text ? strlen(text) : 0, NULL };
    int rc;

    c->more = print_events;
    rc = ctl_call(c, "POST", path, &b);
    c->more = NULL;
    free(text);
    json_decref(body);
    return rc == 0 && !c->failed ? 0 : 1;
}

int ctl_generate(struct ctl *c, int argc, char **argv)
{
    const char *temperature = ctl_option(&argc, argv, "--temperature");
    const char *seed = ctl_option(&argc, argv, "--seed");
    const char *prefix = ctl_option(&argc, argv, "--prefix");
    const char *stop = ctl_option(&argc, argv, "--stop");
    bool learn = ctl_flag(&argc, argv, "--learn"), events = ctl_flag(&argc, argv, "--stream");
    json_int_t max_tokens = 0, rng_seed = 0;
    double heat = 1;
    char path[512];
    json_t *body, *reply;

    if (ctl_words(argc, argv, 2, 2, usage) || ctl_integer("N", argv[1], &max_tokens) ||
        ctl_integer("--seed", seed, &rng_seed) ||
        ctl_number("--temperature", temperature, &heat) ||
        ctl_path(path, sizeof path, argv[0], "/generate"))
        return 2;
    body = json_pack("{s:I, s:f, s:I, s:s*, s:s*, s:b, s:b}", "max_tokens", max_tokens,
                     "temperature", heat, "seed", rng_seed, "prefix", prefix, "stop", stop,
                     "learn", learn, "stream", events);
    if (events)
        return stream(c, path, body);
    reply = ctl_json(c, "POST", path, body);
    if (!reply)
        return 1;
    print_reply(reply);
    json_decref(reply);
    return 0;
}
