/* log_linear.c - linear attention whose past is cut into buckets, one matrix a level.
 *
 *     S_l = sum_j exp(g_{j+1} + .. + g_n) k_j v_j',   m(q) = sum_l scale_l S_l'q
 *
 * After token n (from 0), level 0 is the pair n alone; level l >= 1 is there where bit l - 1 of
 * n is set, and sums the 2^(l-1) pairs before those of the lower levels (a Fenwick tree).
 *
 * Source: log-linear attention 2506.04761. Token n first makes one bucket of levels 0 to
 * ctz(n), one level above them; two matrices are touched a token on average, whatever n. Where
 * that level is not there (config `levels`), the last one takes it in: from then on it is
 * linear attention of the oldest past. Decay is lazy: level_log_g sums the gates since a bucket
 * was made, its matrix stays. Level 0 is last_k, last_v. `scale` comes with the token that
 * reads; the last token's stay in the block, for recalls.
 *
 * Bounds: S_l is cut at 1e17 whenever it is made; a read is at most 32 levels of 1e3 1e17 64
 * 64e12, below 1e38 (state.c). Missing levels are zero. */
#include "config.h"

#include "families.h"

#include <stdlib.h>
#include <string.h>

#include "core.h"
#include "fastweight/fmath.h"
#include "loops.h"

enum { LOG_G, SCALES, INPUTS };

static const struct fw_input inputs[INPUTS] = {
    [LOG_G] = { "log_g", FW_SCALAR, 0, 0, -FW_ELEMENT_MAX, 0, "bad_gate" },
    [SCALES] = { "level_scales", FW_OWN, 0, 1, -1e3f, 1e3f, "bad_scale" },
};

struct own {
    size_t at_S, at_log_g, at_scales;
};

struct levels {           /* of one head */
    size_t count, size;   /* levels; floats of a matrix */
    float *S;             /* (count - 1, rows, d_v), from level 1 on */
    double *log_g;        /* (count - 1,) */
    float *scale;         /* (count,) */
    const float *k0, *v0; /* level 0 */
};

static struct levels open_head(const struct fw_memory *m, const void *block, size_t head)
{
    const struct own *own = m->own;
    size_t above = m->own_dim - 1, size = m->rows * m->d_v;

    return (struct levels){
        .count = m->own_dim,
        .size = size,
        .S = (float *)fw_memory_at(block, own->at_S) + head * above * size,
        .log_g = (double *)fw_memory_at(block, own->at_log_g) + head * above,
        .scale = (float *)fw_memory_at(block, own->at_scales) + head * m->own_dim,
        .k0 = (const float *)fw_memory_at(block, m->at_last_k) + head * m->rows,
        .v0 = (const float *)fw_memory_at(block, m->at_last_v) + head * m->d_v,
    };
}

static uint64_t tokens_of(const struct fw_memory *m, const void *block)
{
    return ((const uint64_t *)fw_memory_at(block, m->at_counters))[FW_COUNT_PAIRS];
}

/* Is level l >= 1 there after `tokens` tokens? */
static bool is_there(const struct levels *h, size_t l, uint64_t tokens)
{
    uint64_t n = tokens ? tokens - 1 : 0;

    return l + 1 < h->count ? n >> (l - 1) & 1 : n >> (l - 1) != 0;
}

/* The level that token n >= 1 makes. */
static size_t made_by(const struct levels *h, uint64_t n)
{
    size_t l = 1;

    for (; l + 1 < h->count && !(n & 1); n >>= 1)
        l++;
    return l;
}

/* Levels 0 to `to` become level `to`. */
static void merge(const struct fw_memory *m, struct levels *h, size_t to, uint64_t tokens)
{
    float *S = h->S + (to - 1) * h->size;

    if (is_there(h, to, tokens))
        fw_loops()->scale((float)fw_exp(h->log_g[to - 1]), S, h->size);
    for (size_t l = to - 1; l >= 1; l--) { /* oldest first */
        float *from = h->S + (l - 1) * h->size;

        fw_loops()->axpy((float)fw_exp(h->log_g[l - 1]), from, S, h->size);
        memset(from, 0, h->size * sizeof *from);
        h->log_g[l - 1] = 0;
    }
    fw_loops()->outer(S, m->rows, m->d_v, h->k0, h->v0);
    h->log_g[to - 1] = 0;
    fw_loops()->clamp(S, h->size, FW_SATURATE_AT);
}

/* o = sum_{l >= 1} scale_l S_l'q. */
static void read_above(const struct fw_memory *m, const struct levels *h, uint64_t tokens,
                       const float *q, float *o)
{
    float part[FW_MAX_DIM];

    memset(o, 0, m->d_v * sizeof *o);
    for (size_t l = 1; l < h->count; l++) {
        float w = h->scale[l] * (float)fw_exp(h->log_g[l - 1]);

        if (!is_there(h, l, tokens) || w == 0)
            continue;
        fw_loops()->apply(h->S + (l - 1) * h->size, m->rows, m->d_v, q, part);
        fw_loops()->axpy(w, part, o, m->d_v);
    }
}

static void read_all(const struct fw_memory *m, const struct levels *h, uint64_t tokens,
                     const float *q, float *o)
{
    read_above(m, h, tokens, q, o);
    fw_loops()->axpy(h->scale[0] * fw_loops()->dot(q, h->k0, m->rows), h->v0, o, m->d_v);
}

/* What token s->at + t finds: buckets of all pairs before it, decayed. */
static void advance(const struct fw_memory *m, struct levels *h, const struct fw_span *s,
                    size_t t)
{
    uint64_t n = s->at + t;
    float g = fw_scalar(s, LOG_G, t);

    if (n)
        merge(m, h, made_by(h, n), n);
    for (size_t l = 1; l < h->count; l++)
        if (is_there(h, l, n + 1))
            h->log_g[l - 1] += (double)g;
    memcpy(h->scale, fw_row(s->in[SCALES], t), h->count * sizeof *h->scale);
}

static void learn(const struct fw_memory *m, void *block, size_t head, const struct fw_span *s)
{
    struct levels h = open_head(m, block, head);

    if (s->in[LOG_G].stride)
        fw_memory_add_gates(m, block, head, s->in[LOG_G], s->n);
    for (size_t t = 0; t < s->n; t++) {
        const float *v = fw_row(s->v, t);
        float *err = s->err + t * m->d_v;
        uint64_t tokens = s->at + t + 1;

        advance(m, &h, s, t);
        h.k0 = fw_row(s->k, t);
        h.v0 = v;
        if (t >= s->err_from) {
            read_above(m, &h, tokens, h.k0, err);
            for (size_t j = 0; j < m->d_v; j++)
                err[j] = v[j] - err[j];
        }
        if (s->q.x)
            read_all(m, &h, tokens, fw_row(s->q, t), s->o + t * s->o_stride);
    }
}

static void read_head(const struct fw_memory *m, const void *block, size_t head,
                      const struct fw_reads *r)
{
    struct levels h = open_head(m, block, head);

    for (size_t t = 0; t < r->n; t++)
        read_all(m, &h, tokens_of(m, block), r->q + t * r->q_stride, r->o + t * r->o_stride);
}

/* S = sum_l scale_l S_l, so that m(q) = S'q. */
static void state(const struct fw_memory *m, const void *block, size_t head, float *out)
{
    struct levels h = open_head(m, block, head);

    memset(out, 0, h.size * sizeof *out);
    for (size_t l = 1; l < h.count; l++)
        fw_loops()->axpy(h.scale[l] * (float)fw_exp(h.log_g[l - 1]), h.S + (l - 1) * h.size,
                         out, h.size);
    for (size_t i = 0; i < m->rows; i++)
        fw_loops()->axpy(h.scale[0] * h.k0[i], h.v0, out + i * m->d_v, m->d_v);
}

static void init(const struct fw_memory *m, void *block)
{
    for (size_t head = 0; head < m->heads; head++)
        memcpy(open_head(m, block, head).scale, m->fallback + SCALES * m->widest,
               m->own_dim * sizeof(float));
}

static int validate(const struct fw_memory *m, const void *block, size_t head,
                    struct fw_err *err)
{
    struct levels h = open_head(m, block, head);
    uint64_t tokens = tokens_of(m, block);

    for (size_t l = 1; l < h.count; l++) {
        bool there = is_there(&h, l, tokens);
        float most = there ? FW_SATURATE_AT : 0;
        double g = h.log_g[l - 1];

        if (!(fw_largest(h.S + (l - 1) * h.size, h.size) <= most))
            return fw_bad_state(err, "S_levels", head, "is out of bounds");
        if (!(g <= 0 && g >= (there ? -0x1p1000 : 0)))
            return fw_bad_state(err, "level_log_g", head, "is out of bounds");
    }
    if (!(fw_largest(h.scale, h.count) <= inputs[SCALES].max))
        return fw_bad_state(err, "level_scales", head, "is out of bounds");
    return 0;
}

static void usage(const struct fw_memory *m, const void *block, struct fw_usage *u)
{
    struct levels h = open_head(m, block, 0);

    for (size_t l = 1; l < h.count; l++)
        if (!is_there(&h, l, tokens_of(m, block)))
            u->empty_bytes += m->heads * h.size * sizeof(float);
}

static int plan(struct fw_memory *m, struct fw_config *c, struct fw_err *err)
{
    struct own *own = calloc(1, sizeof *own);
    uint64_t S[4], scales[2];

    m->own = own;
    m->own_dim = 32;
    if (!own)
        return fw_fail(err, FW_ENOMEM, "out_of_memory", "no memory for a plan");
    if (fw_config_size(c, "levels", 2, 32, &m->own_dim, err) < 0)
        return -1;
    S[0] = scales[0] = m->heads;
    S[1] = m->own_dim - 1;
    S[2] = m->rows;
    S[3] = m->d_v;
    scales[1] = m->own_dim;
    if (fw_layout_add(&m->layout, "S_levels", FW_F32, 4, S, &own->at_S, err) < 0 ||
        fw_layout_add(&m->layout, "level_log_g", FW_F64, 2, S, &own->at_log_g, err) < 0)
        return -1;
    return fw_layout_add(&m->layout, "level_scales", FW_F32, 2, scales, &own->at_scales, err);
}

const struct fw_rule fw_rule_log_linear = { .name = "log_linear",
                                            .memory = "a matrix for each power of two",
                                            .objective = "dot product",
                                            .retention = "decay per head, scale per level",
                                            .optimiser = "one gradient step",
                                            .horizon = "one pair",
                                            .inputs = inputs,
                                            .input_count = INPUTS,
                                            .learn = learn,
                                            .read = read_head,
                                            .plan = plan,
                                            .init = init,
                                            .validate = validate,
                                            .state = state,
                                            .usage = usage };
