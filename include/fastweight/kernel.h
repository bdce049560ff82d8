/* fastweight/kernel.h - the loops of the associative memories, one table per CPU level.
 *
 * A head is S (d_k, d_v), row-major, and a pending pair: S_t[i][j] = fma(k_i, e_j, S_ij) when
 * valid, else S_ij. The fold of the pending pair, the decay and the product S'k are one pass
 * over S. Every output column is a chain of fma over i in order, so columns may be cut into
 * panels at will and all levels agree to the bit. Calls allocate nothing and use at most 80 KiB
 * of stack; the thread has called fw_num_thread(). */
#ifndef FW_KERNEL_H
#define FW_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fastweight/level.h"

struct fw_head { /* borrowed from a state block */
    size_t d_k, d_v;
    float *S;   /* (d_k, d_v) */
    float *k;   /* (d_k,) pending */
    float *e;   /* (d_v,) pending */
    bool valid; /* is there a pending pair */
};

struct fw_pairs { /* n pairs of one head; rows lie `stride` floats apart */
    size_t n;
    const float *k, *v, *q; /* (n, d_k), (n, d_v), (n, d_k); q NULL: no reads */
    size_t k_stride, v_stride, q_stride;
    const float *beta, *g; /* (n,); g NULL: no decay */
    float *err;            /* (n, d_v), written: v - S'k of each pair */
    float *o;              /* (n, d_v), written when q is given: S_t'q after each pair */
    size_t o_stride;
    bool blind; /* pending = (k, beta v): written without looking */
};

struct fw_reads { /* n queries of one head */
    size_t n;
    const float *q; /* (n, d_k) */
    size_t q_stride;
    float *o; /* (n, d_v), written */
    size_t o_stride;
};

#define FW_TOKEN_COLUMNS 2048 /* d_v of a token, at most */

struct fw_token { /* one pair of every head; the heads follow each other in each array */
    size_t heads, d_k, d_v;
    float *S, *pending_k, *pending_e; /* (heads, d_k, d_v), (heads, d_k), (heads, d_v) */
    unsigned char *valid;             /* (heads,) */
    const float *k, *v;               /* (heads, d_k), (heads, d_v) */
    const float *beta, *g;            /* (heads,); g NULL: no decay */
    double *residual;                 /* (heads,), written: |v - S'k| */
    uint64_t turn; /* odd: the last head first, which suits the caches and changes no bit */
};

struct fw_kernels {
    /* For each pair: S = g S_t, err = v - S'k, pending = (k, beta err), or (k, beta v). n > 0;
     * k, v and q must not overlap the head. */
    void (*delta)(struct fw_head *h, const struct fw_pairs *p);
    /* o[t] = S_t'q[t]; the head stands still. */
    void (*read)(const struct fw_head *h, const struct fw_reads *r);
    /* S_t into out (d_k, d_v), which may be h->S. */
    void (*fold)(const struct fw_head *h, float *out);
    /* As delta with n = 1 and no reads for each head. */
    void (*token)(const struct fw_token *t);
};

extern const struct fw_kernels fw_kernels_base; /* plain loops: the reference */
extern const struct fw_kernels fw_kernels_v3;   /* where HAVE_V3 */
const struct fw_kernels *fw_num_kernels(void);  /* of the level chosen by fw_num_init */

#endif
