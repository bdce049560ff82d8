/* fastweight/sampling.h - how generate draws a token from the distribution, and when it ends.
 *
 * All zero: the likeliest token, until max_tokens. In this order: z = ln p; with a repetition
 * penalty z is centred to mean 0, and of each token among the last `window` of prefix and
 * sampled ones z > 0 is divided by it, z < 0 multiplied (CTRL, arXiv:1909.05858, with a defined
 * zero); `bias` is added; at temperature 0 the largest z is taken (ties: the lower id); else
 * exp(z / temperature) are weights, of which top_k keeps the largest, top_p the fewest whose
 * sum reaches that part of what is left, min_p those of at least that part of the largest; one
 * of these is drawn in proportion. Plain data; borrowed until the request is done. */
#ifndef FW_SAMPLING_H
#define FW_SAMPLING_H

#include <stddef.h>
#include <stdint.h>

enum {
    FW_SAMPLING_WINDOW = 64, /* of the repetition penalty, when none is named */
    FW_SAMPLING_WINDOW_MAX = 4096,
    FW_BIASES_MAX = 1024,
    FW_STOPS_MAX = 4,
    FW_STOP_BYTES_MAX = 256,
    FW_STOP_TOKENS_MAX = 16
};

struct fw_bias {
    uint32_t token;
    double add; /* to ln p */
};

struct fw_stop { /* any bytes, 1 to FW_STOP_BYTES_MAX */
    const char *text;
    size_t len;
};

struct fw_sampling {
    float temperature;
    uint64_t seed;
    size_t top_k;               /* 0: all */
    double top_p, min_p;        /* 0: all */
    double repetition_penalty;  /* 0 and 1: none */
    size_t window;              /* 0: FW_SAMPLING_WINDOW */
    const struct fw_bias *bias; /* each token once */
    size_t biases;
    const struct fw_stop *stop; /* the text ends before the first that is complete */
    size_t stops;
    const uint32_t *stop_token; /* the tokens end before the first of them */
    size_t stop_tokens;
};

enum fw_finish { FW_FINISH_LENGTH, FW_FINISH_STOP };

#endif
