/* tally.h - what was learned so far, for `inspect`: tokens and mean surprise. */
#ifndef TALLY_H
#define TALLY_H

#include "fastweight/stream.h"

struct tally { /* lies in the block */
    uint64_t tokens;
    double nats;    /* sum of -ln p */
    double mean[3]; /* nats per token over the last 1k, 10k, 100k, exponential windows */
};

void tally_token(struct tally *t, double logp);
int tally_validate(const struct tally *t, struct fw_err *err);
void tally_stats(const struct tally *t, struct fw_stream_stats *ret);

#endif
