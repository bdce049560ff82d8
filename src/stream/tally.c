/* tally.c - counting tokens and their surprise inside the block. */
#include "config.h"

#include "tally.h"

#define LN2 0.69314718055994530942

/* What learning keeps, also from a foreign block at the bounds: a token's nats, below 89, are
 * rounded away at 2^60. */
#define NATS_MAX   0x1p60
#define TOKENS_MAX (UINT64_MAX / 2)

static const double window[3] = { 1e3, 1e4, 1e5 };

void tally_token(struct tally *t, double logp)
{
    double n;

    t->tokens += t->tokens < TOKENS_MAX;
    n = (double)t->tokens;
    t->nats -= logp;
    for (int i = 0; i < 3; i++)
        t->mean[i] += (-logp - t->mean[i]) / (n < window[i] ? n : window[i]);
}

static int sane(double x)
{
    return x >= 0 && x <= NATS_MAX;
}

int tally_validate(const struct tally *t, struct fw_err *err)
{
    if (sane(t->nats) && sane(t->mean[0]) && sane(t->mean[1]) && sane(t->mean[2]) &&
        t->tokens <= TOKENS_MAX)
        return 0;
    return fw_fail_param(err, FW_EINVAL, "bad_state", "tally", "a mean is out of range");
}

void tally_stats(const struct tally *t, struct fw_stream_stats *ret)
{
    ret->tokens = t->tokens;
    ret->bits_all = t->tokens ? t->nats / (double)t->tokens / LN2 : 0;
    ret->bits_1k = t->mean[0] / LN2;
    ret->bits_10k = t->mean[1] / LN2;
    ret->bits_100k = t->mean[2] / LN2;
}
