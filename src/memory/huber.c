/* huber.c - the delta rule with a bounded surprise: a step on Huber's loss.
 *
 *     Shat = alpha S_{t-1},  e = v - Shat'k,  L = |e|^2 / 2 for |e| <= delta,
 *                                             else delta |e| - delta^2 / 2
 *     S_t = Shat + eta k e'               for |e| <= delta
 *     S_t = Shat + eta delta k (e/|e|)'   beyond: an outlier moves S no further than delta does
 *
 * Source: the Yaad variant of MIRAS 2504.13173, with the 2-norm of the whole error. For
 * eta |k|^2 < 2 the step never lengthens S (a shortened delta step is a delta step with a
 * smaller eta), so the bounds of state.c hold. The last pair stays pending. */
#include "config.h"

#include "families.h"

#include "core.h"
#include "fastweight/fmath.h"
#include "fastweight/num.h"

enum { ALPHA, ETA, DELTA, INPUTS };

static const struct fw_input inputs[INPUTS] = {
    [ALPHA] = { "alpha", FW_SCALAR, FW_CONFIG, 1, 0, 1, "bad_gate" },
    [ETA] = { "eta", FW_SCALAR, FW_CONFIG, 1, 0, FW_ELEMENT_MAX, "bad_eta" },
    [DELTA] = { "delta", FW_SCALAR, FW_CONFIG, 1, 0, FW_ELEMENT_MAX, "bad_delta" },
};

static float step_size(float eta, float delta, const float *err, size_t n)
{
    double norm = fw_sqrt(fw_sum_squares(err, n));

    return norm <= (double)delta ? eta : (float)((double)eta * ((double)delta / norm));
}

static void learn(const struct fw_memory *m, void *block, size_t head, const struct fw_span *s)
{
    struct fw_head h = fw_memory_head(m, block, head);
    float decay[FW_MAX_DIM];

    for (size_t t = 0; t < s->n; t++) {
        const float *k = fw_row(s->k, t);
        float *err = s->err + t * m->d_v, alpha = fw_scalar(s, ALPHA, t);

        for (size_t i = 0; i < m->rows; i++)
            decay[i] = alpha;
        fw_note_factor(m, block, head, alpha);
        fw_core_look(&h, decay, k, fw_row(s->v, t), err);
        fw_core_write(
            &h, k, step_size(fw_scalar(s, ETA, t), fw_scalar(s, DELTA, t), err, m->d_v), err);
        fw_core_read(&h, s, t);
    }
    fw_memory_set_valid(m, block, head, h.valid);
}

static int check(const struct fw_memory *m, const struct fw_body *b, struct fw_err *err)
{
    return fw_check_step(m, b, ETA, err);
}

const struct fw_rule fw_rule_huber = { .name = "huber",
                                       .memory = "matrix",
                                       .objective = "Huber's loss of the error's length",
                                       .retention = "factor per head",
                                       .optimiser = "one gradient step",
                                       .horizon = "one pair",
                                       .traits = FW_MATRIX | FW_PENDING,
                                       .inputs = inputs,
                                       .input_count = INPUTS,
                                       .learn = learn,
                                       .read = fw_core_read_head,
                                       .check = check };
