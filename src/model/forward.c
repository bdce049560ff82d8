/* forward.c - feeding tokens: a chunk of a session goes through the layers together.
 *
 *     x = embed[token] (+ positions[t]), through a first norm where there is one
 *     x += layer_l(x), l = 0, 1, ...
 *     hidden = last norm of x;  logits = head hidden;  ln p = log softmax, in double
 *
 * logp of a token comes from the hidden vector before it: of the block, then of the chunk's own
 * rows. The head is computed only for rows whose logp is wanted. A chunk ends where a bounded
 * context is full: then the memories are emptied and positions start again at 0. What is no
 * number becomes 0 before it reaches a block, so weights that overflow give bad predictions,
 * never a broken block. */
#include "config.h"

#include "inside.h"

#include <string.h>

#include "fastweight/fmath.h"

#define LOGIT_MAX 1e30f

static uint64_t *tokens_of(const struct fw_model *m, const void *block)
{
    return (uint64_t *)(uintptr_t)((const char *)block + m->at_tokens);
}

static float *hidden_of(const struct fw_model *m, const void *block)
{
    return (float *)(uintptr_t)((const char *)block + m->at_hidden);
}

static void embed(const struct fw_checkpoint *c, const uint32_t *tokens, size_t n,
                  size_t position, float *x)
{
    float *row = x + n * c->shape.d_model; /* one more row is there */

    for (size_t t = 0; t < n; t++, x += c->shape.d_model) {
        fw_matrix_row(&c->embed, tokens[t], x);
        if (!c->positions.data)
            continue;
        fw_matrix_row(&c->positions, position + t, row);
        fw_parts()->add(x, row, c->shape.d_model);
    }
}

/* logits (rows, vocab) of hidden vectors. */
static void head(const struct fw_checkpoint *c, const float *hidden, size_t rows, float *logits)
{
    fw_linear_rows(&c->head, hidden, rows, logits);
    fw_parts()->bound(logits, rows * c->shape.vocab, LOGIT_MAX);
}

static void note_logp(const struct fw_model *m, const float *hidden, uint64_t at,
                      const uint32_t *tokens, struct fw_chunk *c, double *logp)
{
    size_t vocab = m->c->shape.vocab;
    float *logits = fw_chunk_take(c, c->n, vocab);

    head(m->c, hidden, c->n, logits);
    for (size_t t = 0; t < c->n; t++) {
        const float *l = logits + t * vocab;

        logp[t] = at + t == 0 ? -fw_log((double)vocab)
                              : (double)l[tokens[t]] - fw_parts()->log_sum_exp(l, vocab);
    }
}

/* The last norm of (n, d) rows. */
static void last_norm(const struct fw_checkpoint *c, const float *x, size_t n, float *y)
{
    size_t d = c->shape.d_model;

    if (c->arch->rms)
        fw_rms_norm_rows(&c->last, c->set.eps, x, n, d, y);
    else
        fw_layer_norm_rows(&c->last, c->set.eps, x, n, d, y);
    fw_parts()->bound(y, n * d, FW_LIMIT);
}

static void run_chunk(const struct fw_model *m, void *block, const uint32_t *tokens,
                      struct fw_chunk *c, double *logp)
{
    const struct fw_checkpoint *ck = m->c;
    size_t d = ck->shape.d_model, mark;
    uint64_t *at = tokens_of(m, block);
    float *h;

    c->x = fw_chunk_take(c, c->n + 1, d);
    c->first = fw_chunk_take(c, c->n, d);
    h = fw_chunk_take(c, c->n + 1, d);
    mark = c->used;
    embed(ck, tokens, c->n, m->max_context ? (size_t)(*at % m->max_context) : 0, c->x);
    if (ck->first.w)
        fw_layer_norm_rows(&ck->first, ck->set.eps, c->x, c->n, d, c->x);
    for (size_t layer = 0; layer < ck->shape.layers; layer++) {
        ck->arch->layer(m, block, layer, c);
        c->used = mark;
    }
    memcpy(h, hidden_of(m, block), d * sizeof *h);
    last_norm(ck, c->x, c->n, h + d);
    if (logp)
        note_logp(m, h, *at, tokens, c, logp);
    memcpy(hidden_of(m, block), h + c->n * d, d * sizeof *h);
    *at += c->n;
}

/* Tokens that the next chunk may have; empties a context that is full. */
static size_t room(const struct fw_model *m, void *block)
{
    uint64_t at = *tokens_of(m, block);
    size_t used;

    if (m->max_context == 0)
        return FW_CHUNK;
    used = (size_t)(at % m->max_context);
    for (size_t i = 0; used == 0 && at && i < m->c->shape.layers; i++)
        fw_memory_init(m->memory, (char *)block + i * m->layer_bytes);
    return m->max_context - used < FW_CHUNK ? m->max_context - used : FW_CHUNK;
}

void fw_model_learn(const struct fw_model *m, void *block, const uint32_t *tokens, size_t n,
                    double *logp)
{
    struct fw_scratch *s = fw_scratch_take(m);

    for (size_t done = 0; done < n;) {
        struct fw_chunk c = { .n = room(m, block), .scratch = s };

        c.n = c.n < n - done ? c.n : n - done;
        run_chunk(m, block, tokens + done, &c, logp ? logp + done : NULL);
        done += c.n;
    }
    fw_scratch_give(m, s);
}

void fw_model_init(const struct fw_model *m, void *block)
{
    for (size_t i = 0; i < m->c->shape.layers; i++)
        fw_memory_init(m->memory, (char *)block + i * m->layer_bytes);
}

void fw_model_logits(const struct fw_model *m, const void *block, float *logits)
{
    if (*tokens_of(m, block) == 0)
        memset(logits, 0, m->c->shape.vocab * sizeof *logits);
    else
        head(m->c, hidden_of(m, block), 1, logits);
}

void fw_model_predict(const struct fw_model *m, const void *block, double *logp)
{
    struct fw_scratch *s = fw_scratch_take(m);
    struct fw_chunk c = { .n = 1, .scratch = s };
    size_t vocab = m->c->shape.vocab;
    float *logits = fw_chunk_take(&c, 1, vocab);
    double sum;

    fw_model_logits(m, block, logits);
    sum = *tokens_of(m, block) ? fw_parts()->log_sum_exp(logits, vocab) : fw_log((double)vocab);
    for (size_t i = 0; i < vocab; i++)
        logp[i] = (double)logits[i] - sum;
    fw_scratch_give(m, s);
}
