/* forward.c - feeding tokens: a chunk goes through the layers together, of one session or of
 * several, as many tokens of each as there is room for.
 *
 *     x = embed[token] (+ positions[t]), through a first norm where there is one
 *     x += layer_l(x), l = 0, 1, ...
 *     hidden = last norm of x;  logits = head hidden;  ln p = log softmax, in double
 *
 * logp of a token comes from the hidden vector before it: of the block, then of the chunk's own
 * rows. The head is computed only for rows whose logp is wanted. A session's rows end where its
 * bounded context is full: then the memories are emptied and positions start again at 0. What
 * is no number becomes 0 before it reaches a block, so weights that overflow give bad
 * predictions, never a broken block. */
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

/* The rows of span i are the first tokens of part[i]-> */
static void embed(const struct fw_model *m, struct fw_model_part *const *part,
                  struct fw_chunk *c)
{
    const struct fw_checkpoint *ck = m->c;
    size_t d = ck->shape.d_model;
    float *row = fw_chunk_take(c, 1, d), *x = c->x;

    for (size_t i = 0; i < c->spans; i++) {
        size_t at = m->max_context ? *tokens_of(m, part[i]->block) % m->max_context : 0;

        for (size_t t = 0; t < c->span[i].n; t++, x += d) {
            fw_matrix_row(&ck->embed, part[i]->tokens[t], x);
            if (!ck->positions.data)
                continue;
            fw_matrix_row(&ck->positions, at + t, row);
            fw_parts()->add(x, row, d);
        }
    }
}

/* logits (rows, vocab) of hidden vectors. */
static void head(const struct fw_checkpoint *c, const float *hidden, size_t rows, float *logits)
{
    fw_linear_rows(&c->head, hidden, rows, logits);
    fw_parts()->bound(logits, rows * c->shape.vocab, LOGIT_MAX);
}

static bool asks(const struct fw_model_part *p)
{
    return p->logp || p->logits;
}

/* The hidden vectors that predict the rows of parts that ask; how many. */
static size_t before(const struct fw_model *m, struct fw_model_part *const *part,
                     const struct fw_chunk *c, const float *hidden, float *ret)
{
    size_t d = m->c->shape.d_model, rows = 0;

    for (size_t i = 0; i < c->spans; i++) {
        const struct fw_span *s = &c->span[i];

        if (!asks(part[i]))
            continue;
        memcpy(ret + rows * d, hidden_of(m, s->block), d * sizeof *ret);
        memcpy(ret + (rows + 1) * d, hidden + s->from * d, (s->n - 1) * d * sizeof *ret);
        rows += s->n;
    }
    return rows;
}

/* What row t of a part is told of its logits l; first: the block has seen nothing before. */
static void note_row(const struct fw_model_part *p, size_t t, bool first, size_t vocab,
                     const float *l)
{
    if (p->logp)
        p->logp[t] = first ? -fw_log((double)vocab)
                           : (double)l[p->tokens[t]] - fw_parts()->log_sum_exp(l, vocab);
    if (p->logits && first)
        memset(p->logits + t * vocab, 0, vocab * sizeof *l);
    else if (p->logits)
        memcpy(p->logits + t * vocab, l, vocab * sizeof *l);
}

static void note_logits(const struct fw_model *m, struct fw_model_part *const *part,
                        struct fw_chunk *c, const float *hidden)
{
    size_t vocab = m->c->shape.vocab;
    float *h = fw_chunk_take(c, c->n + 1, m->c->shape.d_model);
    size_t rows = before(m, part, c, hidden, h);
    float *l = fw_chunk_take(c, rows, vocab);

    head(m->c, h, rows, l);
    for (size_t i = 0; i < c->spans; i++) {
        uint64_t at = *tokens_of(m, part[i]->block);

        for (size_t t = 0; asks(part[i]) && t < c->span[i].n; t++, l += vocab)
            note_row(part[i], t, at + t == 0, vocab, l);
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

static void run_chunk(const struct fw_model *m, struct fw_model_part *const *part,
                      struct fw_chunk *c)
{
    const struct fw_checkpoint *ck = m->c;
    size_t d = ck->shape.d_model, mark;
    float *h;

    c->x = fw_chunk_take(c, c->n, d);
    c->first = fw_chunk_take(c, c->n, d);
    mark = c->used;
    embed(m, part, c);
    if (ck->first.w)
        fw_layer_norm_rows(&ck->first, ck->set.eps, c->x, c->n, d, c->x);
    for (size_t layer = 0; layer < ck->shape.layers; layer++) {
        c->used = mark;
        ck->arch->layer(m, layer, c);
    }
    c->used = mark;
    h = fw_chunk_take(c, c->n, d);
    last_norm(ck, c->x, c->n, h);
    note_logits(m, part, c, h);
    for (size_t i = 0; i < c->spans; i++) {
        const struct fw_span *s = &c->span[i];

        memcpy(hidden_of(m, s->block), h + (s->from + s->n - 1) * d, d * sizeof *h);
        *tokens_of(m, s->block) += s->n;
    }
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

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Rows of one part after the other while there is place; span i is of *ret[i]. */
static void fill(const struct fw_model *m, struct fw_model_part *part, size_t parts,
                 struct fw_chunk *c, struct fw_span *span, struct fw_model_part **ret)
{
    for (; parts > 0 && c->n < FW_CHUNK; part++, parts--) {
        size_t n = part->n;

        if (n == 0)
            continue;
        n = least(n, least(FW_CHUNK - c->n, room(m, part->block)));
        ret[c->spans] = part;
        span[c->spans++] = (struct fw_span){ .block = part->block, .from = c->n, .n = n };
        c->n += n;
    }
    c->span = span;
}

static void advance(const struct fw_model *m, struct fw_model_part *p, size_t n)
{
    p->tokens += n;
    p->n -= n;
    if (p->logp)
        p->logp += n;
    if (p->logits)
        p->logits += n * m->c->shape.vocab;
}

void fw_model_learn_many(const struct fw_model *m, struct fw_model_part *part, size_t parts)
{
    struct fw_scratch *s = fw_scratch_take(m);
    struct fw_model_part *of[FW_CHUNK];
    struct fw_span span[FW_CHUNK];

    for (;;) {
        struct fw_chunk c = { .scratch = s };

        fill(m, part, parts, &c, span, of);
        if (c.n == 0)
            break;
        run_chunk(m, of, &c);
        for (size_t i = 0; i < c.spans; i++)
            advance(m, of[i], span[i].n);
    }
    fw_scratch_give(m, s);
}

void fw_model_learn(const struct fw_model *m, void *block, const uint32_t *tokens, size_t n,
                    double *logp)
{
    struct fw_model_part part = { .block = block, .tokens = tokens, .n = n, .logp = logp };

    fw_model_learn_many(m, &part, 1);
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
