#include "config.h"

#include "test_main.h"

#include <math.h>
#include <stdbool.h>

#include "memory_testing.h"

/* What correlated keys do to a rule: one pass over 48 pairs of unit keys and values, then each
 * key must find its value among all. With a cosine of .5 between keys, rules of one step on one
 * pair lose half of them; a window with a safe step, momentum and a full solve do not. */

#define D     64
#define PAIRS 48
#define SEEDS 20

static double normal(uint64_t *seed)
{
    double sum = 0;

    for (int i = 0; i < 12; i++)
        sum += (double)next_float(seed);
    return sum / 2;
}

static void unit(double *x, uint64_t *seed)
{
    double sum = 0;

    for (size_t i = 0; i < D; i++) {
        x[i] = normal(seed);
        sum += x[i] * x[i];
    }
    for (size_t i = 0; i < D; i++)
        x[i] /= sqrt(sum);
}

/* Keys whose cosine is about `cosine`. */
static void make_pairs(float *k, float *v, double cosine, uint64_t *seed)
{
    double common[D], own[D];

    unit(common, seed);
    for (size_t t = 0; t < PAIRS; t++) {
        unit(own, seed);
        for (size_t i = 0; i < D; i++)
            k[t * D + i] = (float)(sqrt(cosine) * common[i] + sqrt(1 - cosine) * own[i]);
        unit(own, seed);
        for (size_t i = 0; i < D; i++)
            v[t * D + i] = (float)own[i];
    }
}

static size_t found(const float *values, const float *v)
{
    size_t right = 0;

    for (size_t t = 0; t < PAIRS; t++) {
        size_t best = 0;
        double top = -INFINITY;

        for (size_t c = 0; c < PAIRS; c++) {
            double sum = 0;

            for (size_t j = 0; j < D; j++)
                sum += (double)values[t * D + j] * (double)v[c * D + j];
            best = sum > top ? c : best;
            top = sum > top ? sum : top;
        }
        right += best == t;
    }
    return right;
}

struct method {
    const char *rule;
    struct {
        const char *key;
        double number;
    } config[2];
    double iid, corr, tolerance;
    bool unlimited;
};

static struct fw_memory *open_method(const struct method *x)
{
    struct fw_params p = { 0 }, full;
    struct fw_memory *m;

    fw_params_set_string(&p, "rule", x->rule, NULL);
    fw_params_set_string(&p, "key_norm", "l2", NULL);
    fw_params_set_number(&p, "heads", 1, NULL);
    for (size_t i = 0; i < 2 && x->config[i].key; i++)
        fw_params_set_number(&p, x->config[i].key, x->config[i].number, NULL);
    if (x->unlimited)
        fw_params_set_bool(&p, "limit_eta", 0, NULL);
    ck_assert_int_eq(fw_memory_new(&m, &p, &full, NULL), 0);
    return m;
}

static double top_1(const struct method *x, double cosine)
{
    struct fw_memory *m = open_method(x);
    void *block = make_block(m);
    float *k = malloc(3 * PAIRS * D * sizeof *k), *v = k + PAIRS * D, *o = v + PAIRS * D;
    const struct fw_tensor item[2] = {
        { "keys", FW_F32, 2, { PAIRS, D }, k, PAIRS * D * sizeof *k },
        { "values", FW_F32, 2, { PAIRS, D }, v, PAIRS * D * sizeof *v },
    };
    struct fw_tensor query = { "queries", FW_F32, 2, { PAIRS, D }, k, PAIRS * D * sizeof *k };
    struct fw_tensors body = { 2, (struct fw_tensor[2]){ item[0], item[1] } };
    struct fw_tensors queries = { 1, &query };
    size_t right = 0;

    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        uint64_t from = seed * 1000003;

        make_pairs(k, v, cosine, &from);
        fw_memory_init(m, block);
        fw_memory_learn(m, block, &body, 0, PAIRS, NULL, NULL);
        fw_memory_recall(m, block, &queries, 0, PAIRS, o);
        right += found(o, v);
    }
    free(k);
    free(block);
    fw_memory_free(m);
    return (double)right / (SEEDS * PAIRS);
}

static const struct method methods[] = {
    { "linear", { { NULL, 0 } }, 1.00, .14, .05, false },
    { "delta", { { "beta", 1 } }, .97, .35, .05, false },
    { "delta", { { "beta", .5 } }, 1.00, .40, .05, false },
    { "momentum", { { "theta", .2 }, { "eta", .8 } }, .97, .83, .05, false },
    { "omega", { { "window", 8 } }, .98, .97, .05, false },
    { "omega", { { "window", 16 } }, .99, .97, .05, false },
    { "omega", { { "window", 16 }, { "eta", .25 } }, .97, .02, .15, true }, /* > 2/lambda_max */
    { "mesa", { { "lambda", .01 } }, 1.00, 1.00, .005, false },
};

START_TEST(keys_of_cosine_one_half_are_told_apart)
{
    const struct method *x = &methods[_i];
    double iid = top_1(x, 0), corr = top_1(x, .5);

    ck_assert_double_eq_tol(iid, x->iid, x->tolerance);
    ck_assert_double_eq_tol(corr, x->corr, x->tolerance);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("memory/correlated");
    TCase *tc = tcase_create("correlated");

    fw_num_init();
    fw_num_thread();
    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, keys_of_cosine_one_half_are_told_apart, 0,
                        (int)(sizeof methods / sizeof methods[0]));
    suite_add_tcase(s, tc);
    return run_suite(s);
}
