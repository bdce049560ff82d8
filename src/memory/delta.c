/* delta.c - the delta rule, its gated form, and several steps per token.
 *
 *     delta:         S_t = S_{t-1} + k e',      e = beta (v - S_{t-1}'k)
 *     gated_delta:   S_t = g S_{t-1} + k e',    e = beta (v - g S_{t-1}'k),  g = exp(log_g)
 *     delta_product: one delta step for each of a token's pairs, in order; then the read
 *     gated_delta_product: the same, S decayed once before the token's first step
 *
 * Sources: Schlag et al. 2102.11174 and Yang et al. 2406.06484; Gated DeltaNet 2412.06464,
 * which decays first and reads the decayed state; DeltaProduct 2502.10297. For beta |k|^2 < 2
 * no step lengthens S. The last pair stays pending (fastweight/kernel.h); g is exactly 1 for
 * log_g = 0, and so are the decays between a token's steps. */
#include "config.h"

#include "families.h"

#include "core.h"
#include "fastweight/fmath.h"
#include "fastweight/num.h"

enum { BETA, LOG_G };

static const struct fw_input inputs[] = {
    [BETA] = { "beta", FW_SCALAR, FW_CONFIG | FW_EACH, 1, 0, FW_ELEMENT_MAX, "bad_beta" },
    [LOG_G] = { "log_g", FW_SCALAR, 0, 0, -FW_ELEMENT_MAX, 0, "bad_gate" },
};

/* Rows [at, at + n) of a span's pairs; q: with this token's read. */
static void steps(struct fw_head *h, struct fw_pairs p, size_t at, size_t n, const float *q,
                  float *o)
{
    p.n = n;
    p.k += at * p.k_stride;
    p.v += at * p.v_stride;
    p.beta += at;
    p.g = p.g ? p.g + at : NULL;
    p.err += at * h->d_v;
    p.q = q;
    p.o = o;
    if (n)
        fw_num_kernels()->delta(h, &p);
}

static void learn(const struct fw_memory *m, void *block, size_t head, const struct fw_span *s)
{
    struct fw_head h = fw_memory_head(m, block, head);
    bool gated = m->rule->input_count > LOG_G && s->in[LOG_G].stride;
    size_t each = m->pairs, n = s->n * each;
    float beta[FW_SPAN], g[FW_SPAN];
    struct fw_pairs p = { .n = n,
                          .k = s->k.x,
                          .v = s->v.x,
                          .q = s->q.x,
                          .k_stride = s->k.stride,
                          .v_stride = s->v.stride,
                          .q_stride = s->q.stride,
                          .beta = beta,
                          .g = gated ? g : NULL,
                          .err = s->err,
                          .o = s->o,
                          .o_stride = s->o_stride };

    for (size_t i = 0; i < n; i++)
        beta[i] = s->in[BETA].x[i * s->in[BETA].stride];
    for (size_t i = 0; gated && i < n; i++)
        g[i] = i % each ? 1 : fw_expf(s->in[LOG_G].x[i / each * s->in[LOG_G].stride]);
    if (gated)
        fw_memory_add_gates(m, block, head, s->in[LOG_G], s->n);
    if (each == 1 || !s->q.x)
        fw_num_kernels()->delta(&h, &p);
    for (size_t t = 0; each > 1 && s->q.x && t < s->n; t++) {
        steps(&h, p, t * each, each - 1, NULL, NULL);
        steps(&h, p, t * each + each - 1, 1, s->q.x + t * s->q.stride, s->o + t * s->o_stride);
    }
    fw_memory_set_valid(m, block, head, h.valid);
}

/* Apart, since only gates need stack. */
__attribute__((noinline)) static void learn_gated(const struct fw_memory *m, void *block,
                                                  struct fw_token *t, const float *log_g)
{
    float g[FW_DIRECT_HEADS];

    for (size_t head = 0; head < t->heads; head++) {
        g[head] = fw_expf(log_g[head]);
        fw_memory_add_gates(m, block, head, (struct fw_rows){ log_g + head, 0 }, 1);
    }
    t->g = g;
    m->kernels->token(t);
}

static void learn_token(const struct fw_memory *m, void *block, const struct fw_tensors *in,
                        size_t at, double *residual)
{
    const float *k = fw_token_row(m, in, FW_IN_KEYS, at);
    const float *v = fw_token_row(m, in, FW_IN_VALUES, at);
    const uint64_t *counter = fw_memory_at(block, m->at_counters);
    bool more = in->count > 2; /* than keys and values */
    const float *beta = more ? fw_token_row(m, in, FW_IN_OWN + BETA, at) : NULL;
    const float *log_g = more && m->rule->input_count > LOG_G
                             ? fw_token_row(m, in, FW_IN_OWN + LOG_G, at)
                             : NULL;
    struct fw_token t = { .heads = m->heads,
                          .d_k = m->rows,
                          .d_v = m->d_v,
                          .S = fw_memory_at(block, m->at_S),
                          .pending_k = fw_memory_at(block, m->at_k),
                          .pending_e = fw_memory_at(block, m->at_e),
                          .valid = fw_memory_at(block, m->at_valid),
                          .k = k,
                          .v = v,
                          .beta = beta ? beta : m->fallback + BETA * m->widest,
                          .residual = residual,
                          .turn = counter[FW_COUNT_PAIRS] };

    if (log_g)
        learn_gated(m, block, &t, log_g);
    else
        m->kernels->token(&t);
}

static int check(const struct fw_memory *m, const struct fw_body *b, struct fw_err *err)
{
    return fw_check_step(m, b, BETA, err);
}

#define DELTA(name_, retention_, steps_, inputs_, traits_)                                     \
    {                                                                                          \
        .name = (name_), .memory = "matrix", .objective = "squared error",                     \
        .retention = (retention_), .optimiser = (steps_), .horizon = "one pair",               \
        .traits = FW_MATRIX | FW_PENDING | FW_DELTA_STEP | (traits_), .inputs = inputs,        \
        .input_count = (inputs_), .learn = learn, .learn_token = learn_token,                  \
        .read = fw_core_read_head, .check = check                                              \
    }

const struct fw_rule fw_rule_delta = DELTA("delta", "none", "one gradient step", 1, 0);
const struct fw_rule fw_rule_gated_delta =
    DELTA("gated_delta", "decay per head", "one gradient step", 2, 0);
const struct fw_rule fw_rule_delta_product =
    DELTA("delta_product", "none", "a gradient step for each pair of a token", 1, FW_MULTI);
const struct fw_rule fw_rule_gated_delta_product =
    DELTA("gated_delta_product", "decay per head", "a gradient step for each pair of a token",
          2, FW_MULTI);
