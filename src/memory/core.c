/* core.c - the shared step of the matrix rules, and the gates of state-space layers. */
#include "config.h"

#include "core.h"

#include <string.h>

#include "fastweight/fmath.h"
#include "fastweight/num.h"
#include "loops.h"

void fw_note_factor(const struct fw_memory *m, void *block, size_t head, float factor)
{
    double *sum = (double *)fw_memory_at(block, m->at_log_g) + head;

    if (factor != 1)
        *sum += factor > 0 ? fw_log((double)factor) : -1e6;
}

void fw_core_look(struct fw_head *h, const float *decay, const float *k, const float *v,
                  float *err)
{
    fw_loops()->sweep(h, decay, k, err);
    for (size_t j = 0; j < h->d_v; j++)
        err[j] = v[j] - err[j];
}

void fw_core_write(struct fw_head *h, const float *k, float scale, const float *x)
{
    memcpy(h->k, k, h->d_k * sizeof *k);
    for (size_t j = 0; j < h->d_v; j++)
        h->e[j] = scale * x[j];
    h->valid = true;
}

void fw_core_write_blindly(const struct fw_memory *m, void *block, size_t head,
                           const struct fw_span *s, const float *scale, const float *g)
{
    struct fw_head h = fw_memory_head(m, block, head);
    struct fw_pairs p = { .n = s->n,
                          .k = s->k.x,
                          .v = s->v.x,
                          .q = s->q.x,
                          .k_stride = s->k.stride,
                          .v_stride = s->v.stride,
                          .q_stride = s->q.stride,
                          .beta = scale,
                          .g = g,
                          .err = s->err,
                          .o = s->o,
                          .o_stride = s->o_stride,
                          .blind = true };

    m->kernels->delta(&h, &p);
    fw_memory_set_valid(m, block, head, h.valid);
}

/* The kernels want a pending pair, if only an invalid one. */
static void read_rows(const struct fw_head *h, const struct fw_reads *r)
{
    if (h->k) {
        fw_num_kernels()->read(h, r);
        return;
    }
    for (size_t t = 0; t < r->n; t++)
        fw_loops()->apply(h->S, h->d_k, h->d_v, r->q + t * r->q_stride, r->o + t * r->o_stride);
}

void fw_core_read(const struct fw_head *h, const struct fw_span *s, size_t t)
{
    struct fw_reads r = { .n = 1, .q_stride = h->d_k, .o_stride = h->d_v };

    if (!s->q.x)
        return;
    r.q = fw_row(s->q, t);
    r.o = s->o + t * s->o_stride;
    read_rows(h, &r);
}

void fw_core_read_head(const struct fw_memory *m, const void *block, size_t head,
                       const struct fw_reads *r)
{
    struct fw_head h = fw_memory_head(m, block, head);

    read_rows(&h, r);
}

float fw_softplus(float x)
{
    double e = fw_exp((double)x);

    if (x > 20)
        return x;
    return (float)(e < 1e-9 ? e : fw_log(1 + e));
}

void fw_sigmoids(const float *x, float *y, size_t n)
{
    for (size_t j = 0; j < n; j++)
        y[j] = -x[j];
    fw_loops()->exp(y, y, n);
    for (size_t j = 0; j < n; j++)
        y[j] = 1 / (1 + y[j]);
}

void fw_core_output(float *o, size_t n, const float *D, size_t d_stride, const float *x,
                    const float *z)
{
    float gate[FW_MAX_DIM];

    for (size_t j = 0; j < n; j++)
        o[j] = __builtin_fmaf(D[j * d_stride], x[j], o[j]);
    if (!z)
        return;
    fw_sigmoids(z, gate, n);
    for (size_t j = 0; j < n; j++)
        o[j] *= z[j] * gate[j];
}
