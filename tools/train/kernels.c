/* The parts of a Gated DeltaNet that are slow as a chain of tensor operations, on one core.
 *
 * A trainer on a CPU spends most of its time outside the matrix products: in the recurrence
 * over the tokens, and in dozens of passes over memory for normalisations and gates. Here each
 * such part is one pass. The recurrence is the plain one, token by token: with a 32 x 32 state
 * that lies in the first-level cache it costs less than the chunked form's triangular solves.
 * Sums and states are float. The backward pass recomputes the states between saved ones. gdn.py
 * compiles this file with the local compiler and calls it through ctypes. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* D, the head size, comes from the command line: loops over it are unrolled. CHUNK: tokens
 * between saved states; TAPS: of the convolutions; WIDEST: no row is wider, gdn.py checks. */
enum { CHUNK = 32, TAPS = 4, WIDEST = 4096 };

/* Activations between the parts: bfloat16, or with -DFLOAT what they are. */
#ifdef FLOAT
typedef float store;
#else
typedef uint16_t store;
#endif

struct norm { /* mirrors Norm in gdn.py */
    int64_t rows, d;
    const float *x, *w;
    const store *delta; /* NULL: nothing to add */
    float eps;
    float *sum, *rstd;
    store *out;
    const store *d_out;
    float *grad, *d_w; /* added to */
    store *grad16;
};

struct mixer { /* what does not change between the tokens; mirrors Mixer in gdn.py */
    int64_t batch, length, heads;
    const store *in;   /* [batch, length, q | k | v | gate | a | b] */
    const float *conv; /* [q | k | v][TAPS] */
    const float *a_log, *dt_bias, *o_norm;
    float eps;
    const float *state_in; /* [batch, heads, D, D] */
    const store *tail_in;  /* [batch, TAPS - 1, q | k | v]: the inputs before the first token */
    float *state_out;
    store *tail_out;
    float *saved; /* [batch, heads, length / CHUNK, D, D] */
    store *out;   /* [batch, length, heads * D] */
    const store *d_out;
    store *d_in;
    float *d_conv, *d_a_log, *d_dt_bias, *d_o_norm; /* added to */
};

struct lane {           /* one head of one sequence, unpacked to float */
    float (*raw[3])[D]; /* q, k, v before the convolution, TAPS - 1 rows of history first */
    float (*pre[3])[D]; /* after the convolution */
    float (*act[3])[D]; /* after SiLU; q and k normalised */
    float (*grad[3])[D];
    float (*gate)[D], (*out)[D], (*d_gate)[D];
    float *norm[2], *decay, *beta, *a, *d_decay, *d_beta;
    float (*states)[D][D];
    float *block; /* all of it */
};

#ifdef FLOAT
static void widen(float *restrict to, const store *restrict from, int64_t n)
{
    memcpy(to, from, sizeof *to * (size_t)n);
}

static void narrow(store *restrict to, const float *restrict from, int64_t n)
{
    memcpy(to, from, sizeof *to * (size_t)n);
}
#else
static void widen(float *restrict to, const store *restrict from, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        uint32_t u = (uint32_t)from[i] << 16;
        memcpy(&to[i], &u, 4);
    }
}

static void narrow(store *restrict to, const float *restrict from, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        uint32_t u;
        memcpy(&u, &from[i], 4);
        to[i] = (store)((u + 0x7fff + (u >> 16 & 1)) >> 16);
    }
}
#endif

/* Bounded, for an infinity becomes NaN where a division is an estimate and a correction. */
static inline float sigmoid(float x)
{
    return 1 / (1 + expf(x < -80 ? 80 : -x));
}

static float dot(const float *restrict a, const float *restrict b, int64_t n)
{
    float s = 0;
    for (int64_t i = 0; i < n; i++)
        s += a[i] * b[i];
    return s;
}

/* sum = x + delta (delta may be absent); out = sum * rstd * w */
void norm_fwd(const struct norm *n)
{
    int64_t d = n->d;
    float row[WIDEST];
    for (int64_t r = 0; r < n->rows; r++) {
        const float *x = n->x + r * d;
        float *s = n->sum + r * d;
        memset(row, 0, sizeof *row * (size_t)d);
        if (n->delta)
            widen(row, n->delta + r * d, d);
        for (int64_t i = 0; i < d; i++)
            s[i] = x[i] + row[i];
        float k = 1 / sqrtf(dot(s, s, d) / (float)d + n->eps);
        n->rstd[r] = k;
        for (int64_t i = 0; i < d; i++)
            row[i] = s[i] * k * n->w[i];
        narrow(n->out + r * d, row, d);
    }
}

/* grad (of the sum) += what comes through the norm; grad16 is it, for the branch below */
void norm_bwd(const struct norm *n)
{
    int64_t d = n->d;
    float dy[WIDEST], acc[WIDEST] = { 0 };
    for (int64_t r = 0; r < n->rows; r++) {
        const float *s = n->sum + r * d;
        float *g = n->grad + r * d, k = n->rstd[r], c = 0;
        widen(dy, n->d_out + r * d, d);
        for (int64_t i = 0; i < d; i++) {
            acc[i] += dy[i] * s[i] * k;
            dy[i] *= n->w[i];
            c += dy[i] * s[i];
        }
        c *= k * k * k / (float)d;
        for (int64_t i = 0; i < d; i++)
            g[i] += dy[i] * k - s[i] * c;
        narrow(n->grad16 + r * d, g, d);
    }
    for (int64_t i = 0; i < d; i++)
        n->d_w[i] += acc[i];
}

/* SwiGLU: in = gate | up, out = silu(gate) * up */
void swiglu_fwd(int64_t rows, int64_t f, const store *in, store *out)
{
    float x[WIDEST];
    for (int64_t r = 0; r < rows; r++) {
        widen(x, in + r * 2 * f, 2 * f);
        for (int64_t i = 0; i < f; i++)
            x[i] = x[i] * sigmoid(x[i]) * x[f + i];
        narrow(out + r * f, x, f);
    }
}

void swiglu_bwd(int64_t rows, int64_t f, const store *in, const store *d_out, store *d_in)
{
    float x[WIDEST], d[WIDEST];
    for (int64_t r = 0; r < rows; r++) {
        widen(x, in + r * 2 * f, 2 * f);
        widen(d, d_out + r * f, f);
        for (int64_t i = 0; i < f; i++) {
            float s = sigmoid(x[i]), u = x[f + i];
            x[f + i] = d[i] * x[i] * s;
            x[i] = d[i] * u * s * (1 + x[i] * (1 - s));
        }
        narrow(d_in + r * 2 * f, x, 2 * f);
    }
}

/* Logits become the cross entropy's gradient; a target < 0 does not count. Returns the sum in
 * nats. */
double cross_entropy(int64_t rows, int64_t n, store *logits, const int64_t *target, float scale)
{
    float x[WIDEST];
    double loss = 0;
    for (int64_t r = 0; r < rows; r++) {
        store *l = logits + r * n;
        int64_t t = target[r];
        float top = -1e30f, sum = 0;
        widen(x, l, n);
        float own = x[t < 0 ? 0 : t];
        for (int64_t i = 0; i < n; i++)
            top = x[i] > top ? x[i] : top;
        for (int64_t i = 0; i < n; i++) {
            x[i] = expf(x[i] - top);
            sum += x[i];
        }
        float k = t < 0 ? 0 : scale / sum;
        for (int64_t i = 0; i < n; i++)
            x[i] *= k;
        if (t >= 0) {
            x[t] -= scale;
            loss += (double)(logf(sum) + top - own);
        }
        narrow(l, x, n);
    }
    return loss;
}

static float *take(float **free_part, int64_t n)
{
    float *p = *free_part;
    *free_part += (n + 15) / 16 * 16;
    return p;
}

static void lane_init(struct lane *l, int64_t t)
{
    float **rows[] = { &l->norm[0], &l->norm[1], &l->decay,  &l->beta,
                       &l->a,       &l->d_decay, &l->d_beta, NULL };
    int64_t wide = (t + TAPS) * D, states = (CHUNK + 1) * D * D;
    l->block = aligned_alloc(64, sizeof(float) * (size_t)(15 * wide + 8 * (t + 16) + states));
    float *p = l->block;
    if (!p)
        abort();
    for (int i = 0; i < 3; i++) {
        l->raw[i] = (float(*)[D])take(&p, wide);
        l->pre[i] = (float(*)[D])take(&p, wide);
        l->act[i] = (float(*)[D])take(&p, wide);
        l->grad[i] = (float(*)[D])take(&p, wide);
    }
    l->gate = (float(*)[D])take(&p, wide);
    l->out = (float(*)[D])take(&p, wide);
    l->d_gate = (float(*)[D])take(&p, wide);
    l->states = (float(*)[D][D])take(&p, states);
    for (float ***r = rows; *r; r++)
        **r = take(&p, t);
}

static int64_t width(const struct mixer *m)
{
    return 4 * m->heads * D + 2 * m->heads;
}

static void conv_weights(const struct mixer *m, int64_t first, float (*w)[D])
{
    for (int j = 0; j < TAPS; j++)
        for (int c = 0; c < D; c++)
            w[j][c] = m->conv[(first + c) * TAPS + j];
}

/* convolution, SiLU and the key and query norm of one of q, k, v */
static void lane_channel(const struct mixer *m, const struct lane *l, int64_t h, int part)
{
    float w[TAPS][D];
    conv_weights(m, (part * m->heads + h) * D, w);
    for (int64_t t = 0; t < m->length; t++) {
        float *p = l->pre[part][t], *a = l->act[part][t];
        for (int c = 0; c < D; c++) {
            float s = 0;
            for (int j = 0; j < TAPS; j++)
                s += w[j][c] * l->raw[part][t + j][c];
            p[c] = s;
            a[c] = s * sigmoid(s);
        }
        if (part == 2)
            continue;
        float k = 1 / sqrtf(dot(a, a, D) + 1e-6f);
        l->norm[part][t] = k;
        for (int c = 0; c < D; c++)
            a[c] *= k;
    }
}

static void lane_load(const struct mixer *m, const struct lane *l, int64_t b, int64_t h)
{
    int64_t hd = m->heads * D, w = width(m);
    const store *in = m->in + b * m->length * w;
    float a_scale = expf(m->a_log[h]);
    for (int part = 0; part < 3; part++) {
        for (int64_t t = 0; t < TAPS - 1; t++)
            widen(l->raw[part][t],
                  m->tail_in + (b * (TAPS - 1) + t) * 3 * hd + part * hd + h * D, D);
        for (int64_t t = 0; t < m->length; t++)
            widen(l->raw[part][t + TAPS - 1], in + t * w + part * hd + h * D, D);
        lane_channel(m, l, h, part);
    }
    for (int64_t t = 0; t < m->length; t++) {
        float ab[2];
        widen(l->gate[t], in + t * w + 3 * hd + h * D, D);
        widen(&ab[0], in + t * w + 4 * hd + h, 1);
        widen(&ab[1], in + t * w + 4 * hd + m->heads + h, 1);
        float a = ab[0] + m->dt_bias[h];
        l->a[t] = a;
        l->decay[t] = expf(-a_scale * (a > 20 ? a : log1pf(expf(a))));
        l->beta[t] = sigmoid(ab[1]);
    }
}

/* s = alpha s + k u', out = s' q / sqrt(D) */
static void step(float (*restrict s)[D], const struct lane *l, int64_t t)
{
    const float *restrict q = l->act[0][t], *restrict k = l->act[1][t],
                          *restrict v = l->act[2][t];
    float alpha = l->decay[t], beta = l->beta[t], u[D] = { 0 }, o[D] = { 0 };
    for (int i = 0; i < D; i++)
        for (int j = 0; j < D; j++)
            u[j] += k[i] * s[i][j];
    for (int j = 0; j < D; j++)
        u[j] = beta * (v[j] - alpha * u[j]);
    for (int i = 0; i < D; i++)
        for (int j = 0; j < D; j++) {
            float x = alpha * s[i][j] + k[i] * u[j];
            s[i][j] = x;
            o[j] += q[i] * x;
        }
    float scale = 1 / sqrtf(D);
    for (int j = 0; j < D; j++)
        l->out[t][j] = o[j] * scale;
}

void mixer_fwd(const struct mixer *m)
{
    int64_t hd = m->heads * D, w = width(m), chunks = m->length / CHUNK;
    struct lane l;
    lane_init(&l, m->length);
    for (int64_t b = 0; b < m->batch; b++) {
        for (int64_t h = 0; h < m->heads; h++) {
            float s[D][D], y[D];
            lane_load(m, &l, b, h);
            memcpy(s, m->state_in + (b * m->heads + h) * D * D, sizeof s);
            for (int64_t t = 0; t < m->length; t++) {
                if (t % CHUNK == 0)
                    memcpy(m->saved + ((b * m->heads + h) * chunks + t / CHUNK) * D * D, s,
                           sizeof s);
                step(s, &l, t);
                const float *o = l.out[t], *g = l.gate[t];
                float k = 1 / sqrtf(dot(o, o, D) / D + m->eps);
                for (int j = 0; j < D; j++)
                    y[j] = m->o_norm[j] * o[j] * k * g[j] * sigmoid(g[j]);
                narrow(m->out + (b * m->length + t) * hd + h * D, y, D);
            }
            memcpy(m->state_out + (b * m->heads + h) * D * D, s, sizeof s);
        }
        for (int64_t t = 0; t < TAPS - 1; t++)
            memcpy(m->tail_out + (b * (TAPS - 1) + t) * 3 * hd,
                   m->in + ((b + 1) * m->length - (TAPS - 1) + t) * w,
                   sizeof(store) * (size_t)(3 * hd));
    }
    free(l.block);
}

/* gradient through the output gate and norm of token t: dy becomes the gradient of the read,
 * unscaled q */
static void out_bwd(const struct mixer *m, const struct lane *l, int64_t t, float *dy)
{
    const float *o = l->out[t], *g = l->gate[t];
    float k = 1 / sqrtf(dot(o, o, D) / D + m->eps), c = 0, scale = 1 / sqrtf(D);
    for (int j = 0; j < D; j++) {
        float s = sigmoid(g[j]), n = o[j] * k;
        l->d_gate[t][j] = dy[j] * m->o_norm[j] * n * s * (1 + g[j] * (1 - s));
        float dn = dy[j] * g[j] * s;
        m->d_o_norm[j] += dn * n;
        dy[j] = dn * m->o_norm[j];
        c += dy[j] * o[j];
    }
    c *= k * k * k / D;
    for (int j = 0; j < D; j++)
        dy[j] = (dy[j] * k - o[j] * c) * scale;
}

/* one token of the recurrence backwards: ds is the gradient of the state after it, then of the
 * one before it */
static void step_bwd(float (*restrict ds)[D], const float (*restrict before)[D],
                     const float (*restrict after)[D], const struct lane *l, int64_t t,
                     const float *d_o)
{
    const float *q = l->act[0][t], *k = l->act[1][t], *v = l->act[2][t];
    float *restrict dq = l->grad[0][t + TAPS - 1], *restrict dk = l->grad[1][t + TAPS - 1],
                    *restrict dv = l->grad[2][t + TAPS - 1];
    float alpha = l->decay[t], beta = l->beta[t], e[D] = { 0 }, du[D] = { 0 }, dp[D], u[D],
          d_alpha[D] = { 0 };
    for (int i = 0; i < D; i++) {
        float s = 0;
        for (int j = 0; j < D; j++) {
            ds[i][j] += q[i] * d_o[j];
            du[j] += k[i] * ds[i][j];
            e[j] += k[i] * before[i][j];
            s += after[i][j] * d_o[j];
        }
        dq[i] = s;
    }
    float db = 0;
    for (int j = 0; j < D; j++) {
        e[j] = v[j] - alpha * e[j];
        u[j] = beta * e[j];
        dv[j] = beta * du[j];
        dp[j] = -dv[j];
        db += du[j] * e[j];
    }
    l->d_beta[t] = db;
    for (int i = 0; i < D; i++) {
        float s = 0;
        for (int j = 0; j < D; j++) {
            s += ds[i][j] * u[j] + alpha * before[i][j] * dp[j];
            float x = ds[i][j] + k[i] * dp[j];
            d_alpha[j] += x * before[i][j];
            ds[i][j] = alpha * x;
        }
        dk[i] = s;
    }
    float da = 0;
    for (int j = 0; j < D; j++)
        da += d_alpha[j];
    l->d_decay[t] = da;
}

/* gradients of act become gradients of the layer's input: norm, SiLU, convolution */
static void channel_bwd(const struct mixer *m, const struct lane *l, int64_t h, int part,
                        store *d_in)
{
    float(*g)[D] = l->grad[part] + TAPS - 1;
    int64_t first = (part * m->heads + h) * D, T = m->length;
    float w[TAPS][D], dw[TAPS][D] = { { 0 } }, x[D];
    conv_weights(m, first, w);
    for (int64_t t = 0; t < T; t++) {
        const float *p = l->pre[part][t], *a = l->act[part][t];
        float k = part < 2 ? l->norm[part][t] : 1, c = part < 2 ? dot(a, g[t], D) : 0;
        for (int i = 0; i < D; i++) {
            float s = sigmoid(p[i]);
            g[t][i] = (g[t][i] - a[i] * c) * k * s * (1 + p[i] * (1 - s));
        }
        for (int j = 0; j < TAPS; j++)
            for (int i = 0; i < D; i++)
                dw[j][i] += g[t][i] * l->raw[part][t + j][i];
    }
    for (int64_t t = 0; t < T; t++) {
        memset(x, 0, sizeof x);
        for (int j = 0; j < TAPS && t + j < T; j++)
            for (int i = 0; i < D; i++)
                x[i] += w[TAPS - 1 - j][i] * g[t + j][i];
        narrow(d_in + t * width(m) + first, x, D);
    }
    for (int j = 0; j < TAPS; j++)
        for (int c = 0; c < D; c++)
            m->d_conv[(first + c) * TAPS + j] += dw[j][c];
}

/* gradients of decay, beta and gate of one lane */
static void gates_bwd(const struct mixer *m, const struct lane *l, int64_t h, store *d_in)
{
    float a_scale = expf(m->a_log[h]);
    store *gate = d_in + (3 * m->heads + h) * D, *a = d_in + 4 * m->heads * D + h,
          *b = a + m->heads;
    for (int64_t t = 0; t < m->length; t++) {
        int64_t at = t * width(m);
        float dg = l->d_decay[t] * l->decay[t];
        float x = l->a[t], soft = x > 20 ? x : log1pf(expf(x));
        float da = -dg * a_scale * sigmoid(x),
              db = l->d_beta[t] * l->beta[t] * (1 - l->beta[t]);
        m->d_a_log[h] -= dg * a_scale * soft;
        m->d_dt_bias[h] += da;
        narrow(gate + at, l->d_gate[t], D);
        narrow(a + at, &da, 1);
        narrow(b + at, &db, 1);
    }
}

void mixer_bwd(const struct mixer *m)
{
    int64_t hd = m->heads * D, chunks = m->length / CHUNK;
    struct lane l;
    lane_init(&l, m->length);
    for (int64_t b = 0; b < m->batch; b++) {
        for (int64_t h = 0; h < m->heads; h++) {
            float ds[D][D] = { { 0 } }, dy[D];
            lane_load(m, &l, b, h);
            for (int64_t c = chunks - 1; c >= 0; c--) {
                memcpy(l.states[0], m->saved + ((b * m->heads + h) * chunks + c) * D * D,
                       sizeof ds);
                for (int64_t i = 0; i < CHUNK; i++) {
                    memcpy(l.states[i + 1], l.states[i], sizeof ds);
                    step(l.states[i + 1], &l, c * CHUNK + i);
                }
                for (int64_t i = CHUNK - 1; i >= 0; i--) {
                    int64_t t = c * CHUNK + i;
                    widen(dy, m->d_out + (b * m->length + t) * hd + h * D, D);
                    out_bwd(m, &l, t, dy);
                    step_bwd(ds, (const float(*)[D])l.states[i],
                             (const float(*)[D])l.states[i + 1], &l, t, dy);
                }
            }
            store *d_in = m->d_in + b * m->length * width(m);
            for (int part = 0; part < 3; part++)
                channel_bwd(m, &l, h, part, d_in);
            gates_bwd(m, &l, h, d_in);
        }
    }
    free(l.block);
}
