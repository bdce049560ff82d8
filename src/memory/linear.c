/* linear.c - linear attention and its decaying forms: write without looking.
 *
 *     linear:       S_t = S_{t-1} + k v'
 *     linear_norm:  the same with z_t = z_{t-1} + k;  m(q) = S'q / (z.q + eps)
 *     retention:    S_t = g S_{t-1} + k v',  g = exp(log_g), or 1 - 2^(-5-head) when not given
 *     gla:          S_t = diag(exp(log_g)) S_{t-1} + k v',  a gate for each row of S
 *
 * Sources: Katharopoulos et al. 2006.16236; RetNet 2307.08621; GLA 2312.06635. The residual is
 * v - m(k) at the decayed state. Without decay S grows by at most 1e12 a pair, in practice as
 * the root of their number; state.c cuts it at 1e17. The last pair stays pending, z does not
 * wait. A denominator can only vanish for keys of both signs: then m(q) is cut to a float. */
#include "config.h"

#include "families.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "core.h"
#include "edit.h"
#include "fastweight/fmath.h"
#include "fastweight/num.h"
#include "loops.h"

enum { LOG_G };

struct norm { /* linear_norm's own */
    size_t at_z;
    double eps;
};

static const struct fw_input head_gate[] = {
    [LOG_G] = { "log_g", FW_SCALAR, 0, 0, -FW_ELEMENT_MAX, 0, "bad_gate" },
};

static const struct fw_input row_gates[] = {
    [LOG_G] = { "log_g", FW_ROWS, FW_REQUIRED, 0, -FW_ELEMENT_MAX, 0, "bad_gate" },
};

/* gamma = 1 - 2^(-5-head), which is 1 in float from head 20 on. */
static float fixed_decay(size_t head)
{
    return head < 20 ? 1 - fw_unbitsf((uint32_t)(122 - head) << 23) : 1;
}

static void note_gates(const struct fw_memory *m, void *block, size_t head,
                       const struct fw_span *s)
{
    double fixed = fw_log((double)fixed_decay(head));
    double *sum = (double *)fw_memory_at(block, m->at_log_g) + head;

    if (m->rule->input_count && s->in[LOG_G].stride)
        fw_memory_add_gates(m, block, head, s->in[LOG_G], s->n);
    else if (m->rule->input_count)
        for (size_t t = 0; t < s->n; t++)
            *sum += fixed;
}

/* A gate for each row. */
static void learn_rows(const struct fw_memory *m, void *block, size_t head,
                       const struct fw_span *s)
{
    struct fw_head h = fw_memory_head(m, block, head);
    float d[FW_MAX_DIM];

    note_gates(m, block, head, s);
    for (size_t t = 0; t < s->n; t++) {
        const float *k = fw_row(s->k, t), *v = fw_row(s->v, t);

        fw_loops()->exp(fw_row(s->in[LOG_G], t), d, m->rows);
        fw_core_look(&h, d, k, v, s->err + t * m->d_v);
        fw_core_write(&h, k, 1, v);
        fw_core_read(&h, s, t);
    }
    fw_memory_set_valid(m, block, head, h.valid);
}

/* No gate, or one for the head. */
static void learn(const struct fw_memory *m, void *block, size_t head, const struct fw_span *s)
{
    bool gated = m->rule->input_count > 0, given = gated && s->in[LOG_G].stride;
    float one[FW_SPAN], g[FW_SPAN];

    note_gates(m, block, head, s);
    for (size_t t = 0; t < s->n; t++) {
        one[t] = 1;
        if (gated)
            g[t] = given ? fw_expf(fw_scalar(s, LOG_G, t)) : fixed_decay(head);
    }
    fw_core_write_blindly(m, block, head, s, one, gated ? g : NULL);
}

/* S is a sum over the pairs, so one can be taken out of it: S - k v'. */
static void take_out(const struct fw_memory *m, void *block, size_t head, struct fw_change *c)
{
    struct fw_head h = fw_memory_head(m, block, head);
    float minus[FW_MAX_DIM];

    fw_edit_fold(m, block, head);
    for (size_t i = 0; i < m->rows; i++) {
        minus[i] = -c->k[i];
        c->x[i] = (double)minus[i];
    }
    for (size_t j = 0; j < m->d_v; j++)
        c->w[j] = (double)c->v[j];
    fw_loops()->outer(h.S, m->rows, m->d_v, minus, c->v);
    fw_edit_cut(m, block, head);
}

/* ---- with the normaliser */

static float *z_of(const struct fw_memory *m, const void *block, size_t head)
{
    return (float *)fw_memory_at(block, ((const struct norm *)m->own)->at_z) + head * m->rows;
}

static void divide(const struct fw_memory *m, const float *z, const float *q, float *o)
{
    double by = (double)fw_loops()->dot(z, q, m->rows) + ((const struct norm *)m->own)->eps;
    double inverse = by != 0 ? 1 / by : 0;

    for (size_t j = 0; j < m->d_v; j++) {
        double x = (double)o[j] * inverse;

        o[j] = x > (double)FLT_MAX ? FLT_MAX : x < -(double)FLT_MAX ? -FLT_MAX : (float)x;
    }
}

static void learn_norm(const struct fw_memory *m, void *block, size_t head,
                       const struct fw_span *s)
{
    struct fw_head h = fw_memory_head(m, block, head);
    float *z = z_of(m, block, head);

    for (size_t t = 0; t < s->n; t++) {
        const float *k = fw_row(s->k, t), *v = fw_row(s->v, t);
        float *err = s->err + t * m->d_v;

        fw_loops()->sweep(&h, NULL, k, err);
        divide(m, z, k, err);
        for (size_t j = 0; j < m->d_v; j++)
            err[j] = v[j] - err[j];
        fw_core_write(&h, k, 1, v);
        fw_loops()->axpy(1, k, z, m->rows);
        fw_core_read(&h, s, t);
        if (s->q.x)
            divide(m, z, fw_row(s->q, t), s->o + t * s->o_stride);
    }
    fw_memory_set_valid(m, block, head, h.valid);
}

static void read_norm(const struct fw_memory *m, const void *block, size_t head,
                      const struct fw_reads *r)
{
    fw_core_read_head(m, block, head, r);
    for (size_t t = 0; t < r->n; t++)
        divide(m, z_of(m, block, head), r->q + t * r->q_stride, r->o + t * r->o_stride);
}

static int plan_norm(struct fw_memory *m, struct fw_config *c, struct fw_err *err)
{
    const uint64_t shape[2] = { m->heads, m->rows };
    struct norm *own = calloc(1, sizeof *own);

    m->own = own;
    if (!own)
        return fw_fail(err, FW_ENOMEM, "out_of_memory", "no memory for a plan");
    own->eps = 1e-6;
    if (fw_config_number(c, "eps", 1e-12, 1, &own->eps, err) < 0)
        return -1;
    return fw_layout_add(&m->layout, "z", FW_F32, 2, shape, &own->at_z, err);
}

static int validate_norm(const struct fw_memory *m, const void *block, size_t head,
                         struct fw_err *err)
{
    if (!(fw_largest(z_of(m, block, head), m->rows) <= FW_STATE_MAX))
        return fw_bad_state(err, "z", head, "is out of bounds");
    return 0;
}

static uint64_t saturate_norm(const struct fw_memory *m, void *block, size_t head)
{
    return fw_cut(z_of(m, block, head), m->rows, FW_SATURATE_AT);
}

#define LINEAR(name_, retention_)                                                              \
    .name = (name_), .memory = "matrix", .objective = "dot product",                           \
    .retention = (retention_), .optimiser = "one gradient step", .horizon = "one pair"

const struct fw_rule fw_rule_linear = { LINEAR("linear", "none"),
                                        .traits = FW_MATRIX | FW_PENDING, .learn = learn,
                                        .read = fw_core_read_head, .take_out = take_out };
const struct fw_rule fw_rule_linear_norm = { LINEAR("linear_norm", "none"),
                                             .traits = FW_MATRIX | FW_PENDING,
                                             .learn = learn_norm,
                                             .read = read_norm,
                                             .plan = plan_norm,
                                             .validate = validate_norm,
                                             .saturate = saturate_norm };
const struct fw_rule fw_rule_retention = { LINEAR("retention", "decay per head"),
                                           .traits = FW_MATRIX | FW_PENDING,
                                           .inputs = head_gate,
                                           .input_count = 1,
                                           .learn = learn,
                                           .read = fw_core_read_head };
const struct fw_rule fw_rule_gla = { LINEAR("gla", "decay per row"),
                                     .traits = FW_MATRIX | FW_PENDING | FW_CHANNELS,
                                     .inputs = row_gates,
                                     .input_count = 1,
                                     .learn = learn_rows,
                                     .read = fw_core_read_head };
