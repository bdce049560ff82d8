/* erase.c - rules that erase along one vector and write along another.
 *
 *     kda:    S^ = diag(exp(log_g)) S_{t-1};  S_t = S^ + k e',  e = beta (v - S^'k)
 *     comba:  S^ = exp(log_g) S_{t-1};        S_t = S^ + k e',  e = beta (v - S^'p)
 *     dplr:   S_t = diag(exp(log_g)) S_{t-1} + b (S_{t-1}'a)' + k v'
 *     wkv7:   the same with log_g = -exp(w)
 *     iplr:   the same without decay
 *
 * Sources: Kimi Linear 2510.26692; Comba 2506.02475; RWKV-7 2503.14456 (a = -kk, b = kk * iclr
 * there); DPLR and IPLR as in flash-linear-attention. The last three read the undecayed S. kda
 * never lengthens S while beta |k|^2 < 2 and keeps its last pair pending. The others can: b a'
 * may have any eigenvalue, and p need not point along k. So they change S at once and cut every
 * element at 1e20 after each pair. From there a product stays below 4096 1e20 1e6 1e6 = 4.1e35,
 * which is finite; no sane stream comes near. */
#include "config.h"

#include "families.h"

#include <string.h>

#include "core.h"
#include "fastweight/fmath.h"
#include "loops.h"

enum { BETA, LOG_G, P };          /* of kda and comba */
enum { ERASE_A, ERASE_B, DECAY }; /* of dplr, wkv7, iplr */

#define BETA_INPUT                                                                             \
    {                                                                                          \
        "beta", FW_SCALAR, FW_CONFIG, 1, 0, FW_ELEMENT_MAX, "bad_beta"                         \
    }
#define VECTOR(name_, flags_)                                                                  \
    {                                                                                          \
        (name_), FW_ROWS, (flags_), 0, -FW_ELEMENT_MAX, FW_ELEMENT_MAX, ""                     \
    }

static const struct fw_input kda_inputs[] = {
    [BETA] = BETA_INPUT,
    [LOG_G] = { "log_g", FW_ROWS, FW_REQUIRED, 0, -FW_ELEMENT_MAX, 0, "bad_gate" },
};

static const struct fw_input comba_inputs[] = {
    [BETA] = BETA_INPUT,
    [LOG_G] = { "log_g", FW_SCALAR, 0, 0, -FW_ELEMENT_MAX, 0, "bad_gate" },
    [P] = VECTOR("p", 0), /* absent: k */
};

static const struct fw_input dplr_inputs[] = {
    [ERASE_A] = VECTOR("a", FW_REQUIRED),
    [ERASE_B] = VECTOR("b", FW_REQUIRED),
    [DECAY] = { "log_g", FW_ROWS, 0, 0, -FW_ELEMENT_MAX, 0, "bad_gate" },
};

static const struct fw_input wkv7_inputs[] = {
    [ERASE_A] = VECTOR("a", FW_REQUIRED),
    [ERASE_B] = VECTOR("b", FW_REQUIRED),
    [DECAY] = { "w", FW_ROWS, FW_REQUIRED, 0, -FW_ELEMENT_MAX, 80, "bad_gate" },
};

static void learn_kda(const struct fw_memory *m, void *block, size_t head,
                      const struct fw_span *s)
{
    struct fw_head h = fw_memory_head(m, block, head);
    float d[FW_MAX_DIM];

    fw_memory_add_gates(m, block, head, s->in[LOG_G], s->n);
    for (size_t t = 0; t < s->n; t++) {
        const float *k = fw_row(s->k, t), *g = fw_row(s->in[LOG_G], t);
        float *err = s->err + t * m->d_v;

        fw_loops()->exp(g, d, m->rows);
        fw_core_look(&h, d, k, fw_row(s->v, t), err);
        fw_core_write(&h, k, *fw_row(s->in[BETA], t), err);
        fw_core_read(&h, s, t);
    }
    fw_memory_set_valid(m, block, head, h.valid);
}

static int check_kda(const struct fw_memory *m, const struct fw_body *b, struct fw_err *err)
{
    return fw_check_step(m, b, BETA, err);
}

/* v - S'k, before anything of the pair is written. */
static void note_error(const struct fw_head *h, const struct fw_span *s, size_t t)
{
    const float *v = fw_row(s->v, t);
    float *err = s->err + t * h->d_v;

    fw_loops()->apply(h->S, h->d_k, h->d_v, fw_row(s->k, t), err);
    for (size_t j = 0; j < h->d_v; j++)
        err[j] = v[j] - err[j];
}

static void learn_comba(const struct fw_memory *m, void *block, size_t head,
                        const struct fw_span *s)
{
    struct fw_head h = fw_memory_head(m, block, head);
    size_t n = m->rows * m->d_v;
    float e[FW_MAX_DIM];

    fw_memory_add_gates(m, block, head, s->in[LOG_G], s->n);
    for (size_t t = 0; t < s->n; t++) {
        const float *k = fw_row(s->k, t), *v = fw_row(s->v, t);
        const float *p = s->in[P].stride ? fw_row(s->in[P], t) : k;
        float beta = *fw_row(s->in[BETA], t);

        fw_loops()->scale(fw_expf(*fw_row(s->in[LOG_G], t)), h.S, n);
        note_error(&h, s, t);
        fw_loops()->apply(h.S, m->rows, m->d_v, p, e);
        for (size_t j = 0; j < m->d_v; j++)
            e[j] = beta * (v[j] - e[j]);
        fw_loops()->clamp(e, m->d_v, 1e30f); /* k e' finite */
        fw_loops()->outer(h.S, m->rows, m->d_v, k, e);
        fw_loops()->clamp(h.S, n, FW_CLAMP_AT);
        fw_core_read(&h, s, t);
    }
}

/* The decay of token t, (rows,), its logarithms going into log_g_sum; NULL: none. */
static const float *decay_of(const struct fw_memory *m, void *block, size_t head,
                             const struct fw_span *s, size_t t, float *d)
{
    const struct fw_rows *in = &s->in[DECAY];
    struct fw_rows log_g = { d, m->rows };

    if (m->rule->input_count <= DECAY || !in->stride)
        return NULL;
    if (m->rule->inputs == wkv7_inputs) {
        fw_loops()->exp(in->x + t * in->stride, d, m->rows);
        fw_loops()->scale(-1, d, m->rows);
    } else {
        memcpy(d, in->x + t * in->stride, m->rows * sizeof *d);
    }
    fw_memory_add_gates(m, block, head, log_g, 1);
    fw_loops()->exp(d, d, m->rows);
    return d;
}

static void learn_dplr(const struct fw_memory *m, void *block, size_t head,
                       const struct fw_span *s)
{
    struct fw_head h = fw_memory_head(m, block, head);
    float p[FW_MAX_DIM], d[FW_MAX_DIM];

    for (size_t t = 0; t < s->n; t++) {
        struct fw_erase e = {
            m->rows, m->d_v,          NULL,       fw_row(s->in[ERASE_B], t), fw_row(s->k, t),
            p,       fw_row(s->v, t), FW_CLAMP_AT
        };

        note_error(&h, s, t);
        fw_loops()->apply(h.S, m->rows, m->d_v, fw_row(s->in[ERASE_A], t), p);
        e.d = decay_of(m, block, head, s, t, d);
        fw_loops()->erase_write(h.S, &e);
        fw_core_read(&h, s, t);
    }
}

const struct fw_rule fw_rule_kda = { .name = "kda",
                                     .memory = "matrix",
                                     .objective = "squared error",
                                     .retention = "decay per row",
                                     .optimiser = "one gradient step",
                                     .horizon = "one pair",
                                     .traits =
                                         FW_MATRIX | FW_PENDING | FW_CHANNELS | FW_DELTA_STEP,
                                     .inputs = kda_inputs,
                                     .input_count = 2,
                                     .learn = learn_kda,
                                     .read = fw_core_read_head,
                                     .check = check_kda };
const struct fw_rule fw_rule_comba = { .name = "comba",
                                       .memory = "matrix",
                                       .objective = "squared error, read by another key",
                                       .retention = "decay per head",
                                       .optimiser = "one corrected step",
                                       .horizon = "one pair",
                                       .traits = FW_MATRIX,
                                       .inputs = comba_inputs,
                                       .input_count = 3,
                                       .learn = learn_comba,
                                       .read = fw_core_read_head };

#define DPLR(name_, retention_, inputs_, count_, traits_)                                      \
    {                                                                                          \
        .name = (name_), .memory = "matrix", .objective = "dot product, erased along a",       \
        .retention = (retention_), .optimiser = "diagonal plus low rank",                      \
        .horizon = "one pair", .traits = FW_MATRIX | FW_UNDIAGONAL | (traits_),                \
        .inputs = (inputs_), .input_count = (count_), .learn = learn_dplr,                     \
        .read = fw_core_read_head                                                              \
    }

const struct fw_rule fw_rule_wkv7 = DPLR("wkv7", "decay per row", wkv7_inputs, 3, FW_CHANNELS);
const struct fw_rule fw_rule_dplr = DPLR("dplr", "decay per row", dplr_inputs, 3, FW_CHANNELS);
const struct fw_rule fw_rule_iplr = DPLR("iplr", "none", dplr_inputs, 2, 0);
