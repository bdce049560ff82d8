#include "config.h"

#include "test_main.h"

#include <math.h>

#include "rules_testing.h"

/* Rules that are gradient steps: what one pair changes in S must be minus the step size times
 * the gradient of the rule's loss at the decayed S. The gradient comes from differences of the
 * loss in double, never from a formula for it. */

#define D_K 5
#define D_V 4

enum loss { DOT, SQUARES, EACH_ELEMENT };

static const struct gradient {
    const char *rule;
    enum loss loss;
    const char *step;  /* the input that is the step size; NULL: 1 */
    const char *log_g; /* the input that decays first, or NULL */
    size_t pairs;
} gradients[] = {
    { "linear", DOT, NULL, NULL, 1 },
    { "linear_norm", DOT, NULL, NULL, 1 },
    { "retention", DOT, NULL, "log_g", 1 },
    { "gla", DOT, NULL, "log_g", 1 },
    { "mamba2", DOT, "dt", "A", 1 },
    { "delta", SQUARES, "beta", NULL, 1 },
    { "gated_delta", SQUARES, "beta", "log_g", 1 },
    { "kda", SQUARES, "beta", "log_g", 1 },
    { "delta_product", SQUARES, "beta", NULL, 3 },
    { "gated_delta_product", SQUARES, "beta", "log_g", 3 },
    { "longhorn", EACH_ELEMENT, NULL, NULL, 1 },
};
#define GRADIENTS ((int)(sizeof gradients / sizeof gradients[0]))

/* DOT: -<S'k, v>. SQUARES: |S'k - v|^2 / 2. EACH_ELEMENT: sum (k_i S_ij - v_j)^2 / 2. */
static double loss_of(enum loss loss, const double *S, const float *k, const float *v)
{
    double sum = 0;

    for (size_t j = 0; j < D_V; j++) {
        double p = 0;

        for (size_t i = 0; i < D_K; i++) {
            double ks = (double)k[i] * S[i * D_V + j];

            p += ks;
            if (loss == EACH_ELEMENT)
                sum += (ks - (double)v[j]) * (ks - (double)v[j]) / 2;
        }
        sum += loss == DOT       ? -p * (double)v[j]
               : loss == SQUARES ? (p - (double)v[j]) * (p - (double)v[j]) / 2
                                 : 0;
    }
    return sum;
}

static void descend(enum loss loss, double *S, const float *k, const float *v,
                    const double *step) /* (d_v,) */
{
    double from[D_K * D_V], h = 1e-4;

    memcpy(from, S, sizeof from);
    for (size_t i = 0; i < D_K * D_V; i++) {
        double keep = from[i], up, down;

        from[i] = keep + h;
        up = loss_of(loss, from, k, v);
        from[i] = keep - h;
        down = loss_of(loss, from, k, v);
        from[i] = keep;
        S[i] = keep - step[i % D_V] * (up - down) / (2 * h);
    }
}

static const float *row_of(const struct many *b, const char *name, size_t row, size_t inner)
{
    for (size_t i = 0; name && i < b->in.count; i++)
        if (strcmp(b->item[i].name, name) == 0)
            return b->data[i] + row * inner;
    return NULL;
}

static void step_of(const struct gradient *g, const struct many *b, size_t row, double *step)
{
    const float *given = row_of(b, g->step, row, 1);
    const float *dt = row_of(b, "dt", row, D_V), *bias = row_of(b, "dt_bias", row, D_V);
    const float *k = b->data[0] + row * D_K;
    double kk = 0;

    for (size_t i = 0; i < D_K; i++)
        kk += (double)k[i] * (double)k[i];
    for (size_t j = 0; j < D_V; j++) {
        step[j] = given ? (double)*given : 1;
        if (g->loss == EACH_ELEMENT) { /* the proximal step of longhorn */
            double x = 1 / (1 + exp(-(double)dt[j] - (double)bias[j]));

            step[j] = x / (1 + x * kk);
        }
    }
}

static void decay(const struct gradient *g, const struct fw_memory *m, const struct many *b,
                  size_t token, double *S)
{
    size_t inner = m->rule->traits & FW_CHANNELS ? D_K : 1;
    const float *log_g = row_of(b, g->log_g, token, inner), *dt = row_of(b, "dt", token, 1);

    for (size_t i = 0; log_g && i < D_K * D_V; i++) {
        double x = (double)log_g[inner == 1 ? 0 : i / D_V];

        S[i] *= exp(strcmp(g->log_g, "A") == 0 ? x * (double)*dt : x);
    }
}

START_TEST(a_pair_moves_the_state_down_the_gradient_of_its_loss)
{
    const struct gradient *g = &gradients[_i];
    struct setup s = { g->rule, 1, D_K, D_V, { { NULL, NULL, 0 } } };
    struct fw_memory *m;
    struct many b;
    float before[D_K * D_V], after[D_K * D_V];
    double S[D_K * D_V], step[D_V], worst = 0;
    void *block;

    if (g->pairs > 1) {
        s.config[0].key = "pairs_per_token";
        s.config[0].number = (double)g->pairs;
    }
    ck_assert_int_eq(new_memory(&m, &s, g->rule, NULL), 0);
    make_many(&b, m, 40, true, 77);
    block = new_block(m);
    for (size_t t = 0; t < b.n; t++) {
        fw_memory_state(m, block, before);
        fw_memory_learn(m, block, &b.in, t, 1, NULL, NULL);
        fw_memory_state(m, block, after);
        for (size_t i = 0; i < D_K * D_V; i++)
            S[i] = (double)before[i];
        decay(g, m, &b, t, S);
        for (size_t j = 0; j < g->pairs; j++) {
            size_t row = t * g->pairs + j;

            step_of(g, &b, row, step);
            descend(g->loss, S, b.data[0] + row * D_K, b.data[1] + row * D_V, step);
        }
        for (size_t i = 0; i < D_K * D_V; i++)
            worst = fmax(worst, fabs(S[i] - (double)after[i]));
    }
    ck_assert_double_le(worst, 2e-6);
    free_many(&b);
    free(block);
    fw_memory_free(m);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("memory/gradient");
    TCase *tc = tcase_create("gradient");

    fw_num_init();
    fw_num_thread();
    tcase_add_loop_test(tc, a_pair_moves_the_state_down_the_gradient_of_its_loss, 0, GRADIENTS);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
