/* state.c - a head's place in a block, S_t as people see it, and why a state stays finite.
 *
 * Claim: from a block that validate accepts, no sequence of bodies that check accepts reaches a
 * float that is not finite. Delta steps: for one column s, in exact arithmetic, a pair with
 * 0 <= beta |k|^2 < 2 gives s <- (I - beta k k')(g s) + beta v_j k. The matrix is never
 * expansive, g <= 1, and |beta v_j k| <= 1e6 sqrt(2 beta) < 1.5e9, since |v_j| and beta are at
 * most 1e6. So |s| grows by less than 1.5e9 a pair, and by rounding at most by the factor
 * 1 + (d_k + 5) 2^-23: over 4,096 pairs with d_k <= 4096 below e^2.1. That would compound for
 * ever. Therefore every 4,096 pairs, counted in the block so that it does not depend on how a
 * stream is cut, the pending pair is folded and elements are cut at 1e17; in between
 * |s| <= 8.2 (sqrt(d_k) 1e17 + 7e12) < 5.3e19 and |k_i e_j| < 2 |s| + 1.5e9, well inside the
 * bounds of validate, 1e21. A foreign block at these bounds stays below 1.1e24, its products
 * with keys and scaled queries (|q| <= 64e12) below 1e38. No sane stream comes near 1e17:
 * values of 1e6 on keys of length 1e-3 ask for 1e9. Several pairs per token: the cut comes
 * after 4,096 pairs all the same. Rules that write without looking add at most 1e12 a pair
 * (2e15 with the dt of mamba2), so 4,096 of them stay below 1e19. Rules whose step may lengthen
 * S cut it after each pair (their files). Mapped keys are at most 1e6, too: feature.c. */
#include "config.h"

#include "inside.h"

#include <string.h>

#include "cache.h"
#include "covariance.h"
#include "fastweight/num.h"
#include "probe.h"

struct fw_head fw_memory_head(const struct fw_memory *m, const void *block, size_t head)
{
    struct fw_head h = { .d_k = m->rows, .d_v = m->d_v };

    h.S = (float *)fw_memory_at(block, m->at_S) + head * m->rows * m->d_v;
    if (m->at_k == FW_NOWHERE)
        return h;
    h.k = (float *)fw_memory_at(block, m->at_k) + head * m->rows;
    h.e = (float *)fw_memory_at(block, m->at_e) + head * m->d_v;
    h.valid = ((const char *)block)[m->at_valid + head] != 0;
    return h;
}

void fw_memory_set_valid(const struct fw_memory *m, void *block, size_t head, bool valid)
{
    ((char *)block)[m->at_valid + head] = (char)valid;
}

void fw_memory_add_gates(const struct fw_memory *m, void *block, size_t head, struct fw_rows g,
                         size_t n)
{
    size_t d = m->rule->traits & FW_CHANNELS ? m->rows : 1;
    double *sum = (double *)fw_memory_at(block, m->at_log_g) + head * d;

    for (size_t t = 0; t < n; t++)
        for (size_t i = 0; i < d; i++)
            sum[i] += (double)g.x[t * g.stride + i];
}

uint64_t fw_cut(float *x, size_t n, float limit)
{
    uint64_t cut = 0;

    for (size_t i = 0; i < n; i++)
        if (x[i] > limit || x[i] < -limit) {
            x[i] = x[i] > 0 ? limit : -limit;
            cut++;
        }
    return cut;
}

uint64_t fw_memory_saturate(const struct fw_memory *m, void *block, size_t head)
{
    uint64_t cut = m->rule->saturate ? m->rule->saturate(m, block, head) : 0;
    struct fw_head h;

    if (m->at_S == FW_NOWHERE)
        return cut;
    h = fw_memory_head(m, block, head);
    if (h.k) {
        fw_num_kernels()->fold(&h, h.S);
        fw_memory_set_valid(m, block, head, false);
    }
    return cut + fw_cut(h.S, m->rows * m->d_v, FW_SATURATE_AT);
}

void fw_memory_head_state(const struct fw_memory *m, const void *block, size_t head, float *out)
{
    struct fw_head h;

    if (m->rule->state) {
        m->rule->state(m, block, head, out);
        return;
    }
    if (m->at_S == FW_NOWHERE)
        return;
    h = fw_memory_head(m, block, head);
    if (h.k)
        fw_num_kernels()->fold(&h, out);
    else
        memcpy(out, h.S, m->rows * m->d_v * sizeof *out);
}

void fw_memory_state(const struct fw_memory *m, const void *block, float *ret)
{
    for (size_t head = 0; head < m->heads; head++)
        fw_memory_head_state(m, block, head, ret + head * m->rows * m->d_v);
}

float fw_largest(const float *x, size_t n)
{
    float max = 0;

    for (size_t i = 0; i < n; i++) {
        float a = __builtin_fabsf(x[i]);

        max = a <= max ? max : a;
        if (a != a)
            return __builtin_inff();
    }
    return max;
}

static int all_zero(const void *x, size_t bytes)
{
    const unsigned char *b = x;

    for (size_t i = 0; i < bytes; i++)
        if (b[i])
            return 0;
    return 1;
}

int fw_bad_state(struct fw_err *err, const char *tensor, size_t head, const char *what)
{
    return fw_fail_param(err, FW_EINVAL, "bad_state", tensor, "%s of head %zu %s", tensor, head,
                         what);
}

static int check_pending(const struct fw_memory *m, const void *block, size_t head,
                         struct fw_err *err)
{
    struct fw_head h = fw_memory_head(m, block, head);
    const unsigned char *valid = fw_memory_at(block, m->at_valid);
    float k = fw_largest(h.k, m->rows), e = fw_largest(h.e, m->d_v);

    if (valid[head] > 1 || valid[head] != valid[0])
        return fw_bad_state(err, "pending_valid", head, "is no flag");
    if (!h.valid &&
        !(all_zero(h.k, m->rows * sizeof *h.k) && all_zero(h.e, m->d_v * sizeof *h.e)))
        return fw_bad_state(err, "pending_k", head, "holds a pair that is not valid");
    if (!(k <= FW_ELEMENT_MAX))
        return fw_bad_state(err, "pending_k", head, "is out of bounds");
    if (!(e <= FW_ERROR_MAX) || (double)k * (double)e > (double)FW_STATE_MAX)
        return fw_bad_state(err, "pending_e", head, "is out of bounds");
    return 0;
}

static int check_sums(const struct fw_memory *m, const void *block, size_t head,
                      struct fw_err *err)
{
    size_t d = m->rule->traits & FW_CHANNELS ? m->rows : 1;
    const double *log_g = (const double *)fw_memory_at(block, m->at_log_g) + head * d;
    double residual = ((const double *)fw_memory_at(block, m->at_residual))[head];

    for (size_t i = 0; i < d; i++)
        if (!(log_g[i] <= 0 && log_g[i] >= -0x1p1000))
            return fw_bad_state(err, "log_g_sum", head, "is out of bounds");
    if (!(residual >= 0 && residual <= 0x1p1000))
        return fw_bad_state(err, "last_residual", head, "is out of bounds");
    return 0;
}

static int check_last(const struct fw_memory *m, const void *block, size_t head,
                      struct fw_err *err)
{
    const float *k = (const float *)fw_memory_at(block, m->at_last_k) + head * m->rows;
    const float *v = (const float *)fw_memory_at(block, m->at_last_v) + head * m->d_v;

    if (!(fw_largest(k, m->rows) <= FW_ELEMENT_MAX))
        return fw_bad_state(err, "last_k", head, "is out of bounds");
    if (!(fw_largest(v, m->d_v) <= FW_ELEMENT_MAX))
        return fw_bad_state(err, "last_v", head, "is out of bounds");
    return 0;
}

static int check_head(const struct fw_memory *m, const void *block, size_t head,
                      struct fw_err *err)
{
    if (m->at_S != FW_NOWHERE &&
        !(fw_largest(fw_memory_head(m, block, head).S, m->rows * m->d_v) <= FW_STATE_MAX))
        return fw_bad_state(err, "S", head, "is out of bounds");
    if (m->at_k != FW_NOWHERE && check_pending(m, block, head, err) < 0)
        return -1;
    if (check_sums(m, block, head, err) < 0)
        return -1;
    if (m->at_last_k != FW_NOWHERE && check_last(m, block, head, err) < 0)
        return -1;
    if (m->rule->validate && m->rule->validate(m, block, head, err) < 0)
        return -1;
    if (m->cache && fw_cache_validate(m, block, head, err) < 0)
        return -1;
    if (m->at_covariance != FW_NOWHERE && fw_covariance_validate(m, block, head, err) < 0)
        return -1;
    return m->probes ? fw_probe_validate(m, block, head, err) : 0;
}

int fw_memory_validate(const struct fw_memory *m, const void *block, struct fw_err *err)
{
    for (size_t head = 0; head < m->heads; head++)
        if (check_head(m, block, head, err) < 0)
            return -1;
    return 0;
}
