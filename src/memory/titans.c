/* titans.c - a deep memory with momentum and forgetting, learned chunk by chunk.
 *
 *     f(x) = x S (depth 1), or gelu(x W1) W2 (depth 2)
 *     m(x) = f(x), or with layer_norm: layer_norm(f(x)) (gamma + 1) + x
 *     L(k, v) = |m(k) - v|^2 / d_v
 * Gradients are those at Theta, the weights of the last batch boundary. After each chunk n,
 *     Z_n = eta_n Z_{n-1} - sum_t theta_t grad L_t(Theta),   M_n = (1 - alpha_n) M_{n-1} + Z_n
 * for every weight, gamma too; every `batch` tokens Theta = M. A token is read by the chunks
 * that are whole; eta and alpha are those of a chunk's last token. With depth 1 and chunk =
 * batch = 1 this is rule momentum with theta d_v / 2.
 *
 * Sources: Titans 2501.00663, whose loss is a sum and whose chunks are this file's batch; the
 * mean, the exact gelu and the norm are those of titans-pytorch. A linear memory without
 * norm starts from 0, all others from integer hashes (from 0 their gradients vanish or blow
 * up). A theta too large for the keys (2 theta |k|^2 / d_v >= 2 with depth 1) swings up:
 * weights are cut at 1e12, momentum at 1e20 (net.c), and the memory is full, not broken. */
#include "config.h"

#include "families.h"

#include <stdlib.h>

#include "core.h"
#include "fastweight/fmath.h"
#include "loops.h"
#include "net.h"

enum { THETA, ETA, ALPHA, INPUTS };

#define EPS 1e-5

static const struct fw_input inputs[INPUTS] = {
    [THETA] = { "theta", FW_SCALAR, FW_CONFIG, 1, 0, FW_ELEMENT_MAX, "bad_theta" },
    [ETA] = { "eta", FW_SCALAR, FW_CONFIG, 0, 0, 1, "bad_eta" },
    [ALPHA] = { "alpha", FW_SCALAR, FW_CONFIG, 0, 0, 1, "bad_gate" },
};

struct own {
    struct fw_net net;
    size_t chunk, batch;
};

struct deep { /* one head's */
    const struct own *own;
    struct fw_weights now, start, grad, moment;
};

static struct deep open_deep(const struct fw_memory *m, const void *block, size_t head)
{
    const struct own *own = m->own;

    return (struct deep){ own, fw_net_weights(&own->net, block, FW_NET_NOW, head),
                          fw_net_weights(&own->net, block, FW_NET_START, head),
                          fw_net_weights(&own->net, block, FW_NET_GRAD, head),
                          fw_net_weights(&own->net, block, FW_NET_MOMENT, head) };
}

/* m(x) from z = f(x). Writes zh and returns 1 / s, with layer norm. */
static double finish(const struct fw_net *net, const float *gamma, const float *x,
                     const float *z, float *zh, double *y)
{
    double inverse = 0;

    if (gamma)
        inverse = fw_layer_norm(z, net->d_out, EPS, zh);
    for (size_t j = 0; j < net->d_out; j++)
        y[j] = gamma ? __builtin_fma((double)gamma[j] + 1, (double)zh[j], (double)x[j])
                     : (double)z[j];
    return inverse;
}

static void look(const struct deep *d, const float *q, float *o)
{
    const struct fw_net *net = &d->own->net;
    struct fw_trace t;
    float zh[FW_MAX_DIM];
    double y[FW_MAX_DIM];

    fw_net_forward(net, &d->now, q, &t);
    finish(net, d->now.x[FW_NET_GAMMA], q, t.z, zh, y);
    for (size_t j = 0; j < net->d_out; j++)
        o[j] = (float)y[j];
}

/* g = theta grad_y L becomes that by zh; gamma's own gradient is added. */
static void through_gamma(const float *gamma, const float *zh, size_t n, double *g, float *grad)
{
    float own[FW_MAX_DIM];

    for (size_t j = 0; j < n; j++) {
        own[j] = (float)(g[j] * (double)zh[j]);
        g[j] *= (double)gamma[j] + 1;
    }
    fw_loops()->clamp(own, n, FW_NET_STEP);
    fw_loops()->axpy(1, own, grad, n);
}

static void add_gradient(const struct deep *d, const float *k, const float *v, float theta)
{
    const struct fw_net *net = &d->own->net;
    const float *gamma = d->start.x[FW_NET_GAMMA];
    struct fw_trace t;
    float zh[FW_MAX_DIM], u[FW_MAX_DIM];
    double g[FW_MAX_DIM], inverse, scale = 2 * (double)theta / (double)net->d_out;

    fw_net_forward(net, &d->start, k, &t);
    inverse = finish(net, gamma, k, t.z, zh, g);
    for (size_t j = 0; j < net->d_out; j++)
        g[j] = scale * (g[j] - (double)v[j]);
    if (gamma) {
        through_gamma(gamma, zh, net->d_out, g, d->grad.x[FW_NET_GAMMA]);
        fw_layer_norm_back(g, zh, net->d_out, inverse, u);
    } else {
        for (size_t j = 0; j < net->d_out; j++)
            u[j] = (float)g[j];
    }
    fw_net_backward(net, &d->start, k, &t, u, &d->grad);
}

static void end_chunk(const struct deep *d, float eta, float keep)
{
    const struct fw_net *net = &d->own->net;

    fw_net_mix(net, &d->moment, eta, -1, &d->grad, FW_NET_MOMENTUM);
    fw_net_mix(net, &d->now, keep, 1, &d->moment, FW_NET_MAX);
    fw_net_copy(net, &d->grad, NULL);
}

static void learn(const struct fw_memory *m, void *block, size_t head, const struct fw_span *s)
{
    struct deep d = open_deep(m, block, head);
    const struct own *own = m->own;

    for (size_t t = 0; t < s->n; t++) {
        const float *k = fw_row(s->k, t), *v = fw_row(s->v, t);
        uint64_t done = s->at + t + 1;

        if (t >= s->err_from) {
            float *err = s->err + t * m->d_v;

            look(&d, k, err);
            for (size_t j = 0; j < m->d_v; j++)
                err[j] = v[j] - err[j];
        }
        add_gradient(&d, k, v, fw_scalar(s, THETA, t));
        if (done % own->chunk == 0) {
            float keep = 1 - fw_scalar(s, ALPHA, t);

            fw_note_factor(m, block, head, keep);
            end_chunk(&d, fw_scalar(s, ETA, t), keep);
        }
        if (done % own->batch == 0)
            fw_net_copy(&own->net, &d.start, &d.now);
        if (s->q.x)
            look(&d, fw_row(s->q, t), s->o + t * s->o_stride);
    }
}

static void read(const struct fw_memory *m, const void *block, size_t head,
                 const struct fw_reads *r)
{
    struct deep d = open_deep(m, block, head);

    for (size_t t = 0; t < r->n; t++)
        look(&d, r->q + t * r->q_stride, r->o + t * r->o_stride);
}

static int plan_chunks(struct own *own, struct fw_config *c, struct fw_err *err)
{
    own->chunk = 1;
    if (fw_config_size(c, "chunk", 1, FW_NET_BATCH, &own->chunk, err) < 0)
        return -1;
    own->batch = own->chunk;
    if (fw_config_size(c, "batch", 1, 1u << 20, &own->batch, err) < 0)
        return -1;
    if (own->batch % own->chunk)
        return fw_fail_param(err, FW_EINVAL, "bad_value", "config.batch",
                             "config.batch must be a multiple of config.chunk, %zu",
                             own->chunk);
    return 0;
}

/* Uniform in [-x, x] with the variance 2 / (in + out). */
static float widest_weight(size_t in, size_t out)
{
    return (float)fw_sqrt(6 / (double)(in + out));
}

static int plan(struct fw_memory *m, struct fw_config *c, struct fw_err *err)
{
    struct own *own = calloc(1, sizeof *own);
    size_t depth = 1, hidden = 2 * m->d_k < FW_MAX_DIM ? 2 * m->d_k : FW_MAX_DIM;
    bool norm = false;

    m->own = own;
    if (!own)
        return fw_fail(err, FW_ENOMEM, "out_of_memory", "no memory for a plan");
    if (plan_chunks(own, c, err) < 0 || fw_config_size(c, "depth", 1, 2, &depth, err) < 0 ||
        fw_config_bool(c, "layer_norm", &norm, err) < 0 ||
        (depth == 2 && fw_config_size(c, "hidden", 1, FW_MAX_DIM, &hidden, err) < 0))
        return -1;
    if (norm && m->d_v != m->d_k)
        return fw_fail_param(err, FW_EINVAL, "bad_value", "config.layer_norm",
                             "with layer_norm config.d_v must be config.d_k");
    hidden = depth == 2 ? hidden : 0;
    own->net = (struct fw_net){ .d_in = m->d_k,
                                .hidden = hidden,
                                .d_out = m->d_v,
                                .gamma = norm,
                                .copies = FW_NET_COPIES };
    if (hidden || norm)
        own->net.w1_max = widest_weight(m->d_k, hidden ? hidden : m->d_v);
    own->net.w2_max = widest_weight(hidden, m->d_v);
    return fw_net_plan(m, &own->net, err);
}

static void init(const struct fw_memory *m, void *block)
{
    fw_net_init(m, &((const struct own *)m->own)->net, block);
}

static int validate(const struct fw_memory *m, const void *block, size_t head,
                    struct fw_err *err)
{
    const struct own *own = m->own;
    uint64_t learned = ((const uint64_t *)fw_memory_at(block, m->at_counters))[FW_COUNT_PAIRS];

    if (fw_net_validate(&own->net, block, head, err) < 0 ||
        (learned % own->chunk == 0 && fw_net_check_grad(&own->net, block, head, err) < 0))
        return -1;
    return learned % own->batch ? 0 : fw_net_check_start(&own->net, block, head, err);
}

const struct fw_rule fw_rule_titans = { .name = "titans",
                                        .memory = "matrix, or network of two layers",
                                        .objective = "mean squared error",
                                        .retention = "factor per chunk",
                                        .optimiser = "gradient descent with momentum",
                                        .horizon = "a chunk",
                                        .traits = FW_NO_MAP,
                                        .inputs = inputs,
                                        .input_count = INPUTS,
                                        .learn = learn,
                                        .read = read,
                                        .plan = plan,
                                        .init = init,
                                        .validate = validate };
