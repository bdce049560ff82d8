/* deltanet.c - DeltaNet and Gated DeltaNet, as flash-linear-attention writes them.
 *
 *     x += attn(attn_norm x);  x += down(silu(gate n) * (up n)),  n = mlp_norm x
 *     q, k, v = W x, each through its own causal convolution (depthwise) and silu
 *     q, k    = y / sqrt(|y|^2 + 1e-6) per head; head h of v has head h / (H_v / H_k) of q, k
 *     beta    = sigmoid(b_proj x), doubled with allow_neg_eigval
 *     log g   = -exp(A_log) softplus(a_proj x + dt_bias)                        (gated only)
 *     o       = the memory's read by q / sqrt(d_k), after its update
 *     attn    = o_proj (rms_norm(o) per head * silu(g_proj x)), the gate where there is one
 *
 * Sources: Yang et al. 2406.06484 and 2412.06464. All norms are RMS norms. A block keeps the
 * last conv_size - 1 inputs of each convolution, the oldest first. */
#include "config.h"

#include "inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fastweight/fmath.h"

#define BAD(err, ...) fw_fail(err, FW_EINVAL, "bad_model", __VA_ARGS__)

enum { Q, K, V }; /* branches, and fields of a layer */

struct branch { /* q, k or v */
    struct fw_linear proj;
    const float *conv, *conv_bias; /* (size, out), (out,); NULL: none */
};

struct layer {
    struct fw_norm attn_norm, mlp_norm, o_norm;
    struct branch in[3];
    struct fw_linear a, b, gate, out; /* a, gate: no data where there is none */
    const float *A_log, *dt_bias;     /* (heads,); NULL: no decay */
    struct fw_linear mlp_gate, mlp_up, mlp_down;
};

enum { ANY, D, VOCAB, KEYS, VALUES, HEADS, D_V, SIZE, FF, DIMS };

#define AT(f) offsetof(struct layer, f)

/* ---- tensors */

static const struct fw_want layer_wants[] = {
    { "attn_norm.weight", FW_VECTOR, D, 0, AT(attn_norm.w), 0 },
    { "mlp_norm.weight", FW_VECTOR, D, 0, AT(mlp_norm.w), 0 },
    { "attn.q_proj.weight", FW_MATRIX, KEYS, D, AT(in[Q].proj.W), 0 },
    { "attn.k_proj.weight", FW_MATRIX, KEYS, D, AT(in[K].proj.W), 0 },
    { "attn.v_proj.weight", FW_MATRIX, VALUES, D, AT(in[V].proj.W), 0 },
    { "attn.b_proj.weight", FW_MATRIX, HEADS, D, AT(b.W), 0 },
    { "attn.o_norm.weight", FW_VECTOR, D_V, 0, AT(o_norm.w), 0 },
    { "attn.o_proj.weight", FW_MATRIX, D, VALUES, AT(out.W), 0 },
    { "mlp.gate_proj.weight", FW_MATRIX, FF, D, AT(mlp_gate.W), 0 },
    { "mlp.up_proj.weight", FW_MATRIX, FF, D, AT(mlp_up.W), 0 },
    { "mlp.down_proj.weight", FW_MATRIX, D, FF, AT(mlp_down.W), 0 },
    { NULL, FW_VECTOR, 0, 0, 0, 0 },
};

static const struct fw_want conv_wants[] = {
    { "attn.q_conv1d.weight", FW_CONV, KEYS, SIZE, AT(in[Q].conv), 0 },
    { "attn.k_conv1d.weight", FW_CONV, KEYS, SIZE, AT(in[K].conv), 0 },
    { "attn.v_conv1d.weight", FW_CONV, VALUES, SIZE, AT(in[V].conv), 0 },
    { "attn.q_conv1d.bias", FW_VECTOR, KEYS, 0, AT(in[Q].conv_bias), 1 },
    { "attn.k_conv1d.bias", FW_VECTOR, KEYS, 0, AT(in[K].conv_bias), 1 },
    { "attn.v_conv1d.bias", FW_VECTOR, VALUES, 0, AT(in[V].conv_bias), 1 },
    { NULL, FW_VECTOR, 0, 0, 0, 0 },
};

static const struct fw_want decay_wants[] = {
    { "attn.a_proj.weight", FW_MATRIX, HEADS, D, AT(a.W), 0 },
    { "attn.A_log", FW_VECTOR, HEADS, 0, AT(A_log), 0 },
    { "attn.dt_bias", FW_VECTOR, HEADS, 0, AT(dt_bias), 0 },
    { NULL, FW_VECTOR, 0, 0, 0, 0 },
};

static const struct fw_want gate_wants[] = {
    { "attn.g_proj.weight", FW_MATRIX, VALUES, D, AT(gate.W), 0 },
    { NULL, FW_VECTOR, 0, 0, 0, 0 },
};

static const struct fw_want model_wants[] = {
    { "model.embeddings.weight", FW_MATRIX, VOCAB, D, offsetof(struct fw_checkpoint, embed),
      0 },
    { "model.norm.weight", FW_VECTOR, D, 0, offsetof(struct fw_checkpoint, last.w), 0 },
    { "lm_head.weight", FW_MATRIX, VOCAB, D, offsetof(struct fw_checkpoint, head.W), 1 },
    { NULL, FW_VECTOR, 0, 0, 0, 0 },
};

static bool is_gated(const struct fw_checkpoint *c)
{
    return c->arch == &fw_arch_gated_deltanet;
}

/* x * by, which must be whole. */
static int whole(size_t x, double by, const char *name, size_t *ret, struct fw_err *err)
{
    double y = (double)x * by;

    *ret = (size_t)(y + 0.5);
    if (*ret == 0 || (double)*ret - y > 1e-6 * y || y - (double)*ret > 1e-6 * y)
        return BAD(err, "config.json: %s does not give whole dimensions", name);
    return 0;
}

/* Heads and their dimensions: head_dim, and expand_v times it; or, where that is not said (as
 * in delta_net), a head's share of expand_k d_model and expand_v d_model. */
static int read_heads(struct fw_checkpoint *c, struct fw_err *err)
{
    struct fw_settings *s = &c->set;
    struct fw_model_shape *shape = &c->shape;
    size_t d_k = s->head_dim, d_v, width;
    double expand_v = s->expand_v != 0 ? s->expand_v : is_gated(c) ? 2 : 1;

    if (s->d_model == 0 || s->heads == 0 || (is_gated(c) && d_k == 0))
        return BAD(err, "config.json must say hidden_size, num_heads%s",
                   is_gated(c) ? " and head_dim" : "");
    if (d_k) {
        if (whole(d_k, expand_v, "expand_v", &d_v, err) < 0)
            return -1;
    } else {
        if (whole(s->d_model, s->expand_k != 0 ? s->expand_k : 1, "expand_k", &width, err) < 0)
            return -1;
        d_k = width / s->heads;
        if (whole(s->d_model, expand_v, "expand_v", &d_v, err) < 0)
            return -1;
        d_v /= s->heads;
    }
    if (s->v_heads == 0)
        s->v_heads = s->heads;
    if (s->v_heads % s->heads != 0 || d_k == 0 || d_v == 0 || d_k > 4096 || d_v > 4096)
        return BAD(err, "config.json: heads of (%zu, %zu) that are %zu and %zu", d_k, d_v,
                   s->heads, s->v_heads);
    shape->heads = (uint32_t)s->v_heads;
    shape->d_k = (uint32_t)d_k;
    shape->d_v = (uint32_t)d_v;
    return 0;
}

static int take_layer(struct fw_checkpoint *c, size_t i, size_t *dims, struct fw_err *err)
{
    struct layer *l = (struct layer *)c->layers + i;
    struct fw_weights *w = &c->weights;
    bool gate = is_gated(c) ? !c->set.no_gate : c->set.gate;
    char prefix[FW_NAME_MAX];

    snprintf(prefix, sizeof prefix, "model.layers.%zu.", i);
    if (fw_weights_take(w, prefix, layer_wants, dims, l, err) < 0 ||
        (!c->set.no_conv && fw_weights_take(w, prefix, conv_wants, dims, l, err) < 0) ||
        (is_gated(c) && fw_weights_take(w, prefix, decay_wants, dims, l, err) < 0) ||
        (gate && fw_weights_take(w, prefix, gate_wants, dims, l, err) < 0))
        return -1;
    return 0;
}

static int open_deltanet(struct fw_checkpoint *c, struct fw_err *err)
{
    struct fw_settings *s = &c->set;
    size_t dims[DIMS] = { 0 };

    if (s->activation[0] && strcmp(s->activation, "swish") != 0 &&
        strcmp(s->activation, "silu") != 0)
        return BAD(err, "config.json: hidden_act must be swish");
    if (read_heads(c, err) < 0)
        return -1;
    s->eps = s->eps != 0 ? s->eps : 1e-5;
    s->conv_size = s->no_conv ? 1 : s->conv_size ? s->conv_size : 4;
    dims[D] = s->d_model;
    dims[VOCAB] = s->vocab;
    dims[KEYS] = s->heads * c->shape.d_k;
    dims[VALUES] = s->v_heads * c->shape.d_v;
    dims[HEADS] = s->v_heads;
    dims[D_V] = c->shape.d_v;
    dims[SIZE] = s->conv_size;
    dims[FF] = s->d_ff;
    c->layers = calloc(s->layers, sizeof(struct layer));
    if (!c->layers)
        return fw_fail(err, FW_ENOMEM, "out_of_memory", "no memory for a checkpoint");
    if (fw_weights_take(&c->weights, "", model_wants, dims, c, err) < 0)
        return -1;
    if (!c->head.W.data)
        c->head.W = c->embed;
    for (size_t i = 0; i < s->layers; i++)
        if (take_layer(c, i, dims, err) < 0)
            return -1;
    c->shape.d_ff = (uint32_t)dims[FF];
    return 0;
}

/* ---- a plan's share */

static size_t kept(const struct fw_checkpoint *c, struct fw_kept ret[FW_KEPT])
{
    size_t rows = c->set.conv_size - 1, keys = c->set.heads * c->shape.d_k;

    if (rows == 0)
        return 0;
    ret[Q] = (struct fw_kept){ "conv_q", rows, keys };
    ret[K] = (struct fw_kept){ "conv_k", rows, keys };
    ret[V] = (struct fw_kept){ "conv_v", rows, c->set.v_heads * c->shape.d_v };
    return 3;
}

static float query_scale(const struct fw_checkpoint *c)
{
    return (float)(1 / fw_sqrt((double)c->shape.d_k));
}

static size_t scratch(const struct fw_checkpoint *c, size_t n)
{
    size_t keys = c->set.heads * c->shape.d_k, wide = c->shape.heads * c->shape.d_k;
    size_t values = c->shape.heads * c->shape.d_v, with_tail = n + c->set.conv_size;

    return with_tail * (2 * keys + values) +
           n * (4 * keys + 2 * wide + 5 * values + 2 * c->shape.heads + 3 * c->set.d_model +
                2 * c->shape.d_ff);
}

/* ---- the layer */

/* y (n, out) = the convolution of x, each session's rows behind the tail it keeps. */
static void convolve(const struct fw_model *m, size_t layer, size_t which, const float *x,
                     struct fw_chunk *c, float *y)
{
    const struct branch *b = &((const struct layer *)m->c->layers)[layer].in[which];
    size_t size = m->c->set.conv_size, out = b->proj.W.out, tail = (size - 1) * out;
    float *row = fw_chunk_take(c, c->n + size - 1, out);

    for (const struct fw_span *s = c->span; s < c->span + c->spans; s++) {
        float *last = tail ? fw_model_kept(m, s->block, layer, which) : NULL;

        if (tail)
            memcpy(row, last, tail * sizeof *row);
        memcpy(row + tail, x + s->from * out, s->n * out * sizeof *row);
        fw_parts()->conv(row, b->conv, b->conv_bias, size, s->n, out, y + s->from * out);
        if (tail)
            memcpy(last, row + s->n * out, tail * sizeof *row);
    }
}

/* One of q, k, v: (n, out), convolved and through silu. */
static float *run_branch(const struct fw_model *m, size_t layer, size_t which, const float *h,
                         struct fw_chunk *c)
{
    const struct branch *b = &((const struct layer *)m->c->layers)[layer].in[which];
    const struct fw_row_parts *p = fw_parts();
    size_t out = b->proj.W.out;
    float *x = fw_chunk_take(c, c->n, out), *y = x;

    fw_linear_rows(&b->proj, h, c->n, x);
    if (b->conv) {
        p->bound(x, c->n * out, FW_LIMIT);
        y = fw_chunk_take(c, c->n, out);
        convolve(m, layer, which, x, c, y);
    }
    p->silu(y, c->n * out);
    return y;
}

/* Unit length per head, and each head for all that share it: (n, v_heads, d_k). */
static float *spread(const struct fw_checkpoint *ck, float *x, struct fw_chunk *c)
{
    size_t d = ck->shape.d_k, heads = ck->set.heads, group = ck->set.v_heads / heads;
    float *y;

    for (size_t i = 0; i < c->n * heads; i++)
        fw_parts()->unit(x + i * d, d, 1e-6);
    if (group == 1)
        return x;
    y = fw_chunk_take(c, c->n, heads * group * d);
    for (size_t i = 0; i < c->n * heads * group; i++)
        memcpy(y + i * d, x + i / group * d, d * sizeof *y);
    return y;
}

static float *make_beta(const struct fw_checkpoint *ck, const struct layer *l, const float *h,
                        struct fw_chunk *c)
{
    size_t n = c->n * ck->set.v_heads;
    float *beta = fw_chunk_take(c, c->n, ck->set.v_heads);

    fw_linear_rows(&l->b, h, c->n, beta);
    fw_parts()->sigmoid(beta, n);
    if (ck->set.double_beta)
        fw_parts()->add(beta, beta, n);
    return beta;
}

static float *make_log_g(const struct fw_checkpoint *ck, const struct layer *l, const float *h,
                         struct fw_chunk *c)
{
    size_t heads = ck->set.v_heads;
    float *g = fw_chunk_take(c, c->n, heads);

    fw_linear_rows(&l->a, h, c->n, g);
    for (size_t t = 0; t < c->n; t++)
        fw_parts()->add(g + t * heads, l->dt_bias, heads);
    fw_parts()->softplus(g, c->n * heads);
    for (size_t i = 0; i < c->n * heads; i++)
        g[i] *= -fw_expf(l->A_log[i % heads]);
    return g;
}

void fw_deltanet_attention(const struct fw_model *m, size_t layer, const float *h,
                           struct fw_chunk *c)
{
    const struct fw_checkpoint *ck = m->c;
    const struct layer *l = (const struct layer *)ck->layers + layer;
    size_t d_v = ck->shape.d_v, values = ck->set.v_heads * d_v;
    float *made[FW_MADE], *o, *gate;

    made[2] = spread(ck, run_branch(m, layer, Q, h, c), c);
    made[0] = spread(ck, run_branch(m, layer, K, h, c), c);
    made[1] = run_branch(m, layer, V, h, c);
    made[3] = make_beta(ck, l, h, c);
    made[4] = l->A_log ? make_log_g(ck, l, h, c) : NULL;
    o = fw_chunk_take(c, c->n, values);
    fw_model_memory(m, layer, c, made, o);
    fw_rms_norm_rows(&l->o_norm, ck->set.eps, o, c->n * ck->set.v_heads, d_v, o);
    if (l->gate.W.data) {
        gate = fw_chunk_take(c, c->n, values);
        fw_linear_rows(&l->gate, h, c->n, gate);
        fw_parts()->silu(gate, c->n * values);
        fw_parts()->scale(o, gate, c->n * values);
    }
    fw_residual(&l->out, o, c);
}

static void run_layer(const struct fw_model *m, size_t layer, struct fw_chunk *c)
{
    const struct fw_checkpoint *ck = m->c;
    const struct layer *l = (const struct layer *)ck->layers + layer;
    size_t d = ck->shape.d_model, ff = ck->shape.d_ff;
    float *h = fw_chunk_take(c, c->n, d), *gate, *up;

    fw_rms_norm_rows(&l->attn_norm, ck->set.eps, c->x, c->n, d, h);
    fw_deltanet_attention(m, layer, h, c);
    fw_rms_norm_rows(&l->mlp_norm, ck->set.eps, c->x, c->n, d, h);
    gate = fw_chunk_take(c, c->n, ff);
    up = fw_chunk_take(c, c->n, ff);
    fw_linear_rows(&l->mlp_gate, h, c->n, gate);
    fw_linear_rows(&l->mlp_up, h, c->n, up);
    fw_parts()->silu(gate, c->n * ff);
    fw_parts()->scale(gate, up, c->n * ff);
    fw_residual(&l->mlp_down, gate, c);
}

#define DELTANET(name_, rule_)                                                                 \
    .name = (name_), .rule = (rule_), .unit_keys = true, .rms = true, .open = open_deltanet,   \
    .kept = kept, .query_scale = query_scale, .scratch = scratch, .layer = run_layer

const struct fw_arch fw_arch_gated_deltanet = { DELTANET("gated_deltanet", "gated_delta"),
                                                .made = { { "keys", FW_MADE_D_K },
                                                          { "values", FW_MADE_D_V },
                                                          { "queries", FW_MADE_D_K },
                                                          { "beta", FW_MADE_SCALAR },
                                                          { "log_g", FW_MADE_SCALAR } } };
const struct fw_arch fw_arch_delta_net = { DELTANET("delta_net", "delta"),
                                           .made = { { "keys", FW_MADE_D_K },
                                                     { "values", FW_MADE_D_V },
                                                     { "queries", FW_MADE_D_K },
                                                     { "beta", FW_MADE_SCALAR } } };
