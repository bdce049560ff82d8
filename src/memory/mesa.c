/* mesa.c - the Mesa layer: ridge regression on the whole past, solved anew at every read.
 *
 *     H_kk = g H_kk + beta k k',   H_kv = g H_kv + beta k v',   g = exp(log_g)
 *     m(q) = H_kv' x,  (H_kk + diag(lambda)) x = q
 *
 * which is S'q for the S that minimises sum_i (prod g) beta_i |S'k_i - v_i|^2 + tr(S' Lambda
 * S). Source: MesaNet 2506.05233. config solver: `exact` (solve.c, at most 256 rows), or `cg`
 * with cg_iterations steps. Reads use the lambda of the last pair, which the block keeps. The
 * residual of a pair is that of a read before it, without its decay: what score says.
 *
 * Finite for ever: an element grows by at most 1e18 a pair; every 4,096 pairs both matrices of
 * a head are scaled together by a power of two when one is beyond 1e17, which is a decay that
 * came late and leaves m as it was but for lambda. Elements are cut at 1e20, values read at
 * 1e30. */
#include "config.h"

#include "families.h"

#include <stdlib.h>
#include <string.h>

#include "core.h"
#include "covariance.h"
#include "fastweight/fmath.h"
#include "loops.h"
#include "solve.h"
#include "steps.h"

enum { BETA, LOG_G, LAMBDA, INPUTS };

#define LAMBDA_MIN 1e-6f

static const struct fw_input inputs[INPUTS] = {
    [BETA] = { "beta", FW_SCALAR, FW_CONFIG, 1, 0, FW_ELEMENT_MAX, "bad_beta" },
    [LOG_G] = { "log_g", FW_SCALAR, 0, 0, -FW_ELEMENT_MAX, 0, "bad_gate" },
    [LAMBDA] = { "lambda", FW_ROWS, FW_CONFIG, 0.01, LAMBDA_MIN, FW_ELEMENT_MAX, "bad_lambda" },
};

struct own {
    size_t at_kk, at_kv, at_lambda;
    bool cg;
    size_t iterations;
};

struct mesa { /* one head */
    const struct own *own;
    size_t rows, d_v;
    float *kk, *kv, *lambda;
    struct fw_factor *factor; /* scratch; of the state as it is when `fresh` */
    bool fresh;
};

static struct mesa open_head(const struct fw_memory *m, const void *block, size_t head,
                             struct fw_factor *scratch)
{
    const struct own *own = m->own;
    struct mesa h = { .own = own, .rows = m->rows, .d_v = m->d_v, .factor = scratch };

    h.kk = (float *)fw_memory_at(block, own->at_kk) + head * m->rows * m->rows;
    h.kv = (float *)fw_memory_at(block, own->at_kv) + head * m->rows * m->d_v;
    h.lambda = (float *)fw_memory_at(block, own->at_lambda) + head * m->rows;
    return h;
}

static void solve(struct mesa *h, const float *q, double *x)
{
    const struct fw_system s = { h->kk, h->lambda, h->rows };

    if (h->own->cg) {
        fw_solvers()->cg(&s, q, h->own->iterations, x);
        return;
    }
    if (!h->fresh)
        fw_solvers()->factor(&s, h->factor);
    h->fresh = true;
    for (size_t i = 0; i < h->rows; i++)
        x[i] = (double)q[i];
    fw_solvers()->solve(h->factor, x);
}

static void read_one(struct mesa *h, const float *q, float *o)
{
    double x[FW_CG_MAX];

    solve(h, q, x);
    fw_solvers()->values(h->kv, h->rows, h->d_v, x, o);
}

static void update(struct mesa *h, const struct fw_span *s, size_t t)
{
    const float *k = fw_row(s->k, t), *v = fw_row(s->v, t);
    float g = fw_expf(fw_scalar(s, LOG_G, t)), beta = fw_scalar(s, BETA, t), k_beta[FW_MAX_DIM];

    for (size_t i = 0; i < h->rows; i++)
        k_beta[i] = beta * k[i];
    fw_steps()->square(h->kk, h->rows, g, beta, k, FW_CLAMP_AT);
    fw_steps()->cross(h->kv, h->rows, h->d_v, g, k_beta, v, FW_CLAMP_AT);
    memcpy(h->lambda, fw_row(s->in[LAMBDA], t), h->rows * sizeof *h->lambda);
    h->fresh = false;
}

static void learn(const struct fw_memory *m, void *block, size_t head, const struct fw_span *s)
{
    struct fw_factor scratch;
    struct mesa h = open_head(m, block, head, &scratch);

    if (s->in[LOG_G].stride)
        fw_memory_add_gates(m, block, head, s->in[LOG_G], s->n);
    for (size_t t = 0; t < s->n; t++) {
        const float *v = fw_row(s->v, t);
        float *err = s->err + t * m->d_v;

        if (t >= s->err_from) {
            read_one(&h, fw_row(s->k, t), err);
            for (size_t j = 0; j < m->d_v; j++)
                err[j] = v[j] - err[j];
        }
        update(&h, s, t);
        if (s->q.x)
            read_one(&h, fw_row(s->q, t), s->o + t * s->o_stride);
    }
}

static void read_head(const struct fw_memory *m, const void *block, size_t head,
                      const struct fw_reads *r)
{
    struct fw_factor scratch;
    struct mesa h = open_head(m, block, head, &scratch);

    for (size_t t = 0; t < r->n; t++)
        read_one(&h, r->q + t * r->q_stride, r->o + t * r->o_stride);
}

/* S = (H_kk + Lambda)^-1 H_kv, row i being m of the i-th unit vector. */
static void state(const struct fw_memory *m, const void *block, size_t head, float *out)
{
    struct fw_factor scratch;
    struct mesa h = open_head(m, block, head, &scratch);
    float unit[FW_MAX_DIM] = { 0 };

    for (size_t i = 0; i < m->rows; i++) {
        unit[i] = 1;
        read_one(&h, unit, out + i * m->d_v);
        unit[i] = 0;
    }
}

static void init(const struct fw_memory *m, void *block)
{
    for (size_t head = 0; head < m->heads; head++)
        memcpy(open_head(m, block, head, NULL).lambda, m->fallback + LAMBDA * m->widest,
               m->rows * sizeof(float));
}

/* C^-1 k of one head into c->x; returns k'C^-1 k, or 0 when there is no telling it. */
static double precision(struct mesa *h, struct fw_change *c)
{
    double x[FW_CG_MAX], a = 0;

    solve(h, c->k, x);
    for (size_t i = 0; i < h->rows; i++)
        a += x[i] * (double)c->k[i];
    if (!(a > 0 && a < 1e300))
        return 0;
    memcpy(c->x, x, h->rows * sizeof *x);
    return a;
}

/* S = C^-1 H_kv, so the edit with this C is H_kv += k e' / (k'C^-1 k). */
static void edit(const struct fw_memory *m, void *block, size_t head, struct fw_change *c)
{
    struct fw_factor scratch;
    struct mesa h = open_head(m, block, head, &scratch);
    double a = precision(&h, c);
    float o[FW_MAX_DIM];

    for (int round = 0; a > 0 && round < 2; round++) {
        read_one(&h, c->k, o);
        for (size_t j = 0; j < m->d_v; j++) {
            double e = (double)c->v[j] - (double)o[j];

            c->w[j] += e / a;
            for (size_t i = 0; i < m->rows; i++) {
                float *s = &h.kv[i * m->d_v + j];
                double to = (double)*s + (double)c->k[i] * (e / a), limit = (double)FW_CLAMP_AT;

                *s = (float)(to > limit ? limit : to < -limit ? -limit : to);
            }
        }
    }
}

/* H_kk - beta k k', H_kv - beta k v': exact for a pair that was learned with the session's beta
 * and not decayed since. Nothing is done unless C stays positive: the pair is not in there.
 * S changes by -x (v - S'k)' beta / (1 - beta k'x) (Sherman and Morrison). */
static void take_out(const struct fw_memory *m, void *block, size_t head, struct fw_change *c)
{
    struct fw_factor scratch;
    struct mesa h = open_head(m, block, head, &scratch);
    float beta = m->fallback[BETA * m->widest], o[FW_MAX_DIM], minus[FW_MAX_DIM];
    double a = precision(&h, c), left = 1 - (double)beta * a;

    if (!(a > 0 && left > 0))
        return;
    read_one(&h, c->k, o);
    for (size_t j = 0; j < m->d_v; j++)
        c->w[j] = ((double)o[j] - (double)c->v[j]) * (double)beta / left;
    for (size_t i = 0; i < m->rows; i++)
        minus[i] = -beta * c->k[i];
    fw_steps()->square(h.kk, m->rows, 1, -beta, c->k, FW_CLAMP_AT);
    fw_steps()->cross(h.kv, m->rows, m->d_v, 1, minus, c->v, FW_CLAMP_AT);
    for (size_t i = 0; i < m->rows; i++) /* what rounding left */
        if (h.kk[i * m->rows + i] < 0)
            h.kk[i * m->rows + i] = 0;
}

static void covariance(const struct fw_memory *m, const void *block, size_t head, double *out)
{
    struct mesa h = open_head(m, block, head, NULL);

    for (size_t i = 0; i < m->rows * m->rows; i++)
        out[i] = (double)h.kk[i];
    for (size_t i = 0; i < m->rows; i++)
        out[i * m->rows + i] += (double)h.lambda[i];
}

static int validate(const struct fw_memory *m, const void *block, size_t head,
                    struct fw_err *err)
{
    struct mesa h = open_head(m, block, head, NULL);

    if (!(fw_largest(h.kk, m->rows * m->rows) <= FW_STATE_MAX))
        return fw_bad_state(err, "H_kk", head, "is out of bounds");
    if (!fw_is_covariance(h.kk, m->rows))
        return fw_bad_state(err, "H_kk", head, "is no covariance");
    if (!(fw_largest(h.kv, m->rows * m->d_v) <= FW_STATE_MAX))
        return fw_bad_state(err, "H_kv", head, "is out of bounds");
    for (size_t i = 0; i < m->rows; i++)
        if (!(h.lambda[i] >= LAMBDA_MIN && h.lambda[i] <= FW_ELEMENT_MAX))
            return fw_bad_state(err, "lambda", head, "is out of bounds");
    return 0;
}

static uint64_t saturate(const struct fw_memory *m, void *block, size_t head)
{
    struct mesa h = open_head(m, block, head, NULL);
    size_t kk = m->rows * m->rows, kv = m->rows * m->d_v;
    float a = fw_largest(h.kk, kk), b = fw_largest(h.kv, kv), scale = 1;
    uint64_t beyond = 0;

    for (a = a > b ? a : b; a * scale > FW_SATURATE_AT;)
        scale *= 0.5f;
    if (scale == 1)
        return 0;
    for (size_t i = 0; i < kk; i++)
        beyond += __builtin_fabsf(h.kk[i]) > FW_SATURATE_AT;
    for (size_t i = 0; i < kv; i++)
        beyond += __builtin_fabsf(h.kv[i]) > FW_SATURATE_AT;
    fw_loops()->scale(scale, h.kk, kk);
    fw_loops()->scale(scale, h.kv, kv);
    return beyond;
}

static int read_solver(const struct fw_memory *m, struct fw_config *c, struct own *own,
                       struct fw_err *err)
{
    static const char *const solvers[] = { "exact", "cg", NULL };
    size_t solver = 0;

    own->iterations = 30;
    if (fw_config_word(c, "solver", solvers, &solver, err) < 0)
        return -1;
    own->cg = solver == 1;
    if (own->cg)
        return fw_config_size(c, "cg_iterations", 1, 1000, &own->iterations, err);
    if (m->rows > FW_FACTOR_MAX)
        return fw_fail_param(err, FW_EINVAL, "bad_value", "config.solver",
                             "solver exact takes keys of at most %d elements, here are %zu; "
                             "use cg",
                             FW_FACTOR_MAX, m->rows);
    return 0;
}

static int plan(struct fw_memory *m, struct fw_config *c, struct fw_err *err)
{
    const uint64_t kk[3] = { m->heads, m->rows, m->rows };
    const uint64_t kv[3] = { m->heads, m->rows, m->d_v };
    struct own *own = calloc(1, sizeof *own);

    m->own = own;
    if (!own)
        return fw_fail(err, FW_ENOMEM, "out_of_memory", "no memory for a plan");
    if (read_solver(m, c, own, err) < 0 ||
        fw_layout_add(&m->layout, "H_kk", FW_F32, 3, kk, &own->at_kk, err) < 0 ||
        fw_layout_add(&m->layout, "H_kv", FW_F32, 3, kv, &own->at_kv, err) < 0)
        return -1;
    return fw_layout_add(&m->layout, "lambda", FW_F32, 2, kk, &own->at_lambda, err);
}

const struct fw_rule fw_rule_mesa = { .name = "mesa",
                                      .memory = "covariance and cross-covariance",
                                      .objective = "ridge regression",
                                      .retention = "decay per head",
                                      .optimiser = "exact solve or conjugate gradients",
                                      .horizon = "the whole past",
                                      .inputs = inputs,
                                      .input_count = INPUTS,
                                      .learn = learn,
                                      .read = read_head,
                                      .plan = plan,
                                      .init = init,
                                      .validate = validate,
                                      .state = state,
                                      .saturate = saturate,
                                      .covariance = covariance,
                                      .edit = edit,
                                      .take_out = take_out };
