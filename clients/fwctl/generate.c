/* generate.c - fwctl generate: samples tokens and writes their bytes, or ids, to stdout. */
#include "config.h"

#include "fwctl.h"

#include <stdio.h>
#include <stdlib.h>

static const char usage[] =
    "generate ID N [--temperature T] [--seed S] [--prefix TEXT] [--learn]";

static void print_tokens(const json_t *reply)
{
    json_t *tokens = json_object_get(reply, "tokens"), *token;
    bool bytes = json_object_get(reply, "text") != NULL;
    size_t i;

    json_array_foreach (tokens, i, token) {
        long long id = json_integer_value(token);

        if (bytes)
            putchar((int)id);
        else
            printf("%lld\n", id);
    }
    if (bytes)
        putchar('\n');
}

int ctl_generate(struct ctl *c, int argc, char **argv)
{
    const char *temperature = ctl_option(&argc, argv, "--temperature");
    const char *seed = ctl_option(&argc, argv, "--seed");
    const char *prefix = ctl_option(&argc, argv, "--prefix");
    bool learn = ctl_flag(&argc, argv, "--learn");
    char path[512];
    json_t *body, *reply;

    if (ctl_words(argc, argv, 2, 2, usage) || ctl_path(path, sizeof path, argv[0], "/generate"))
        return 2;
    body = json_pack(
        "{s:I, s:f, s:I, s:s*, s:b}", "max_tokens", (json_int_t)strtol(argv[1], NULL, 10),
        "temperature", temperature ? strtod(temperature, NULL) : 1.0, "seed",
        (json_int_t)(seed ? strtoll(seed, NULL, 10) : 0), "prefix", prefix, "learn", learn);
    reply = ctl_json(c, "POST", path, body);
    if (!reply)
        return 1;
    print_tokens(reply);
    json_decref(reply);
    return 0;
}
