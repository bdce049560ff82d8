#include "config.h"

#include "test_main.h"

#include <math.h>

#include "memory_testing.h"

#define PAIRS 150

static const struct shape shapes[] = {
    { "delta", "none", 1, 1, 1, 1 },           { "delta", "none", 2, 7, 33, 0.25 },
    { "delta", "l2", 3, 16, 40, 1 },           { "gated_delta", "none", 2, 32, 32, 1 },
    { "gated_delta", "l2", 1, 64, 31, 0.125 }, { "gated_delta", "none", 4, 5, 70, 3 },
};
#define SHAPES ((int)(sizeof shapes / sizeof shapes[0]))

struct run { /* one stream through one session */
    const struct shape *s;
    struct fw_memory *m;
    void *block;
    struct body b;
    double *residual; /* (PAIRS, heads) */
    float *values;    /* (PAIRS, heads, d_v) */
};

static void start(struct run *r, const struct shape *s)
{
    r->s = s;
    r->m = make_memory(s);
    r->block = make_block(r->m);
    make_body(&r->b, s, PAIRS, 42);
    r->residual = calloc(PAIRS * s->heads, sizeof *r->residual);
    r->values = calloc(PAIRS * s->heads * s->d_v, sizeof *r->values);
}

static void learn(struct run *r, size_t from, size_t n)
{
    size_t heads = r->s->heads;

    fw_memory_learn(r->m, r->block, &r->b.in, from, n, r->residual + from * heads,
                    r->values + from * heads * r->s->d_v);
}

static void stop(struct run *r)
{
    free(r->residual);
    free(r->values);
    free_body(&r->b);
    free(r->block);
    fw_memory_free(r->m);
}

static size_t block_bytes(const struct run *r)
{
    return fw_memory_layout(r->m)->block_bytes;
}

static void ck_same(const struct run *a, const struct run *b)
{
    size_t heads = a->s->heads;

    ck_assert_mem_eq(a->block, b->block, block_bytes(a));
    ck_assert_mem_eq(a->residual, b->residual, PAIRS * heads * sizeof(double));
    ck_assert_mem_eq(a->values, b->values, PAIRS * heads * a->s->d_v * sizeof(float));
}

/* The rule in double, straight from the formula, one head: the oracle. */
struct oracle {
    size_t d_k, d_v;
    double S[64 * 80];
};

static double length(const float *x, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += (double)x[i] * (double)x[i];
    return sqrt(sum);
}

static double oracle_pair(struct oracle *o, const float *k, const float *v, double beta,
                          double g, double k_scale)
{
    double residual = 0;

    for (size_t i = 0; i < o->d_k * o->d_v; i++)
        o->S[i] *= g;
    for (size_t j = 0; j < o->d_v; j++) {
        double e = (double)v[j];

        for (size_t i = 0; i < o->d_k; i++)
            e -= (double)k[i] * k_scale * o->S[i * o->d_v + j];
        residual += e * e;
        for (size_t i = 0; i < o->d_k; i++)
            o->S[i * o->d_v + j] += (double)k[i] * k_scale * beta * e;
    }
    return sqrt(residual);
}

static void ck_read(const struct oracle *o, const float *q, double scale, const float *values)
{
    double worst = 0; /* one assertion: libcheck writes each to a file */

    for (size_t j = 0; j < o->d_v; j++) {
        double want = 0, off;

        for (size_t i = 0; i < o->d_k; i++)
            want += (double)q[i] * scale * o->S[i * o->d_v + j];
        off = fabs((double)values[j] - want);
        worst = off <= worst ? worst : off; /* a NaN stays */
    }
    ck_assert_double_le(worst, 2e-5);
}

START_TEST(learning_follows_the_formula)
{
    struct run r;
    const struct shape *s = &shapes[_i];
    int l2 = strcmp(s->key_norm, "l2") == 0;
    float *S = malloc(s->heads * s->d_k * s->d_v * sizeof *S);

    start(&r, s);
    learn(&r, 0, PAIRS);
    fw_memory_state(r.m, r.block, S);
    for (size_t h = 0; h < s->heads; h++) {
        struct oracle o = { s->d_k, s->d_v, { 0 } };

        for (size_t t = 0; t < PAIRS; t++) {
            size_t row = t * s->heads + h;
            const float *k = r.b.data[0] + row * s->d_k, *q = r.b.data[2] + row * s->d_k;
            double g = r.b.data[4] ? exp((double)r.b.data[4][row]) : 1;
            double want =
                oracle_pair(&o, k, r.b.data[1] + row * s->d_v, (double)r.b.data[3][row], g,
                            l2 ? 1 / fmax(length(k, s->d_k), 1e-12) : 1);

            ck_assert_double_eq_tol(r.residual[row], want, 2e-5);
            ck_read(&o, q, s->query_scale * (l2 ? 1 / length(q, s->d_k) : 1),
                    r.values + row * s->d_v);
        }
        for (size_t i = 0; i < s->d_k * s->d_v; i++)
            ck_assert_double_eq_tol((double)S[h * s->d_k * s->d_v + i], o.S[i], 2e-5);
    }
    free(S);
    stop(&r);
}
END_TEST

START_TEST(a_stream_cut_anywhere_gives_the_same_block)
{
    struct run whole, ones, cut;
    uint64_t seed = 7;

    start(&whole, &shapes[_i]);
    start(&ones, &shapes[_i]);
    start(&cut, &shapes[_i]);
    learn(&whole, 0, PAIRS);
    for (size_t t = 0; t < PAIRS; t++)
        learn(&ones, t, 1);
    ck_same(&whole, &ones);
    for (int round = 0; round < 10; round++) {
        fw_memory_init(cut.m, cut.block);
        for (size_t t = 0, n; t < PAIRS; t += n) {
            n = 1 + (size_t)(60 * fabsf(next_float(&seed)));
            n = n < PAIRS - t ? n : PAIRS - t;
            learn(&cut, t, n);
        }
        ck_same(&whole, &cut);
    }
    stop(&whole);
    stop(&ones);
    stop(&cut);
}
END_TEST

START_TEST(both_levels_give_the_same_block)
{
    struct run fast, base;

    start(&fast, &shapes[_i]);
    start(&base, &shapes[_i]);
    learn(&fast, 0, PAIRS);
    setenv("FW_CPU_LEVEL", "base", 1);
    fw_num_init();
    learn(&base, 0, PAIRS);
    unsetenv("FW_CPU_LEVEL");
    fw_num_init();
    ck_same(&fast, &base);
    stop(&fast);
    stop(&base);
}
END_TEST

START_TEST(asking_for_nothing_back_changes_no_bit)
{
    struct run a, b;

    start(&a, &shapes[_i]);
    start(&b, &shapes[_i]);
    learn(&a, 0, PAIRS);
    fw_memory_learn(b.m, b.block, &b.b.in, 0, PAIRS, NULL, NULL);
    ck_assert_mem_eq(a.block, b.block, block_bytes(&a));
    stop(&a);
    stop(&b);
}
END_TEST

START_TEST(reads_leave_the_block_alone_and_agree_with_learning)
{
    struct run r;
    const struct shape *s = &shapes[_i];
    size_t last = PAIRS - 1, width = s->heads * s->d_v;
    double *residual = malloc(PAIRS * s->heads * sizeof *residual);
    float *values = malloc(PAIRS * width * sizeof *values);
    void *before;

    start(&r, s);
    learn(&r, 0, last);
    before = malloc(block_bytes(&r));
    memcpy(before, r.block, block_bytes(&r));
    fw_memory_score(r.m, r.block, &r.b.in, 0, PAIRS, residual);
    fw_memory_recall(r.m, r.block, &r.b.in, 0, PAIRS, values);
    ck_assert_mem_eq(before, r.block, block_bytes(&r));
    /* what was read last while learning is what recall reads now */
    ck_assert_mem_eq(values + (last - 1) * width, r.values + (last - 1) * width,
                     width * sizeof *values);
    learn(&r, last, 1);
    for (size_t h = 0; h < s->heads; h++) /* frozen score applies no decay */
        if (!r.b.data[4] || r.b.data[4][last * s->heads + h] == 0)
            ck_assert(residual[last * s->heads + h] == r.residual[last * s->heads + h]);
    free(before);
    free(values);
    free(residual);
    stop(&r);
}
END_TEST

START_TEST(parts_of_a_body_score_and_recall_as_the_whole)
{
    struct run r;
    const struct shape *s = &shapes[_i];
    double whole[PAIRS * 4], part[PAIRS * 4];
    float *a = malloc(PAIRS * s->heads * s->d_v * sizeof *a);
    float *b = malloc(PAIRS * s->heads * s->d_v * sizeof *b);

    start(&r, s);
    learn(&r, 0, 20);
    fw_memory_score(r.m, r.block, &r.b.in, 0, PAIRS, whole);
    fw_memory_score(r.m, r.block, &r.b.in, 70, 13, part);
    ck_assert_mem_eq(part, whole + 70 * s->heads, 13 * s->heads * sizeof *whole);
    fw_memory_recall(r.m, r.block, &r.b.in, 0, PAIRS, a);
    fw_memory_recall(r.m, r.block, &r.b.in, 70, 13, b);
    ck_assert_mem_eq(b, a + 70 * s->heads * s->d_v, 13 * s->heads * s->d_v * sizeof *a);
    free(a);
    free(b);
    stop(&r);
}
END_TEST

START_TEST(a_zero_key_is_harmless)
{
    struct run r;
    size_t d_k = shapes[_i].d_k * shapes[_i].heads;

    start(&r, &shapes[_i]);
    memset(r.b.data[0] + 3 * d_k, 0, d_k * sizeof(float));
    memset(r.b.data[2] + 3 * d_k, 0, d_k * sizeof(float));
    learn(&r, 0, PAIRS);
    ck_assert_int_eq(fw_memory_validate(r.m, r.block, NULL), 0);
    for (size_t i = 0; i < PAIRS * shapes[_i].heads * shapes[_i].d_v; i++)
        ck_assert(isfinite(r.values[i]));
    stop(&r);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("memory/memory");
    TCase *tc = tcase_create("memory");

    fw_num_init();
    fw_num_thread();
    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, learning_follows_the_formula, 0, SHAPES);
    tcase_add_loop_test(tc, a_stream_cut_anywhere_gives_the_same_block, 0, SHAPES);
    tcase_add_loop_test(tc, both_levels_give_the_same_block, 0, SHAPES);
    tcase_add_loop_test(tc, asking_for_nothing_back_changes_no_bit, 0, SHAPES);
    tcase_add_loop_test(tc, reads_leave_the_block_alone_and_agree_with_learning, 0, SHAPES);
    tcase_add_loop_test(tc, parts_of_a_body_score_and_recall_as_the_whole, 0, SHAPES);
    tcase_add_loop_test(tc, a_zero_key_is_harmless, 0, SHAPES);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
