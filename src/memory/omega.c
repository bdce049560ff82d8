/* omega.c - the Omega rule: one gradient step on the last c pairs at once.
 *
 *     Shat = alpha S_{t-1},   L(S) = 1/2 sum_{i > t-c} u_i |S'k_i - v_i|^2
 *     S_t = Shat - eta grad L(Shat) = Shat + eta sum_i u_i k_i (v_i - Shat'k_i)'
 *
 * Source: ATLAS 2505.23735, with weights that belong to pairs. A step is sure to shrink the
 * loss for eta <= 1/lambda_max of sum_i u_i k_i k_i' and to diverge beyond 2/lambda_max; with c
 * unit keys lambda_max is anything from 1 to c. So a pair that brings its own eta is told what
 * it asks for, and one that does not takes min(config eta, 1/lambda_max); config limit_eta =
 * false takes config eta as it is. However a step diverges, errors are cut at 1e25 and S at
 * 1e20. */
#include "config.h"

#include "families.h"

#include <stdlib.h>

#include "core.h"
#include "window.h"

enum { U, ALPHA, ETA, INPUTS };

static const struct fw_input inputs[INPUTS] = {
    [U] = { "u", FW_SCALAR, FW_CONFIG, 1, 0, 1, "bad_weight" },
    [ALPHA] = { "alpha", FW_SCALAR, FW_CONFIG, 1, 0, 1, "bad_gate" },
    [ETA] = { "eta", FW_SCALAR, FW_CONFIG, 1, 0, FW_ELEMENT_MAX, "bad_eta" },
};

struct own {
    struct fw_window_plan window;
    bool limit_eta;
};

static float step_size(const struct fw_memory *m, const struct fw_span *s, size_t t,
                       struct fw_window *w)
{
    float eta = fw_scalar(s, ETA, t);

    if (s->in[ETA].stride || !((const struct own *)m->own)->limit_eta)
        return eta;
    return fw_window_safe_step(w, m->rows, eta);
}

static void learn(const struct fw_memory *m, void *block, size_t head, const struct fw_span *s)
{
    const struct own *own = m->own;
    struct fw_head h = fw_memory_head(m, block, head);
    struct fw_window w;

    fw_window_start(&w);
    for (size_t t = 0; t < s->n; t++) {
        struct fw_descent d = { h.S, fw_scalar(s, ALPHA, t), h.S, 1, 0 };

        fw_window_open(m, &own->window, block, head, &w);
        fw_window_add(&w, fw_row(s->k, t), fw_row(s->v, t), fw_scalar(s, U, t));
        d.rate = step_size(m, s, t, &w);
        fw_note_factor(m, block, head, d.decay);
        fw_window_descend(m, &w, &d, s->err + t * m->d_v);
        fw_window_push(m, &own->window, block, head, &w);
        fw_core_read(&h, s, t);
    }
}

static int plan(struct fw_memory *m, struct fw_config *c, struct fw_err *err)
{
    struct own *own = calloc(1, sizeof *own);

    m->own = own;
    if (!own)
        return fw_fail(err, FW_ENOMEM, "out_of_memory", "no memory for a plan");
    own->limit_eta = true;
    if (fw_config_bool(c, "limit_eta", &own->limit_eta, err) < 0)
        return -1;
    return fw_window_plan(m, c, &own->window, err);
}

static int validate(const struct fw_memory *m, const void *block, size_t head,
                    struct fw_err *err)
{
    return fw_window_validate(m, &((const struct own *)m->own)->window, block, head, err);
}

/* Whatever the window holds, eta |k|^2 >= 2 with a weight of 1 is beyond any limit. */
static int check(const struct fw_memory *m, const struct fw_body *b, struct fw_err *err)
{
    if (!b->in[FW_IN_OWN + ETA] && ((const struct own *)m->own)->limit_eta)
        return 0;
    return fw_check_step(m, b, ETA, err);
}

const struct fw_rule fw_rule_omega = { .name = "omega",
                                       .memory = "matrix",
                                       .objective = "squared error over a window",
                                       .retention = "factor per head",
                                       .optimiser = "one gradient step",
                                       .horizon = "the last `window` pairs",
                                       .traits = FW_MATRIX,
                                       .inputs = inputs,
                                       .input_count = INPUTS,
                                       .learn = learn,
                                       .read = fw_core_read_head,
                                       .plan = plan,
                                       .validate = validate,
                                       .check = check };
