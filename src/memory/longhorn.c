/* longhorn.c - Longhorn (Liu et al. 2407.14207): a proximal step, in its diagonal form.
 *
 *     b = sigmoid(dt + dt_bias),  delta = b / (1 + b |k|^2)      for every value channel j
 *     S_ij = (1 - delta_j k_i^2) S_ij + delta_j v_j k_i
 *     what is read beside a pair: (S_t'q + D v) silu(z); a recall has neither D nor z
 *
 * The step is below 1 / |k|^2 by itself, so keys may have any length. The factor lies in (0, 1]
 * and |delta v k| <= |v| / 2, so S grows by at most 5e5 a pair. S changes at once: no pending
 * pair, since the transition is no multiple of the identity. */
#include "config.h"

#include "families.h"

#include "core.h"
#include "fastweight/num.h"
#include "loops.h"

enum { DT, DT_BIAS, D, Z, INPUTS };

static const struct fw_input inputs[INPUTS] = {
    [DT] = { "dt", FW_D_V, FW_REQUIRED, 0, -FW_ELEMENT_MAX, FW_ELEMENT_MAX, "" },
    [DT_BIAS] = { "dt_bias", FW_D_V, 0, 0, -FW_ELEMENT_MAX, FW_ELEMENT_MAX, "" },
    [D] = { "D", FW_D_V, 0, 0, -FW_ELEMENT_MAX, FW_ELEMENT_MAX, "" },
    [Z] = { "z", FW_D_V, 0, 0, -1e3f, 1e3f, "bad_gate" },
};

/* delta and delta v, (d_v,) each. */
static void step_sizes(const struct fw_memory *m, const struct fw_span *s, size_t t,
                       float *delta, float *u)
{
    const float *k = fw_row(s->k, t), *v = fw_row(s->v, t);
    const float *dt = fw_row(s->in[DT], t), *bias = fw_row(s->in[DT_BIAS], t);
    float kk = (float)fw_sum_squares(k, m->rows);

    for (size_t j = 0; j < m->d_v; j++)
        delta[j] = dt[j] + bias[j];
    fw_sigmoids(delta, delta, m->d_v);
    for (size_t j = 0; j < m->d_v; j++) {
        delta[j] = delta[j] / __builtin_fmaf(delta[j], kk, 1);
        u[j] = delta[j] * v[j];
    }
}

static void learn(const struct fw_memory *m, void *block, size_t head, const struct fw_span *s)
{
    struct fw_head h = fw_memory_head(m, block, head);
    float delta[FW_MAX_DIM], u[FW_MAX_DIM];

    for (size_t t = 0; t < s->n; t++) {
        const float *k = fw_row(s->k, t), *v = fw_row(s->v, t);
        float *err = s->err + t * m->d_v;

        fw_loops()->apply(h.S, m->rows, m->d_v, k, err);
        for (size_t j = 0; j < m->d_v; j++)
            err[j] = v[j] - err[j];
        step_sizes(m, s, t, delta, u);
        fw_loops()->diagonal(h.S, m->rows, m->d_v, k, delta, u);
        fw_core_read(&h, s, t);
        if (s->q.x)
            fw_core_output(s->o + t * s->o_stride, m->d_v, fw_row(s->in[D], t), 1, v,
                           s->in[Z].stride ? fw_row(s->in[Z], t) : NULL);
    }
}

const struct fw_rule fw_rule_longhorn = { .name = "longhorn",
                                          .memory = "matrix",
                                          .objective = "squared error",
                                          .retention = "what the step erases",
                                          .optimiser = "one proximal step, diagonal",
                                          .horizon = "one pair",
                                          .traits = FW_MATRIX,
                                          .inputs = inputs,
                                          .input_count = INPUTS,
                                          .learn = learn,
                                          .read = fw_core_read_head };
