/* stream_int.h - what the models of this room share: the plan, the view, one table of functions
 * per model. stream.c dispatches; bytes.c and events.c fill the table. */
#ifndef STREAM_INT_H
#define STREAM_INT_H

#include "fastweight/stream.h"

#include "tables.h"

struct stream_ops {
    const char *model;
    /* Fills s->layout, token_bytes, vocab and own. On failure stream.c calls free. */
    int (*plan)(struct fw_stream *s, const struct fw_params *config, struct fw_params *resolved,
                struct fw_err *err);
    void (*free)(struct fw_stream *s); /* own may be NULL */
    void (*init)(const struct fw_stream *s, void *block);
    /* Padding is already checked. */
    int (*validate)(const struct fw_stream *s, const void *block, struct fw_err *err);
    void (*learn)(const struct fw_stream *s, void *block, const void *tokens, size_t n,
                  double *logp);
    void (*stats)(const struct fw_stream *s, const void *block, struct fw_stream_stats *ret);

    int (*view_new)(struct fw_stream_view *v, struct fw_err *err); /* fills v->own */
    void (*view_free)(struct fw_stream_view *v);                   /* own may be NULL */
    void (*feed)(struct fw_stream_view *v, const void *tokens, size_t n, double *logp);
    void (*predict)(struct fw_stream_view *v, double *logp);
    /* May be NULL: then the head of predict. */
    size_t (*top)(struct fw_stream_view *v, size_t k, uint32_t *ids, double *logp);
};

struct fw_stream {
    const struct stream_ops *ops;
    struct fw_layout layout;
    size_t token_bytes;
    uint32_t vocab;
    struct tables *tables;          /* owned, constant after planning */
    const struct fw_expert *expert; /* lent, or NULL */
    void *own;                      /* the model's part of the plan */
};

struct ranked {
    double logp;
    uint32_t id;
};

struct fw_stream_view {
    const struct fw_stream *s;
    const void *block;
    void *own;             /* the model's registers */
    double *logp;          /* (vocab,) room for sampling and ranking */
    struct ranked *ranked; /* (vocab,) */
};

extern const struct stream_ops stream_bytes, stream_events;

/* view.c: `top` by way of the full distribution; qsort's order of struct ranked. */
size_t view_rank(struct fw_stream_view *v, size_t k, uint32_t *ids, double *logp);
int ranked_likelier(const void *a, const void *b);

/* Integer hash of two words: the one mixing function of this room. */
static inline uint32_t mix(uint32_t a, uint32_t b)
{
    uint64_t x =
        (uint64_t)(a ^ 0x9E3779B9u) * 0xD6E8FEB8u + (uint64_t)b * 0xCA9B0C9Eu + 0x1234567u;

    x ^= x >> 29;
    x *= 0xBF58476D1CE4E5B9u;
    return (uint32_t)(x >> 32);
}

static inline const void *at(const void *block, size_t offset)
{
    return (const unsigned char *)block + offset;
}

static inline void *at_mut(void *block, size_t offset)
{
    return (unsigned char *)block + offset;
}

#endif
