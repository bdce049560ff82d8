/* generate.c - fwctl generate: samples tokens and writes their bytes, or ids, to stdout. */
#include "config.h"

#include "fwctl.h"

#include <stdio.h>

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
    json_int_t max_tokens = 0, rng_seed = 0;
    double heat = 1;
    char path[512];
    json_t *body, *reply;

    if (ctl_words(argc, argv, 2, 2, usage) || ctl_integer("N", argv[1], &max_tokens) ||
        ctl_integer("--seed", seed, &rng_seed) ||
        ctl_number("--temperature", temperature, &heat) ||
        ctl_path(path, sizeof path, argv[0], "/generate"))
        return 2;
    body = json_pack("{s:I, s:f, s:I, s:s*, s:b}", "max_tokens", max_tokens, "temperature",
                     heat, "seed", rng_seed, "prefix", prefix, "learn", learn);
    reply = ctl_json(c, "POST", path, body);
    if (!reply)
        return 1;
    print_tokens(reply);
    json_decref(reply);
    return 0;
}
