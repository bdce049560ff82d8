/* ttt.c - test-time training layers: layer norm over a small network, learned by mini-batches.
 *
 *     f(x) = x W1 + b1, or gelu(x W1 + b1) W2 + b2;   N(z) = w zh + b, zh = layer_norm(z)
 *     L(k, v) = 1/2 |N(f(k)) - (v - k)|^2
 * All gradients of a mini-batch are those at its start weights W. Token i of it sees
 *     official: W_i = W - tau_i sum_{j<=i} lr_j grad L_j,   m(q) = q + N(f_i(q))
 *     fla:      W_i = W - eta_i sum_{j<=i} grad L_j,        m(q) = f_i(q) + N(f_i(q))
 * and the next mini-batch starts from the last W_i. tau_i is 1 / (i + 1) unless given.
 *
 * Sources: Sun et al. 2407.04620 and its code (ttt-lm-pytorch); flash-linear-attention
 * ops/ttt, which adds another residual and has no lr. The block has the weights as the last
 * token saw them, the start weights, the sum of gradients, and the w and b that were given
 * last; how far the mini-batch is, the number of tokens learned tells. Weights start from
 * integer hashes, since layer norm blows up the first step from zero. net.c says why all stays
 * finite. Between two reads the weights are needed for nothing, so they are not computed. */
#include "config.h"

#include "families.h"

#include <stdlib.h>
#include <string.h>

#include "core.h"
#include "loops.h"
#include "net.h"

enum { LN_WEIGHT, LN_BIAS, ETA, TAU, LR, INPUTS };
enum { OFFICIAL, FLA };

#define EPS 1e-6

static const struct fw_input inputs[INPUTS] = {
    [LN_WEIGHT] = { "ln_weight", FW_D_V, 0, 1, -FW_ELEMENT_MAX, FW_ELEMENT_MAX, "" },
    [LN_BIAS] = { "ln_bias", FW_D_V, 0, 0, -FW_ELEMENT_MAX, FW_ELEMENT_MAX, "" },
    [ETA] = { "eta", FW_SCALAR, FW_CONFIG, 0.015625, 0, FW_ELEMENT_MAX, "bad_eta" },
    [TAU] = { "tau", FW_SCALAR, 0, 1, 0, FW_ELEMENT_MAX, "bad_tau" },
    [LR] = { "lr", FW_SCALAR, FW_CONFIG, 0.015625, 0, FW_ELEMENT_MAX, "bad_lr" },
};

struct own {
    struct fw_net net;
    size_t batch, variant, at_weight, at_bias;
};

struct layer { /* one head's */
    const struct own *own;
    const float *w, *b; /* of layer norm */
    struct fw_weights now, start, grad;
};

static float *vector_of(const void *block, size_t at, size_t head, size_t n)
{
    return (float *)fw_memory_at(block, at) + head * n;
}

static struct layer open_layer(const struct fw_memory *m, const void *block, size_t head)
{
    const struct own *own = m->own;

    return (struct layer){ .own = own,
                           .w = vector_of(block, own->at_weight, head, m->d_v),
                           .b = vector_of(block, own->at_bias, head, m->d_v),
                           .now = fw_net_weights(&own->net, block, FW_NET_NOW, head),
                           .start = fw_net_weights(&own->net, block, FW_NET_START, head),
                           .grad = fw_net_weights(&own->net, block, FW_NET_GRAD, head) };
}

/* m(q) of the weights as they are. */
static void look(const struct layer *l, const float *q, float *o)
{
    struct fw_trace t;
    float zh[FW_MAX_DIM];
    size_t n = l->own->net.d_out;

    fw_net_forward(&l->own->net, &l->now, q, &t);
    fw_layer_norm(t.z, n, EPS, zh);
    for (size_t j = 0; j < n; j++)
        o[j] =
            __builtin_fmaf(l->w[j], zh[j], l->b[j]) + (l->own->variant == FLA ? t.z[j] : q[j]);
}

static void add_gradient(const struct layer *l, const float *k, const float *v, float lr)
{
    struct fw_trace t;
    float zh[FW_MAX_DIM], u[FW_MAX_DIM];
    double g[FW_MAX_DIM], inverse;
    size_t n = l->own->net.d_out;

    fw_net_forward(&l->own->net, &l->start, k, &t);
    inverse = fw_layer_norm(t.z, n, EPS, zh);
    for (size_t j = 0; j < n; j++) {
        double w = (double)l->w[j], y = __builtin_fma(w, (double)zh[j], (double)l->b[j]);

        g[j] = (y - ((double)v[j] - (double)k[j])) * w * (double)lr;
    }
    fw_layer_norm_back(g, zh, n, inverse, u);
    fw_net_backward(&l->own->net, &l->start, k, &t, u, &l->grad);
}

/* The weights that a token sees, from the mini-batch's gradients so far. */
static void step(const struct layer *l, float rate)
{
    fw_net_copy(&l->own->net, &l->now, &l->start);
    fw_net_mix(&l->own->net, &l->now, 1, -rate, &l->grad, FW_NET_MAX);
}

/* How far token t steps; `at` is its place in the mini-batch. */
static float rate_of(const struct own *own, const struct fw_span *s, size_t t, size_t at)
{
    if (own->variant == FLA)
        return fw_scalar(s, ETA, t);
    return s->in[TAU].stride ? fw_scalar(s, TAU, t) : 1 / (float)(at + 1);
}

static void residual(const struct layer *l, const float *k, const float *v, float *err)
{
    look(l, k, err);
    for (size_t j = 0; j < l->own->net.d_out; j++)
        err[j] = v[j] - err[j];
}

static void learn(const struct fw_memory *m, void *block, size_t head, const struct fw_span *s)
{
    struct layer l = open_layer(m, block, head);
    const struct own *own = m->own;
    float *w = vector_of(block, own->at_weight, head, m->d_v);
    float *b = vector_of(block, own->at_bias, head, m->d_v);

    for (size_t t = 0; t < s->n; t++) {
        const float *k = fw_row(s->k, t), *v = fw_row(s->v, t);
        size_t at = (size_t)((s->at + t) % own->batch);
        bool last = at + 1 == own->batch;

        if (s->in[LN_WEIGHT].stride)
            memcpy(w, fw_row(s->in[LN_WEIGHT], t), m->d_v * sizeof *w);
        if (s->in[LN_BIAS].stride)
            memcpy(b, fw_row(s->in[LN_BIAS], t), m->d_v * sizeof *b);
        if (t >= s->err_from)
            residual(&l, k, v, s->err + t * m->d_v);
        add_gradient(&l, k, v, own->variant == FLA ? 1 : fw_scalar(s, LR, t));
        if (s->q.x || last || t + 1 >= s->err_from || t + 1 == s->n)
            step(&l, rate_of(own, s, t, at));
        if (last) {
            fw_net_copy(&own->net, &l.start, &l.now);
            fw_net_copy(&own->net, &l.grad, NULL);
        }
        if (s->q.x)
            look(&l, fw_row(s->q, t), s->o + t * s->o_stride);
    }
}

static void read(const struct fw_memory *m, const void *block, size_t head,
                 const struct fw_reads *r)
{
    struct layer l = open_layer(m, block, head);

    for (size_t t = 0; t < r->n; t++)
        look(&l, r->q + t * r->q_stride, r->o + t * r->o_stride);
}

static int add_norm(struct fw_memory *m, struct own *own, struct fw_err *err)
{
    const uint64_t shape[2] = { m->heads, m->d_v };

    if (fw_layout_add(&m->layout, "ln_weight", FW_F32, 2, shape, &own->at_weight, err) < 0)
        return -1;
    return fw_layout_add(&m->layout, "ln_bias", FW_F32, 2, shape, &own->at_bias, err);
}

static int plan(struct fw_memory *m, struct fw_config *c, size_t hidden, struct fw_err *err)
{
    static const char *const both[] = { "official", "fla", NULL }, *const one[] = { "official",
                                                                                    NULL };
    struct own *own = calloc(1, sizeof *own);

    m->own = own;
    if (!own)
        return fw_fail(err, FW_ENOMEM, "out_of_memory", "no memory for a plan");
    if (m->d_v != m->d_k)
        return fw_fail_param(err, FW_EINVAL, "bad_value", "config.d_v",
                             "rule %s learns v - k: config.d_v must be config.d_k",
                             m->rule->name);
    own->batch = 16;
    if (fw_config_word(c, "variant", hidden ? one : both, &own->variant, err) < 0 ||
        fw_config_size(c, "mini_batch", 1, FW_NET_BATCH, &own->batch, err) < 0 ||
        (hidden && fw_config_size(c, "hidden", 1, FW_MAX_DIM, &hidden, err) < 0))
        return -1;
    m->takes &= own->variant == FLA ? ~(1u << TAU | 1u << LR) : ~(1u << ETA);
    own->net = (struct fw_net){ .d_in = m->d_k,
                                .hidden = hidden,
                                .d_out = m->d_v,
                                .biases = true,
                                .by_tanh = true,
                                .w1_max = 0.034641016f, /* a standard deviation of 0.02 */
                                .w2_max = 0.034641016f,
                                .copies = FW_NET_GRAD + 1 };
    return fw_net_plan(m, &own->net, err) < 0 ? -1 : add_norm(m, own, err);
}

static int plan_linear(struct fw_memory *m, struct fw_config *c, struct fw_err *err)
{
    return plan(m, c, 0, err);
}

static int plan_mlp(struct fw_memory *m, struct fw_config *c, struct fw_err *err)
{
    return plan(m, c, 4 * m->d_k < FW_MAX_DIM ? 4 * m->d_k : FW_MAX_DIM, err);
}

static void init(const struct fw_memory *m, void *block)
{
    const struct own *own = m->own;
    float *w = fw_memory_at(block, own->at_weight);

    fw_net_init(m, &own->net, block);
    for (size_t j = 0; j < m->heads * m->d_v; j++)
        w[j] = 1;
}

static int validate(const struct fw_memory *m, const void *block, size_t head,
                    struct fw_err *err)
{
    const struct own *own = m->own;
    uint64_t learned = ((const uint64_t *)fw_memory_at(block, m->at_counters))[FW_COUNT_PAIRS];

    if (!(fw_largest(vector_of(block, own->at_weight, head, m->d_v), m->d_v) <= FW_ELEMENT_MAX))
        return fw_bad_state(err, "ln_weight", head, "is out of bounds");
    if (!(fw_largest(vector_of(block, own->at_bias, head, m->d_v), m->d_v) <= FW_ELEMENT_MAX))
        return fw_bad_state(err, "ln_bias", head, "is out of bounds");
    if (fw_net_validate(&own->net, block, head, err) < 0)
        return -1;
    if (learned % own->batch)
        return 0;
    if (fw_net_check_grad(&own->net, block, head, err) < 0)
        return -1;
    return fw_net_check_start(&own->net, block, head, err);
}

#define TTT(name_, memory_)                                                                    \
    .name = (name_), .memory = (memory_),                                                      \
    .objective = "squared error of v - k after layer norm", .retention = "none",               \
    .optimiser = "gradient descent by mini-batches", .horizon = "a mini-batch",                \
    .traits = FW_NO_MAP, .inputs = inputs, .input_count = INPUTS, .learn = learn,              \
    .read = read, .init = init, .validate = validate

const struct fw_rule fw_rule_ttt_linear = { TTT("ttt_linear", "matrix and bias"),
                                            .plan = plan_linear };
const struct fw_rule fw_rule_ttt_mlp = { TTT("ttt_mlp", "network of two layers"),
                                         .plan = plan_mlp };
