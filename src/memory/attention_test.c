#include "config.h"

#include "test_main.h"

#include <math.h>

#include "attend.h"
#include "rules_testing.h"

#define PAIRS 200
#define D     5
#define D_V   3

struct pairs { /* random */
    float k[PAIRS * D], v[PAIRS * D_V], q[D];
};

static void fill(struct pairs *p, float length, uint64_t seed)
{
    for (size_t i = 0; i < PAIRS * D; i++)
        p->k[i] = length * next_float(&seed);
    for (size_t i = 0; i < PAIRS * D_V; i++)
        p->v[i] = next_float(&seed);
    for (size_t i = 0; i < D; i++)
        p->q[i] = length * next_float(&seed);
}

/* The definition, in double. */
static void weights(const struct pairs *p, const struct fw_kept *kept, double *w)
{
    double sum = 0, max = kept->gaussian ? -8 : -1e300;

    for (size_t j = 0; j < kept->n; j++) {
        w[j] = 0;
        for (size_t i = 0; i < D; i++) {
            double k = (double)p->k[j * D + i], q = (double)p->q[i];

            w[j] += (kept->gaussian ? -(q - k) * (q - k) / 2 : q * k) * (double)kept->inverse;
        }
        max = fmax(max, w[j]);
    }
    for (size_t j = 0; j < kept->n; j++)
        sum += exp(w[j] - max);
    sum += kept->gaussian ? exp(-8 - max) : 0;
    for (size_t j = 0; j < kept->n; j++)
        w[j] = exp(w[j] - max) / sum;
}

static void ck_attention(struct pairs *p, const struct fw_kept *kept)
{
    double w[PAIRS], score[PAIRS] = { 0 }, want_v[D_V] = { 0 }, want_k[D] = { 0 };
    float o[D_V], mean_k[D], again[D_V];

    weights(p, kept, w);
    for (size_t j = 0; j < kept->n; j++) {
        for (size_t i = 0; i < D_V; i++)
            want_v[i] += w[j] * (double)p->v[j * D_V + i];
        for (size_t i = 0; i < D; i++)
            want_k[i] += w[j] * (double)p->k[j * D + i];
    }
    fw_attend(kept, p->q, o, mean_k);
    fw_attend(kept, p->q, again, NULL);
    fw_attend_score(kept, p->q, score);
    ck_assert_mem_eq(o, again, sizeof o);
    for (size_t i = 0; i < D_V; i++)
        ck_assert_double_eq_tol((double)o[i], want_v[i], 1e-4);
    for (size_t i = 0; i < D; i++)
        ck_assert_double_eq_tol((double)mean_k[i], want_k[i], 1e-3);
    for (size_t j = 0; j < kept->n; j++)
        ck_assert_double_eq_tol(score[j], w[j], 1e-4);
}

START_TEST(attention_is_its_definition_for_any_number_of_pairs)
{
    static const size_t counts[] = { 0, 1, 63, 64, 65, 128, 129, PAIRS };
    struct pairs p;

    for (int length = 0; length < 2; length++)
        for (int gaussian = 0; gaussian < 2; gaussian++)
            for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
                struct fw_kept kept = { p.k, p.v, counts[i], D, D_V, 0.7f, gaussian };

                fill(&p, length ? 10 : 1, i + 1);
                ck_attention(&p, &kept);
            }
}
END_TEST

/* One head, d_k = d_v = 8, a sharp kernel; pair t has the value t + 1 in place 0. */
static struct fw_memory *open_sharp(const char *rule, const char *a, double x, const char *b,
                                    double y)
{
    struct setup s = { rule, 1, 8, 8, { { "bandwidth", NULL, 0.01 }, { a, NULL, x } } };
    struct fw_memory *m;
    struct fw_err err = { .msg = "" };

    s.config[2].key = b;
    s.config[2].number = y;
    ck_assert_msg(new_memory(&m, &s, rule, &err) == 0, "%s", err.msg);
    return m;
}

static void learn_unit(const struct fw_memory *m, void *block, size_t unit, float value)
{
    struct many b;

    make_many(&b, m, 1, false, 1);
    memset(b.data[0], 0, 8 * sizeof(float));
    memset(b.data[1], 0, 8 * sizeof(float));
    b.data[0][unit] = 1;
    b.data[1][0] = value;
    fw_memory_learn(m, block, &b.in, 0, 1, NULL, NULL);
    free_many(&b);
}

static float recall_unit(const struct fw_memory *m, const void *block, size_t unit)
{
    float q[8] = { 0 }, o[8];
    struct fw_reads r = { .n = 1, .q = q, .q_stride = 8, .o = o, .o_stride = 8 };

    q[unit] = 1;
    m->rule->read(m, block, 0, &r);
    return o[0];
}

static void ck_kept(const struct fw_memory *m, const void *block, const char *want)
{
    struct fw_memory_about about;
    size_t kept = 0;

    for (size_t i = 0; i < 8; i++) {
        bool there = fabsf(recall_unit(m, block, i) - (float)(i + 1)) < 1e-3f;

        ck_assert_msg(there == (want[i] == '1'), "%s: pair %zu", m->rule->name, i);
        kept += there;
    }
    fw_memory_about(m, block, &about);
    ck_assert_uint_eq(about.kept_pairs, kept);
    ck_assert_int_eq(fw_memory_validate(m, block, NULL), 0);
}

static void ck_evicts(const char *rule, const char *a, double x, const char *b, double y,
                      const char *want)
{
    struct fw_memory *m = open_sharp(rule, a, x, b, y);
    void *block = new_block(m);

    for (size_t t = 0; t < 8; t++)
        learn_unit(m, block, t, (float)(t + 1));
    ck_kept(m, block, want);
    free(block);
    fw_memory_free(m);
}

START_TEST(each_baseline_keeps_what_it_says)
{
    ck_evicts("softmax", "max_pairs", 8, NULL, 0, "11111111");
    ck_evicts("softmax", "max_pairs", 5, NULL, 0, "00011111");
    ck_evicts("window", "window", 3, NULL, 0, "00000111");
    ck_evicts("sinks", "window", 3, "sinks", 2, "11000111");
    ck_evicts("sinks", "window", 3, "sinks", 0, "00000111");
    ck_evicts("heavy_hitter", "max_pairs", 4, "recent", 4, "00001111");
}
END_TEST

START_TEST(heavy_hitter_keeps_what_later_keys_attend_to)
{
    struct fw_memory *m = open_sharp("heavy_hitter", "max_pairs", 4, "recent", 2);
    void *block = new_block(m);
    size_t units[] = { 0, 1, 2, 2, 3, 4, 5, 6, 7 };

    for (size_t t = 0; t < sizeof units / sizeof units[0]; t++)
        learn_unit(m, block, units[t], (float)(units[t] + 1));
    /* the first of the equal keys 2 was paid 1.5, all others at most 1 */
    ck_assert_float_eq_tol(recall_unit(m, block, 2), 3, 1e-3f);
    ck_assert_float_eq_tol(recall_unit(m, block, 6), 7, 1e-3f);
    ck_assert_float_eq_tol(recall_unit(m, block, 7), 8, 1e-3f);
    free(block);
    fw_memory_free(m);
}
END_TEST

START_TEST(used_bytes_grow_to_the_whole_block)
{
    struct fw_memory *m = open_sharp("softmax", "max_pairs", 4, NULL, 0);
    void *block = new_block(m);
    struct fw_memory_about about;
    size_t all = fw_memory_layout(m)->block_bytes;

    for (size_t t = 0; t < 6; t++) {
        fw_memory_about(m, block, &about);
        ck_assert_uint_eq(about.used_bytes, all - (t < 4 ? 4 - t : 0) * 16 * sizeof(float));
        learn_unit(m, block, t, 1);
    }
    free(block);
    fw_memory_free(m);
}
END_TEST

START_TEST(pairs_where_none_was_learned_are_refused)
{
    struct fw_memory *m = open_sharp("heavy_hitter", "max_pairs", 4, NULL, 0);
    void *block = new_block(m);
    static const char *const fields[] = { "kept_k", "kept_v" };

    learn_unit(m, block, 0, 1);
    for (size_t i = 0; i < 2; i++) {
        float *x = (float *)field(m, block, fields[i]) + 8;

        *x = 1;
        ck_assert_int_eq(fw_memory_validate(m, block, NULL), -1);
        *x = 0;
    }
    ((double *)field(m, block, "kept_score"))[0] = -1;
    ck_assert_int_eq(fw_memory_validate(m, block, NULL), -1);
    free(block);
    fw_memory_free(m);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("memory/attention");
    TCase *tc = tcase_create("attention");

    fw_num_init();
    fw_num_thread();
    tcase_add_test(tc, attention_is_its_definition_for_any_number_of_pairs);
    tcase_add_test(tc, each_baseline_keeps_what_it_says);
    tcase_add_test(tc, heavy_hitter_keeps_what_later_keys_attend_to);
    tcase_add_test(tc, used_bytes_grow_to_the_whole_block);
    tcase_add_test(tc, pairs_where_none_was_learned_are_refused);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
