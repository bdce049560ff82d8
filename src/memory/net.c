/* net.c - forward, backward and bookkeeping of the networks that deep memories are.
 *
 * Gradients are those of u.z: with h = gelu(a), a = x W1 + b1,
 *     grad W2 = h u',  grad b2 = u,  g = (W2 u) gelu'(a),  grad W1 = x g',  grad b1 = g
 * Sums over a matrix run in the fixed orders of loops.h; layer norm is computed in double, its
 * sums in order.
 *
 * Why it stays finite: |x| <= 1e6 (a query 1e12), |W| <= 1e12, at most 4096 terms a sum. So
 * |a| <= 4.1e27, cut h <= 1e15, |z| <= 4.1e30. u is cut at 1e15, |W2 u| <= 4.1e30, cut g <=
 * 1e15: an element of a gradient is at most 1e30, a sum of 4096 of them 4.1e33. A foreign block
 * may start from 1e34. A step with rate 1e6 may overflow to an infinity before it is cut; never
 * to NaN, since weights, rate and sum are finite. No sane stream comes near these bounds. */
#include "config.h"

#include "net.h"

#include <stdio.h>
#include <string.h>

#include "fastweight/fmath.h"
#include "loops.h"

static const char *const prefixes[FW_NET_COPIES] = { "", "start_", "grad_", "momentum_" };
static const char *const names[FW_NET_TENSORS] = { "W1", "b1", "W2", "b2", "gamma" };
static const float limits[FW_NET_COPIES] = { FW_NET_MAX, FW_NET_MAX, FW_NET_SUM,
                                             FW_NET_MOMENTUM };

static const char *name_of(const struct fw_net *net, size_t copy, size_t tensor, char *text,
                           size_t size)
{
    const char *name = tensor == FW_NET_W1 && !net->hidden ? "S" : names[tensor];

    snprintf(text, size, "%s%s", prefixes[copy], name);
    return text;
}

static size_t cols_of(const struct fw_net *net, size_t tensor)
{
    bool inner = tensor == FW_NET_W1 || tensor == FW_NET_B1;

    return inner && net->hidden ? net->hidden : net->d_out;
}

/* 0: a vector. */
static size_t rows_of(const struct fw_net *net, size_t tensor)
{
    return tensor == FW_NET_W1 ? net->d_in : tensor == FW_NET_W2 ? net->hidden : 0;
}

size_t fw_net_count(const struct fw_net *net, size_t tensor)
{
    bool second = tensor == FW_NET_W2 || tensor == FW_NET_B2;
    bool bias = tensor == FW_NET_B1 || tensor == FW_NET_B2;
    size_t rows = rows_of(net, tensor);

    if ((second && !net->hidden) || (bias && !net->biases) ||
        (tensor == FW_NET_GAMMA && !net->gamma))
        return 0;
    return (rows ? rows : 1) * cols_of(net, tensor);
}

int fw_net_plan(struct fw_memory *m, struct fw_net *net, struct fw_err *err)
{
    char name[32];

    for (size_t c = 0; c < net->copies; c++)
        for (size_t i = 0; i < FW_NET_TENSORS; i++) {
            uint64_t matrix[3] = { m->heads, rows_of(net, i), cols_of(net, i) };
            uint64_t vector[2] = { m->heads, cols_of(net, i) };
            bool flat = rows_of(net, i) == 0;

            if (fw_net_count(net, i) &&
                fw_layout_add(&m->layout, name_of(net, c, i, name, sizeof name), FW_F32,
                              flat ? 2 : 3, flat ? vector : matrix, &net->at[c][i], err) < 0)
                return -1;
        }
    if (!net->hidden)
        m->at_S = net->at[FW_NET_NOW][FW_NET_W1];
    return 0;
}

static float place_in_unit(uint64_t z) /* splitmix64; (-1, 1) */
{
    z = (z + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    return (float)((int64_t)z >> 40) * 0x1p-23f;
}

void fw_net_init(const struct fw_memory *m, const struct fw_net *net, void *block)
{
    const float max[FW_NET_TENSORS] = { [FW_NET_W1] = net->w1_max, [FW_NET_W2] = net->w2_max };

    for (size_t i = 0; i < FW_NET_TENSORS; i++) {
        size_t n = m->heads * fw_net_count(net, i);
        float *now, *start;

        if (n == 0 || max[i] <= 0)
            continue;
        now = fw_memory_at(block, net->at[FW_NET_NOW][i]);
        start = fw_memory_at(block, net->at[FW_NET_START][i]);
        for (size_t j = 0; j < n; j++)
            now[j] = start[j] = max[i] * place_in_unit((uint64_t)i << 32 | j);
    }
}

struct fw_weights fw_net_weights(const struct fw_net *net, const void *block,
                                 enum fw_net_copy copy, size_t head)
{
    struct fw_weights w = { { NULL } };

    for (size_t i = 0; i < FW_NET_TENSORS; i++) {
        size_t n = fw_net_count(net, i);

        if (n)
            w.x[i] = (float *)fw_memory_at(block, net->at[copy][i]) + head * n;
    }
    return w;
}

int fw_net_validate(const struct fw_net *net, const void *block, size_t head,
                    struct fw_err *err)
{
    char name[32];

    for (size_t c = 0; c < net->copies; c++) {
        struct fw_weights w = fw_net_weights(net, block, c, head);

        for (size_t i = 0; i < FW_NET_TENSORS; i++)
            if (w.x[i] && !(fw_largest(w.x[i], fw_net_count(net, i)) <= limits[c]))
                return fw_bad_state(err, name_of(net, c, i, name, sizeof name), head,
                                    "is out of bounds");
    }
    return 0;
}

int fw_net_check_grad(const struct fw_net *net, const void *block, size_t head,
                      struct fw_err *err)
{
    struct fw_weights g = fw_net_weights(net, block, FW_NET_GRAD, head);
    char name[32];

    for (size_t i = 0; i < FW_NET_TENSORS; i++)
        if (g.x[i] && fw_largest(g.x[i], fw_net_count(net, i)) > 0)
            return fw_bad_state(err, name_of(net, FW_NET_GRAD, i, name, sizeof name), head,
                                "holds gradients between two chunks");
    return 0;
}

int fw_net_check_start(const struct fw_net *net, const void *block, size_t head,
                       struct fw_err *err)
{
    struct fw_weights now = fw_net_weights(net, block, FW_NET_NOW, head);
    struct fw_weights start = fw_net_weights(net, block, FW_NET_START, head);
    char name[32];

    for (size_t i = 0; i < FW_NET_TENSORS; i++)
        if (now.x[i] &&
            memcmp(now.x[i], start.x[i], fw_net_count(net, i) * sizeof *now.x[i]) != 0)
            return fw_bad_state(err, name_of(net, FW_NET_START, i, name, sizeof name), head,
                                "differs from the weights at the start of a mini-batch");
    return 0;
}

void fw_net_copy(const struct fw_net *net, const struct fw_weights *to,
                 const struct fw_weights *from)
{
    for (size_t i = 0; i < FW_NET_TENSORS; i++) {
        size_t bytes = fw_net_count(net, i) * sizeof(float);

        if (bytes && from)
            memcpy(to->x[i], from->x[i], bytes);
        else if (bytes)
            memset(to->x[i], 0, bytes);
    }
}

void fw_net_mix(const struct fw_net *net, const struct fw_weights *y, float by, float a,
                const struct fw_weights *x, float limit)
{
    const struct fw_loops *l = fw_loops();

    for (size_t i = 0; i < FW_NET_TENSORS; i++) {
        size_t n = fw_net_count(net, i);

        if (n == 0)
            continue;
        if (by != 1)
            l->scale(by, y->x[i], n);
        if (x)
            l->axpy(a, x->x[i], y->x[i], n);
        l->clamp(y->x[i], n, limit);
    }
}

static void affine(const float *W, const float *b, size_t rows, size_t cols, const float *x,
                   float *y)
{
    fw_loops()->apply(W, rows, cols, x, y);
    if (b)
        fw_loops()->axpy(1, b, y, cols);
}

void fw_net_forward(const struct fw_net *net, const struct fw_weights *w, const float *x,
                    struct fw_trace *t)
{
    size_t h = net->hidden;

    if (!h) {
        affine(w->x[FW_NET_W1], w->x[FW_NET_B1], net->d_in, net->d_out, x, t->z);
        return;
    }
    affine(w->x[FW_NET_W1], w->x[FW_NET_B1], net->d_in, h, x, t->hidden);
    if (net->by_tanh)
        fw_gelus()->by_tanh(t->hidden, t->slope, h);
    else
        fw_gelus()->exact(t->hidden, t->slope, h);
    fw_loops()->clamp(t->hidden, h, FW_NET_STEP);
    affine(w->x[FW_NET_W2], w->x[FW_NET_B2], h, net->d_out, t->hidden, t->z);
}

/* One layer's gradient: x u', and u. */
static void add_layer(const float *x, size_t rows, const float *u, size_t cols, float *W,
                      float *b)
{
    fw_loops()->outer(W, rows, cols, x, u);
    if (b)
        fw_loops()->axpy(1, u, b, cols);
}

void fw_net_backward(const struct fw_net *net, const struct fw_weights *w, const float *x,
                     const struct fw_trace *t, float *u, const struct fw_weights *grad)
{
    float g[FW_MAX_DIM];
    size_t h = net->hidden;

    fw_loops()->clamp(u, net->d_out, FW_NET_STEP);
    if (!h) {
        add_layer(x, net->d_in, u, net->d_out, grad->x[FW_NET_W1], grad->x[FW_NET_B1]);
        return;
    }
    fw_loops()->apply_rows(w->x[FW_NET_W2], h, net->d_out, u, g);
    for (size_t i = 0; i < h; i++)
        g[i] *= t->slope[i];
    fw_loops()->clamp(g, h, FW_NET_STEP);
    add_layer(t->hidden, h, u, net->d_out, grad->x[FW_NET_W2], grad->x[FW_NET_B2]);
    add_layer(x, net->d_in, g, h, grad->x[FW_NET_W1], grad->x[FW_NET_B1]);
}

double fw_layer_norm(const float *z, size_t n, double eps, float *zh)
{
    double sum = 0, squares = 0, mean, inverse;

    for (size_t j = 0; j < n; j++)
        sum += (double)z[j];
    mean = sum / (double)n;
    for (size_t j = 0; j < n; j++)
        squares += ((double)z[j] - mean) * ((double)z[j] - mean);
    inverse = 1 / fw_sqrt(squares / (double)n + eps);
    for (size_t j = 0; j < n; j++)
        zh[j] = (float)(((double)z[j] - mean) * inverse);
    return inverse;
}

void fw_layer_norm_back(const double *g, const float *zh, size_t n, double inverse_s, float *u)
{
    double sum = 0, along = 0;

    for (size_t j = 0; j < n; j++) {
        sum += g[j];
        along += g[j] * (double)zh[j];
    }
    sum /= (double)n;
    along /= (double)n;
    for (size_t j = 0; j < n; j++)
        u[j] = (float)((g[j] - sum - (double)zh[j] * along) * inverse_s);
}
