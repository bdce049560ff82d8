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
    struct fw_head h = fw_memory_head(m, block, head);
    double *sum = (double *)fw_memory_at(block, m->at_log_g) + head;
    float decay[FW_MAX_DIM];

    for (size_t t = 0; t < s->n; t++) {
        const float *k = fw_row(s->k, t), *v = fw_row(s->v, t);
        float dt, log_g, g;

        dt = is_step(m) ? fw_softplus(scalar(s, DT_RAW, t) + scalar(s, DT_BIAS, t))
                        : scalar(s, DT, t);
        log_g = dt * scalar(s, A, t);
        g = fw_expf(log_g);
        *sum += (double)log_g;
        for (size_t i = 0; i < m->rows; i++)
            decay[i] = g;
        fw_core_look(&h, decay, k, v, s->err + t * m->d_v);
        fw_core_write(&h, k, dt, v);
        fw_core_read(&h, s, t);
        if (s->q.x && is_step(m))
            fw_core_output(s->o + t * s->o_stride, m->d_v, fw_row(s->in[D], t), 0, v,
                           s->in[Z].stride ? fw_row(s->in[Z], t) : NULL);
    }
    fw_memory_set_valid(m, block, head, h.valid);
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
