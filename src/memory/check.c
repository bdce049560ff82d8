/* check.c - a request's body, checked whole before anything is learned.
 *
 * Keys, values and queries are every rule's; what else a pair may carry is the rule's own list:
 * its floats per pair and head, the range every element must lie in, and the word for what is
 * outside. The ranges, the norm of at most 1e6 and the rule's own check together keep every
 * state finite (state.c). Messages name tensor, pair and head. */
#include "config.h"

#include "inside.h"

#include <stdio.h>
#include <string.h>

#include "fastweight/num.h"

static const struct fw_input fixed[FW_IN_OWN] = {
    { "keys", FW_D_K, FW_REQUIRED | FW_EACH, 0, -FW_ELEMENT_MAX, FW_ELEMENT_MAX, "" },
    { "values", FW_D_V, FW_REQUIRED | FW_EACH, 0, -FW_ELEMENT_MAX, FW_ELEMENT_MAX, "" },
    { "queries", FW_D_K, 0, 0, -FW_ELEMENT_MAX, FW_ELEMENT_MAX, "" },
};

const struct fw_input *fw_input_of(const struct fw_memory *m, size_t in)
{
    return in < FW_IN_OWN ? &fixed[in] : &m->rule->inputs[in - FW_IN_OWN];
}

size_t fw_input_inner(const struct fw_memory *m, size_t in)
{
    switch (fw_input_of(m, in)->inner) {
    case FW_D_K:
        return m->d_k;
    case FW_ROWS:
        return m->rows;
    case FW_D_V:
        return m->d_v;
    case FW_OWN:
        return m->own_dim;
    case FW_SCALAR:
        break;
    }
    return 1;
}

size_t fw_input_count(const struct fw_memory *m)
{
    return FW_IN_OWN + m->rule->input_count;
}

/* Rows per token and head. */
static size_t rows_each(const struct fw_memory *m, size_t in)
{
    return fw_input_of(m, in)->flags & FW_EACH ? m->pairs : 1;
}

bool fw_input_taken(const struct fw_memory *m, size_t in)
{
    return in < FW_IN_OWN || m->takes >> (in - FW_IN_OWN) & 1;
}

/* Place of a tensor among the inputs, or -1. */
static int find_input(const struct fw_memory *m, const struct fw_tensor *t)
{
    for (size_t i = 0, count = fw_input_count(m); i < count; i++)
        if (m->place[i].name && strcmp(m->place[i].name, t->name) == 0)
            return (int)i;
    return -1;
}

void fw_body_open(const struct fw_memory *m, const struct fw_tensors *in, struct fw_body *ret)
{
    for (size_t i = 0, count = fw_input_count(m); i < count; i++)
        ret->in[i] = NULL;
    ret->n = in->count ? (size_t)in->item[0].shape[0] : 0;
    for (size_t i = 0; i < in->count; i++) {
        int known = find_input(m, &in->item[i]);

        if (known >= 0)
            ret->in[known] = in->item[i].data;
    }
}

/* (n, [pairs,] heads, [inner]) as text. */
static const char *shape_text(const struct fw_memory *m, size_t in, char *text, size_t size)
{
    int len = snprintf(text, size, "(n, ");

    if (rows_each(m, in) > 1)
        len += snprintf(text + len, size - (size_t)len, "%zu, ", m->pairs);
    if (fw_input_of(m, in)->inner == FW_SCALAR)
        snprintf(text + len, size - (size_t)len, "%zu)", m->heads);
    else
        snprintf(text + len, size - (size_t)len, "%zu, %zu)", m->heads, fw_input_inner(m, in));
    return text;
}

/* (n, [pairs,] heads, inner), without inner for scalars; with one head the heads axis may be
 * left out, with one pair per token there is no pairs axis. */
static int check_shape(const struct fw_memory *m, const struct fw_tensor *t, size_t in,
                       struct fw_err *err)
{
    uint64_t want[FW_MAX_DIMS], full[FW_MAX_DIMS];
    uint32_t ndim = 1, nfull;
    size_t each = rows_each(m, in);
    char text[80];

    want[0] = full[0] = t->shape[0];
    if (each > 1)
        want[ndim++] = each;
    memcpy(full, want, sizeof full);
    nfull = ndim;
    full[nfull++] = m->heads;
    if (fw_input_of(m, in)->inner != FW_SCALAR)
        want[ndim++] = full[nfull++] = fw_input_inner(m, in);
    if (!(t->ndim == nfull && memcmp(t->shape, full, nfull * sizeof full[0]) == 0) &&
        !(m->heads == 1 && t->ndim == ndim &&
          memcmp(t->shape, want, ndim * sizeof want[0]) == 0))
        return fw_fail_param(err, FW_EINVAL, "bad_shape", t->name, "%s must have the shape %s",
                             t->name, shape_text(m, in, text, sizeof text));
    if (t->dtype != FW_F32)
        return fw_fail_param(err, FW_EINVAL, "bad_dtype", t->name, "%s must be F32, is %s",
                             t->name, fw_dtype_name(t->dtype));
    return 0;
}

/* Pair (token) and head of a row; of an edit's one pair, which has `name`: head. */
static int refuse(const struct fw_memory *m, size_t in, const char *name, size_t row,
                  const char *reason, const char *what, struct fw_err *err)
{
    if (name)
        return fw_fail_param(err, FW_EINVAL, reason, name, "%s of head %zu%s", name, row, what);
    name = fw_input_of(m, in)->name;

    return fw_fail_param(err, FW_EINVAL, reason, name, "%s of pair %zu, head %zu%s", name,
                         row / m->heads / rows_each(m, in), row % m->heads, what);
}

/* Names the first element that is out of range. */
static int refuse_element(const struct fw_memory *m, size_t in, const char *name,
                          const float *x, size_t at, struct fw_err *err)
{
    size_t inner = fw_input_inner(m, in);
    const char *reason = fw_input_of(m, in)->reason, *how = "is out of range";
    char what[80];

    if (!__builtin_isfinite(x[at])) {
        reason = "non_finite";
        how = "is not finite";
    } else if (__builtin_fabsf(x[at]) > FW_ELEMENT_MAX) {
        reason = "too_large";
        how = "is beyond 1e6";
    } else if (in < FW_IN_OWN) {
        reason = "too_large";
        how = "is too large for this feature map";
    }
    snprintf(what, sizeof what, ": element %zu %s (%g)", at % inner, how, (double)x[at]);
    return refuse(m, in, name, at / inner, reason, what, err);
}

/* Elements in range, vectors no longer than 1e6 where no map makes them shorter. */
int fw_check_rows(const struct fw_memory *m, size_t in, const char *name, const float *x,
                  size_t rows, struct fw_err *err)
{
    const struct fw_input *input = fw_input_of(m, in);
    size_t inner = fw_input_inner(m, in);
    bool is_key = in == FW_IN_KEYS || in == FW_IN_QUERIES;
    bool any_length = in >= FW_IN_OWN || (is_key && (m->l2 || fw_map_is_unit(m)));
    float min = is_key ? -fw_map_max(m) : input->min, max = is_key ? -min : input->max;

    for (size_t row = 0; row < rows; row++) {
        const float *r = x + row * inner;
        int ok = 1;

        for (size_t i = 0; i < inner; i++)
            ok &= (r[i] >= min) & (r[i] <= max);
        for (size_t i = 0; !ok && i < inner; i++)
            if (!(r[i] >= min && r[i] <= max))
                return refuse_element(m, in, name, x, row * inner + i, err);
        if (!any_length && fw_sum_squares(r, inner) > 1e12)
            return refuse(m, in, name, row, "too_large", " is longer than 1e6", err);
    }
    return 0;
}

static int unstable(const struct fw_memory *m, const struct fw_body *b, size_t beta, size_t row,
                    double step, struct fw_err *err)
{
    const char *name = b->in[FW_IN_OWN + beta] ? m->rule->inputs[beta].name : "keys";

    return fw_fail_param(err, FW_EINVAL, "unstable_step", name,
                         "pair %zu, head %zu: %s |k|^2 = %g must be below 2",
                         row / m->heads / m->pairs, row % m->heads, m->rule->inputs[beta].name,
                         step);
}

/* |phi(x)|^2; apart, since it alone needs a row of stack. */
__attribute__((noinline)) static double mapped_squares(const struct fw_memory *m,
                                                       const float *x)
{
    float phi[FW_MAX_DIM];

    fw_map_key(m, x, phi);
    return fw_sum_squares(phi, m->rows);
}

/* Keys of length 1 are that up to rounding, which the bounds of state.c allow for. */
static double key_squares(const struct fw_memory *m, const float *x)
{
    if (fw_map_is_unit(m))
        return 1;
    return fw_map_is_identity(m) ? fw_sum_squares(x, m->d_k) : mapped_squares(m, x);
}

int fw_check_step(const struct fw_memory *m, const struct fw_body *b, size_t beta,
                  struct fw_err *err)
{
    const float *given = b->in[FW_IN_OWN + beta], *keys = b->in[FW_IN_KEYS];

    for (size_t row = 0; row < b->n * m->pairs * m->heads; row++) {
        double step = (double)(given ? given[row] : m->fallback[beta * m->widest]);

        step *= key_squares(m, keys + row * m->d_k);
        if (!(step < 2))
            return unstable(m, b, beta, row, step, err);
    }
    return 0;
}

/* Every tensor is one the rule takes, `reads`: queries alone; of one length n, whole and in
 * range. */
static int check_tensors(const struct fw_memory *m, const struct fw_tensors *in, bool reads,
                         size_t *ret_n, struct fw_err *err)
{
    for (size_t i = 0; i < in->count; i++) {
        const struct fw_tensor *t = &in->item[i];
        int known = find_input(m, t);

        if (known < 0 || (reads && known != FW_IN_QUERIES))
            return fw_fail_param(err, FW_EINVAL, "unknown_tensor", t->name,
                                 "rule %s takes no tensor '%s' here", m->rule->name, t->name);
        if (fw_tensors_find(in, t->name) != t)
            return fw_fail_param(err, FW_EINVAL, "duplicate_tensor", t->name,
                                 "%s is there twice", t->name);
        if (check_shape(m, t, (size_t)known, err) < 0)
            return -1;
        if (i > 0 && t->shape[0] != in->item[0].shape[0])
            return fw_fail_param(err, FW_EINVAL, "bad_shape", t->name,
                                 "%s and %s differ in their number of pairs", t->name,
                                 in->item[0].name);
    }
    for (size_t i = 0; i < in->count; i++) {
        const struct fw_tensor *t = &in->item[i];
        size_t known = (size_t)find_input(m, t);

        if (fw_check_rows(m, known, NULL, t->data,
                          (size_t)t->shape[0] * rows_each(m, known) * m->heads, err) < 0)
            return -1;
    }
    *ret_n = in->count ? (size_t)in->item[0].shape[0] : 0;
    return 0;
}

static int missing(const char *name, struct fw_err *err)
{
    return fw_fail_param(err, FW_EINVAL, "missing_tensor", name, "%s is missing", name);
}

static int check_any(size_t n, struct fw_err *err)
{
    return n ? 0 : fw_fail(err, FW_EINVAL, "empty_body", "the body holds nothing");
}

int fw_memory_check(const struct fw_memory *m, const struct fw_tensors *in, size_t *ret_pairs,
                    struct fw_err *err)
{
    struct fw_body b;
    size_t n;

    if (check_tensors(m, in, false, &n, err) < 0)
        return -1;
    for (size_t i = 0; i < fw_input_count(m); i++)
        if (fw_input_of(m, i)->flags & FW_REQUIRED && fw_input_taken(m, i) &&
            !fw_tensors_find(in, fw_input_of(m, i)->name))
            return missing(fw_input_of(m, i)->name, err);
    if (check_any(n, err) < 0)
        return -1;
    fw_body_open(m, in, &b);
    if (m->rule->check && m->rule->check(m, &b, err) < 0)
        return -1;
    *ret_pairs = n;
    return 0;
}

int fw_memory_check_queries(const struct fw_memory *m, const struct fw_tensors *in,
                            size_t *ret_queries, struct fw_err *err)
{
    size_t n;

    if (check_tensors(m, in, true, &n, err) < 0)
        return -1;
    if (in->count == 0)
        return missing("queries", err);
    if (check_any(n, err) < 0)
        return -1;
    *ret_queries = n;
    return 0;
}

/* Inputs that this plan does not take are passed over, so that places have no gaps. */
int fw_memory_input(const struct fw_memory *m, size_t i, struct fw_memory_input *ret)
{
    size_t in = 0, count = fw_input_count(m);

    for (; in < count; in++)
        if (fw_input_taken(m, in) && i-- == 0)
            break;
    if (in >= count)
        return -1;
    *ret = (struct fw_memory_input){ .name = fw_input_of(m, in)->name,
                                     .required = fw_input_of(m, in)->flags & FW_REQUIRED,
                                     .min = fw_input_of(m, in)->min,
                                     .max = fw_input_of(m, in)->max };
    ret->shape[ret->ndim++] = 1;
    if (fw_input_of(m, in)->flags & FW_EACH && m->pairs > 1)
        ret->shape[ret->ndim++] = m->pairs;
    ret->shape[ret->ndim++] = m->heads;
    if (fw_input_of(m, in)->inner != FW_SCALAR)
        ret->shape[ret->ndim++] = fw_input_inner(m, in);
    return 0;
}
