/* omega_muon.c - the Omega objective with momentum, orthogonalised before it is applied.
 *
 *     L(S) = 1/2 sum_{i > t-c} u_i |S'k_i - v_i|^2
 *     Z_t = theta Z_{t-1} + grad L(S_{t-1}),   S_t = alpha S_{t-1} - eta NS5(Z_t)
 *
 * Source: ATLAS 2505.23735; NS5 is muon.c. The gradient is taken at the undecayed S, and Z
 * itself stays as it is. Since NS5 takes the magnitude out of Z, eta alone says how far S
 * moves: by at most about 1.2 eta a pair, whatever the keys. So S cannot diverge; Z is cut at
 * 1e20. */
#include "config.h"

#include "families.h"

#include <stdlib.h>

#include "core.h"
#include "loops.h"
#include "momentum.h"
#include "muon.h"
#include "window.h"

enum { U, THETA, ALPHA, ETA, INPUTS };

static const struct fw_input inputs[INPUTS] = {
    [U] = { "u", FW_SCALAR, FW_CONFIG, 1, 0, 1, "bad_weight" },
    [THETA] = { "theta", FW_SCALAR, FW_CONFIG, 0.95, 0, 1, "bad_theta" },
    [ALPHA] = { "alpha", FW_SCALAR, FW_CONFIG, 1, 0, 1, "bad_gate" },
    [ETA] = { "eta", FW_SCALAR, FW_CONFIG, 0.02, 0, FW_ELEMENT_MAX, "bad_eta" },
};

struct own {
    struct fw_window_plan window;
    size_t at_Z;
};

static void apply(const struct fw_memory *m, const float *Z, float alpha, float eta, float *S)
{
    float X[FW_MUON_MAX * FW_MUON_MAX];
    size_t n = m->rows * m->d_v;

    fw_muon(Z, m->rows, m->d_v, X);
    fw_loops()->scale(alpha, S, n);
    fw_loops()->axpy(-eta, X, S, n);
    fw_loops()->clamp(S, n, FW_CLAMP_AT);
}

static void learn(const struct fw_memory *m, void *block, size_t head, const struct fw_span *s)
{
    const struct own *own = m->own;
    struct fw_head h = fw_memory_head(m, block, head);
    float *Z = fw_momentum_of(m, block, own->at_Z, head);
    struct fw_window w;

    fw_window_start(&w);
    for (size_t t = 0; t < s->n; t++) {
        struct fw_descent d = { h.S, 1, Z, fw_scalar(s, THETA, t), -1 };
        float alpha = fw_scalar(s, ALPHA, t);

        fw_window_open(m, &own->window, block, head, &w);
        fw_window_add(&w, fw_row(s->k, t), fw_row(s->v, t), fw_scalar(s, U, t));
        fw_note_factor(m, block, head, alpha);
        fw_window_descend(m, &w, &d, s->err + t * m->d_v);
        fw_window_push(m, &own->window, block, head, &w);
        apply(m, Z, alpha, fw_scalar(s, ETA, t), h.S);
        fw_core_read(&h, s, t);
    }
}

static int plan(struct fw_memory *m, struct fw_config *c, struct fw_err *err)
{
    struct own *own = calloc(1, sizeof *own);

    m->own = own;
    if (!own)
        return fw_fail(err, FW_ENOMEM, "out_of_memory", "no memory for a plan");
    if (m->rows > FW_MUON_MAX || m->d_v > FW_MUON_MAX)
        return fw_fail_param(
            err, FW_EINVAL, "bad_value", m->rows > FW_MUON_MAX ? "config.d_k" : "config.d_v",
            "rule omega_muon takes matrices of at most %d x %d", FW_MUON_MAX, FW_MUON_MAX);
    if (fw_window_plan(m, c, &own->window, err) < 0)
        return -1;
    return fw_momentum_plan(m, &own->at_Z, err);
}

static int validate(const struct fw_memory *m, const void *block, size_t head,
                    struct fw_err *err)
{
    const struct own *own = m->own;

    if (fw_window_validate(m, &own->window, block, head, err) < 0)
        return -1;
    return fw_momentum_validate(m, block, own->at_Z, head, err);
}

static uint64_t saturate(const struct fw_memory *m, void *block, size_t head)
{
    return fw_momentum_saturate(m, block, ((const struct own *)m->own)->at_Z, head);
}

const struct fw_rule fw_rule_omega_muon = { .name = "omega_muon",
                                            .memory = "matrix",
                                            .objective = "squared error over a window",
                                            .retention = "factor per head",
                                            .optimiser = "orthogonalised momentum (Muon)",
                                            .horizon = "the last `window` pairs",
                                            .traits = FW_MATRIX,
                                            .inputs = inputs,
                                            .input_count = INPUTS,
                                            .learn = learn,
                                            .read = fw_core_read_head,
                                            .plan = plan,
                                            .validate = validate,
                                            .saturate = saturate };
