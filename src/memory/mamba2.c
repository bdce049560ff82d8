/* mamba2.c - the state-space duality of Mamba-2 (Dao and Gu 2405.21060), as a memory.
 *
 *     S_t = exp(dt A) S_{t-1} + k (dt v)',   m(q) = S'q
 *     form ssd:   dt as given
 *     form step:  dt = softplus(dt_raw + dt_bias); what is read beside a pair is
 *                 (S_t'q + D v) silu(z), D and z being that pair's; a recall has neither
 *
 * k, v, q are B, x, C of the paper. A, dt_bias and D are constants of a layer there; here they
 * come with every pair, so that a journal's row is the whole truth. A dt of at most 2000 keeps
 * what a pair adds below 2e15, |k_i| = |v_j| = 1e6, within the bounds of state.c. */
#include "config.h"

#include "families.h"

#include <stdlib.h>

#include "core.h"
#include "fastweight/fmath.h"

enum { DT, A, DT_RAW, DT_BIAS, D, Z, INPUTS };

static const struct fw_input inputs[INPUTS] = {
    [DT] = { "dt", FW_SCALAR, FW_REQUIRED, 0, 0, 1e3f, "bad_dt" },
    [A] = { "A", FW_SCALAR, FW_CONFIG, -1, -FW_ELEMENT_MAX, 0, "bad_gate" },
    [DT_RAW] = { "dt_raw", FW_SCALAR, FW_REQUIRED, 0, -1e3f, 1e3f, "bad_dt" },
    [DT_BIAS] = { "dt_bias", FW_SCALAR, 0, 0, -1e3f, 1e3f, "bad_dt" },
    [D] = { "D", FW_SCALAR, 0, 0, -FW_ELEMENT_MAX, FW_ELEMENT_MAX, "" },
    [Z] = { "z", FW_D_V, 0, 0, -1e3f, 1e3f, "bad_gate" },
};

struct own {
    bool step;
};

static bool is_step(const struct fw_memory *m)
{
    return ((const struct own *)m->own)->step;
}

static float scalar(const struct fw_span *s, size_t in, size_t t)
{
    return *fw_row(s->in[in], t);
}

static void learn(const struct fw_memory *m, void *block, size_t head, const struct fw_span *s)
{
    double *sum = (double *)fw_memory_at(block, m->at_log_g) + head;
    float dt[FW_SPAN], g[FW_SPAN];

    for (size_t t = 0; t < s->n; t++) {
        float log_g;

        dt[t] = is_step(m) ? fw_softplus(scalar(s, DT_RAW, t) + scalar(s, DT_BIAS, t))
                           : scalar(s, DT, t);
        log_g = dt[t] * scalar(s, A, t);
        g[t] = fw_expf(log_g);
        *sum += (double)log_g;
    }
    fw_core_write_blindly(m, block, head, s, dt, g);
    for (size_t t = 0; s->q.x && is_step(m) && t < s->n; t++)
        fw_core_output(s->o + t * s->o_stride, m->d_v, fw_row(s->in[D], t), 0, fw_row(s->v, t),
                       s->in[Z].stride ? fw_row(s->in[Z], t) : NULL);
}

static int plan(struct fw_memory *m, struct fw_config *c, struct fw_err *err)
{
    static const char *const forms[] = { "ssd", "step", NULL };
    struct own *own = calloc(1, sizeof *own);
    size_t form = 0;

    m->own = own;
    if (!own)
        return fw_fail(err, FW_ENOMEM, "out_of_memory", "no memory for a plan");
    if (fw_config_word(c, "form", forms, &form, err) < 0)
        return -1;
    own->step = form == 1;
    m->takes = own->step ? ~(1u << DT) : 1u << DT | 1u << A;
    return 0;
}

const struct fw_rule fw_rule_mamba2 = { .name = "mamba2",
                                        .memory = "matrix",
                                        .objective = "dot product",
                                        .retention = "decay per head",
                                        .optimiser = "one gradient step of size dt",
                                        .horizon = "one pair",
                                        .traits = FW_MATRIX | FW_PENDING,
                                        .inputs = inputs,
                                        .input_count = INPUTS,
                                        .learn = learn,
                                        .read = fw_core_read_head,
                                        .plan = plan };
