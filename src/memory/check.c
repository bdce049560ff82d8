/* check.c - a request's body, checked whole before anything is learned.
 *
 * What a pair may carry, one row each: its floats per pair and head, the range every element
 * must lie in, and the word for what is outside. The ranges and beta |k|^2 < 2 together keep
 * every state finite (state.c). Messages name tensor, pair and head. */
#include "config.h"

#include "rule.h"

#include <stdio.h>
#include <string.h>

#include "fastweight/num.h"

enum inner { INNER_NONE, INNER_D_K, INNER_D_V };

static const struct input {
    const char *name;
    enum inner inner;
    float min, max;     /* inclusive; outside [-1e6, 1e6] it is too_large */
    const char *reason; /* inside that but outside [min, max] */
} inputs[FW_IN_COUNT] = {
    [FW_IN_KEYS] = { "keys", INNER_D_K, -FW_ELEMENT_MAX, FW_ELEMENT_MAX, "" },
    [FW_IN_VALUES] = { "values", INNER_D_V, -FW_ELEMENT_MAX, FW_ELEMENT_MAX, "" },
    [FW_IN_QUERIES] = { "queries", INNER_D_K, -FW_ELEMENT_MAX, FW_ELEMENT_MAX, "" },
    [FW_IN_BETA] = { "beta", INNER_NONE, 0, FW_ELEMENT_MAX, "bad_beta" },
    [FW_IN_LOG_G] = { "log_g", INNER_NONE, -FW_ELEMENT_MAX, 0, "bad_gate" },
};

size_t fw_input_inner(const struct fw_memory *m, enum fw_in in)
{
    switch (inputs[in].inner) {
    case INNER_D_K:
        return m->d_k;
    case INNER_D_V:
        return m->d_v;
    case INNER_NONE:
        break;
    }
    return 1;
}

struct fw_body fw_body_open(const struct fw_memory *m, const struct fw_tensors *in)
{
    struct fw_body b = { 0 };

    for (size_t i = 0; i < FW_IN_COUNT; i++) {
        const struct fw_tensor *t = fw_tensors_find(in, inputs[i].name);

        if (!t || !(m->rule->takes & FW_BIT(i)))
            continue;
        b.n = (size_t)t->shape[0];
        b.in[i] = t->data;
    }
    return b;
}

static int find_input(const char *name)
{
    for (int i = 0; i < FW_IN_COUNT; i++)
        if (strcmp(inputs[i].name, name) == 0)
            return i;
    return -1;
}

/* (n, heads, inner), for scalars (n, heads); with one head the heads axis may be left out. */
static int check_shape(const struct fw_memory *m, const struct fw_tensor *t, enum fw_in in,
                       struct fw_err *err)
{
    uint32_t tail = inputs[in].inner != INNER_NONE, axes = 0;
    size_t inner = fw_input_inner(m, in);

    if (t->ndim == 2 + tail && t->shape[1] == m->heads)
        axes = 2;
    else if (t->ndim == 1 + tail && m->heads == 1)
        axes = 1;
    if (axes == 0 || (tail && t->shape[axes] != inner))
        return fw_fail_param(err, FW_EINVAL, "bad_shape", t->name,
                             tail ? "%s must have the shape (n, %zu, %zu)"
                                  : "%s must have the shape (n, %zu)",
                             t->name, m->heads, inner);
    if (t->dtype != FW_F32)
        return fw_fail_param(err, FW_EINVAL, "bad_dtype", t->name, "%s must be F32, is %s",
                             t->name, fw_dtype_name(t->dtype));
    return 0;
}

/* Names the first element that is out of range. */
static int refuse(const struct fw_memory *m, enum fw_in in, const float *x, size_t at,
                  struct fw_err *err)
{
    size_t inner = fw_input_inner(m, in), row = at / inner;
    const char *reason = inputs[in].reason, *what = "is out of range";

    if (!__builtin_isfinite(x[at])) {
        reason = "non_finite";
        what = "is not finite";
    } else if (__builtin_fabsf(x[at]) > FW_ELEMENT_MAX) {
        reason = "too_large";
        what = "is beyond 1e6";
    }
    return fw_fail_param(err, FW_EINVAL, reason, inputs[in].name,
                         "%s of pair %zu, head %zu: element %zu %s (%g)", inputs[in].name,
                         row / m->heads, row % m->heads, at % inner, what, (double)x[at]);
}

static int check_range(const struct fw_memory *m, enum fw_in in, const float *x, size_t rows,
                       struct fw_err *err)
{
    size_t inner = fw_input_inner(m, in);
    float min = inputs[in].min, max = inputs[in].max;

    for (size_t row = 0; row < rows; row++) {
        const float *r = x + row * inner;
        int ok = 1;

        for (size_t i = 0; i < inner; i++)
            ok &= (r[i] >= min) & (r[i] <= max);
        for (size_t i = 0; !ok && i < inner; i++)
            if (!(r[i] >= min && r[i] <= max))
                return refuse(m, in, x, row * inner + i, err);
    }
    return 0;
}

/* beta |k|^2 < 2: beyond it a repeated key makes S grow without end. Keys of key_norm l2 have
 * length 1 (or 0) up to rounding, which the bounds of state.c allow for. */
static int check_step(const struct fw_memory *m, const struct fw_body *b, struct fw_err *err)
{
    for (size_t row = 0; row < b->n * m->heads; row++) {
        double beta = (double)(b->in[FW_IN_BETA] ? b->in[FW_IN_BETA][row] : m->beta);
        double kk = m->l2 ? 1 : fw_sum_squares(b->in[FW_IN_KEYS] + row * m->d_k, m->d_k);

        if (!(beta * kk < 2))
            return fw_fail_param(err, FW_EINVAL, "unstable_step",
                                 b->in[FW_IN_BETA] ? "beta" : "keys",
                                 "pair %zu, head %zu: beta |k|^2 = %g must be below 2",
                                 row / m->heads, row % m->heads, beta * kk);
    }
    return 0;
}

/* Every tensor is one that `takes` allows, of one length n, whole and in range. */
static int check_tensors(const struct fw_memory *m, const struct fw_tensors *in, unsigned takes,
                         size_t *ret_n, struct fw_err *err)
{
    for (size_t i = 0; i < in->count; i++) {
        const struct fw_tensor *t = &in->item[i];
        int known = find_input(t->name);

        if (known < 0 || !(takes & FW_BIT(known)))
            return fw_fail_param(err, FW_EINVAL, "unknown_tensor", t->name,
                                 "rule %s takes no tensor '%s' here", m->rule->name, t->name);
        if (fw_tensors_find(in, t->name) != t)
            return fw_fail_param(err, FW_EINVAL, "duplicate_tensor", t->name,
                                 "%s is there twice", t->name);
        if (check_shape(m, t, (enum fw_in)known, err) < 0)
            return -1;
        if (i > 0 && t->shape[0] != in->item[0].shape[0])
            return fw_fail_param(err, FW_EINVAL, "bad_shape", t->name,
                                 "%s and %s differ in their number of pairs", t->name,
                                 in->item[0].name);
    }
    for (size_t i = 0; i < in->count; i++) {
        const struct fw_tensor *t = &in->item[i];

        if (check_range(m, (enum fw_in)find_input(t->name), t->data,
                        (size_t)t->shape[0] * m->heads, err) < 0)
            return -1;
    }
    *ret_n = in->count ? (size_t)in->item[0].shape[0] : 0;
    return 0;
}

static int check_needs(const struct fw_tensors *in, unsigned needs, size_t n,
                       struct fw_err *err)
{
    for (int i = 0; i < FW_IN_COUNT; i++)
        if ((needs & FW_BIT(i)) && !fw_tensors_find(in, inputs[i].name))
            return fw_fail_param(err, FW_EINVAL, "missing_tensor", inputs[i].name,
                                 "%s is missing", inputs[i].name);
    return n ? 0 : fw_fail(err, FW_EINVAL, "empty_body", "the body holds nothing");
}

int fw_memory_check(const struct fw_memory *m, const struct fw_tensors *in, size_t *ret_pairs,
                    struct fw_err *err)
{
    struct fw_body b;
    size_t n;

    if (check_tensors(m, in, m->rule->takes, &n, err) < 0 ||
        check_needs(in, m->rule->needs, n, err) < 0)
        return -1;
    b = fw_body_open(m, in);
    if (check_step(m, &b, err) < 0)
        return -1;
    *ret_pairs = n;
    return 0;
}

int fw_memory_check_queries(const struct fw_memory *m, const struct fw_tensors *in,
                            size_t *ret_queries, struct fw_err *err)
{
    size_t n;

    if (check_tensors(m, in, FW_BIT(FW_IN_QUERIES), &n, err) < 0 ||
        check_needs(in, FW_BIT(FW_IN_QUERIES), n, err) < 0)
        return -1;
    *ret_queries = n;
    return 0;
}
