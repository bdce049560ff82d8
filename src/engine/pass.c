/* pass.c - one way through a body's tokens, in slices: learning, scoring or reading them.
 *
 * The cut into chunks follows the clock, so nothing may depend on it: surprise is summed token
 * by token in order, total = sum of bits, mean = total / (tokens * width) rounded once. One
 * worker at a time. */
#include "config.h"

#include "parts.h"
#include "share.h"

#include <stdlib.h>
#include <string.h>

#include "fastweight/clock.h"

enum {
    CHUNK_TOKENS = 1024,
    CHUNK_VALUES = 8192,
    CHUNK_FIRST = 16,
    LONG_NS = 100000,  /* a chunk that takes as long is worth waking other workers for */
    CHUNKS_ALONE = 64, /* after help did not pay */
};

int out_of_memory(struct fw_err *err)
{
    return fw_fail(err, FW_ENOMEM, "out_of_memory", "out of memory");
}

/* malloc of a * b * size bytes, never NULL for none. */
static void *array_new(size_t a, size_t b, size_t size)
{
    size_t n;

    if (__builtin_mul_overflow(a, b, &n) || __builtin_mul_overflow(n, size, &n))
        return NULL;
    return malloc(n ? n : 1);
}

static int lines_init(struct pass *p, struct fw_err *err)
{
    const struct fw_tensor *t = fw_tensors_find(p->in, "tokens");
    const unsigned char *at, *end;
    size_t lines = 0;

    if (p->l->token_bytes != 1 || !t)
        return fw_fail_param(err, FW_EINVAL, "no_lines", "surprise",
                             "surprise=lines is for models whose tokens are bytes");
    at = t->data;
    end = at + p->tokens;
    while (at < end && (at = memchr(at, '\n', (size_t)(end - at))) != NULL) {
        at++;
        lines++;
    }
    if (p->tokens && end[-1] != '\n')
        lines++;
    if (lines > LINES_MAX)
        return fw_fail_param(err, FW_EINVAL, "too_many_lines", "surprise",
                             "surprise=lines takes at most %d lines", LINES_MAX);
    p->line = array_new(lines, 1, sizeof *p->line);
    return p->line ? 0 : out_of_memory(err);
}

int pass_init(struct pass *p, const struct fw_learner *l, const struct fw_tensors *in,
              size_t tokens, enum fw_detail detail, struct fw_err *err)
{
    memset(p, 0, sizeof *p);
    p->l = l;
    p->in = in;
    p->tokens = tokens;
    p->chunk_min = l->batch ? l->batch : 1;
    p->chunk_max = CHUNK_VALUES / (l->width ? l->width : 1);
    if (p->chunk_max > CHUNK_TOKENS)
        p->chunk_max = CHUNK_TOKENS;
    if (p->chunk_max < p->chunk_min)
        p->chunk_max = p->chunk_min;
    p->chunk = p->chunk_min > CHUNK_FIRST ? p->chunk_min : CHUNK_FIRST;
    if (p->chunk > p->chunk_max)
        p->chunk = p->chunk_max;
    if (detail == FW_DETAIL_NONE)
        return 0;
    if (detail == FW_DETAIL_TOKENS) {
        p->detail = array_new(tokens, l->width, sizeof *p->detail);
        return p->detail ? 0 : out_of_memory(err);
    }
    if (detail == FW_DETAIL_LINES && lines_init(p, err) < 0)
        return -1;
    p->scratch = array_new(p->chunk_max, l->width, sizeof *p->scratch);
    return p->scratch ? 0 : out_of_memory(err);
}

/* A short key may ask for a long value: without a limit a body would ask for a thousand times
 * its own size. */
int pass_values(struct pass *p, struct fw_err *err)
{
    size_t each = p->l->values[0] * p->l->values[1];

    if (each && p->tokens > VALUES_MAX / each)
        return fw_fail_param(err, FW_ETOOBIG, "too_many_values", "queries",
                             "queries times heads times d_v may be %d", VALUES_MAX);
    p->values = array_new(p->tokens, each, sizeof *p->values);
    return p->values ? 0 : out_of_memory(err);
}

void pass_done(struct pass *p)
{
    free(p->scratch);
    free(p->detail);
    free(p->values);
    free(p->line);
    p->scratch = p->detail = NULL;
    p->values = NULL;
    p->line = NULL;
}

/* One token's bits go to its line, which ends with its newline or the body. */
static void add_to_line(struct pass *p, const unsigned char *tokens, size_t i, double bits)
{
    if (i == 0 || tokens[i - 1] == '\n')
        p->line[p->lines++] = (struct fw_line){ .start = i };
    p->line[p->lines - 1].tokens++;
    p->line[p->lines - 1].bits += bits;
}

static void account(struct pass *p, const double *surprise, size_t n)
{
    const struct fw_tensor *t;
    size_t i;

    for (i = 0; i < n * p->l->width; i++)
        p->total += surprise[i];
    if (!p->line)
        return;
    t = fw_tensors_find(p->in, "tokens");
    for (i = 0; i < n; i++)
        add_to_line(p, t->data, p->from + i, surprise[i]);
}

/* The size of the next chunk: a good part of a slice, whatever a token costs; but what costs
 * less together is not taken apart, lest a busy machine slows itself down. */
static size_t next_chunk(struct pass *p, uint64_t took_ns)
{
    if (took_ns < SLICE_NS / 4 && p->chunk < p->chunk_max)
        p->chunk *= 2;
    else if (took_ns > SLICE_NS / 2)
        p->chunk /= 2;
    if (p->chunk > p->chunk_max)
        p->chunk = p->chunk_max;
    if (p->chunk < p->chunk_min)
        p->chunk = p->chunk_min;
    return p->chunk;
}

/* A helper that other programs keep from its core holds up the whole chunk. So help is asked
 * for after a long chunk, and for a while no more when tokens then took longer than alone. */
static void judge_help(struct pass *p, uint64_t took_ns, size_t n)
{
    double token_ns = (double)took_ns / (double)n;

    if (p->spread) {
        p->spread = token_ns < p->alone_ns;
        p->alone = p->spread ? 0 : CHUNKS_ALONE;
        return;
    }
    p->alone_ns = token_ns;
    if (p->alone > 0)
        p->alone--;
    else
        p->spread = took_ns >= LONG_NS && p->l->kind->learn_spread;
}

enum what { LEARN, SCORE, RECALL };

static void do_chunk(struct pass *p, enum what what, void *block, struct fw_view *v, size_t n)
{
    const struct fw_learner_kind *kind = p->l->kind;
    double *surprise = p->detail ? p->detail + p->from * p->l->width : p->scratch;
    float *values = p->values ? p->values + p->from * p->l->values[0] * p->l->values[1] : NULL;

    switch (what) {
    case LEARN:
        (p->spread ? kind->learn_spread : kind->learn)(p->l, block, p->in, p->from, n, surprise,
                                                       values);
        break;
    case SCORE:
        kind->score(v, p->in, p->from, n, surprise);
        break;
    case RECALL:
        kind->recall(v, p->in, p->from, n, values);
        return;
    }
    if (surprise)
        account(p, surprise, n);
}

static bool run(struct pass *p, enum what what, void *block, struct fw_view *v,
                uint64_t deadline)
{
    uint64_t before, now = fw_clock_mono_ns();
    size_t n = p->chunk;

    while (p->from < p->tokens) {
        if (n > p->tokens - p->from)
            n = p->tokens - p->from;
        do_chunk(p, what, block, v, n);
        p->from += n;
        before = now;
        now = fw_clock_mono_ns();
        judge_help(p, now - before, n);
        n = next_chunk(p, now - before);
        if (now >= deadline)
            break;
    }
    return p->from == p->tokens;
}

bool pass_learn(struct pass *p, void *block, uint64_t deadline)
{
    return run(p, LEARN, block, NULL, deadline);
}

bool pass_score(struct pass *p, struct fw_view *v, uint64_t deadline)
{
    return run(p, SCORE, NULL, v, deadline);
}

bool pass_recall(struct pass *p, struct fw_view *v, uint64_t deadline)
{
    return run(p, RECALL, NULL, v, deadline);
}

void pass_rest(const struct pass *p, void *block, struct fw_learner_part *ret)
{
    *ret = (struct fw_learner_part){ .block = block,
                                     .in = p->in,
                                     .from = p->from,
                                     .n = p->tokens - p->from,
                                     .surprise = p->detail ? p->detail + p->from * p->l->width
                                                           : p->scratch };
}

void pass_end(struct pass *p)
{
    size_t n = p->tokens - p->from;

    if (p->detail)
        account(p, p->detail + p->from * p->l->width, n);
    else if (p->scratch)
        account(p, p->scratch, n);
    p->from = p->tokens;
}

double pass_mean(const struct pass *p)
{
    return p->tokens ? p->total / (double)(p->tokens * p->l->width) : 0;
}

void pass_take(struct pass *p, struct fw_request *r)
{
    r->tokens = p->tokens;
    r->total = p->total;
    r->mean = pass_mean(p);
    r->detail_value = p->detail;
    r->detail_width = p->l->width;
    r->line = p->line;
    r->lines = p->lines;
    r->values = p->values;
    if (p->values) {
        r->values_shape[0] = p->tokens;
        r->values_shape[1] = p->l->values[0];
        r->values_shape[2] = p->l->values[1];
        r->values_count = p->tokens * p->l->values[0] * p->l->values[1];
    }
    p->detail = NULL;
    p->line = NULL;
    p->values = NULL;
}
