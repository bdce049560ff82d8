#include "config.h"

#include "test_main.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "fastweight/fmath.h"
#include "fastweight/num.h"
#include "fmath_copy.h"

#define N 4096

static uint64_t next(uint64_t *s) /* splitmix64 */
{
    uint64_t z = *s += 0x9e3779b97f4a7c15u;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static double uniform(uint64_t *s, double lo, double hi)
{
    return lo + (hi - lo) * (double)(next(s) >> 11) * 0x1p-53;
}

/* Distance in units of the last place of a result whose exact value is `want`. */
static double ulps_f(float got, double want)
{
    double ulp = ldexp(1, (want != 0 ? ilogb(want) : -126) - 23);

    return fabs((double)got - want) / fmax(ulp, 0x1p-149);
}

static double ulps(double got, long double want)
{
    long double ulp = ldexpl(1, (want != 0 ? ilogbl(want) : -1022) - 52);

    return (double)(fabsl((long double)got - want) / ulp);
}

START_TEST(expf_is_within_2_ulp_over_all_normal_results)
{
    double worst = 0;

    for (uint32_t u = 0; u < 0x42b17218u; u += 1009) {
        float x = fw_unbitsf(u);
        double up = exp((double)x), down = exp(-(double)x);

        worst = fmax(worst, ulps_f(fw_expf(x), up));
        if (down >= 0x1.00001p-126)
            worst = fmax(worst, ulps_f(fw_expf(-x), down));
    }
    ck_assert_double_le(worst, 2);
}
END_TEST

START_TEST(logf_is_within_2_ulp_over_all_normal_arguments)
{
    double worst = 0;

    for (uint32_t u = 0x00800000u; u < 0x7f800000u; u += 1009)
        worst = fmax(worst, ulps_f(fw_logf(fw_unbitsf(u)), log((double)fw_unbitsf(u))));
    for (uint32_t u = 0x3f7f0000u; u < 0x3f810000u; u++)
        worst = fmax(worst, ulps_f(fw_logf(fw_unbitsf(u)), log((double)fw_unbitsf(u))));
    ck_assert_double_le(worst, 2);
}
END_TEST

START_TEST(exp_is_within_2_ulp_over_all_normal_results)
{
    uint64_t s = 1;
    double worst = 0;

    for (int i = 0; i < 2000000; i++) {
        double x = i & 1 ? uniform(&s, -708.39, 709.78) : ldexp(uniform(&s, -1, 1), -(i & 62));

        worst = fmax(worst, ulps(fw_exp(x), expl((long double)x)));
    }
    ck_assert_double_le(worst, 2);
}
END_TEST

START_TEST(log_is_within_2_ulp_over_all_normal_arguments)
{
    uint64_t s = 2;
    double worst = 0;

    for (int i = 0; i < 2000000; i++) {
        double x = fw_unbits(0x0010000000000000u + next(&s) % 0x7fe0000000000000u);

        if (i & 1)
            x = 1 + ldexp(uniform(&s, -1, 1), -2 - (i & 30));
        worst = fmax(worst, ulps(fw_log(x), logl((long double)x)));
    }
    ck_assert_double_le(worst, 2);
}
END_TEST

START_TEST(edges_are_defined)
{
    ck_assert(fw_expf(0) == 1 && fw_expf(-0.0f) == 1 && fw_exp(0) == 1);
    ck_assert(fw_expf(INFINITY) == INFINITY && fw_exp(INFINITY) == INFINITY);
    ck_assert(fw_expf(-INFINITY) == 0 && fw_exp(-INFINITY) == 0);
    ck_assert(isnan(fw_expf(NAN)) && isnan(fw_exp(NAN)));
    ck_assert(fw_expf(88.73f) == INFINITY && fw_exp(709.79) == INFINITY);
    ck_assert(fw_expf(-87.34f) == 0 && fw_exp(-708.4) == 0);
    ck_assert(fw_expf(-FLT_MAX) == 0 && fw_exp(-DBL_MAX) == 0);
    ck_assert(fw_logf(1) == 0 && fw_log(1) == 0);
    ck_assert(fw_logf(0) == -INFINITY && fw_log(-0.0) == -INFINITY);
    ck_assert(fw_logf(INFINITY) == INFINITY && fw_log(INFINITY) == INFINITY);
    ck_assert(isnan(fw_logf(-1)) && isnan(fw_log(-INFINITY)) && isnan(fw_log(NAN)));
    ck_assert(isnan(fw_logf(NAN)) && isnan(fw_logf(-INFINITY)));
    ck_assert(fw_sqrtf(2) == sqrtf(2) && fw_sqrt(2) == sqrt(2) && isnan(fw_sqrt(-1)));
}
END_TEST

static void fill(float *xf, double *xd, size_t n, uint64_t *s)
{
    static const double edge[] = { 0,     -0.0,  1e-40, -1e-40, 1e-310,   -1e-310,   88.7228,
                                   88.73, -87.3, -87.4, 709.78, INFINITY, -INFINITY, NAN };

    for (size_t i = 0; i < n; i++) {
        uint64_t r = next(s);

        xd[i] = i < sizeof edge / sizeof edge[0] ? edge[i]
                : i & 1                          ? fw_unbits(r)
                                                 : uniform(s, -750, 750);
        xf[i] = i & 2 ? (float)xd[i] : fw_unbitsf((uint32_t)(r >> 32));
    }
}

/* Bits, but for a NaN, of which only that it is one. */
static int same_f(const float *a, const float *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (fw_bitsf(a[i]) != fw_bitsf(b[i]) && !(isnan(a[i]) && isnan(b[i])))
            return 0;
    return 1;
}

static int same_d(const double *a, const double *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (fw_bits(a[i]) != fw_bits(b[i]) && !(isnan(a[i]) && isnan(b[i])))
            return 0;
    return 1;
}

/* Scalar use here against the loops of one copy; all under the mode the thread is in. */
static void compare(const struct fmath_copy *c, uint64_t seed)
{
    static float xf[N], yf[N], zf[N];
    static double xd[N], yd[N], zd[N];

#define ONE(name, x, y, z, same)                                                               \
    for (size_t i = 0; i < N; i++)                                                             \
        z[i] = fw_##name(x[i]);                                                                \
    c->name(y, x, N);                                                                          \
    ck_assert_msg(same(y, z, N), #name)

    for (int round = 0; round < 20; round++) {
        fill(xf, xd, N, &seed);
        ONE(expf, xf, yf, zf, same_f);
        ONE(logf, xf, yf, zf, same_f);
        ONE(exp, xd, yd, zd, same_d);
        ONE(log, xd, yd, zd, same_d);
        for (size_t i = 0; i < N; i++) {
            xf[i] = fabsf(xf[i]);
            xd[i] = fabs(xd[i]);
        }
        ONE(sqrtf, xf, yf, zf, same_f);
        ONE(sqrt, xd, yd, zd, same_d);
    }
#undef ONE
}

START_TEST(both_levels_give_the_same_bits_in_both_modes)
{
    for (int flush = 0; flush < 2; flush++) {
        if (flush)
            fw_num_thread();
        compare(&fmath_copy_base, 3);
#ifdef HAVE_V3
        if (fw_num_level() == FW_LEVEL_X86_64_V3)
            compare(&fmath_copy_v3, 3);
#endif
    }
}
END_TEST

START_TEST(exp_and_log_do_not_depend_on_flush_to_zero)
{
    static float xf[N], yf[2][N], lf[2][N];
    static double xd[N], yd[2][N], ld[2][N];
    uint64_t s = 4;

    fill(xf, xd, N, &s);
    for (int flush = 0; flush < 2; flush++) {
        if (flush)
            fw_num_thread();
        fmath_copy_base.expf(yf[flush], xf, N);
        fmath_copy_base.logf(lf[flush], xf, N);
        fmath_copy_base.exp(yd[flush], xd, N);
        fmath_copy_base.log(ld[flush], xd, N);
    }
    ck_assert(same_f(yf[0], yf[1], N) && same_f(lf[0], lf[1], N));
    ck_assert(same_d(yd[0], yd[1], N) && same_d(ld[0], ld[1], N));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("num/fmath");
    TCase *tc = tcase_create("fmath");

    fw_num_init();
    tcase_set_timeout(tc, 300);
    tcase_add_test(tc, expf_is_within_2_ulp_over_all_normal_results);
    tcase_add_test(tc, logf_is_within_2_ulp_over_all_normal_arguments);
    tcase_add_test(tc, exp_is_within_2_ulp_over_all_normal_results);
    tcase_add_test(tc, log_is_within_2_ulp_over_all_normal_arguments);
    tcase_add_test(tc, edges_are_defined);
    tcase_add_test(tc, both_levels_give_the_same_bits_in_both_modes);
    tcase_add_test(tc, exp_and_log_do_not_depend_on_flush_to_zero);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
