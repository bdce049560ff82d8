/* delta.c - the delta rule and its gated form.
 *
 *     delta:        S_t = S_{t-1} + k e',            e = beta (v - S_{t-1}'k)
 *     gated_delta:  S_t = g S_{t-1} + k e',          e = beta (v - g S_{t-1}'k),  g =
 * exp(log_g)
 *
 * Sources: Schlag et al. 2102.11174 and Yang et al. 2406.06484; Gated DeltaNet 2412.06464,
 * which decays first and reads the decayed state. For beta |k|^2 < 2 the step never lengthens
 * S. The last pair stays pending (fastweight/kernel.h); g is exactly 1 for log_g = 0. */
#include "config.h"

#include "rule.h"

#include "fastweight/fmath.h"
#include "fastweight/num.h"

static void delta_learn(const struct fw_memory *m, void *block, size_t head,
                        const struct fw_span *s)
{
    struct fw_head h = fw_memory_head(m, block, head);
    float g[FW_SPAN];
    struct fw_pairs p = { s->n,        s->k,        s->v,
                          s->q,        s->k_stride, s->v_stride,
                          s->q_stride, s->beta,     s->log_g ? g : NULL,
                          s->err,      s->o,        s->o_stride };

    for (size_t t = 0; s->log_g && t < s->n; t++)
        g[t] = fw_expf(s->log_g[t]);
    fw_num_kernels()->delta(&h, &p);
    fw_memory_set_valid(m, block, head, h.valid);
}

static void delta_read(const struct fw_memory *m, const void *block, size_t head,
                       const struct fw_reads *r)
{
    struct fw_head h = fw_memory_head(m, block, head);

    fw_num_kernels()->read(&h, r);
}

#define NEEDS (FW_BIT(FW_IN_KEYS) | FW_BIT(FW_IN_VALUES))
#define TAKES (NEEDS | FW_BIT(FW_IN_QUERIES) | FW_BIT(FW_IN_BETA))

const struct fw_rule fw_rule_delta = { "delta", TAKES, NEEDS, delta_learn, delta_read };
const struct fw_rule fw_rule_gated_delta = { "gated_delta", TAKES | FW_BIT(FW_IN_LOG_G), NEEDS,
                                             delta_learn, delta_read };
