/* sampler.c - a token from ln p (vocab,), as fastweight/sampling.h orders it.
 *
 * Weights are w = exp((z - max z) / temperature). Truncation needs them in descending order
 * (equal ones by id), but rarely far down: `order` is a heap of ids that is sorted only as far
 * as one looks, from its end. Without truncation the draw walks in order of id. A token in the
 * window counts once; `seen` is a bit each, set and cleared for every draw. Sums run in one
 * fixed order and exp is our own, so a seed gives the same tokens everywhere. */
#include "config.h"

#include "sampler.h"

#include <stdlib.h>
#include <string.h>

#include "fastweight/fmath.h"

struct sampler {
    const struct fw_sampling *s;
    uint32_t vocab;
    size_t sorted;   /* of `order`, at its end: the largest is the last */
    size_t window;   /* 0: no penalty */
    size_t at, fill; /* of `recent`, a ring */
    double *z;       /* (vocab,) */
    double *asked;   /* (vocab,) z as it was put there */
    uint32_t *order; /* (vocab,) or NULL: nothing is truncated */
    uint32_t *recent;
    unsigned char *seen; /* (vocab / 8 + 1) */
};

static bool truncates(const struct fw_sampling *s)
{
    return s->top_k > 0 || (s->top_p > 0 && s->top_p < 1) || s->min_p > 0;
}

static bool penalises(const struct fw_sampling *s)
{
    return s->repetition_penalty > 0 && s->repetition_penalty != 1;
}

bool sampling_is_plain(const struct fw_sampling *s)
{
    return !truncates(s) && !penalises(s) && s->biases == 0;
}

static int out_of_range(const char *param, const char *range, struct fw_err *err)
{
    return fw_fail_param(err, FW_EINVAL, "bad_value", param, "%s must lie in %s", param, range);
}

static int check_biases(const struct fw_sampling *s, uint32_t vocab, struct fw_err *err)
{
    size_t i;

    if (s->biases > FW_BIASES_MAX)
        return fw_fail_param(err, FW_EINVAL, "bad_value", "logit_bias",
                             "logit_bias takes at most %d tokens", FW_BIASES_MAX);
    for (i = 0; i < s->biases; i++) {
        if (s->bias[i].token >= vocab)
            return fw_fail_param(err, FW_EINVAL, "bad_value", "logit_bias",
                                 "logit_bias names token %lu, the vocabulary has %lu",
                                 (unsigned long)s->bias[i].token, (unsigned long)vocab);
        if (!(s->bias[i].add >= -100 && s->bias[i].add <= 100))
            return out_of_range("logit_bias", "[-100, 100]", err);
    }
    return 0;
}

static int check_stops(const struct fw_sampling *s, uint32_t vocab, struct fw_err *err)
{
    size_t i;

    if (s->stops > FW_STOPS_MAX)
        return fw_fail_param(err, FW_EINVAL, "bad_value", "stop", "stop takes 1 to %d strings",
                             FW_STOPS_MAX);
    for (i = 0; i < s->stops; i++) {
        if (s->stop[i].len < 1 || s->stop[i].len > FW_STOP_BYTES_MAX)
            return fw_fail_param(err, FW_EINVAL, "bad_value", "stop",
                                 "a stop string has 1 to %d bytes", FW_STOP_BYTES_MAX);
    }
    if (s->stop_tokens > FW_STOP_TOKENS_MAX)
        return fw_fail_param(err, FW_EINVAL, "bad_value", "stop_tokens",
                             "stop_tokens takes at most %d tokens", FW_STOP_TOKENS_MAX);
    for (i = 0; i < s->stop_tokens; i++) {
        if (s->stop_token[i] >= vocab)
            return fw_fail_param(err, FW_EINVAL, "bad_value", "stop_tokens",
                                 "stop_tokens names token %lu, the vocabulary has %lu",
                                 (unsigned long)s->stop_token[i], (unsigned long)vocab);
    }
    return 0;
}

int sampling_check(const struct fw_sampling *s, uint32_t vocab, struct fw_err *err)
{
    if (!(s->temperature >= 0 && s->temperature <= 100))
        return out_of_range("temperature", "[0, 100]", err);
    if (!(s->top_p >= 0 && s->top_p <= 1))
        return out_of_range("top_p", "(0, 1]", err);
    if (!(s->min_p >= 0 && s->min_p <= 1))
        return out_of_range("min_p", "[0, 1]", err);
    if (s->repetition_penalty != 0 &&
        !(s->repetition_penalty >= 0.01 && s->repetition_penalty <= 100))
        return out_of_range("repetition_penalty", "[0.01, 100]", err);
    if (s->window > FW_SAMPLING_WINDOW_MAX)
        return out_of_range("repetition_window", "[1, 4096]", err);
    return check_biases(s, vocab, err) < 0 ? -1 : check_stops(s, vocab, err);
}

/* ---- the heap of ids: by z, descending, then by id */

static bool before(const struct sampler *sm, uint32_t a, uint32_t b)
{
    return sm->z[a] > sm->z[b] || (sm->z[a] == sm->z[b] && a < b);
}

static void sift(struct sampler *sm, size_t i, size_t n)
{
    uint32_t *heap = sm->order, moving = heap[i];
    size_t child;

    while ((child = 2 * i + 1) < n) {
        if (child + 1 < n && before(sm, heap[child + 1], heap[child]))
            child++;
        if (!before(sm, heap[child], moving))
            break;
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = moving;
}

static void heap_make(struct sampler *sm)
{
    size_t i;

    for (i = 0; i < sm->vocab; i++)
        sm->order[i] = (uint32_t)i;
    for (i = sm->vocab / 2; i-- > 0;)
        sift(sm, i, sm->vocab);
    sm->sorted = 0;
}

/* The id with the i-th largest z. */
static uint32_t nth(struct sampler *sm, size_t i)
{
    uint32_t *heap = sm->order, top;
    size_t last;

    while (sm->sorted <= i) {
        last = sm->vocab - 1 - sm->sorted++;
        top = heap[0];
        heap[0] = heap[last];
        heap[last] = top;
        sift(sm, 0, last);
    }
    return heap[sm->vocab - 1 - i];
}

/* ---- one draw */

/* z gets mean 0, as logits have it by and large; what is -inf stays out of that. */
static void centre(struct sampler *sm)
{
    double sum = 0;
    uint32_t i, n = 0;

    for (i = 0; i < sm->vocab; i++) {
        if (sm->z[i] > -1e300) {
            sum += sm->z[i];
            n++;
        }
    }
    for (i = 0; n > 0 && i < sm->vocab; i++)
        sm->z[i] -= sum / n;
}

static void penalise(struct sampler *sm)
{
    const double penalty = sm->s->repetition_penalty;
    unsigned char bit;
    uint32_t token;
    double *z;
    size_t i;

    centre(sm);
    for (i = 0; i < sm->fill; i++) {
        token = sm->recent[i];
        z = &sm->z[token];
        bit = (unsigned char)(1u << (token & 7));
        if (!(sm->seen[token >> 3] & bit))
            *z = *z > 0 ? *z / penalty : *z * penalty;
        sm->seen[token >> 3] |= bit;
    }
    for (i = 0; i < sm->fill; i++)
        sm->seen[sm->recent[i] >> 3] = 0;
}

static uint32_t likeliest(const struct sampler *sm)
{
    uint32_t i, best = 0;

    for (i = 1; i < sm->vocab; i++) {
        if (sm->z[i] > sm->z[best])
            best = i;
    }
    return best;
}

/* In [0, 1); splitmix64. */
static double uniform(uint64_t *rng)
{
    uint64_t x = *rng += UINT64_C(0x9e3779b97f4a7c15);

    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return (double)((x ^ x >> 31) >> 11) * 0x1p-53;
}

/* z becomes weights, the largest 1; returns their sum. */
static double weigh(struct sampler *sm, double top)
{
    double sum = 0;
    uint32_t i;

    for (i = 0; i < sm->vocab; i++) {
        sm->z[i] = fw_exp((sm->z[i] - top) / (double)sm->s->temperature);
        sum += sm->z[i];
    }
    return sum;
}

/* How many of the largest stay; *sum: of the weights, becomes that of the rest. */
static size_t truncate_to(struct sampler *sm, double *sum)
{
    const struct fw_sampling *s = sm->s;
    size_t i, n = sm->vocab;
    double part = 0, least;

    if (s->top_k > 0 && s->top_k < n) {
        n = s->top_k;
        for (*sum = 0, i = 0; i < n; i++)
            *sum += sm->z[nth(sm, i)];
    }
    for (i = 0; s->top_p > 0 && s->top_p < 1 && i < n; i++) {
        part += sm->z[nth(sm, i)];
        if (part >= s->top_p * *sum)
            n = i + 1;
    }
    least = s->min_p * sm->z[nth(sm, 0)];
    for (*sum = 0, i = 0; i < n; i++) {
        if (sm->z[nth(sm, i)] < least)
            n = i;
        else
            *sum += sm->z[nth(sm, i)];
    }
    return n;
}

static uint32_t draw_of(struct sampler *sm, size_t n, double sum, uint64_t *rng)
{
    double u = uniform(rng) * sum;
    uint32_t id = sm->order ? nth(sm, 0) : 0;
    size_t i;

    for (i = 0; i < n; i++) {
        id = sm->order ? nth(sm, i) : (uint32_t)i;
        if (u < sm->z[id])
            break;
        u -= sm->z[id];
    }
    return id;
}

static uint32_t choose(struct sampler *sm, uint64_t *rng)
{
    const struct fw_sampling *s = sm->s;
    size_t i, n = sm->vocab;
    uint32_t best;
    double sum;

    if (sm->window)
        penalise(sm);
    for (i = 0; i < s->biases; i++)
        sm->z[s->bias[i].token] += s->bias[i].add;
    best = likeliest(sm);
    if (!(s->temperature > 0))
        return best;
    sum = weigh(sm, sm->z[best]);
    if (!(sum > 0 && sum < (double)sm->vocab + 1)) /* no number anywhere */
        return best;
    if (sm->order) {
        heap_make(sm);
        n = truncate_to(sm, &sum);
    }
    return draw_of(sm, n, sum, rng);
}

uint32_t sampler_draw(struct sampler *sm, uint64_t *rng, double *logp)
{
    uint32_t token;

    if (logp)
        memcpy(sm->asked, sm->z, sm->vocab * sizeof *sm->z);
    token = choose(sm, rng);
    if (logp)
        *logp = sm->asked[token];
    return token;
}

void sampler_saw(struct sampler *sm, uint32_t token)
{
    if (!sm->window)
        return;
    sm->recent[sm->at] = token;
    sm->at = (sm->at + 1) % sm->window;
    sm->fill += sm->fill < sm->window;
}

double *sampler_logp(struct sampler *sm)
{
    return sm->z;
}

int sampler_new(struct sampler **ret, const struct fw_sampling *s, uint32_t vocab,
                struct fw_err *err)
{
    struct sampler *sm = calloc(1, sizeof *sm);
    bool order = truncates(s) && s->temperature > 0;

    if (!sm)
        return fw_fail(err, FW_ENOMEM, "out_of_memory", "no memory for a sampler");
    sm->s = s;
    sm->vocab = vocab;
    if (penalises(s))
        sm->window = s->window ? s->window : FW_SAMPLING_WINDOW;
    sm->z = malloc(vocab * sizeof *sm->z);
    sm->asked = malloc(vocab * sizeof *sm->asked);
    sm->order = order ? malloc(vocab * sizeof *sm->order) : NULL;
    sm->recent = calloc(sm->window + 1, sizeof *sm->recent);
    sm->seen = calloc(vocab / 8 + 1, 1);
    if (!sm->z || !sm->asked || (order && !sm->order) || !sm->recent || !sm->seen) {
        sampler_free(sm);
        return fw_fail(err, FW_ENOMEM, "out_of_memory", "no memory for a sampler");
    }
    *ret = sm;
    return 0;
}

void sampler_free(struct sampler *sm)
{
    if (!sm)
        return;
    free(sm->z);
    free(sm->asked);
    free(sm->order);
    free(sm->recent);
    free(sm->seen);
    free(sm);
}
