/* momentum.c - gradient descent with momentum and forgetting: Titans with a matrix memory.
 *
 *     Z_t = eta Z_{t-1} - theta grad L(S_{t-1}),   L(S) = 1/2 |S'k - v|^2
 *     S_t = (1 - alpha) S_{t-1} + Z_t
 *
 * Source: Titans 2501.00663 (4.10), whose loss has no 1/2: theta here is 2 theta there. The
 * gradient is taken at the undecayed S. theta |k|^2 < 2 is asked for, as of any gradient step,
 * yet with eta near 1 a hostile stream can swing S up without bound: S and Z are cut at 1e20
 * after every pair, theta e at 1e25. */
#include "config.h"

#include "momentum.h"

#include <stdlib.h>

#include "core.h"
#include "families.h"
#include "loops.h"
#include "steps.h"

enum { ETA, THETA, ALPHA, INPUTS };

static const struct fw_input inputs[INPUTS] = {
    [ETA] = { "eta", FW_SCALAR, FW_CONFIG, 0.8, 0, 1, "bad_eta" },
    [THETA] = { "theta", FW_SCALAR, FW_CONFIG, 0.2, 0, FW_ELEMENT_MAX, "bad_theta" },
    [ALPHA] = { "alpha", FW_SCALAR, FW_CONFIG, 0, 0, 1, "bad_gate" },
};

int fw_momentum_plan(struct fw_memory *m, size_t *ret_at, struct fw_err *err)
{
    const uint64_t shape[3] = { m->heads, m->rows, m->d_v };

    return fw_layout_add(&m->layout, "momentum", FW_F32, 3, shape, ret_at, err);
}

float *fw_momentum_of(const struct fw_memory *m, const void *block, size_t at, size_t head)
{
    return (float *)fw_memory_at(block, at) + head * m->rows * m->d_v;
}

int fw_momentum_validate(const struct fw_memory *m, const void *block, size_t at, size_t head,
                         struct fw_err *err)
{
    if (!(fw_largest(fw_momentum_of(m, block, at, head), m->rows * m->d_v) <= FW_STATE_MAX))
        return fw_bad_state(err, "momentum", head, "is out of bounds");
    return 0;
}

uint64_t fw_momentum_saturate(const struct fw_memory *m, void *block, size_t at, size_t head)
{
    return fw_cut(fw_momentum_of(m, block, at, head), m->rows * m->d_v, FW_SATURATE_AT);
}

static size_t at_Z(const struct fw_memory *m)
{
    return *(const size_t *)m->own;
}

static void learn(const struct fw_memory *m, void *block, size_t head, const struct fw_span *s)
{
    struct fw_head h = fw_memory_head(m, block, head);
    struct fw_heavy_ball b = {
        .rows = m->rows, .cols = m->d_v, .S = h.S, .limit = FW_CLAMP_AT
    };
    float w[FW_MAX_DIM];

    b.Z = fw_momentum_of(m, block, at_Z(m), head);
    b.w = w;
    for (size_t t = 0; t < s->n; t++) {
        float *err = s->err + t * m->d_v, theta = fw_scalar(s, THETA, t);

        b.k = fw_row(s->k, t);
        b.eta = fw_scalar(s, ETA, t);
        b.keep = 1 - fw_scalar(s, ALPHA, t);
        fw_note_factor(m, block, head, b.keep);
        fw_core_look(&h, NULL, b.k, fw_row(s->v, t), err);
        for (size_t j = 0; j < m->d_v; j++)
            w[j] = theta * err[j];
        fw_loops()->clamp(w, m->d_v, FW_ERROR_MAX);
        fw_steps()->heavy_ball(&b);
        fw_core_read(&h, s, t);
    }
}

static int plan(struct fw_memory *m, struct fw_config *c, struct fw_err *err)
{
    size_t *at = calloc(1, sizeof *at);

    (void)c;
    m->own = at;
    if (!at)
        return fw_fail(err, FW_ENOMEM, "out_of_memory", "no memory for a plan");
    return fw_momentum_plan(m, at, err);
}

static int validate(const struct fw_memory *m, const void *block, size_t head,
                    struct fw_err *err)
{
    return fw_momentum_validate(m, block, at_Z(m), head, err);
}

static uint64_t saturate(const struct fw_memory *m, void *block, size_t head)
{
    return fw_momentum_saturate(m, block, at_Z(m), head);
}

static int check(const struct fw_memory *m, const struct fw_body *b, struct fw_err *err)
{
    return fw_check_step(m, b, THETA, err);
}

const struct fw_rule fw_rule_momentum = { .name = "momentum",
                                          .memory = "matrix",
                                          .objective = "squared error",
                                          .retention = "factor per head",
                                          .optimiser = "gradient descent with momentum",
                                          .horizon = "one pair",
                                          .traits = FW_MATRIX,
                                          .inputs = inputs,
                                          .input_count = INPUTS,
                                          .learn = learn,
                                          .read = fw_core_read_head,
                                          .plan = plan,
                                          .validate = validate,
                                          .check = check,
                                          .saturate = saturate };
