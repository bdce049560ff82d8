#include "config.h"

#include "test_main.h"

#include <math.h>

#include "net.h"
#include "rules_testing.h"

/* The rules of networks against differences of their losses, in double, with libm: the model
 * here is written from the papers, its gradient by no formula. Every copy of the weights is
 * foretold for every token from the block before it. */

#define D       5
#define HIDDEN  6
#define N       41
#define TENSORS 5
#define MAX     (2 * D * HIDDEN + HIDDEN + 2 * D)

static const struct net_case {
    struct setup setup;
    size_t chunk, batch;
    bool ttt, fla, deep, norm;
} cases[] = {
    { { "ttt_linear", 1, D, D, { { "mini_batch", NULL, 3 } } },
      1,
      3,
      true,
      false,
      false,
      true },
    { { "ttt_linear", 1, D, D, { { "mini_batch", NULL, 4 }, { "variant", "fla", 0 } } },
      1,
      4,
      true,
      true,
      false,
      true },
    { { "ttt_mlp", 1, D, D, { { "mini_batch", NULL, 3 }, { "hidden", NULL, HIDDEN } } },
      1,
      3,
      true,
      false,
      true,
      true },
    { { "titans", 1, D, D, { { NULL, NULL, 0 } } }, 1, 1, false, false, false, false },
    { { "titans",
        1,
        D,
        D,
        { { "layer_norm", "true", 0 }, { "chunk", NULL, 2 }, { "batch", NULL, 4 } } },
      2,
      4,
      false,
      false,
      false,
      true },
    { { "titans",
        1,
        D,
        D,
        { { "depth", NULL, 2 }, { "hidden", NULL, HIDDEN }, { "batch", NULL, 3 } } },
      1,
      3,
      false,
      false,
      true,
      false },
    { { "titans",
        1,
        D,
        D,
        { { "depth", NULL, 2 },
          { "hidden", NULL, HIDDEN },
          { "layer_norm", "true", 0 },
          { "chunk", NULL, 3 } } },
      3,
      3,
      false,
      false,
      true,
      true },
};
#define CASES ((int)(sizeof cases / sizeof cases[0]))

struct weights { /* all tensors of one copy, end to end */
    double x[MAX];
    size_t at[TENSORS], n; /* MAX: absent */
};

struct session {
    const struct net_case *c;
    struct fw_memory *m;
    void *block;
    struct many b;
    struct weights now, start, grad, momentum;
};

static void read_copy(const struct session *s, const char *prefix, struct weights *w)
{
    static const char *const names[TENSORS] = { "W1", "b1", "W2", "b2", "gamma" };

    w->n = 0;
    for (size_t i = 0; i < TENSORS; i++) {
        char name[32];
        const struct fw_field *f;

        snprintf(name, sizeof name, "%s%s", prefix, i || s->c->deep ? names[i] : "S");
        f = fw_layout_find(fw_memory_layout(s->m), name);
        w->at[i] = f ? w->n : MAX;
        for (size_t j = 0; f && j < f->bytes / sizeof(float); j++)
            w->x[w->n++] = (double)((float *)field(s->m, s->block, name))[j];
    }
}

static void read_all(struct session *s)
{
    read_copy(s, "", &s->now);
    read_copy(s, "start_", &s->start);
    read_copy(s, "grad_", &s->grad);
    if (!s->c->ttt)
        read_copy(s, "momentum_", &s->momentum);
}

static const float *row(const struct session *s, const char *name, size_t t)
{
    for (size_t i = 0; i < s->b.in.count; i++)
        if (strcmp(s->b.item[i].name, name) == 0)
            return s->b.data[i] + t * many_count(&s->b, i) / N;
    return NULL;
}

static double number(const struct session *s, const char *name, size_t t)
{
    return (double)*row(s, name, t);
}

static void layer(const struct weights *w, size_t W, size_t b, const double *x, size_t in,
                  size_t out, double *y)
{
    for (size_t j = 0; j < out; j++) {
        y[j] = w->at[b] < MAX ? w->x[w->at[b] + j] : 0;
        for (size_t i = 0; i < in; i++)
            y[j] += x[i] * w->x[w->at[W] + i * out + j];
    }
}

static double gelu(double x, bool by_tanh)
{
    return by_tanh ? x / 2 * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)))
                   : x / 2 * (1 + erf(x / sqrt(2)));
}

static void normalise(double *z, double eps)
{
    double mean = 0, var = 0;

    for (size_t j = 0; j < D; j++)
        mean += z[j] / D;
    for (size_t j = 0; j < D; j++)
        var += (z[j] - mean) * (z[j] - mean) / D;
    for (size_t j = 0; j < D; j++)
        z[j] = (z[j] - mean) / sqrt(var + eps);
}

static double loss(const struct session *s, const struct weights *w, size_t t)
{
    const float *v = row(s, "values", t), *k = row(s, "keys", t);
    double x[D], h[HIDDEN], z[D], sum = 0;

    for (size_t i = 0; i < D; i++)
        x[i] = (double)k[i];
    layer(w, 0, 1, x, D, s->c->deep ? HIDDEN : D, s->c->deep ? h : z);
    for (size_t i = 0; s->c->deep && i < HIDDEN; i++)
        h[i] = gelu(h[i], s->c->ttt);
    if (s->c->deep)
        layer(w, 2, 3, h, HIDDEN, D, z);
    if (s->c->norm)
        normalise(z, s->c->ttt ? 1e-6 : 1e-5);
    for (size_t j = 0; j < D; j++) {
        double e = z[j] - (double)v[j];

        if (s->c->ttt)
            e = (double)row(s, "ln_weight", t)[j] * z[j] + (double)row(s, "ln_bias", t)[j] -
                ((double)v[j] - x[j]);
        else if (s->c->norm)
            e = z[j] * (1 + w->x[w->at[4] + j]) + x[j] - (double)v[j];
        sum += s->c->ttt ? e * e / 2 : e * e / D;
    }
    return sum;
}

static void add_gradient(const struct session *s, size_t t, double by, struct weights *g)
{
    struct weights w = s->start;
    double h = 1e-6;

    for (size_t i = 0; i < w.n; i++) {
        double keep = w.x[i], up, down;

        w.x[i] = keep + h;
        up = loss(s, &w, t);
        w.x[i] = keep - h;
        down = loss(s, &w, t);
        w.x[i] = keep;
        g->x[i] += by * (up - down) / (2 * h);
    }
}

static void foretell_ttt(struct session *s, size_t t)
{
    double rate = number(s, s->c->fla ? "eta" : "tau", t);

    for (size_t i = 0; i < s->now.n; i++)
        s->now.x[i] = s->start.x[i] - rate * s->grad.x[i];
}

static void foretell_titans(struct session *s, size_t t)
{
    double eta = number(s, "eta", t), keep = 1 - number(s, "alpha", t);

    for (size_t i = 0; i < s->now.n; i++) {
        s->momentum.x[i] = eta * s->momentum.x[i] - s->grad.x[i];
        s->now.x[i] = keep * s->now.x[i] + s->momentum.x[i];
        s->grad.x[i] = 0;
    }
}

static void foretell(struct session *s, size_t t)
{
    double by = s->c->fla ? 1 : number(s, s->c->ttt ? "lr" : "theta", t);

    add_gradient(s, t, by, &s->grad);
    if (s->c->ttt)
        foretell_ttt(s, t);
    else if ((t + 1) % s->c->chunk == 0)
        foretell_titans(s, t);
    if ((t + 1) % s->c->batch)
        return;
    s->start = s->now;
    memset(s->grad.x, 0, sizeof s->grad.x);
}

static void ck_same(const struct weights *want, const struct weights *got, const char *what,
                    size_t t)
{
    double top = 1, worst = 0;

    ck_assert_uint_eq(want->n, got->n);
    for (size_t i = 0; i < want->n; i++) {
        top = fmax(top, fabs(want->x[i]));
        worst = fmax(worst, fabs(want->x[i] - got->x[i]));
    }
    ck_assert_msg(worst <= 3e-6 * top, "%s of token %zu: off by %g of %g", what, t, worst, top);
}

START_TEST(every_token_moves_the_weights_as_the_differences_of_its_loss_say)
{
    struct session s = { .c = &cases[_i] }, after;

    ck_assert_int_eq(new_memory(&s.m, &s.c->setup, s.c->setup.rule, NULL), 0);
    make_many(&s.b, s.m, N, true, 5);
    s.block = new_block(s.m);
    for (size_t t = 0; t < N; t++) {
        read_all(&s);
        fw_memory_learn(s.m, s.block, &s.b.in, t, 1, NULL, NULL);
        after = s;
        read_all(&after);
        foretell(&s, t);
        ck_same(&s.grad, &after.grad, "gradient", t);
        ck_same(&s.now, &after.now, "weights", t);
        ck_same(&s.start, &after.start, "start", t);
        if (!s.c->ttt)
            ck_same(&s.momentum, &after.momentum, "momentum", t);
    }
    free_many(&s.b);
    free(s.block);
    fw_memory_free(s.m);
}
END_TEST

START_TEST(gelus_and_their_slopes_are_those_of_libm)
{
    double worst = 0, slopes = 0, relative = 0;

    for (int i = -60000; i <= 60000; i++) {
        double v = (double)(float)(i / 4096.0), exact = gelu(v, false), h = 1e-5;
        float x = (float)v, y = (float)v, slope, tanh_slope;

        fw_gelus()->exact(&x, &slope, 1);
        fw_gelus()->by_tanh(&y, &tanh_slope, 1);
        worst = fmax(worst, fmax(fabs((double)x - exact), fabs((double)y - gelu(v, true))) /
                                fmax(1, fabs(v)));
        if (v < 0 && v > -5)
            relative = fmax(relative, fabs((double)x / (v * erfc(-v / sqrt(2)) / 2) - 1));
        slopes = fmax(
            slopes, fabs((double)slope - (gelu(v + h, false) - gelu(v - h, false)) / (2 * h)));
        slopes = fmax(slopes, fabs((double)tanh_slope -
                                   (gelu(v + h, true) - gelu(v - h, true)) / (2 * h)));
    }
    ck_assert_double_le(worst, 7e-8);
    ck_assert_double_le(relative, 7e-8);
    ck_assert_double_le(slopes, 2e-7);
}
END_TEST

START_TEST(gelus_of_huge_numbers_are_finite)
{
    float x[4] = { 4e27f, -4e27f, 1e15f, -1e15f }, y[4], slope[4];

    memcpy(y, x, sizeof y);
    fw_gelus()->exact(x, slope, 4);
    ck_assert(x[0] == 4e27f && x[1] == 0 && x[3] == 0 && slope[0] == 1 && slope[1] == 0);
    fw_gelus()->by_tanh(y, slope, 4);
    ck_assert(y[0] == 4e27f && y[1] == 0 && y[3] == 0 && slope[0] == 1 && slope[1] == 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("memory/net");
    TCase *tc = tcase_create("net");

    fw_num_init();
    fw_num_thread();
    tcase_add_loop_test(tc, every_token_moves_the_weights_as_the_differences_of_its_loss_say, 0,
                        CASES);
    tcase_add_test(tc, gelus_and_their_slopes_are_those_of_libm);
    tcase_add_test(tc, gelus_of_huge_numbers_are_finite);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
