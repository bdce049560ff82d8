/* inspect.c - one head's health, for people: computed on a copy of S_t in double, with LAPACK
 * for the spectrum. Nothing of it flows back into a state.
 *
 * The residual after the last pair's update follows from what the block keeps of it: with
 * err = v - S'k and e = beta err, v - S_t'k = err - |k|^2 e, so its norm is
 * | |err| - |k|^2 |e| |. Effective rank: exp(-sum p ln p), p = sigma_i / sum sigma (Roy and
 * Vetterli 2007). */
#include "config.h"

#include "rule.h"

#include <stdlib.h>
#include <string.h>

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

static void residuals(const struct fw_memory *m, const void *block, size_t head,
                      struct fw_memory_head_stats *s)
{
    struct fw_head h = fw_memory_head(m, block, head);
    const char *base = block;

    memcpy(&s->log_g_sum, base + m->at_log_g + head * sizeof(double), sizeof(double));
    memcpy(&s->residual_before, base + m->at_residual + head * sizeof(double), sizeof(double));
    s->residual_after =
        __builtin_fabs(s->residual_before -
                       fw_sum_squares(h.k, m->d_k) * fw_sqrt(fw_sum_squares(h.e, m->d_v)));
}

/* S_t of one head in double, or NULL. Counts what is not finite. */
static double *copy_state(const struct fw_memory *m, const void *block, size_t head,
                          struct fw_memory_head_stats *s)
{
    struct fw_head h = fw_memory_head(m, block, head);
    size_t n = m->d_k * m->d_v;
    float *f = malloc(n * sizeof *f);
    double *A = malloc(n * sizeof *A), sum = 0;

    if (f && A) {
        fw_num_kernels()->fold(&h, f);
        sum = fw_sum_squares(f, n);
        for (size_t i = 0; i < n; i++) {
            s->nonfinite += !__builtin_isfinite(f[i]);
            A[i] = (double)f[i];
        }
        s->norm = fw_sqrt(sum);
    } else {
        free(A);
        A = NULL;
    }
    free(f);
    return A;
}

int fw_memory_head_stats(const struct fw_memory *m, const void *block, uint32_t head,
                         struct fw_memory_head_stats *ret, double *spectrum, struct fw_err *err)
{
    struct fw_memory_head_stats s = { 0 };
    size_t n = m->d_k < m->d_v ? m->d_k : m->d_v;
    double *A = copy_state(m, block, head, &s), *sigma = calloc(n, sizeof *sigma);
    int rc = -1;

    if (!A || !sigma) {
        fw_fail(err, FW_ENOMEM, "out_of_memory", "no memory to inspect a head");
        goto out;
    }
    residuals(m, block, head, &s);
    if (s.nonfinite == 0 && fw_singular_values(A, m->d_k, m->d_v, sigma, err) < 0)
        goto out;
    s.effective_rank = effective_rank(sigma, n);
    if (spectrum)
        memcpy(spectrum, sigma, n * sizeof *sigma);
    *ret = s;
    rc = 0;
out:
    free(A);
    free(sigma);
    return rc;
}
