/* rwkv7.c - RWKV-7 "Goose" (2503.14456), with the official tensor names or
 * flash-linear-attention's.
 *
 *     time mix, h = LN1(x), last = h of the token before:  h_s = h + x_s (last - h) per use s
 *     r, k, v = W h_r, W h_k, W h_v;  g = sigmoid(h_g g1) g2;  a = sigmoid(a0 + (h_a a1) a2)
 *     log decay = -exp(-1/2) sigmoid(w0 + tanh(h_w w1) w2)
 *     v:  layer 0 keeps v; later ones add sigmoid(v0 + (h_v v1) v2) (v of layer 0 - v)
 *     kk = k k_k, of length 1 per head;  k = k (1 + (a - 1) k_a)
 *     the memory (wkv7): erases along -kk with kk a, writes v at k, decays, reads by r
 *     y = group norm of the read, per head; y += (sum r k r_k) v;  x += W (y g)
 *     channel mix, h = LN2(x):  x += W_v relu(W_k (h + x_k (last - h)))^2
 *
 * The memory's decay goes in as w = log(-log decay) = -1/2 - softplus(-(w0 + ..)). A block
 * keeps both last vectors of each layer. The group norm's eps is 64e-5, or head_dim eps in
 * flash-linear-attention's form. */
#include "config.h"

#include "inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BAD(err, ...) fw_fail(err, FW_EINVAL, "bad_model", __VA_ARGS__)

enum { ATT_SHIFT, FFN_SHIFT }; /* fields of a layer */
enum { R, W, K, VAL, A, G, MIXES };

struct low_rank { /* up (act(down x)) + bias */
    struct fw_linear down, up;
};

struct layer {
    struct fw_norm ln1, ln2, ln_x;
    const float *mu[MIXES], *ffn_mu; /* (C,) */
    struct low_rank w, a, v, g;
    const float *k_k, *k_a, *r_k; /* (C,) */
    struct fw_linear r, k, val, out, ffn_k, ffn_v;
    double group_eps; /* of ln_x */
};

enum { ANY, C, VOCAB, RANK_W, RANK_A, RANK_V, RANK_G, FF, DIMS };

#define AT(f) offsetof(struct layer, f)
#define END                                                                                    \
    {                                                                                          \
        NULL, FW_VECTOR, 0, 0, 0, 0                                                            \
    }

/* ---- tensors */

static const struct fw_want official[] = {
    { "ln1.weight", FW_VECTOR, C, 0, AT(ln1.w), 0 },
    { "ln1.bias", FW_VECTOR, C, 0, AT(ln1.b), 1 },
    { "ln2.weight", FW_VECTOR, C, 0, AT(ln2.w), 0 },
    { "ln2.bias", FW_VECTOR, C, 0, AT(ln2.b), 1 },
    { "att.x_r", FW_VECTOR, C, 0, AT(mu[R]), 0 },
    { "att.x_w", FW_VECTOR, C, 0, AT(mu[W]), 0 },
    { "att.x_k", FW_VECTOR, C, 0, AT(mu[K]), 0 },
    { "att.x_v", FW_VECTOR, C, 0, AT(mu[VAL]), 0 },
    { "att.x_a", FW_VECTOR, C, 0, AT(mu[A]), 0 },
    { "att.x_g", FW_VECTOR, C, 0, AT(mu[G]), 0 },
    { "att.w0", FW_VECTOR, C, 0, AT(w.up.bias), 0 },
    { "att.w1", FW_TURNED, RANK_W, C, AT(w.down.W), 0 },
    { "att.w2", FW_TURNED, C, RANK_W, AT(w.up.W), 0 },
    { "att.a0", FW_VECTOR, C, 0, AT(a.up.bias), 0 },
    { "att.a1", FW_TURNED, RANK_A, C, AT(a.down.W), 0 },
    { "att.a2", FW_TURNED, C, RANK_A, AT(a.up.W), 0 },
    { "att.g1", FW_TURNED, RANK_G, C, AT(g.down.W), 0 },
    { "att.g2", FW_TURNED, C, RANK_G, AT(g.up.W), 0 },
    { "att.k_k", FW_VECTOR, C, 0, AT(k_k), 0 },
    { "att.k_a", FW_VECTOR, C, 0, AT(k_a), 0 },
    { "att.r_k", FW_VECTOR, C, 0, AT(r_k), 0 },
    { "att.receptance.weight", FW_MATRIX, C, C, AT(r.W), 0 },
    { "att.key.weight", FW_MATRIX, C, C, AT(k.W), 0 },
    { "att.value.weight", FW_MATRIX, C, C, AT(val.W), 0 },
    { "att.output.weight", FW_MATRIX, C, C, AT(out.W), 0 },
    { "att.output.bias", FW_VECTOR, C, 0, AT(out.bias), 1 },
    { "att.ln_x.weight", FW_VECTOR, C, 0, AT(ln_x.w), 0 },
    { "att.ln_x.bias", FW_VECTOR, C, 0, AT(ln_x.b), 1 },
    { "ffn.x_k", FW_VECTOR, C, 0, AT(ffn_mu), 0 },
    { "ffn.key.weight", FW_MATRIX, FF, C, AT(ffn_k.W), 0 },
    { "ffn.value.weight", FW_MATRIX, C, FF, AT(ffn_v.W), 0 },
    END,
};

static const struct fw_want official_later[] = {
    /* layers after the first */
    { "att.v0", FW_VECTOR, C, 0, AT(v.up.bias), 0 },
    { "att.v1", FW_TURNED, RANK_V, C, AT(v.down.W), 0 },
    { "att.v2", FW_TURNED, C, RANK_V, AT(v.up.W), 0 },
    END,
};

static const struct fw_want fla[] = {
    { "attn_norm.weight", FW_VECTOR, C, 0, AT(ln1.w), 0 },
    { "attn_norm.bias", FW_VECTOR, C, 0, AT(ln1.b), 1 },
    { "ffn_norm.weight", FW_VECTOR, C, 0, AT(ln2.w), 0 },
    { "ffn_norm.bias", FW_VECTOR, C, 0, AT(ln2.b), 1 },
    { "attn.x_r", FW_VECTOR, C, 0, AT(mu[R]), 0 },
    { "attn.x_w", FW_VECTOR, C, 0, AT(mu[W]), 0 },
    { "attn.x_k", FW_VECTOR, C, 0, AT(mu[K]), 0 },
    { "attn.x_v", FW_VECTOR, C, 0, AT(mu[VAL]), 0 },
    { "attn.x_a", FW_VECTOR, C, 0, AT(mu[A]), 0 },
    { "attn.x_g", FW_VECTOR, C, 0, AT(mu[G]), 0 },
    { "attn.w_lora.lora.0.weight", FW_MATRIX, RANK_W, C, AT(w.down.W), 0 },
    { "attn.w_lora.lora.2.weight", FW_MATRIX, C, RANK_W, AT(w.up.W), 0 },
    { "attn.w_lora.lora.2.bias", FW_VECTOR, C, 0, AT(w.up.bias), 0 },
    { "attn.a_lora.lora.0.weight", FW_MATRIX, RANK_A, C, AT(a.down.W), 0 },
    { "attn.a_lora.lora.2.weight", FW_MATRIX, C, RANK_A, AT(a.up.W), 0 },
    { "attn.a_lora.lora.2.bias", FW_VECTOR, C, 0, AT(a.up.bias), 0 },
    { "attn.g_lora.lora.0.weight", FW_MATRIX, RANK_G, C, AT(g.down.W), 0 },
    { "attn.g_lora.lora.2.weight", FW_MATRIX, C, RANK_G, AT(g.up.W), 0 },
    { "attn.k_k", FW_VECTOR, C, 0, AT(k_k), 0 },
    { "attn.k_a", FW_VECTOR, C, 0, AT(k_a), 0 },
    { "attn.r_k", FW_VECTOR, C, 0, AT(r_k), 0 },
    { "attn.r_proj.weight", FW_MATRIX, C, C, AT(r.W), 0 },
    { "attn.k_proj.weight", FW_MATRIX, C, C, AT(k.W), 0 },
    { "attn.v_proj.weight", FW_MATRIX, C, C, AT(val.W), 0 },
    { "attn.o_proj.weight", FW_MATRIX, C, C, AT(out.W), 0 },
    { "attn.g_norm.weight", FW_VECTOR, C, 0, AT(ln_x.w), 0 },
    { "attn.g_norm.bias", FW_VECTOR, C, 0, AT(ln_x.b), 1 },
    { "ffn.x_k", FW_VECTOR, C, 0, AT(ffn_mu), 0 },
    { "ffn.key.weight", FW_MATRIX, FF, C, AT(ffn_k.W), 0 },
    { "ffn.value.weight", FW_MATRIX, C, FF, AT(ffn_v.W), 0 },
    END,
};

static const struct fw_want fla_later[] = {
    { "attn.v_lora.lora.0.weight", FW_MATRIX, RANK_V, C, AT(v.down.W), 0 },
    { "attn.v_lora.lora.2.weight", FW_MATRIX, C, RANK_V, AT(v.up.W), 0 },
    { "attn.v_lora.lora.2.bias", FW_VECTOR, C, 0, AT(v.up.bias), 0 },
    END,
};

#define MODEL(f) offsetof(struct fw_checkpoint, f)

static const struct fw_want official_model[] = {
    { "emb.weight", FW_MATRIX, VOCAB, C, MODEL(embed), 0 },
    { "blocks.0.ln0.weight", FW_VECTOR, C, 0, MODEL(first.w), 1 },
    { "blocks.0.ln0.bias", FW_VECTOR, C, 0, MODEL(first.b), 1 },
    { "ln_out.weight", FW_VECTOR, C, 0, MODEL(last.w), 0 },
    { "ln_out.bias", FW_VECTOR, C, 0, MODEL(last.b), 1 },
    { "head.weight", FW_MATRIX, VOCAB, C, MODEL(head.W), 1 },
    { "head.bias", FW_VECTOR, VOCAB, 0, MODEL(head.bias), 1 },
    END,
};

static const struct fw_want fla_model[] = {
    { "model.embeddings.weight", FW_MATRIX, VOCAB, C, MODEL(embed), 0 },
    { "model.layers.0.pre_norm.weight", FW_VECTOR, C, 0, MODEL(first.w), 1 },
    { "model.layers.0.pre_norm.bias", FW_VECTOR, C, 0, MODEL(first.b), 1 },
    { "model.norm.weight", FW_VECTOR, C, 0, MODEL(last.w), 0 },
    { "model.norm.bias", FW_VECTOR, C, 0, MODEL(last.b), 1 },
    { "lm_head.weight", FW_MATRIX, VOCAB, C, MODEL(head.W), 1 },
    END,
};

static bool is_official(const struct fw_checkpoint *c)
{
    return fw_weights_look(&c->weights, "emb.weight") != NULL;
}

/* head_dim goes before num_heads; where config.json says neither, r_k (heads, head_dim) does.
 */
static int read_heads(struct fw_checkpoint *c, struct fw_err *err)
{
    const struct fw_tensor *r_k = fw_weights_look(
        &c->weights, is_official(c) ? "blocks.0.att.r_k" : "model.layers.0.attn.r_k");
    size_t d = c->embed.in, head_dim = c->set.head_dim, heads = c->set.heads;

    if (head_dim == 0 && heads == 0 && !r_k)
        return BAD(err, "the first att.r_k is missing, and config.json does not say head_dim");
    if (head_dim == 0 && heads == 0 && r_k->ndim == 2 && r_k->shape[1] <= d)
        head_dim = (size_t)r_k->shape[1];
    if (head_dim == 0 && heads)
        head_dim = d / heads;
    if (head_dim == 0 || head_dim > 4096 || d % head_dim)
        return BAD(err, "config.json: heads of %zu do not divide %zu channels", head_dim, d);
    c->shape.heads = (uint32_t)(d / head_dim);
    c->shape.d_k = c->shape.d_v = (uint32_t)head_dim;
    return 0;
}

static int take_layers(struct fw_checkpoint *c, size_t *dims, struct fw_err *err)
{
    struct layer *l = c->layers;
    bool ours = is_official(c);
    char prefix[FW_NAME_MAX];

    for (size_t i = 0; i < c->set.layers; i++) {
        dims[RANK_W] = dims[RANK_A] = dims[RANK_V] = dims[RANK_G] = 0;
        snprintf(prefix, sizeof prefix, ours ? "blocks.%zu." : "model.layers.%zu.", i);
        if (fw_weights_take(&c->weights, prefix, ours ? official : fla, dims, &l[i], err) < 0 ||
            (i > 0 && fw_weights_take(&c->weights, prefix, ours ? official_later : fla_later,
                                      dims, &l[i], err) < 0))
            return -1;
        l[i].group_eps = ours ? 64e-5 : (double)c->shape.d_k * c->set.eps;
    }
    return 0;
}

static int open_rwkv7(struct fw_checkpoint *c, struct fw_err *err)
{
    struct fw_settings *s = &c->set;
    size_t dims[DIMS] = { [C] = s->d_model, [VOCAB] = s->vocab, [FF] = s->d_ff };

    if (s->activation[0] && strcmp(s->activation, "sqrelu") != 0)
        return BAD(err, "config.json: hidden_act must be sqrelu");
    s->eps = s->eps != 0 ? s->eps : 1e-5;
    c->layers = calloc(s->layers, sizeof(struct layer));
    if (!c->layers)
        return fw_fail(err, FW_ENOMEM, "out_of_memory", "no memory for a checkpoint");
    if (fw_weights_take(&c->weights, "", is_official(c) ? official_model : fla_model, dims, c,
                        err) < 0 ||
        read_heads(c, err) < 0 || take_layers(c, dims, err) < 0)
        return -1;
    if (!c->head.W.data)
        c->head.W = c->embed;
    c->shape.d_ff = (uint32_t)dims[FF];
    return 0;
}

/* ---- a plan's share */

static size_t kept(const struct fw_checkpoint *c, struct fw_kept ret[FW_KEPT])
{
    ret[ATT_SHIFT] = (struct fw_kept){ "att_shift", 1, c->shape.d_model };
    ret[FFN_SHIFT] = (struct fw_kept){ "ffn_shift", 1, c->shape.d_model };
    return 2;
}

static size_t widest_rank(const struct fw_checkpoint *c)
{
    const struct layer *l = c->layers;
    size_t max = 0;

    for (size_t i = 0; i < c->set.layers; i++) {
        const size_t rank[] = { l[i].w.down.W.out, l[i].a.down.W.out, l[i].v.down.W.out,
                                l[i].g.down.W.out };

        for (size_t j = 0; j < 4; j++)
            max = rank[j] > max ? rank[j] : max;
    }
    return max;
}

static size_t scratch(const struct fw_checkpoint *c, size_t n)
{
    return n * 4 * c->shape.d_model +
           n * (18 * c->shape.d_model + 4 * widest_rank(c) + c->shape.d_ff);
}

/* ---- the layer */

struct shifted { /* normed rows, and for each that of its session's token before: (n, C) */
    float *h, *last;
};

/* Each session's last row is kept. */
static struct shifted shifted(const struct fw_model *m, size_t layer, size_t kept_field,
                              const struct fw_norm *norm, struct fw_chunk *c)
{
    size_t d = m->c->shape.d_model;
    struct shifted x = { fw_chunk_take(c, c->n, d), fw_chunk_take(c, c->n, d) };

    fw_layer_norm_rows(norm, m->c->set.eps, c->x, c->n, d, x.h);
    fw_parts()->bound(x.h, c->n * d, FW_LIMIT);
    for (const struct fw_span *s = c->span; s < c->span + c->spans; s++) {
        float *kept_row = fw_model_kept(m, s->block, layer, kept_field);
        float *h = x.h + s->from * d, *last = x.last + s->from * d;

        memcpy(last, kept_row, d * sizeof *last);
        memcpy(last + d, h, (s->n - 1) * d * sizeof *last);
        memcpy(kept_row, h + (s->n - 1) * d, d * sizeof *last);
    }
    return x;
}

/* h + mu (last - h) */
static float *mixed(const struct shifted *x, const float *mu, size_t d, struct fw_chunk *c,
                    float *y)
{
    for (size_t t = 0; t < c->n; t++)
        fw_parts()->mix(x->h + t * d, x->last + t * d, mu, d, y + t * d);
    return y;
}

/* act(x down) up + bias, into y. */
static void low_rank(const struct low_rank *l, void (*act)(float *x, size_t n), const float *x,
                     struct fw_chunk *c, float *y)
{
    float *mid = fw_chunk_take(c, c->n, l->down.W.out);

    fw_linear_rows(&l->down, x, c->n, mid);
    if (act)
        act(mid, c->n * l->down.W.out);
    fw_linear_rows(&l->up, mid, c->n, y);
}

struct rows { /* of a chunk, (n, C) each */
    float *r, *w, *k, *v, *a, *g, *kk, *erase;
};

/* v += (v of layer 0 - v) gate; layer 0 keeps its own. */
static void share_values(const struct layer *l, size_t layer, const float *x, size_t d,
                         float *v, struct fw_chunk *c)
{
    float *gate;

    if (layer == 0) {
        memcpy(c->first, v, c->n * d * sizeof *v);
        return;
    }
    gate = fw_chunk_take(c, c->n, d);
    low_rank(&l->v, NULL, x, c, gate);
    fw_parts()->sigmoid(gate, c->n * d);
    fw_parts()->mix(v, c->first, gate, c->n * d, v);
}

/* The decay's input, as the memory wants it. */
static void make_decay(float *w, size_t n)
{
    for (size_t i = 0; i < n; i++)
        w[i] = -w[i];
    fw_parts()->softplus(w, n);
    for (size_t i = 0; i < n; i++)
        w[i] = -0.5f - w[i];
}

static void project(const struct layer *l, size_t layer, const struct shifted *h, size_t d,
                    struct fw_chunk *c, struct rows *y)
{
    const struct fw_row_parts *p = fw_parts();
    float *x = fw_chunk_take(c, c->n, d);

    fw_linear_rows(&l->r, mixed(h, l->mu[R], d, c, x), c->n, y->r);
    fw_linear_rows(&l->k, mixed(h, l->mu[K], d, c, x), c->n, y->k);
    low_rank(&l->w, p->tanh, mixed(h, l->mu[W], d, c, x), c, y->w);
    make_decay(y->w, c->n * d);
    low_rank(&l->a, NULL, mixed(h, l->mu[A], d, c, x), c, y->a);
    p->sigmoid(y->a, c->n * d);
    low_rank(&l->g, p->sigmoid, mixed(h, l->mu[G], d, c, x), c, y->g);
    fw_linear_rows(&l->val, mixed(h, l->mu[VAL], d, c, x), c->n, y->v);
    share_values(l, layer, x, d, y->v, c);
}

/* kk, k (1 + (a - 1) k_a), and the erasing pair -kk, kk a. */
static void make_keys(const struct layer *l, const struct fw_checkpoint *ck, struct fw_chunk *c,
                      struct rows *y)
{
    size_t d = ck->shape.d_model, d_k = ck->shape.d_k;

    for (size_t t = 0; t < c->n; t++) {
        const float *a = y->a + t * d;
        float *k = y->k + t * d, *kk = y->kk + t * d, *erase = y->erase + t * d;

        for (size_t i = 0; i < d; i++)
            kk[i] = k[i] * l->k_k[i];
        for (size_t head = 0; head < ck->shape.heads; head++)
            fw_parts()->unit(kk + head * d_k, d_k, 0);
        for (size_t i = 0; i < d; i++) {
            k[i] *= __builtin_fmaf(a[i] - 1, l->k_a[i], 1);
            erase[i] = kk[i] * a[i];
            kk[i] = -kk[i];
        }
    }
}

/* y = group norm of o, plus (sum r k r_k) v per head, times g. */
static void finish(const struct layer *l, const struct fw_checkpoint *ck, const struct rows *y,
                   struct fw_chunk *c, float *o)
{
    size_t d = ck->shape.d_model, d_k = ck->shape.d_k;
    float *bonus = fw_chunk_take(c, 1, d_k);

    for (size_t i = 0; i < c->n * ck->shape.heads; i++) {
        size_t at = i * d_k, channel = at % d;
        float sum;

        fw_parts()->layer_norm(o + at, d_k, l->ln_x.w + channel,
                               l->ln_x.b ? l->ln_x.b + channel : NULL, l->group_eps, o + at);
        memcpy(bonus, y->r + at, d_k * sizeof *bonus);
        fw_parts()->scale(bonus, y->k + at, d_k);
        sum = (float)fw_parts()->dot(bonus, l->r_k + channel, d_k);
        for (size_t j = 0; j < d_k; j++)
            o[at + j] = __builtin_fmaf(sum, y->v[at + j], o[at + j]);
    }
    fw_parts()->scale(o, y->g, c->n * d);
}

static void take_rows(struct fw_chunk *c, size_t d, struct rows *y)
{
    float **all[] = { &y->r, &y->w, &y->k, &y->v, &y->a, &y->g, &y->kk, &y->erase };

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        *all[i] = fw_chunk_take(c, c->n, d);
}

static void run_time_mix(const struct fw_model *m, size_t layer, struct fw_chunk *c)
{
    const struct fw_checkpoint *ck = m->c;
    const struct layer *l = (const struct layer *)ck->layers + layer;
    size_t d = ck->shape.d_model;
    struct shifted h = shifted(m, layer, ATT_SHIFT, &l->ln1, c);
    float *o = fw_chunk_take(c, c->n, d), *made[FW_MADE];
    struct rows y;

    take_rows(c, d, &y);
    project(l, layer, &h, d, c, &y);
    make_keys(l, ck, c, &y);
    made[0] = y.k;
    made[1] = y.v;
    made[2] = y.r;
    made[3] = y.kk;
    made[4] = y.erase;
    made[5] = y.w;
    fw_model_memory(m, layer, c, made, o);
    finish(l, ck, &y, c, o);
    fw_residual(&l->out, o, c);
}

static void run_layer(const struct fw_model *m, size_t layer, struct fw_chunk *c)
{
    const struct layer *l = (const struct layer *)m->c->layers + layer;
    size_t d = m->c->shape.d_model, ff = m->c->shape.d_ff, mark = c->used;
    struct shifted h;
    float *x, *k;

    run_time_mix(m, layer, c);
    c->used = mark;
    h = shifted(m, layer, FFN_SHIFT, &l->ln2, c);
    x = fw_chunk_take(c, c->n, d);
    k = fw_chunk_take(c, c->n, ff);
    fw_linear_rows(&l->ffn_k, mixed(&h, l->ffn_mu, d, c, x), c->n, k);
    fw_parts()->relu_squared(k, c->n * ff);
    fw_residual(&l->ffn_v, k, c);
}

const struct fw_arch fw_arch_rwkv7 = {
    .name = "rwkv7",
    .rule = "wkv7",
    .made = { { "keys", FW_MADE_D_K },
              { "values", FW_MADE_D_V },
              { "queries", FW_MADE_D_K },
              { "a", FW_MADE_D_K },
              { "b", FW_MADE_D_K },
              { "w", FW_MADE_D_K } },
    .open = open_rwkv7,
    .kept = kept,
    .scratch = scratch,
    .layer = run_layer,
};
