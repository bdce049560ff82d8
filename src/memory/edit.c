/* edit.c - one association written exactly, or taken away: m(k*) = v*, with least change.
 *
 *     S += (C^-1 k*) (v* - S'k*)' / (k*' C^-1 k*)
 *
 * is the smallest change in the norm of C that makes S'k* = v* (ROME, 2202.05262, equation 2).
 * C is the covariance of the keys where the rule or the session keeps one (mesa.c,
 * covariance.c), so that keys of the past are disturbed least; else C = I, which is a delta
 * step of beta = 1 / |k*|^2. It is done twice: the second time writes what the first one's
 * rounding left. To forget a key is to write zero there; a rule that keeps sums over its pairs
 * can take one pair's share out of them instead.
 *
 * |k*| >= 1e-3 keeps that beta below 1e6, so that the bounds of state.c hold. Nothing is
 * counted as learned. The pending pair is folded; its key stays, with e = 0, as the last one
 * learned. */
#include "config.h"

#include "edit.h"

#include <stdio.h>
#include <string.h>

#include "cache.h"
#include "core.h"
#include "covariance.h"
#include "fastweight/fmath.h"
#include "fastweight/num.h"
#include "inside.h"
#include "probe.h"

#define SHORTEST 1e-3

/* ---- what a rule does */

void fw_edit_fold(const struct fw_memory *m, void *block, size_t head)
{
    struct fw_head h = fw_memory_head(m, block, head);

    if (!h.k || !h.valid)
        return;
    fw_num_kernels()->fold(&h, h.S);
    memset(h.e, 0, m->d_v * sizeof *h.e);
}

void fw_edit_cut(const struct fw_memory *m, void *block, size_t head)
{
    uint64_t *counter = fw_memory_at(block, m->at_counters);
    struct fw_head h = fw_memory_head(m, block, head);
    float limit = h.k ? FW_SATURATE_AT : FW_CLAMP_AT;

    counter[FW_COUNT_SATURATED] += fw_cut(h.S, m->rows * m->d_v, limit);
}

/* S += x (v - S'k)', the error into w. */
static void write_once(const struct fw_memory *m, float *S, struct fw_change *c)
{
    double p[FW_MAX_DIM] = { 0 };

    for (size_t i = 0; i < m->rows; i++)
        for (size_t j = 0; j < m->d_v; j++)
            p[j] += (double)c->k[i] * (double)S[i * m->d_v + j];
    for (size_t j = 0; j < m->d_v; j++) {
        p[j] = (double)c->v[j] - p[j];
        c->w[j] += p[j];
    }
    for (size_t i = 0; i < m->rows; i++)
        for (size_t j = 0; j < m->d_v; j++) {
            float *s = &S[i * m->d_v + j];

            *s = (float)((double)*s + c->x[i] * p[j]);
        }
}

static void write_matrix(const struct fw_memory *m, void *block, size_t head,
                         struct fw_change *c)
{
    double a = fw_covariance_solve(m, block, head, c->k, c->x);

    fw_edit_fold(m, block, head);
    for (size_t i = 0; i < m->rows; i++)
        c->x[i] /= a;
    for (int round = 0; round < 2; round++)
        write_once(m, fw_memory_head(m, block, head).S, c);
    fw_edit_cut(m, block, head);
}

/* NULL where m(k) = v cannot be written. */
static fw_edit_function *writer(const struct fw_memory *m)
{
    return m->rule->edit                        ? m->rule->edit
           : m->rule->read == fw_core_read_head ? write_matrix
                                                : NULL;
}

/* ---- the body */

struct parts { /* of a body; value NULL: zero */
    const struct fw_tensor *key, *value;
    bool forget;
};

static struct parts open_parts(const struct fw_tensors *in)
{
    struct parts p = { .forget = !fw_tensors_find(in, "edit.key") };

    p.key = fw_tensors_find(in, p.forget ? "forget.key" : "edit.key");
    p.value = fw_tensors_find(in, p.forget ? "forget.value" : "edit.value");
    return p;
}

/* (heads, d), with one head also (d,). The parameter is named as people sent it. */
static int check_tensor(const struct fw_memory *m, const struct fw_tensor *t, size_t in,
                        const char *name, struct fw_err *err)
{
    uint64_t d = in == FW_IN_KEYS ? m->d_k : m->d_v;
    bool full = t->ndim == 2 && t->shape[0] == m->heads && t->shape[1] == d;

    if (!full && !(m->heads == 1 && t->ndim == 1 && t->shape[0] == d))
        return fw_fail_param(err, FW_EINVAL, "bad_shape", name,
                             "%s must have the shape (%zu, %llu)", name, m->heads,
                             (unsigned long long)d);
    if (t->dtype != FW_F32)
        return fw_fail_param(err, FW_EINVAL, "bad_dtype", name, "%s must be F32, is %s", name,
                             fw_dtype_name(t->dtype));
    return fw_check_rows(m, in, name, t->data, m->heads, err);
}

static int missing(const char *name, struct fw_err *err)
{
    return fw_fail_param(err, FW_EINVAL, "missing_tensor", name, "%s is missing", name);
}

static int check_names(const struct fw_tensors *in, const struct parts *p, struct fw_err *err)
{
    if (!p->key)
        return missing("key", err);
    if (!p->value && !p->forget)
        return missing("value", err);
    if (in->count == 1u + (p->value != NULL))
        return 0;
    return fw_fail_param(err, FW_EINVAL, "unknown_tensor", "body",
                         "an edit takes one key and one value");
}

static int check_rule(const struct fw_memory *m, const struct parts *p, struct fw_err *err)
{
    const char *name = m->rule->name;

    if (!writer(m))
        return fw_fail_param(err, FW_EINVAL, "not_supported", "config.rule",
                             "rule %s has no matrix into which one pair could be written",
                             name);
    if (p->forget && p->value && !m->rule->take_out)
        return fw_fail_param(err, FW_EINVAL, "not_supported", "value",
                             "rule %s keeps no sums from which a pair could be taken; without "
                             "a value the key is made to read zero",
                             name);
    return 0;
}

int fw_memory_check_edit(const struct fw_memory *m, const struct fw_tensors *in,
                         struct fw_err *err)
{
    struct parts p = open_parts(in);
    float k[FW_MAX_DIM];

    if (check_names(in, &p, err) < 0 || check_rule(m, &p, err) < 0 ||
        check_tensor(m, p.key, FW_IN_KEYS, "key", err) < 0 ||
        (p.value && check_tensor(m, p.value, FW_IN_VALUES, "value", err) < 0))
        return -1;
    for (size_t head = 0; head < m->heads; head++) {
        fw_map_key(m, (const float *)p.key->data + head * m->d_k, k);
        if (!(fw_sum_squares(k, m->rows) >= SHORTEST * SHORTEST))
            return fw_fail_param(err, FW_EINVAL, "key_too_short", "key",
                                 "key of head %zu is shorter than %g: nothing can be written "
                                 "there",
                                 head, SHORTEST);
    }
    return 0;
}

/* ---- what it did */

static double dot_squared(const double *x, const float *k, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += x[i] * (double)k[i];
    return sum * sum;
}

/* The key that was learned last, mapped; zeros before the first. */
static const float *last_key(const struct fw_memory *m, const void *block, size_t head)
{
    size_t at = m->at_last_k != FW_NOWHERE ? m->at_last_k : m->at_k;

    return (const float *)fw_memory_at(block, at) + head * m->rows;
}

/* Sum of squares of what the probes read differently; *ret_count: how many they are. */
static double disturbance(const struct fw_memory *m, const void *block, size_t head,
                          const struct fw_tensor *probes, const struct fw_change *c,
                          size_t *ret_count)
{
    double sum = 0, ww = 0;
    float k[FW_MAX_DIM];

    for (size_t j = 0; j < m->d_v; j++)
        ww += c->w[j] * c->w[j];
    *ret_count = probes ? (size_t)probes->shape[0] : 1;
    if (!probes)
        return dot_squared(c->x, last_key(m, block, head), m->rows) * ww;
    for (size_t t = 0; t < *ret_count; t++) {
        fw_map_key(m, (const float *)probes->data + (t * m->heads + head) * m->d_k, k);
        sum += dot_squared(c->x, k, m->rows) * ww;
    }
    return sum;
}

static double change_squares(const struct fw_memory *m, const struct fw_change *c)
{
    double xx = 0, ww = 0;

    for (size_t i = 0; i < m->rows; i++)
        xx += c->x[i] * c->x[i];
    for (size_t j = 0; j < m->d_v; j++)
        ww += c->w[j] * c->w[j];
    return xx * ww;
}

static void read_key(const struct fw_memory *m, const void *block, size_t head, const float *k,
                     float *o)
{
    struct fw_reads r = { .n = 1, .q = k, .q_stride = m->rows, .o = o, .o_stride = m->d_v };

    m->rule->read(m, block, head, &r);
    if (m->cache)
        fw_cache_read(m, block, head, &r);
}

void fw_memory_edit(const struct fw_memory *m, void *block, const struct fw_tensors *in,
                    const struct fw_tensor *probes, struct fw_memory_edited *ret)
{
    struct parts p = open_parts(in);
    fw_edit_function *act = p.forget && p.value ? m->rule->take_out : writer(m);
    double x[FW_MAX_DIM], w[FW_MAX_DIM], changed = 0, disturbed = 0;
    float k[FW_MAX_DIM], zero[FW_MAX_DIM] = { 0 };
    size_t count = 1;

    for (size_t head = 0; head < m->heads; head++) {
        struct fw_change c = { .k = k, .v = zero, .x = x, .w = w };

        memset(x, 0, sizeof x);
        memset(w, 0, sizeof w);
        fw_map_key(m, (const float *)p.key->data + head * m->d_k, k);
        if (p.value)
            c.v = (const float *)p.value->data + head * m->d_v;
        if (ret)
            read_key(m, block, head, k, ret->before + head * m->d_v);
        act(m, block, head, &c);
        if (m->cache)
            fw_cache_drop(m, block, head, k);
        if (m->probes)
            fw_probe_drop(m, block, head, k);
        if (!ret)
            continue;
        read_key(m, block, head, k, ret->after + head * m->d_v);
        changed += change_squares(m, &c);
        disturbed += disturbance(m, block, head, probes, &c, &count);
    }
    if (ret) {
        ret->change_norm = fw_sqrt(changed);
        ret->disturbed = fw_sqrt(disturbed / (double)(count * m->heads * m->d_v));
    }
}
