/* inspect.c - one head's health, for people: computed on a copy of S_t in double, with LAPACK
 * for the spectrum. Nothing of it flows back into a state.
 *
 * The residual after the last pair's update: a delta step (err = v - S'k, e = beta err) leaves
 * v - S_t'k = err - |k|^2 e, so its norm is | |err| - |k|^2 |e| |, for one pair per token. For
 * every other rule the block keeps the last pair, and its key is read again. Effective rank:
 * exp(-sum p ln p), p = sigma_i / sum sigma (Roy and Vetterli 2007). */
#include "config.h"

#include "inside.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cache.h"
#include "covariance.h"
#include "fastweight/fmath.h"
#include "fastweight/num.h"

static double effective_rank(const double *sigma, size_t n)
{
    double sum = 0, entropy = 0;

    for (size_t i = 0; i < n; i++)
        sum += sigma[i];
    if (!(sum > 0))
        return 0;
    for (size_t i = 0; i < n; i++)
        if (sigma[i] > 0)
            entropy -= sigma[i] / sum * fw_log(sigma[i] / sum);
    return fw_exp(entropy);
}

static double delta_residual(const struct fw_memory *m, const void *block, size_t head,
                             double before)
{
    struct fw_head h = fw_memory_head(m, block, head);

    return __builtin_fabs(before -
                          fw_sum_squares(h.k, m->rows) * fw_sqrt(fw_sum_squares(h.e, m->d_v)));
}

static double last_residual(const struct fw_memory *m, const void *block, size_t head)
{
    const float *v = (const float *)fw_memory_at(block, m->at_last_v) + head * m->d_v;
    float p[FW_MAX_DIM];
    struct fw_reads r = { .n = 1, .q_stride = m->rows, .o = p, .o_stride = m->d_v };

    r.q = (const float *)fw_memory_at(block, m->at_last_k) + head * m->rows;
    m->rule->read(m, block, head, &r);
    for (size_t j = 0; j < m->d_v; j++)
        p[j] = v[j] - p[j];
    return fw_sqrt(fw_sum_squares(p, m->d_v));
}

static void residuals(const struct fw_memory *m, const void *block, size_t head,
                      struct fw_memory_head_stats *s)
{
    size_t d = m->rule->traits & FW_CHANNELS ? m->rows : 1;
    const double *log_g = (const double *)fw_memory_at(block, m->at_log_g) + head * d;

    for (size_t i = 0; i < d; i++)
        s->log_g_sum += log_g[i] / (double)d;
    s->residual_before = ((const double *)fw_memory_at(block, m->at_residual))[head];
    s->residual_after = m->at_last_k == FW_NOWHERE
                            ? delta_residual(m, block, head, s->residual_before)
                            : last_residual(m, block, head);
}

/* S_t of one head in double, or NULL. Counts what is not finite. */
static double *copy_state(const struct fw_memory *m, const void *block, size_t head,
                          struct fw_memory_head_stats *s)
{
    size_t n = fw_memory_rows(m) * m->d_v;
    float *f = malloc((n + 1) * sizeof *f);
    double *A = malloc((n + 1) * sizeof *A);

    if (f && A) {
        fw_memory_head_state(m, block, head, f);
        s->norm = fw_sqrt(fw_sum_squares(f, n));
        for (size_t i = 0; i < n; i++) {
            s->nonfinite += !__builtin_isfinite(f[i]);
            A[i] = (double)f[i];
        }
    } else {
        free(A);
        A = NULL;
    }
    free(f);
    return A;
}

void fw_memory_about(const struct fw_memory *m, const void *block, struct fw_memory_about *ret)
{
    const uint64_t *counter = fw_memory_at(block, m->at_counters);
    const struct fw_rule *r = m->rule;
    struct fw_usage u = { 0 };

    if (r->usage)
        r->usage(m, block, &u);
    if (m->cache)
        fw_cache_usage(m, block, &u);
    *ret = (struct fw_memory_about){ .rule = r->name,
                                     .memory = r->memory,
                                     .objective = r->objective,
                                     .retention = r->retention,
                                     .optimiser = r->optimiser,
                                     .horizon = r->horizon,
                                     .feature_map = fw_map_name(m),
                                     .pairs_per_token = (uint32_t)m->pairs,
                                     .saturated = counter[FW_COUNT_SATURATED],
                                     .kept_pairs = u.pairs,
                                     .used_bytes = m->layout.block_bytes - u.empty_bytes };
}

/* How much of what a head can hold is taken, in [0, 1]; NAN where nothing bounds it so. */
static double capacity_used(const struct fw_memory *m, const void *block, double rank, size_t n)
{
    struct fw_usage u = { 0 };

    if (m->rule->usage)
        m->rule->usage(m, block, &u);
    if (u.places)
        return (double)u.pairs / (double)u.places;
    return n ? rank / (double)n : (double)NAN;
}

int fw_memory_head_stats(const struct fw_memory *m, const void *block, uint32_t head,
                         struct fw_memory_head_stats *ret, double *spectrum, struct fw_err *err)
{
    struct fw_memory_head_stats s = { 0 };
    size_t rows = fw_memory_rows(m), n = rows < m->d_v ? rows : m->d_v;
    double *A = copy_state(m, block, head, &s), *sigma = calloc(n + 1, sizeof *sigma);
    int rc = -1;

    if (!A || !sigma) {
        fw_fail(err, FW_ENOMEM, "out_of_memory", "no memory to inspect a head");
        goto out;
    }
    residuals(m, block, head, &s);
    if (fw_covariance_condition(m, block, head, &s.covariance_condition, err) < 0)
        goto out;
    if (n && s.nonfinite == 0 && fw_singular_values(A, rows, m->d_v, sigma, err) < 0)
        goto out;
    s.effective_rank = effective_rank(sigma, n);
    s.capacity_used = capacity_used(m, block, s.effective_rank, n);
    if (spectrum)
        memcpy(spectrum, sigma, n * sizeof *sigma);
    *ret = s;
    rc = 0;
out:
    free(A);
    free(sigma);
    return rc;
}
