/* patch.c - what was learned between two states of a memory, as the factors of a difference.
 *
 *     S_T - diag(gamma) S_0 = U diag(s) V',   gamma = exp(log_g_sum_T - log_g_sum_0)
 *
 * per head, gamma one number or one per row of S. A rule that writes one rank per pair gives at
 * most as many ranks as pairs lie between. Where the decay is no diagonal matrix, or S is the
 * solution of a system, gamma is 1. The rank is the number of singular values above 1e-5 of the
 * largest. For people and other programs: LAPACK, nothing of it flows back into a state. Any
 * thread. */
#include "config.h"

#include "inside.h"

#include <stdlib.h>
#include <string.h>

#include "fastweight/fmath.h"
#include "fastweight/num.h"
#include "fastweight/safetensors.h"

#define CUT 1e-5

struct patch {
    size_t heads, rows, d_v, min, gammas; /* gammas: per head */
    float *S;                             /* scratch, (2, rows, d_v) */
    double *A, *u, *sigma, *vt;           /* scratch */
    double *gamma;                        /* (heads, gammas) */
    uint32_t *rank;                       /* (heads,) */
    float *U, *s, *V; /* (heads, rows, R), (heads, R), (heads, d_v, R); R: min, then widest */
};

static void free_patch(struct patch *p)
{
    free(p->S);
    free(p->A);
    free(p->u);
    free(p->sigma);
    free(p->vt);
    free(p->gamma);
    free(p->rank);
    free(p->U);
    free(p->s);
    free(p->V);
}

static int new_patch(struct patch *p, const struct fw_memory *m, struct fw_err *err)
{
    size_t n = m->rows * m->d_v, heads = m->heads;

    *p = (struct patch){ .heads = heads, .rows = m->rows, .d_v = m->d_v };
    p->min = m->rows < m->d_v ? m->rows : m->d_v;
    p->gammas = m->rule->traits & FW_CHANNELS ? m->rows : 1;
    p->S = calloc(2 * n, sizeof *p->S);
    p->A = calloc(n, sizeof *p->A);
    p->u = calloc(m->rows * p->min, sizeof *p->u);
    p->sigma = calloc(p->min, sizeof *p->sigma);
    p->vt = calloc(p->min * m->d_v, sizeof *p->vt);
    p->gamma = calloc(heads * p->gammas, sizeof *p->gamma);
    p->rank = calloc(heads, sizeof *p->rank);
    p->U = calloc(heads * m->rows * p->min, sizeof *p->U);
    p->s = calloc(heads * p->min, sizeof *p->s);
    p->V = calloc(heads * m->d_v * p->min, sizeof *p->V);
    if (p->S && p->A && p->u && p->sigma && p->vt && p->gamma && p->rank && p->U && p->s &&
        p->V)
        return 0;
    free_patch(p);
    return fw_fail(err, FW_ENOMEM, "out_of_memory", "no memory for a patch");
}

/* 1 where nothing decayed, or base is no state from before. */
static double decay(const struct fw_memory *m, const void *base, const void *block, size_t at)
{
    double from = ((const double *)fw_memory_at(base, m->at_log_g))[at];
    double to = ((const double *)fw_memory_at(block, m->at_log_g))[at];

    if (!(m->rule->traits & FW_MATRIX) || m->rule->traits & FW_UNDIAGONAL || !(to < from))
        return 1;
    return fw_exp(to - from);
}

static int factor(struct patch *p, const struct fw_memory *m, const void *base,
                  const void *block, size_t head, struct fw_err *err)
{
    double *gamma = p->gamma + head * p->gammas;
    float *S_0 = p->S, *S_T = p->S + p->rows * p->d_v;

    fw_memory_head_state(m, base, head, S_0);
    fw_memory_head_state(m, block, head, S_T);
    for (size_t i = 0; i < p->gammas; i++)
        gamma[i] = decay(m, base, block, head * p->gammas + i);
    for (size_t i = 0; i < p->rows * p->d_v; i++)
        p->A[i] = (double)S_T[i] - gamma[p->gammas > 1 ? i / p->d_v : 0] * (double)S_0[i];
    if (fw_singular_factors(p->A, p->rows, p->d_v, p->u, p->sigma, p->vt, err) < 0)
        return -1;
    for (size_t r = 0; r < p->min; r++)
        p->rank[head] += p->sigma[r] > CUT * p->sigma[0];
    for (size_t r = 0; r < p->rank[head]; r++) {
        p->s[head * p->min + r] = (float)p->sigma[r];
        for (size_t i = 0; i < p->rows; i++)
            p->U[(head * p->rows + i) * p->min + r] = (float)p->u[i * p->min + r];
        for (size_t j = 0; j < p->d_v; j++)
            p->V[(head * p->d_v + j) * p->min + r] = (float)p->vt[r * p->d_v + j];
    }
    return 0;
}

/* Rows of `from` numbers cut to their first `to`. */
static void narrow(float *x, size_t rows, size_t from, size_t to)
{
    for (size_t i = 0; i < rows; i++)
        memmove(x + i * to, x + i * from, to * sizeof *x);
}

static struct fw_tensor tensor(const char *name, enum fw_dtype dtype, const void *data,
                               const uint64_t shape[3])
{
    struct fw_tensor t = { .dtype = dtype, .data = data, .bytes = fw_dtype_bytes(dtype) };

    memcpy(t.name, name, strlen(name) + 1);
    for (; t.ndim < 3 && shape[t.ndim]; t.ndim++) {
        t.shape[t.ndim] = shape[t.ndim];
        t.bytes *= (size_t)shape[t.ndim];
    }
    return t;
}

static int write_patch(struct patch *p, const struct fw_memory *m, struct fw_buf *out,
                       struct fw_err *err)
{
    struct fw_meta meta[2] = { { "format", "fastweight patch" }, { "rule", "" } };
    struct fw_tensor item[5];
    struct fw_tensors ts = { 5, item };
    uint64_t H = p->heads, rows = p->rows, d_v = p->d_v, R = 1, g = p->gammas;

    for (size_t head = 0; head < H; head++)
        R = p->rank[head] > R ? p->rank[head] : R;
    narrow(p->U, p->heads * p->rows, p->min, (size_t)R);
    narrow(p->s, p->heads, p->min, (size_t)R);
    narrow(p->V, p->heads * p->d_v, p->min, (size_t)R);
    item[0] = tensor("U", FW_F32, p->U, (const uint64_t[3]){ H, rows, R });
    item[1] = tensor("s", FW_F32, p->s, (const uint64_t[3]){ H, R, 0 });
    item[2] = tensor("V", FW_F32, p->V, (const uint64_t[3]){ H, d_v, R });
    item[3] = tensor("gamma", FW_F64, p->gamma, (const uint64_t[3]){ H, g > 1 ? g : 0, 0 });
    item[4] = tensor("rank", FW_U32, p->rank, (const uint64_t[3]){ H, 0, 0 });
    memcpy(meta[1].value, m->rule->name, strlen(m->rule->name) + 1);
    return fw_safetensors_write(out, &ts, meta, 2, err);
}

int fw_memory_patch(const struct fw_memory *m, const void *base, const void *block,
                    struct fw_buf *out, struct fw_err *err)
{
    struct patch p;
    int rc;

    if (fw_memory_rows(m) == 0)
        return fw_fail_param(err, FW_EINVAL, "not_supported", "config.rule",
                             "rule %s has no matrix S to make a patch of", m->rule->name);
    if (new_patch(&p, m, err) < 0)
        return -1;
    rc = 0;
    for (size_t head = 0; rc == 0 && head < m->heads; head++)
        rc = factor(&p, m, base, block, head, err);
    if (rc == 0)
        rc = write_patch(&p, m, out, err);
    free_patch(&p);
    return rc;
}
