/* sampling.c - the sampling options of a JSON body: types and ranges; whether a token id exists
 * and whether the model has text is for the engine to say. */
#include "config.h"

#include "sampling.h"

#include <string.h>

#include "in.h"
#include "query.h"

static int wrong(const char *key, const char *what, struct fw_err *err)
{
    return fw_fail_param(err, FW_EINVAL, "bad_value", key, "%s must be %s", key, what);
}

static int read_bias(struct fw_bias *b, const char *key, const json_t *v, struct fw_err *err)
{
    uint64_t token;

    if (query_parse_size(key, UINT32_MAX, &token) < 0 || (key[0] == '0' && key[1]))
        return wrong("logit_bias", "an object from token ids to numbers", err);
    if (!json_is_number(v))
        return wrong("logit_bias", "an object from token ids to numbers", err);
    *b = (struct fw_bias){ (uint32_t)token, json_number_value(v) };
    return 0;
}

static int read_biases(struct fw_sampling *s, struct sampling_options *o, const json_t *root,
                       struct fw_err *err)
{
    json_t *v = json_object_get(root, "logit_bias");
    void *iter;

    if (!v)
        return 0;
    if (!json_is_object(v) || json_object_size(v) > FW_BIASES_MAX)
        return wrong("logit_bias", "an object of at most 1024 token ids", err);
    for (iter = json_object_iter(v); iter; iter = json_object_iter_next(v, iter)) {
        if (read_bias(&o->bias[s->biases], json_object_iter_key(iter),
                      json_object_iter_value(iter), err) < 0)
            return -1;
        s->biases++;
    }
    s->bias = o->bias;
    return 0;
}

static int read_stop(struct fw_sampling *s, struct sampling_options *o, const json_t *v,
                     struct fw_err *err)
{
    size_t len = json_string_length(v);

    if (!json_is_string(v) || len == 0 || len > FW_STOP_BYTES_MAX)
        return wrong("stop", "a string of 1 to 256 bytes, or 1 to 4 of them", err);
    o->stop[s->stops++] = (struct fw_stop){ json_string_value(v), len };
    return 0;
}

static int read_stops(struct fw_sampling *s, struct sampling_options *o, const json_t *root,
                      struct fw_err *err)
{
    const json_t *v = json_object_get(root, "stop");
    size_t i, n = json_array_size(v);

    if (!v)
        return 0;
    s->stop = o->stop;
    if (!json_is_array(v))
        return read_stop(s, o, v, err);
    if (n < 1 || n > FW_STOPS_MAX)
        return wrong("stop", "a string of 1 to 256 bytes, or 1 to 4 of them", err);
    for (i = 0; i < n; i++) {
        if (read_stop(s, o, json_array_get(v, i), err) < 0)
            return -1;
    }
    return 0;
}

static int read_stop_tokens(struct fw_sampling *s, struct sampling_options *o,
                            const json_t *root, struct fw_err *err)
{
    const json_t *item, *v = json_object_get(root, "stop_tokens");
    size_t i, n = json_array_size(v);

    if (!v)
        return 0;
    if (!json_is_array(v) || n < 1 || n > FW_STOP_TOKENS_MAX)
        return wrong("stop_tokens", "1 to 16 token ids", err);
    for (i = 0; i < n; i++) {
        item = json_array_get(v, i);
        if (!json_is_integer(item) || json_integer_value(item) < 0 ||
            json_integer_value(item) > UINT32_MAX)
            return wrong("stop_tokens", "1 to 16 token ids", err);
        o->stop_token[i] = (uint32_t)json_integer_value(item);
    }
    s->stop_token = o->stop_token;
    s->stop_tokens = n;
    return 0;
}

static int read_numbers(struct fw_sampling *s, const json_t *root, struct fw_err *err)
{
    uint64_t top_k = 0, window = 0;
    double temperature = 1;

    s->top_p = s->repetition_penalty = 1;
    if (in_number(root, "temperature", 0, 100, &temperature, err) < 0 ||
        in_size(root, "seed", 0, INT64_MAX, &s->seed, err) < 0 ||
        in_size(root, "top_k", 0, UINT32_MAX, &top_k, err) < 0 ||
        in_number(root, "top_p", 1e-9, 1, &s->top_p, err) < 0 ||
        in_number(root, "min_p", 0, 1, &s->min_p, err) < 0 ||
        in_number(root, "repetition_penalty", 0.01, 100, &s->repetition_penalty, err) < 0 ||
        in_size(root, "repetition_window", 1, FW_SAMPLING_WINDOW_MAX, &window, err) < 0)
        return -1;
    s->temperature = (float)temperature;
    s->top_k = top_k;
    s->window = window;
    return 0;
}

int sampling_read(struct fw_sampling *s, struct sampling_options *o, const json_t *root,
                  struct fw_err *err)
{
    if (read_numbers(s, root, err) < 0 || read_biases(s, o, root, err) < 0 ||
        read_stops(s, o, root, err) < 0 || read_stop_tokens(s, o, root, err) < 0)
        return -1;
    return 0;
}
