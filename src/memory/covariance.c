/* covariance.c - the second moments of the keys of one head, for edits and for `inspect`.
 *
 *     C = g C + k k',  g = 1 - 2^-16
 *
 * so C speaks of about the last 65,536 pairs. A plain sum in float would stand still after
 * 2^24 keys; this one does not, and stays below 2^16 1e12 < 1e17 for ever. An edit takes C as
 * the norm of its change (edit.c), so that keys of the past are disturbed least. */
#include "config.h"

#include "covariance.h"

#include <math.h>
#include <stdlib.h>

#include "core.h"
#include "fastweight/fmath.h"
#include "fastweight/num.h"
#include "inside.h"
#include "solve.h"
#include "steps.h"

#define KEEP      (1 - 0x1p-16f)
#define RIDGE     0.01
#define STEPS     200 /* of conjugate gradients, where a factorisation is too large */
#define CONDITION 1e7 /* float sums tell no larger one */

static float *open_head(const struct fw_memory *m, const void *block, size_t head)
{
    return (float *)fw_memory_at(block, m->at_covariance) + head * m->rows * m->rows;
}

void fw_covariance_note(const struct fw_memory *m, void *block, size_t head,
                        const struct fw_span *s)
{
    float *C = open_head(m, block, head);

    for (size_t i = 0; i < s->n * m->pairs; i++)
        fw_steps()->square(C, m->rows, KEEP, 1, fw_row(s->k, i), FW_SATURATE_AT);
}

bool fw_is_covariance(const float *H, size_t n)
{
    bool ok = true;

    for (size_t i = 0; i < n; i++) {
        ok &= H[i * n + i] >= 0;
        for (size_t j = 0; j < i; j++)
            ok &= H[i * n + j] == H[j * n + i];
    }
    return ok;
}

int fw_covariance_validate(const struct fw_memory *m, const void *block, size_t head,
                           struct fw_err *err)
{
    const float *C = open_head(m, block, head);

    if (!(fw_largest(C, m->rows * m->rows) <= FW_SATURATE_AT))
        return fw_bad_state(err, "covariance", head, "is out of bounds");
    return fw_is_covariance(C, m->rows)
               ? 0
               : fw_bad_state(err, "covariance", head, "is no covariance");
}

int fw_covariance_plan(struct fw_memory *m, struct fw_config *c, struct fw_err *err)
{
    const uint64_t shape[3] = { m->heads, m->rows, m->rows };
    bool kept = false;

    if (fw_config_bool(c, "covariance", &kept, err) < 0)
        return -1;
    if (!kept) {
        fw_config_forget(c, "covariance");
        return 0;
    }
    if (m->rule->covariance)
        return fw_fail_param(err, FW_EINVAL, "bad_value", "config.covariance",
                             "rule %s has a covariance of its own", m->rule->name);
    return fw_layout_add(&m->layout, "covariance", FW_F32, 3, shape, &m->at_covariance, err);
}

/* ---- C^-1 k */

static double mean_diagonal(const float *C, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += (double)C[i * n + i];
    return sum / (double)n;
}

static void solve(const struct fw_system *s, const float *k, double *x)
{
    struct fw_factor factor;

    fw_solvers()->factor(s, &factor);
    for (size_t i = 0; i < s->n; i++)
        x[i] = (double)k[i];
    fw_solvers()->solve(&factor, x);
}

/* The steps' guards (solve.c) count against squares of k: it is made so long that they do not.
 */
static void approach(const struct fw_system *s, const float *k, double *x)
{
    double kk = fw_sum_squares(k, s->n);
    float scale = (float)(1e4 / fw_sqrt(kk * (double)s->lambda[0])), q[FW_MAX_DIM];

    for (size_t i = 0; i < s->n; i++)
        q[i] = scale * k[i];
    fw_solvers()->cg(s, q, STEPS, x);
}

static double inner(const double *x, const float *k, size_t n)
{
    double a = 0;

    for (size_t i = 0; i < n; i++)
        a += x[i] * (double)k[i];
    return a;
}

/* No condition that RIDGE allows makes |x| |k| / k'x larger than 400; rounding might. */
static bool is_sane(const double *x, const float *k, size_t n, double a)
{
    double xx = 0;

    for (size_t i = 0; i < n; i++)
        xx += x[i] * x[i];
    return a > 0 && a < 1e150 && xx * fw_sum_squares(k, n) <= 1e6 * (a * a);
}

double fw_covariance_solve(const struct fw_memory *m, const void *block, size_t head,
                           const float *k, double *x)
{
    size_t n = m->rows;
    float ridge = 0, lambda[FW_MAX_DIM];

    if (m->at_covariance != FW_NOWHERE)
        ridge = (float)(RIDGE * mean_diagonal(open_head(m, block, head), n));
    if (ridge > 0) {
        struct fw_system s = { open_head(m, block, head), lambda, n };
        double a;

        for (size_t i = 0; i < n; i++)
            lambda[i] = ridge;
        if (n <= FW_FACTOR_MAX)
            solve(&s, k, x);
        else
            approach(&s, k, x);
        a = inner(x, k, n);
        if (is_sane(x, k, n, a))
            return a;
    }
    for (size_t i = 0; i < n; i++)
        x[i] = (double)k[i];
    return fw_sum_squares(k, n);
}

/* ---- the condition */

static void copy(const struct fw_memory *m, const void *block, size_t head, double *C)
{
    const float *own = open_head(m, block, head);

    for (size_t i = 0; i < m->rows * m->rows; i++)
        C[i] = (double)own[i];
}

int fw_covariance_condition(const struct fw_memory *m, const void *block, size_t head,
                            double *ret, struct fw_err *err)
{
    size_t n = m->rows;
    double *C = NULL, *sigma = NULL;
    int rc = -1;

    *ret = (double)NAN;
    if (!m->rule->covariance && m->at_covariance == FW_NOWHERE)
        return 0;
    C = malloc(n * n * sizeof *C);
    sigma = malloc(n * sizeof *sigma);
    if (!C || !sigma) {
        fw_fail(err, FW_ENOMEM, "out_of_memory", "no memory to inspect a covariance");
        goto out;
    }
    if (m->rule->covariance)
        m->rule->covariance(m, block, head, C);
    else
        copy(m, block, head, C);
    rc = fw_singular_values(C, n, n, sigma, err); /* of a symmetric C: |eigenvalues| */
    if (rc == 0 && sigma[0] > 0)
        *ret = sigma[n - 1] * CONDITION > sigma[0] ? sigma[0] / sigma[n - 1] : CONDITION;
out:
    free(C);
    free(sigma);
    return rc;
}
