/* sampling.h - the sampling options of a JSON body. Any thread. */
#ifndef API_SAMPLING_H
#define API_SAMPLING_H

#include <jansson.h>

#include "fastweight/err.h"
#include "fastweight/sampling.h"

struct sampling_options { /* what fw_sampling borrows */
    struct fw_bias bias[FW_BIASES_MAX];
    struct fw_stop stop[FW_STOPS_MAX];
    uint32_t stop_token[FW_STOP_TOKENS_MAX];
};

#define SAMPLING_FIELDS                                                                        \
    "temperature", "seed", "top_k", "top_p", "min_p", "repetition_penalty",                    \
        "repetition_window", "logit_bias", "stop", "stop_tokens"

/* Fills s, which borrows from o and from root, with what root names; FW_EINVAL names the field.
 * Ids and sums that only the engine can judge it judges. */
int sampling_read(struct fw_sampling *s, struct sampling_options *o, const json_t *root,
                  struct fw_err *err);

#endif
