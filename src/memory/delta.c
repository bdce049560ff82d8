/* delta.c - the delta rule and its gated form.
 *
 *     delta:        S_t = S_{t-1} + k e',      e = beta (v - S_{t-1}'k)
 *     gated_delta:  S_t = g S_{t-1} + k e',    e = beta (v - g S_{t-1}'k),  g = exp(log_g)
 *
 * Sources: Schlag et al. 2102.11174 and Yang et al. 2406.06484; Gated DeltaNet 2412.06464,
 * which decays first and reads the decayed state. For beta |k|^2 < 2 the step never lengthens
 * S. The last pair stays pending (fastweight/kernel.h); g is exactly 1 for log_g = 0. */
#include "config.h"

#include "families.h"

#include "fastweight/fmath.h"
#include "fastweight/num.h"

enum { BETA, LOG_G };

static const struct fw_input inputs[] = {
    [BETA] = { "beta", FW_SCALAR, FW_CONFIG, 1, 0, FW_ELEMENT_MAX, "bad_beta" },
    [LOG_G] = { "log_g", FW_SCALAR, 0, 0, -FW_ELEMENT_MAX, 0, "bad_gate" },
};

static void learn(const struct fw_memory *m, void *block, size_t head, const struct fw_span *s)
{
    struct fw_head h = fw_memory_head(m, block, head);
    bool gated = m->rule->input_count > LOG_G && s->in[LOG_G].stride;
    float beta[FW_SPAN], g[FW_SPAN];
    struct fw_pairs p = { s->n,        s->k.x,      s->v.x, s->q.x,           s->k.stride,
                          s->v.stride, s->q.stride, beta,   gated ? g : NULL, s->err,
                          s->o,        s->o_stride };

    for (size_t t = 0; t < s->n; t++)
        beta[t] = s->in[BETA].x[t * s->in[BETA].stride];
    for (size_t t = 0; gated && t < s->n; t++)
        g[t] = fw_expf(s->in[LOG_G].x[t * s->in[LOG_G].stride]);
    if (gated)
        fw_memory_add_gates(m, block, head, s->in[LOG_G], s->n);
    fw_num_kernels()->delta(&h, &p);
    fw_memory_set_valid(m, block, head, h.valid);
}

static void read_head(const struct fw_memory *m, const void *block, size_t head,
                      const struct fw_reads *r)
{
    struct fw_head h = fw_memory_head(m, block, head);

    fw_num_kernels()->read(&h, r);
}

static int check(const struct fw_memory *m, const struct fw_body *b, struct fw_err *err)
{
    return fw_check_step(m, b, BETA, err);
}

#define ABOUT(retention_)                                                                      \
    .memory = "matrix", .objective = "squared error", .retention = (retention_),               \
    .optimiser = "one gradient step", .horizon = "one pair",                                   \
    .traits = FW_MATRIX | FW_PENDING | FW_DELTA_STEP, .inputs = inputs, .learn = learn,        \
    .read = read_head, .check = check

const struct fw_rule fw_rule_delta = { .name = "delta", ABOUT("none"), .input_count = 1 };
const struct fw_rule fw_rule_gated_delta = { .name = "gated_delta",
                                             ABOUT("decay per head"),
                                             .input_count = 2 };
