/* predict.c - fwctl predict: the likeliest next tokens as a table. */
#include "config.h"

#include "fwctl.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static void print_row(json_t *row)
{
    const char *text = NULL;
    json_int_t token = 0;
    double logprob = 0;
    char *quoted;
    json_t *value;

    json_unpack(row, "{s:I, s:F}", "token", &token, "logprob", &logprob);
    value = json_object_get(row, "text");
    quoted = value ? json_dumps(value, JSON_ENCODE_ANY) : NULL;
    text = quoted ? quoted : "";
    printf("%8lld  %-8s  p %.4f  %.2f bits\n", (long long)token, text, exp(logprob),
           -logprob / 0.69314718055994531);
    free(quoted);
}

int ctl_predict(struct ctl *c, int argc, char **argv)
{
    const char *top = ctl_option(&argc, argv, "--top");
    json_int_t count = 10;
    char path[512];
    json_t *body, *reply, *row;
    size_t i;

    if (ctl_words(argc, argv, 1, 2, "predict ID [PREFIX] [--top N]") ||
        ctl_integer("--top", top, &count) || ctl_path(path, sizeof path, argv[0], "/predict"))
        return 2;
    body = json_pack("{s:I, s:s*}", "top_logprobs", count, "prefix", argc > 1 ? argv[1] : NULL);
    reply = ctl_json(c, "POST", path, body);
    if (!reply)
        return 1;
    json_array_foreach (json_object_get(reply, "top"), i, row)
        print_row(row);
    json_decref(reply);
    return 0;
}
