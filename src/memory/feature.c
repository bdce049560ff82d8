/* feature.c - feature maps: what a rule gets instead of a key or a query.
 *
 *     identity  x
 *     l2        x / max(|x|, 1e-12)
 *     elu+1     x + 1 for x > 0, else exp(x)
 *     relu      max(x, 0)
 *     relu^2    max(x, 0)^2
 *     dpfp      x2 = [relu(x), relu(-x)]; concat_{j=1..nu} x2 roll(x2, j), over their sum
 *               + 1e-6 (Schlag et al. 2102.11174)
 *     poly2     [1; x_i; x_i x_j for i <= j, sqrt 2 times it for i < j], over its length:
 *               phi(x).phi(y) is (1 + x.y + (x.y)^2) over both lengths
 *     rff       sqrt(1/m) [cos(w_r.x), sin(w_r.x)]_{r < m}, m = features / 2, w ~ N(0, I):
 *               the kernel exp(-|x - y|^2 / 2) (Rahimi and Recht 2007)
 *
 * Numbers: elementwise maps in float; sums and norms in double, each quotient rounded once. The
 * frequencies of rff come from integer hashes of their place, so every daemon has the same. */
#include "config.h"

#include "inside.h"

#include <stdlib.h>
#include <string.h>

#include "fastweight/fmath.h"
#include "fastweight/num.h"

struct fw_map {
    void (*apply)(const struct fw_memory *m, const float *x, float *phi);
    float max; /* |x_i| that keeps |phi_i| <= FW_ELEMENT_MAX; 0: any */
    bool unit; /* |phi| <= 1 */
};

enum { IDENTITY, L2, ELU, RELU, RELU2, DPFP, POLY2, RFF, MAPS };

static const char *const words[] = { "identity", "l2",    "elu+1", "relu", "relu^2",
                                     "dpfp",     "poly2", "rff",   NULL };

void fw_l2(const float *x, size_t n, float *y)
{
    double norm = fw_sqrt(fw_sum_squares(x, n)), inverse = 1 / (norm > 1e-12 ? norm : 1e-12);

    for (size_t i = 0; i < n; i++)
        y[i] = (float)((double)x[i] * inverse);
}

static void identity(const struct fw_memory *m, const float *x, float *phi)
{
    memcpy(phi, x, m->d_k * sizeof *phi);
}

static void l2(const struct fw_memory *m, const float *x, float *phi)
{
    fw_l2(x, m->d_k, phi);
}

static void elu(const struct fw_memory *m, const float *x, float *phi)
{
    for (size_t i = 0; i < m->d_k; i++)
        phi[i] = x[i] > 0 ? x[i] + 1 : fw_expf(x[i]);
}

static void relu(const struct fw_memory *m, const float *x, float *phi)
{
    for (size_t i = 0; i < m->d_k; i++)
        phi[i] = x[i] > 0 ? x[i] : 0;
}

static void relu2(const struct fw_memory *m, const float *x, float *phi)
{
    for (size_t i = 0; i < m->d_k; i++)
        phi[i] = x[i] > 0 ? x[i] * x[i] : 0;
}

/* Element i of [relu(x), relu(-x)]. */
static double two_sided(const float *x, size_t d, size_t i)
{
    double y = i < d ? (double)x[i] : -(double)x[i - d];

    return y > 0 ? y : 0;
}

static void dpfp(const struct fw_memory *m, const float *x, float *phi)
{
    size_t d = m->d_k, n = 2 * d;
    double sum = 0, inverse;

    for (size_t j = 1; j <= m->nu; j++)
        for (size_t i = 0; i < n; i++)
            sum += two_sided(x, d, i) * two_sided(x, d, (i + n * j - j) % n);
    inverse = 1 / (sum + 1e-6);
    for (size_t j = 1; j <= m->nu; j++)
        for (size_t i = 0; i < n; i++)
            *phi++ =
                (float)(two_sided(x, d, i) * two_sided(x, d, (i + n * j - j) % n) * inverse);
}

/* |raw|^2 = 1 + x.x + (x.x)^2, since raw(x).raw(x) is that kernel at y = x. */
static void poly2(const struct fw_memory *m, const float *x, float *phi)
{
    double xx = fw_sum_squares(x, m->d_k), inverse = 1 / fw_sqrt(1 + xx + xx * xx);

    *phi++ = (float)inverse;
    for (size_t i = 0; i < m->d_k; i++)
        *phi++ = (float)((double)x[i] * inverse);
    for (size_t i = 0; i < m->d_k; i++)
        for (size_t j = i; j < m->d_k; j++) {
            double xy = (double)x[i] * (double)x[j];

            *phi++ = (float)((i == j ? xy : 0x1.6a09e667f3bcdp+0 * xy) * inverse);
        }
}

/* cos and sin of 2 pi t, |error| < 1e-12: t to the nearest quarter turn, then series. */
static void turn(double t, double *cosine, double *sine)
{
    const double magic = 0x1.8p52;
    double n = (t * 4 + magic) - magic, r = (t * 4 - n) * 0x1.921fb54442d18p+0, z = r * r;
    double c = -0x1.93974a8c07c9dp-37, s = 0x1.6124613a86d09p-33;
    double whole = n * 0.25, floor = (whole - 0.375 + magic) - magic;
    int quarter = (int)((whole - floor) * 4) & 3;

    c = __builtin_fma(c, z, 0x1.1eed8eff8d898p-29);
    c = __builtin_fma(c, z, -0x1.27e4fb7789f5cp-22);
    c = __builtin_fma(c, z, 0x1.a01a01a01a01ap-16);
    c = __builtin_fma(c, z, -0x1.6c16c16c16c17p-10);
    c = __builtin_fma(c, z, 0x1.5555555555555p-5);
    c = __builtin_fma(c, z, -0.5);
    c = __builtin_fma(c, z, 1);
    s = __builtin_fma(s, z, -0x1.ae64567f544e4p-26);
    s = __builtin_fma(s, z, 0x1.71de3a556c734p-19);
    s = __builtin_fma(s, z, -0x1.a01a01a01a01ap-13);
    s = __builtin_fma(s, z, 0x1.1111111111111p-7);
    s = __builtin_fma(s, z, -0x1.5555555555555p-3);
    s = __builtin_fma(s * z, r, r);
    *cosine = quarter == 0 ? c : quarter == 1 ? -s : quarter == 2 ? -c : s;
    *sine = quarter == 0 ? s : quarter == 1 ? c : quarter == 2 ? -s : -c;
}

static void rff(const struct fw_memory *m, const float *x, float *phi)
{
    size_t half = m->rows / 2;
    double scale = fw_sqrt(1 / (double)half);

    for (size_t r = 0; r < half; r++) {
        double t = 0, c, s;

        for (size_t i = 0; i < m->d_k; i++)
            t = __builtin_fma((double)m->frequency[r * m->d_k + i], (double)x[i], t);
        turn(t, &c, &s);
        phi[r] = (float)(c * scale);
        phi[half + r] = (float)(s * scale);
    }
}

static const struct fw_map maps[MAPS] = {
    [IDENTITY] = { identity, FW_ELEMENT_MAX, false },
    [L2] = { l2, 0, true },
    [ELU] = { elu, FW_ELEMENT_MAX - 1, false },
    [RELU] = { relu, FW_ELEMENT_MAX, false },
    [RELU2] = { relu2, 1e3f, false },
    [DPFP] = { dpfp, 0, true },
    [POLY2] = { poly2, 0, true },
    [RFF] = { rff, 0, true },
};

/* Standard normals over 2 pi (turns), by Box and Muller, from hashes of their place. */
static int make_frequencies(struct fw_memory *m, struct fw_err *err)
{
    size_t n = m->rows / 2 * m->d_k;

    m->frequency = calloc(n, sizeof *m->frequency);
    if (!m->frequency)
        return fw_fail(err, FW_ENOMEM, "out_of_memory", "no memory for a feature map");
    for (size_t i = 0; i < n; i++) {
        double u = ((double)(fw_mix(2 * i) >> 12) + 0.5) * 0x1p-52;
        double c, s;

        turn((double)(fw_mix(2 * i + 1) >> 12) * 0x1p-52, &c, &s);
        m->frequency[i] = (float)(fw_sqrt(-2 * fw_log(u)) * c * 0x1.45f306dc9c883p-3);
    }
    return 0;
}

static int too_many(const struct fw_memory *m, struct fw_err *err)
{
    return fw_fail_param(err, FW_EINVAL, "bad_value", "config.feature_map",
                         "this feature map makes %zu features of %zu, at most %d are allowed",
                         m->rows, m->d_k, FW_MAX_DIM);
}

int fw_map_plan(struct fw_memory *m, struct fw_config *c, struct fw_err *err)
{
    size_t map = IDENTITY, features = 2 * m->d_k < FW_MAX_DIM ? 2 * m->d_k : FW_MAX_DIM;

    m->nu = 1;
    if (fw_config_word(c, "feature_map", words, &map, err) < 0)
        return -1;
    if (map == IDENTITY)
        fw_config_forget(c, "feature_map");
    else if (m->rule->traits & FW_NO_MAP)
        return fw_fail_param(err, FW_EINVAL, "bad_value", "config.feature_map",
                             "rule %s takes no feature map", m->rule->name);
    if (map == L2 && m->l2)
        return fw_fail_param(err, FW_EINVAL, "bad_value", "config.feature_map",
                             "feature_map l2 and key_norm l2 are the same; give one");
    if (map == DPFP && fw_config_size(c, "nu", 1, FW_MAX_DIM, &m->nu, err) < 0)
        return -1;
    if (map == RFF && fw_config_size(c, "features", 2, FW_MAX_DIM, &features, err) < 0)
        return -1;
    if (map == RFF && features % 2)
        return fw_fail_param(err, FW_EINVAL, "bad_value", "config.features",
                             "config.features must be even: a cosine and a sine each");
    m->map = &maps[map];
    m->rows = map == DPFP    ? 2 * m->d_k * m->nu
              : map == POLY2 ? 1 + m->d_k + m->d_k * (m->d_k + 1) / 2
              : map == RFF   ? features
                             : m->d_k;
    if (m->rows > FW_MAX_DIM)
        return too_many(m, err);
    return map == RFF ? make_frequencies(m, err) : 0;
}

const char *fw_map_name(const struct fw_memory *m)
{
    return words[m->map - maps];
}

bool fw_map_is_identity(const struct fw_memory *m)
{
    return m->map == &maps[IDENTITY];
}

float fw_map_max(const struct fw_memory *m)
{
    return m->l2 || m->map->max == 0 ? FW_ELEMENT_MAX : m->map->max;
}

bool fw_map_is_unit(const struct fw_memory *m)
{
    return m->map->unit || (m->l2 && fw_map_is_identity(m));
}

void fw_map_apply(const struct fw_memory *m, const float *x, float *phi)
{
    m->map->apply(m, x, phi);
}

/* Apart from its callers, since it alone needs a row of stack. */
__attribute__((noinline)) void fw_map_key(const struct fw_memory *m, const float *x, float *phi)
{
    float normal[FW_MAX_DIM];

    if (m->l2)
        fw_l2(x, m->d_k, normal);
    fw_map_apply(m, m->l2 ? normal : x, phi);
}
