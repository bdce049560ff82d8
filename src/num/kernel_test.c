#include "config.h"

#include "test_main.h"

#include <math.h>
#include <string.h>

#include "fastweight/kernel.h"
#include "fastweight/num.h"

#define MAX_D 600
#define MAX_N 9

static uint64_t seed = 1;

static float next(void) /* (-1, 1), sometimes tiny, 0 or large */
{
    uint64_t z = seed += 0x9e3779b97f4a7c15u;
    float x;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    x = (float)((int64_t)z >> 40) * 0x1p-23f;
    switch (z & 63) {
    case 0:
        return 0;
    case 1:
        return x * 0x1p-125f;
    case 2:
        return x * 1e6f;
    default:
        return x;
    }
}

static float *random_floats(size_t n)
{
    float *x = malloc((n ? n : 1) * sizeof *x);

    for (size_t i = 0; i < n; i++)
        x[i] = next();
    return x;
}

struct bench { /* one head and its pairs, everything owned */
    struct fw_head h;
    struct fw_pairs p;
    float *mem[10];
};

static void make(struct bench *b, size_t d_k, size_t d_v, size_t n, int gate, int reads,
                 int valid)
{
    float *beta = random_floats(n), *g = random_floats(n);

    for (size_t t = 0; t < n; t++) {
        beta[t] = 0.1f * fabsf(beta[t]) / (float)d_k;
        g[t] = t & 1 ? 1 : fmodf(fabsf(g[t]), 1);
    }
    b->h = (struct fw_head){ d_k,
                             d_v,
                             b->mem[0] = random_floats(d_k * d_v),
                             b->mem[1] = random_floats(d_k),
                             b->mem[2] = random_floats(d_v),
                             valid };
    b->p = (struct fw_pairs){ .n = n,
                              .k_stride = d_k + 3,
                              .v_stride = d_v + 1,
                              .q_stride = d_k + 2,
                              .o_stride = d_v + 5 };
    b->p.k = b->mem[3] = random_floats(n * b->p.k_stride);
    b->p.v = b->mem[4] = random_floats(n * b->p.v_stride);
    b->mem[5] = random_floats(n * b->p.q_stride);
    b->p.q = reads ? b->mem[5] : NULL;
    b->p.beta = b->mem[6] = beta;
    b->mem[7] = g;
    b->p.g = gate ? g : NULL;
    b->p.err = b->mem[8] = random_floats(n * d_v);
    b->p.o = b->mem[9] = random_floats(n * b->p.o_stride);
}

static void done(struct bench *b)
{
    for (size_t i = 0; i < 10; i++)
        free(b->mem[i]);
}

#ifdef HAVE_V3
static int same(const float *a, const float *b, size_t n)
{
    return memcmp(a, b, n * sizeof *a) == 0;
}

static void compare(size_t d_k, size_t d_v, size_t n, int gate, int reads, int valid)
{
    struct bench a, b;
    uint64_t at = seed;

    make(&a, d_k, d_v, n, gate, reads, valid);
    seed = at;
    make(&b, d_k, d_v, n, gate, reads, valid);
    a.p.blind = b.p.blind = d_k % 3 == 0;
    fw_kernels_base.delta(&a.h, &a.p);
    fw_kernels_v3.delta(&b.h, &b.p);
    ck_assert(b.h.valid);
    ck_assert_msg(same(a.h.S, b.h.S, d_k * d_v) && same(a.h.e, b.h.e, d_v) &&
                      same(a.h.k, b.h.k, d_k) && same(a.p.err, b.p.err, n * d_v) &&
                      same(a.p.o, b.p.o, n * a.p.o_stride),
                  "delta d_k %zu d_v %zu n %zu gate %d reads %d valid %d", d_k, d_v, n, gate,
                  reads, valid);
    fw_kernels_base.read(&a.h,
                         &(struct fw_reads){ n, a.mem[5], a.p.q_stride, a.p.o, a.p.o_stride });
    fw_kernels_v3.read(&b.h,
                       &(struct fw_reads){ n, b.mem[5], b.p.q_stride, b.p.o, b.p.o_stride });
    ck_assert_msg(same(a.p.o, b.p.o, n * a.p.o_stride), "read d_k %zu d_v %zu n %zu", d_k, d_v,
                  n);
    fw_kernels_base.fold(&a.h, a.h.S);
    fw_kernels_v3.fold(&b.h, b.h.S);
    ck_assert_msg(same(a.h.S, b.h.S, d_k * d_v), "fold d_k %zu d_v %zu", d_k, d_v);
    done(&a);
    done(&b);
}

START_TEST(panels_equal_the_plain_loops_to_the_bit)
{
    static const size_t d[] = { 1, 2, 3, 7, 8, 15, 31, 32, 33, 64, 65, 100, 128 };
    const size_t count = sizeof d / sizeof d[0];

    if (fw_num_level() != FW_LEVEL_X86_64_V3)
        return;
    fw_num_thread();
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < count; j++)
            for (int mode = 0; mode < 8; mode++)
                compare(d[i], d[j], 1 + (i + j + (size_t)mode) % MAX_N, mode & 1, mode & 2,
                        mode & 4);
}
END_TEST

START_TEST(panels_too_tall_to_copy_equal_the_plain_loops)
{
    if (fw_num_level() != FW_LEVEL_X86_64_V3)
        return;
    fw_num_thread();
    for (int mode = 0; mode < 8; mode++) {
        compare(512, 45, 5, mode & 1, mode & 2, mode & 4);
        compare(513, 45, 5, mode & 1, mode & 2, mode & 4);
        compare(MAX_D, 1, 1, mode & 1, mode & 2, mode & 4);
    }
}
END_TEST
#endif

START_TEST(a_call_of_n_pairs_equals_n_calls_of_one)
{
    struct bench a, b;
    uint64_t at = seed;
    const struct fw_kernels *kernels = fw_num_kernels();

    make(&a, 33, 70, MAX_N, 1, 1, 0);
    seed = at;
    make(&b, 33, 70, MAX_N, 1, 1, 0);
    kernels->delta(&a.h, &a.p);
    for (size_t t = 0; t < MAX_N; t++) {
        struct fw_pairs one = b.p;

        one.n = 1;
        one.k += t * one.k_stride;
        one.v += t * one.v_stride;
        one.q += t * one.q_stride;
        one.o += t * one.o_stride;
        one.beta += t;
        one.g += t;
        one.err += t * 70;
        kernels->delta(&b.h, &one);
    }
    ck_assert_mem_eq(a.h.S, b.h.S, 33 * 70 * sizeof(float));
    ck_assert_mem_eq(a.h.e, b.h.e, 70 * sizeof(float));
    ck_assert_mem_eq(a.p.o, b.p.o, MAX_N * a.p.o_stride * sizeof(float));
    ck_assert_mem_eq(a.p.err, b.p.err, MAX_N * 70 * sizeof(float));
    done(&a);
    done(&b);
}
END_TEST

#define HEADS 3

/* A token of three heads, the first perhaps without a pending pair, against delta of each head.
 */
static void compare_token(const struct fw_kernels *kernels, size_t d_k, size_t d_v, int gate,
                          int pending, uint64_t turn)
{
    struct bench a, b;
    unsigned char valid[HEADS] = { pending != 0, 1, 1 };
    double residual[HEADS], got[HEADS];
    uint64_t at = seed;
    struct fw_token t;

    make(&a, HEADS * d_k, d_v, HEADS, gate, 0, 0); /* S is (HEADS, d_k, d_v) */
    seed = at;
    make(&b, HEADS * d_k, d_v, HEADS, gate, 0, 0);
    for (size_t head = 0; head < HEADS; head++) {
        struct fw_head h = {
            d_k,        d_v, a.h.S + head * d_k * d_v, a.h.k + head * d_k, a.p.o + head * d_v,
            valid[head]
        };
        struct fw_pairs p = { .n = 1,
                              .k = a.p.k + head * d_k,
                              .v = a.p.v + head * d_v,
                              .beta = a.p.beta + head,
                              .g = gate ? a.p.g + head : NULL,
                              .err = a.p.err + head * d_v };

        fw_kernels_base.delta(&h, &p);
        residual[head] = sqrt(fw_sum_squares(p.err, d_v));
    }
    t = (struct fw_token){ HEADS,
                           d_k,
                           d_v,
                           b.h.S,
                           b.h.k,
                           b.p.o,
                           valid,
                           b.p.k,
                           b.p.v,
                           b.p.beta,
                           gate ? b.p.g : NULL,
                           got,
                           turn };
    kernels->token(&t);
    ck_assert_mem_eq(got, residual, sizeof got);
    ck_assert_mem_eq(valid, "\1\1\1", HEADS);
    ck_assert_mem_eq(a.h.S, b.h.S, HEADS * d_k * d_v * sizeof(float));
    ck_assert_mem_eq(a.h.k, b.h.k, HEADS * d_k * sizeof(float));
    ck_assert_mem_eq(a.p.o, b.p.o, HEADS * d_v * sizeof(float));
    done(&a);
    done(&b);
}

START_TEST(a_token_equals_one_pair_of_each_head)
{
    static const size_t d[] = { 1, 7, 32, 33, 64, 96, 128 };
    const size_t count = sizeof d / sizeof d[0];

    fw_num_thread();
    for (size_t i = 0; i < count * count * 4; i++) {
        size_t d_k = d[i / 4 % count], d_v = d[i / 4 / count];

        compare_token(&fw_kernels_base, d_k, d_v, i & 1, i & 2, i >> 2);
        compare_token(fw_num_kernels(), d_k, d_v, i & 1, i & 2, i >> 2);
    }
}
END_TEST

START_TEST(a_gate_of_one_leaves_the_bits_alone)
{
    struct bench a, b;
    uint64_t at = seed;

    fw_num_thread();
    make(&a, 16, 40, 4, 1, 0, 1);
    seed = at;
    make(&b, 16, 40, 4, 1, 0, 1);
    for (size_t t = 0; t < 4; t++)
        a.mem[7][t] = 1;
    b.p.g = NULL;
    fw_num_kernels()->delta(&a.h, &a.p);
    fw_num_kernels()->delta(&b.h, &b.p);
    ck_assert_mem_eq(a.h.S, b.h.S, 16 * 40 * sizeof(float));
    ck_assert_mem_eq(a.p.err, b.p.err, 4 * 40 * sizeof(float));
    done(&a);
    done(&b);
}
END_TEST

START_TEST(a_pair_written_with_beta_one_and_unit_key_reads_back)
{
    float S[2 * 3] = { 0 }, k[2] = { 0 }, e[3] = { 0 }, err[3], o[3], beta = 1;
    float key[2] = { 0.6f, 0.8f }, v[3] = { 1, -2, 3 };
    struct fw_head h = { 2, 3, S, k, e, false };
    struct fw_pairs p = { 1, key, v, key, 2, 3, 2, &beta, NULL, err, o, 3, false };

    fw_num_kernels()->delta(&h, &p);
    for (size_t j = 0; j < 3; j++) {
        ck_assert(err[j] == v[j] && S[j] == 0);
        ck_assert_float_eq_tol(o[j], v[j], 1e-6f);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("num/kernel");
    TCase *tc = tcase_create("kernel");

    fw_num_init();
    tcase_set_timeout(tc, 300);
#ifdef HAVE_V3
    tcase_add_test(tc, panels_equal_the_plain_loops_to_the_bit);
    tcase_add_test(tc, panels_too_tall_to_copy_equal_the_plain_loops);
#endif
    tcase_add_test(tc, a_call_of_n_pairs_equals_n_calls_of_one);
    tcase_add_test(tc, a_token_equals_one_pair_of_each_head);
    tcase_add_test(tc, a_gate_of_one_leaves_the_bits_alone);
    tcase_add_test(tc, a_pair_written_with_beta_one_and_unit_key_reads_back);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
