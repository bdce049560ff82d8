/* window.c - the window of the Omega rules, its gradient step and its safe step size.
 *
 * The largest eigenvalue of G = sum_i u_i k_i k_i' is that of the Gram matrix sqrt(u_i u_j)
 * k_i.k_j, at most the spectral radius of N_ij = u_i |k_i.k_j|, which no vector x > 0
 * underestimates: rho(N) <= max_i (N x)_i / x_i (Collatz and Wielandt). x = (1, .., 1) and then
 * x <- N x, a power iteration, brings that bound down to rho(N). Where keys correlate, which is
 * where a step is in danger, N is the Gram matrix itself; for 16 random keys of 64 elements the
 * bound is some 1.2 times too large. A plain power iteration would come from below: unsafe. */
#include "config.h"

#include "window.h"

#include <string.h>

#include "loops.h"
#include "steps.h"

#define ITERATIONS 8

static int add(struct fw_memory *m, const char *name, size_t rows, size_t inner, size_t *ret,
               struct fw_err *err)
{
    const uint64_t shape[3] = { m->heads, rows, inner };

    return fw_layout_add(&m->layout, name, FW_F32, inner ? 3 : 2, shape, ret, err);
}

int fw_window_plan(struct fw_memory *m, struct fw_config *c, struct fw_window_plan *p,
                   struct fw_err *err)
{
    size_t past;

    p->window = 16;
    if (fw_config_size(c, "window", 1, FW_WINDOW_MAX, &p->window, err) < 0)
        return -1;
    past = p->window - 1;
    if (past && (add(m, "window_k", past, m->rows, &p->at_k, err) < 0 ||
                 add(m, "window_v", past, m->d_v, &p->at_v, err) < 0 ||
                 add(m, "window_u", past, 0, &p->at_u, err) < 0))
        return -1;
    return 0;
}

/* Rows of the window of one head, each `inner` floats. */
static float *field(const void *block, size_t at, const struct fw_window_plan *p, size_t head,
                    size_t inner)
{
    return (float *)fw_memory_at(block, at) + head * (p->window - 1) * inner;
}

int fw_window_validate(const struct fw_memory *m, const struct fw_window_plan *p,
                       const void *block, size_t head, struct fw_err *err)
{
    size_t past = p->window - 1;
    const float *u;

    if (past == 0)
        return 0;
    if (!(fw_largest(field(block, p->at_k, p, head, m->rows), past * m->rows) <=
          FW_ELEMENT_MAX))
        return fw_bad_state(err, "window_k", head, "is out of bounds");
    if (!(fw_largest(field(block, p->at_v, p, head, m->d_v), past * m->d_v) <= FW_ELEMENT_MAX))
        return fw_bad_state(err, "window_v", head, "is out of bounds");
    u = field(block, p->at_u, p, head, 1);
    for (size_t i = 0; i < past; i++)
        if (!(u[i] >= 0 && u[i] <= 1))
            return fw_bad_state(err, "window_u", head, "is out of bounds");
    return 0;
}

void fw_window_open(const struct fw_memory *m, const struct fw_window_plan *p,
                    const void *block, size_t head, struct fw_window *w)
{
    w->n = p->window - 1;
    if (w->n == 0)
        return;
    for (size_t i = 0; i < w->n; i++) {
        w->k[i] = field(block, p->at_k, p, head, m->rows) + i * m->rows;
        w->v[i] = field(block, p->at_v, p, head, m->d_v) + i * m->d_v;
        w->u[i] = field(block, p->at_u, p, head, 1)[i];
    }
}

void fw_window_add(struct fw_window *w, const float *k, const float *v, float u)
{
    w->k[w->n] = k;
    w->v[w->n] = v;
    w->u[w->n++] = u;
}

static void shift(float *x, size_t rows, size_t inner, const float *newest)
{
    memmove(x, x + inner, (rows - 1) * inner * sizeof *x);
    memcpy(x + (rows - 1) * inner, newest, inner * sizeof *x);
}

void fw_window_push(const struct fw_memory *m, const struct fw_window_plan *p, void *block,
                    size_t head, const struct fw_window *w)
{
    size_t past = p->window - 1;

    if (past == 0)
        return;
    shift(field(block, p->at_k, p, head, m->rows), past, m->rows, w->k[past]);
    shift(field(block, p->at_v, p, head, m->d_v), past, m->d_v, w->v[past]);
    shift(field(block, p->at_u, p, head, 1), past, 1, &w->u[past]);
}

/* Within a span only the newest pair's products are new. */
static void update_gram(struct fw_window *w, size_t rows)
{
    size_t n = w->n, from = w->known ? n - 1 : 0;

    for (size_t i = 0; i < from; i++)
        memmove(w->gram + i * n, w->gram + (i + 1) * n + 1, (n - 1) * sizeof *w->gram);
    for (size_t i = from; i < n; i++)
        for (size_t j = 0; j <= i; j++) {
            float a = __builtin_fabsf(fw_loops()->dot(w->k[i], w->k[j], rows));

            w->gram[i * n + j] = w->gram[j * n + i] = a;
        }
    w->known = true;
}

/* One power iteration, x <- N x / bound; the bound that x gives. Where x has become zero N's
 * row is zero, which leaves the other eigenvalues as they are. */
static double iterate(const struct fw_window *w, double *x)
{
    double y[FW_WINDOW_MAX] = { 0 }, bound = 0;
    size_t n = w->n;

    for (size_t j = 0; j < n; j++)
        for (size_t i = 0; i < n; i++)
            y[i] += (double)w->gram[j * n + i] * x[j];
    for (size_t i = 0; i < n; i++) {
        y[i] *= (double)w->u[i];
        if (x[i] > 0 && y[i] > bound * x[i])
            bound = y[i] / x[i];
    }
    for (size_t i = 0; i < n && bound > 0; i++)
        x[i] = y[i] / bound;
    return bound;
}

void fw_window_start(struct fw_window *w)
{
    w->known = false;
}

float fw_window_safe_step(struct fw_window *w, size_t rows, float cap)
{
    double x[FW_WINDOW_MAX], bound = 0;

    update_gram(w, rows);
    for (size_t i = 0; i < w->n; i++)
        x[i] = 1;
    for (int i = 0; i < ITERATIONS; i++)
        bound = iterate(w, x);
    return bound * (double)cap > 1 ? (float)(1 / bound) : cap;
}

void fw_window_descend(const struct fw_memory *m, const struct fw_window *w,
                       const struct fw_descent *d, float *err)
{
    float e[FW_WINDOW_MAX * FW_PANEL];

    for (size_t at = 0; at < m->d_v; at += FW_PANEL) {
        size_t cols = m->d_v - at < FW_PANEL ? m->d_v - at : FW_PANEL;
        struct fw_panel S = { d->S, m->rows, m->d_v, at, cols }, to = S;

        to.A = d->to;
        fw_steps()->look(&S, d->decay, w->k, w->v, w->n, e);
        memcpy(err + at, e + (w->n - 1) * FW_PANEL, cols * sizeof *e);
        for (size_t i = 0; i < w->n; i++)
            fw_loops()->scale(d->rate * w->u[i], e + i * FW_PANEL, cols);
        for (size_t i = 0; i < w->n; i++)
            fw_loops()->clamp(e + i * FW_PANEL, cols, FW_ERROR_MAX);
        fw_steps()->write(&to, d->keep, w->k, e, w->n, FW_CLAMP_AT);
    }
}
