/* state.c - a head's place in a block, S_t as people see it, and why a state stays finite.
 *
 * Claim: from a block that validate accepts, no sequence of bodies that check accepts reaches a
 * float that is not finite. For one column s of a head, in exact arithmetic, a pair with
 * 0 <= beta |k|^2 < 2 gives s <- (I - beta k k')(g s) + beta v_j k. The matrix is never
 * expansive, g <= 1, and |beta v_j k| <= 1e6 sqrt(2 beta) < 1.5e9, since |v_j| and beta are at
 * most 1e6. So |s| grows by less than 1.5e9 a pair, and by rounding at most by the factor
 * 1 + (d_k + 5) 2^-23: over 4,096 pairs with d_k <= 4096 below e^2.1. That would compound for
 * ever. Therefore every 4,096 pairs, counted in the block so that it does not depend on how a
 * stream is cut, the pending pair is folded and elements are cut at 1e17; in between
 * |s| <= 8.2 (sqrt(d_k) 1e17 + 7e12) < 5.3e19 and |k_i e_j| < 2 |s| + 1.5e9, well inside the
 * bounds of validate, 1e21. A foreign block at these bounds stays below 1.1e24, its products
 * with keys and scaled queries (|q| <= 64e12) below 1e38. No sane stream comes near 1e17:
 * values of 1e6 on keys of length 1e-3 ask for 1e9. */
#include "config.h"

#include "rule.h"

#include <string.h>

#include "fastweight/num.h"

struct fw_head fw_memory_head(const struct fw_memory *m, const void *block, size_t head)
{
    /* through an integer, since one view serves readers and writers */
    char *base = (char *)(uintptr_t)block;

    return (struct fw_head){
        .d_k = m->d_k,
        .d_v = m->d_v,
        .S = (float *)(void *)(base + m->at_S) + head * m->d_k * m->d_v,
        .k = (float *)(void *)(base + m->at_k) + head * m->d_k,
        .e = (float *)(void *)(base + m->at_e) + head * m->d_v,
        .valid = base[m->at_valid + head] != 0,
    };
}

void fw_memory_set_valid(const struct fw_memory *m, void *block, size_t head, bool valid)
{
    ((char *)block)[m->at_valid + head] = (char)valid;
}

uint64_t fw_memory_saturate(const struct fw_memory *m, void *block, size_t head)
{
    struct fw_head h = fw_memory_head(m, block, head);
    uint64_t cut = 0;

    fw_num_kernels()->fold(&h, h.S);
    fw_memory_set_valid(m, block, head, false);
    for (size_t i = 0; i < m->d_k * m->d_v; i++) {
        float s = h.S[i];

        if (s > FW_SATURATE_AT || s < -FW_SATURATE_AT) {
            h.S[i] = s > 0 ? FW_SATURATE_AT : -FW_SATURATE_AT;
            cut++;
        }
    }
    return cut;
}

void fw_memory_state(const struct fw_memory *m, const void *block, float *ret)
{
    for (size_t head = 0; head < m->heads; head++) {
        struct fw_head h = fw_memory_head(m, block, head);

        fw_num_kernels()->fold(&h, ret + head * m->d_k * m->d_v);
    }
}

/* The largest |x|; infinite when one is not a number. */
static float largest(const float *x, size_t n)
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

static int bad(struct fw_err *err, const char *tensor, size_t head, const char *what)
{
    return fw_fail_param(err, FW_EINVAL, "bad_state", tensor, "%s of head %zu %s", tensor, head,
                         what);
}

static int check_head(const struct fw_memory *m, const void *block, size_t head,
                      struct fw_err *err)
{
    const char *base = block;
    struct fw_head h = fw_memory_head(m, block, head);
    unsigned char valid = (unsigned char)base[m->at_valid + head];
    float k = largest(h.k, m->d_k), e = largest(h.e, m->d_v);
    double log_g, residual;

    memcpy(&log_g, base + m->at_log_g + head * sizeof log_g, sizeof log_g);
    memcpy(&residual, base + m->at_residual + head * sizeof residual, sizeof residual);
    if (!(largest(h.S, m->d_k * m->d_v) <= FW_STATE_MAX))
        return bad(err, "S", head, "is out of bounds");
    if (valid > 1 || valid != (unsigned char)base[m->at_valid])
        return bad(err, "pending_valid", head, "is no flag");
    if (!valid && !(all_zero(h.k, m->d_k * sizeof *h.k) && all_zero(h.e, m->d_v * sizeof *h.e)))
        return bad(err, "pending_k", head, "holds a pair that is not valid");
    if (!(k <= FW_ELEMENT_MAX))
        return bad(err, "pending_k", head, "is out of bounds");
    if (!(e <= FW_ERROR_MAX) || (double)k * (double)e > (double)FW_STATE_MAX)
        return bad(err, "pending_e", head, "is out of bounds");
    if (!(log_g <= 0 && log_g >= -0x1p1000))
        return bad(err, "log_g_sum", head, "is out of bounds");
    if (!(residual >= 0 && residual <= 0x1p1000))
        return bad(err, "last_residual", head, "is out of bounds");
    return 0;
}

int fw_memory_validate(const struct fw_memory *m, const void *block, struct fw_err *err)
{
    for (size_t head = 0; head < m->heads; head++)
        if (check_head(m, block, head, err) < 0)
            return -1;
    return 0;
}
