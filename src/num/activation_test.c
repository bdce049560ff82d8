#include "config.h"

#include "test_main.h"

#include <math.h>
#include <stdbool.h>

#include "fastweight/activation.h"
#include "fastweight/num.h"

/* Distance in units of the last place of the float nearest to `want`. */
static double ulps(float got, double want)
{
    double ulp = ldexp(1, (fabs(want) >= 0x1p-126 ? ilogb(want) : -126) - 23);

    return fabs((double)got - want) / ulp;
}

static double exact_sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static double exact_silu(double x)
{
    return x / (1 + exp(-x));
}

static double exact_softplus(double x)
{
    return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}

static double exact_gelu(double x)
{
    return 0.5 * x * erfc(-x * 0.70710678118654752440);
}

static double exact_gelu_tanh(double x)
{
    return x / (1 + exp(-2 * 0.79788456080286535588 * (x + 0.044715 * x * x * x)));
}

static const struct {
    const char *name;
    float (*f)(float x);
    double (*exact)(double x);
    double bound;
} functions[] = {
    { "sigmoid", fw_sigmoidf, exact_sigmoid, 4 },
    { "silu", fw_siluf, exact_silu, 4 },
    { "softplus", fw_softplusf, exact_softplus, 4 },
    { "tanh", fw_tanhf, tanh, 1 },
    { "gelu", fw_geluf, exact_gelu, 1 },
    { "gelu_tanh", fw_gelu_tanhf, exact_gelu_tanh, 1 },
};

START_TEST(results_are_close_in_units_of_the_last_place)
{
    double worst = 0;

    for (uint32_t u = 0x00800000u; u < 0x42ae0000u; u += 509) /* up to 87 */
        for (int sign = -1; sign <= 1; sign += 2) {
            float x = (float)sign * fw_unbitsf(u);
            double want = functions[_i].exact((double)x);

            if (fabs(want) >= 0x1.00001p-126)
                worst = fmax(worst, ulps(functions[_i].f(x), want));
        }
    ck_assert_msg(worst <= functions[_i].bound, "%s: %g ulp", functions[_i].name, worst);
}
END_TEST

START_TEST(edges_are_defined)
{
    static const float extreme[] = { 1e10f, 3e38f, INFINITY };

    for (size_t i = 0; i < 3; i++) {
        float x = extreme[i];

        ck_assert(fw_sigmoidf(x) == 1 && fw_sigmoidf(-x) == 0);
        ck_assert(fw_siluf(x) == x && fw_siluf(-x) == 0);
        ck_assert(fw_softplusf(x) == x && fw_softplusf(-x) == 0);
        ck_assert(fw_tanhf(x) == 1 && fw_tanhf(-x) == -1);
        ck_assert(fw_geluf(x) == x && fw_geluf(-x) == 0);
        ck_assert(fw_gelu_tanhf(x) == x && fw_gelu_tanhf(-x) == 0);
    }
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        ck_assert(isnan(functions[i].f(NAN)));
        ck_assert_double_le(fabs((double)functions[i].f(0) - functions[i].exact(0)), 1e-7);
    }
}
END_TEST

START_TEST(results_do_not_depend_on_flush_to_zero)
{
    static float y[2][6][4096];

    for (int flush = 0; flush < 2; flush++) {
        if (flush)
            fw_num_thread();
        for (uint32_t i = 0; i < 4096; i++)
            for (size_t j = 0; j < 6; j++)
                y[flush][j][i] = functions[j].f(fw_unbitsf(i << 20 | 0x12345));
    }
    for (size_t j = 0; j < 6; j++)
        for (size_t i = 0; i < 4096; i++) {
            float a = y[0][j][i], b = y[1][j][i];
            bool tiny = fabsf(a) < 0x1p-126f && fabsf(b) < 0x1p-126f;

            ck_assert_msg(tiny || a == b || (isnan(a) && isnan(b)), "%s", functions[j].name);
        }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("num/activation");
    TCase *tc = tcase_create("activation");

    fw_num_init();
    tcase_set_timeout(tc, 300);
    tcase_add_loop_test(tc, results_are_close_in_units_of_the_last_place, 0, 6);
    tcase_add_test(tc, edges_are_defined);
    tcase_add_test(tc, results_do_not_depend_on_flush_to_zero);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
