#include "config.h"

#include "test_main.h"

#include <math.h>

#include "rules_testing.h"

/* Rules that descend on a window, with momentum, on Huber's loss, or to a minimum: what a pair
 * changes must follow from the gradient of the rule's loss. The gradient comes from differences
 * of that loss in double, never from a formula for it. */

#define D_K    5
#define D_V    4
#define SIZE   (D_K * D_V)
#define N      60
#define WINDOW 3

struct stream {
    const struct many *b;
    size_t from, to; /* pairs of the loss: [from, to) */
};

typedef double (*loss_fn)(const struct stream *s, const double *S);

/* Row t of an input, one head. */
static const float *row_of(const struct many *b, const char *name, size_t t, size_t inner)
{
    for (size_t i = 0; i < b->in.count; i++)
        if (strcmp(b->item[i].name, name) == 0)
            return b->data[i] + t * inner;
    return NULL;
}

static double number(const struct many *b, const char *name, size_t t)
{
    return (double)*row_of(b, name, t, 1);
}

/* |S'k - v|^2 of pair t. */
static double squares(const struct many *b, const double *S, size_t t)
{
    const float *k = row_of(b, "keys", t, D_K), *v = row_of(b, "values", t, D_V);
    double sum = 0;

    for (size_t j = 0; j < D_V; j++) {
        double e = -(double)v[j];

        for (size_t i = 0; i < D_K; i++)
            e += (double)k[i] * S[i * D_V + j];
        sum += e * e;
    }
    return sum;
}

static double one_pair(const struct stream *s, const double *S)
{
    return squares(s->b, S, s->to - 1) / 2;
}

static double window(const struct stream *s, const double *S)
{
    double sum = 0;

    for (size_t t = s->from; t < s->to; t++)
        sum += number(s->b, "u", t) * squares(s->b, S, t) / 2;
    return sum;
}

static double huber(const struct stream *s, const double *S)
{
    double norm = sqrt(squares(s->b, S, s->to - 1)), delta = number(s->b, "delta", s->to - 1);

    return norm <= delta ? norm * norm / 2 : delta * norm - delta * delta / 2;
}

/* Half of what the Mesa layer minimises. */
static double ridge(const struct stream *s, const double *S)
{
    const float *lambda = row_of(s->b, "lambda", s->to - 1, D_K);
    double sum = 0;

    for (size_t t = s->from; t < s->to; t++)
        sum = exp(number(s->b, "log_g", t)) * sum +
              number(s->b, "beta", t) * squares(s->b, S, t) / 2;
    for (size_t i = 0; i < SIZE; i++)
        sum += (double)lambda[i / D_V] * S[i] * S[i] / 2;
    return sum;
}

static void gradient(loss_fn loss, const struct stream *s, const double *S, double *g)
{
    double at[SIZE], h = 1e-5;

    memcpy(at, S, sizeof at);
    for (size_t i = 0; i < SIZE; i++) {
        double up, down;

        at[i] = S[i] + h;
        up = loss(s, at);
        at[i] = S[i] - h;
        down = loss(s, at);
        at[i] = S[i];
        g[i] = (up - down) / (2 * h);
    }
}

struct session {
    struct fw_memory *m;
    struct many b;
    void *block;
    double S[SIZE], Z[SIZE], g[SIZE], worst; /* before the pair */
    struct stream s;
};

static void open_session(struct session *x, const char *rule)
{
    struct setup s = { rule, 1, D_K, D_V, { { NULL, NULL, 0 } } };

    *x = (struct session){ .m = NULL };
    if (strncmp(rule, "omega", 5) == 0) {
        s.config[0].key = "window";
        s.config[0].number = WINDOW;
    }
    ck_assert_int_eq(new_memory(&x->m, &s, rule, NULL), 0);
    make_many(&x->b, x->m, N, true, 91);
    x->block = new_block(x->m);
    x->s.b = &x->b;
}

static void close_session(struct session *x)
{
    ck_assert_double_lt(x->worst, 2e-6);
    free_many(&x->b);
    free(x->block);
    fw_memory_free(x->m);
}

static void read_state(const struct session *x, double *S, double *Z)
{
    float f[SIZE];

    fw_memory_state(x->m, x->block, f);
    for (size_t i = 0; i < SIZE; i++)
        S[i] = (double)f[i];
    if (!fw_layout_find(fw_memory_layout(x->m), "momentum"))
        return;
    memcpy(f, field(x->m, x->block, "momentum"), sizeof f);
    for (size_t i = 0; i < SIZE; i++)
        Z[i] = (double)f[i];
}

/* Learns pair t; S and Z become what was before it. */
static void step(struct session *x, size_t t, double *S, double *Z)
{
    x->s.to = t + 1;
    x->s.from = t + 1 > WINDOW ? t + 1 - WINDOW : 0;
    read_state(x, x->S, x->Z);
    fw_memory_learn(x->m, x->block, &x->b.in, t, 1, NULL, NULL);
    read_state(x, S, Z);
}

static void expect(struct session *x, const double *got, const double *want)
{
    for (size_t i = 0; i < SIZE; i++)
        x->worst = fmax(x->worst, fabs(got[i] - want[i]));
}

/* S = alpha S - eta grad L(alpha S) */
static void ck_decays_first(const char *rule, loss_fn loss)
{
    struct session x;
    double S[SIZE], Z[SIZE];

    open_session(&x, rule);
    for (size_t t = 0; t < N; t++) {
        step(&x, t, S, Z);
        for (size_t i = 0; i < SIZE; i++)
            x.S[i] *= number(&x.b, "alpha", t);
        gradient(loss, &x.s, x.S, x.g);
        for (size_t i = 0; i < SIZE; i++)
            x.S[i] -= number(&x.b, "eta", t) * x.g[i];
        expect(&x, S, x.S);
    }
    close_session(&x);
}

START_TEST(omega_descends_on_its_window_after_the_decay)
{
    ck_decays_first("omega", window);
}
END_TEST

START_TEST(huber_descends_on_both_branches_of_its_loss)
{
    ck_decays_first("huber", huber);
}
END_TEST

START_TEST(momentum_gathers_gradients_at_the_undecayed_state)
{
    struct session x;
    double S[SIZE], Z[SIZE];

    open_session(&x, "momentum");
    for (size_t t = 0; t < N; t++) {
        step(&x, t, S, Z);
        gradient(one_pair, &x.s, x.S, x.g);
        for (size_t i = 0; i < SIZE; i++) {
            x.Z[i] = number(&x.b, "eta", t) * x.Z[i] - number(&x.b, "theta", t) * x.g[i];
            x.S[i] = (1 - number(&x.b, "alpha", t)) * x.S[i] + x.Z[i];
        }
        expect(&x, Z, x.Z);
        expect(&x, S, x.S);
    }
    close_session(&x);
}
END_TEST

START_TEST(omega_muon_gathers_gradients_of_its_window)
{
    struct session x;
    double S[SIZE], Z[SIZE];

    open_session(&x, "omega_muon");
    for (size_t t = 0; t < N; t++) {
        step(&x, t, S, Z);
        gradient(window, &x.s, x.S, x.g);
        for (size_t i = 0; i < SIZE; i++)
            x.Z[i] = number(&x.b, "theta", t) * x.Z[i] + x.g[i];
        expect(&x, Z, x.Z);
    }
    close_session(&x);
}
END_TEST

START_TEST(mesa_stands_at_the_minimum_of_its_loss)
{
    struct session x;
    double S[SIZE], Z[SIZE];
    const double zero[SIZE] = { 0 };

    open_session(&x, "mesa");
    for (size_t t = 0; t < x.b.in.count; t++) /* lambda in [0.1, 1.1) */
        for (size_t i = 0; strcmp(x.b.item[t].name, "lambda") == 0 && i < N * D_K; i++)
            x.b.data[t][i] += 0.1f;
    for (size_t t = 0; t < N; t++) {
        step(&x, t, S, Z);
        x.s.from = 0;
        gradient(ridge, &x.s, S, x.g);
        expect(&x, x.g, zero);
    }
    close_session(&x);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("memory/descent");
    TCase *tc = tcase_create("descent");

    fw_num_init();
    fw_num_thread();
    tcase_add_test(tc, omega_descends_on_its_window_after_the_decay);
    tcase_add_test(tc, huber_descends_on_both_branches_of_its_loss);
    tcase_add_test(tc, momentum_gathers_gradients_at_the_undecayed_state);
    tcase_add_test(tc, omega_muon_gathers_gradients_of_its_window);
    tcase_add_test(tc, mesa_stands_at_the_minimum_of_its_loss);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
