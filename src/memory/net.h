/* net.h - a small network as a memory: one matrix, or two with gelu between, and layer norm.
 *
 *     z = x W1 + b1                               (hidden 0)
 *     z = gelu(x W1 + b1) W2 + b2
 *
 * A rule keeps several copies of the weights in the block, of one shape: as they are, those the
 * gradients are taken at, gradient sums, momentum. Whatever a body or a foreign block holds,
 * weights are cut at FW_NET_MAX and the steps of the backward pass at FW_NET_STEP, so a sum of
 * up to FW_NET_BATCH gradients stays finite (net.c). */
#ifndef NET_H
#define NET_H

#include "fastweight/level.h"
#include "rule.h"

#define FW_NET_MAX      1e12f /* |weight| */
#define FW_NET_STEP     1e15f /* |hidden|, |what is propagated back| */
#define FW_NET_SUM      1e34f /* |sum of gradients| */
#define FW_NET_MOMENTUM 1e20f
#define FW_NET_BATCH    4096 /* gradients in one sum, at most */

enum fw_net_tensor { FW_NET_W1, FW_NET_B1, FW_NET_W2, FW_NET_B2, FW_NET_GAMMA, FW_NET_TENSORS };
enum fw_net_copy { FW_NET_NOW, FW_NET_START, FW_NET_GRAD, FW_NET_MOMENT, FW_NET_COPIES };

struct fw_net {
    size_t d_in, hidden, d_out;
    bool biases, gamma;   /* gamma: (d_out,), for the rule's own use */
    bool by_tanh;         /* the gelu: else the exact one */
    float w1_max, w2_max; /* initial weights are uniform in [-max, max] */
    size_t copies;
    size_t at[FW_NET_COPIES][FW_NET_TENSORS]; /* offsets in a block */
};

struct fw_weights { /* one copy of one head; NULL: the net has none */
    float *x[FW_NET_TENSORS];
};

struct fw_trace { /* of a forward pass, for the backward pass */
    float hidden[FW_MAX_DIM], slope[FW_MAX_DIM], z[FW_MAX_DIM];
};

/* Adds the fields: "S" (hidden 0) or "W1", "W2", "b1", "b2", "gamma", and the same with
 * "start_", "grad_" and "momentum_" before them. */
int fw_net_plan(struct fw_memory *m, struct fw_net *net, struct fw_err *err);
/* Initial weights, from integer hashes of their place; start is the same as now. */
void fw_net_init(const struct fw_memory *m, const struct fw_net *net, void *block);
int fw_net_validate(const struct fw_net *net, const void *block, size_t head,
                    struct fw_err *err);
/* No gradients may be waiting: after a whole chunk; start must be now: after a whole batch. */
int fw_net_check_grad(const struct fw_net *net, const void *block, size_t head,
                      struct fw_err *err);
int fw_net_check_start(const struct fw_net *net, const void *block, size_t head,
                       struct fw_err *err);

struct fw_weights fw_net_weights(const struct fw_net *net, const void *block,
                                 enum fw_net_copy copy, size_t head);
size_t fw_net_count(const struct fw_net *net, size_t tensor); /* floats a head; 0: absent */
/* to = from, or 0 when from is NULL. */
void fw_net_copy(const struct fw_net *net, const struct fw_weights *to,
                 const struct fw_weights *from);
/* y = by y, then y += a x (x NULL: not), cut into [-limit, limit]. */
void fw_net_mix(const struct fw_net *net, const struct fw_weights *y, float by, float a,
                const struct fw_weights *x, float limit);

void fw_net_forward(const struct fw_net *net, const struct fw_weights *w, const float *x,
                    struct fw_trace *t);
/* grad += the gradient of u.z at x; t: of the forward pass with these weights. u (d_out,) is
 * cut. gamma is not touched. */
void fw_net_backward(const struct fw_net *net, const struct fw_weights *w, const float *x,
                     const struct fw_trace *t, float *u, const struct fw_weights *grad);

/* zh = (z - mean) / s, s = sqrt(var + eps), var biased; returns 1 / s. */
double fw_layer_norm(const float *z, size_t n, double eps, float *zh);
/* u = the gradient of g.zh by z: (g - mean(g) - zh mean(g zh)) / s. */
void fw_layer_norm_back(const double *g, const float *zh, size_t n, double inverse_s, float *u);

struct fw_gelus { /* x_i = gelu(x_i), slope_i its derivative there */
    void (*exact)(float *x, float *slope, size_t n);   /* x Phi(x) */
    void (*by_tanh)(float *x, float *slope, size_t n); /* its approximation */
};

extern const struct fw_gelus fw_gelus_base;
extern const struct fw_gelus fw_gelus_v3; /* where HAVE_V3 */
const struct fw_gelus *fw_gelus(void);    /* of the level chosen by fw_num_init */

#endif
