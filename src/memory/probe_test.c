#include "config.h"

#include "test_main.h"

#include <math.h>

#include "rules_testing.h"

enum { HEADS = 2, D_K = 6, D_V = 4, PAIRS = 3000 };

struct stream { /* of one session with probes */
    struct fw_memory *m;
    void *block;
    struct many b;
    struct fw_memory_probe *probe;
    size_t n; /* probes that were read */
};

static void open_stream(struct stream *s, const char *rule, size_t probes, size_t pairs)
{
    struct setup setup = { NULL, HEADS, D_K, D_V, { { "probes", NULL, (double)probes } } };
    struct fw_err err = { .msg = "" };

    ck_assert_msg(new_memory(&s->m, &setup, rule, &err) == 0, "%s", err.msg);
    s->block = new_block(s->m);
    make_many(&s->b, s->m, pairs, false, 5);
    s->probe = calloc(fw_memory_probes(s->m) + 1, sizeof *s->probe);
}

static void learn_stream(struct stream *s, size_t from, size_t n)
{
    fw_memory_learn(s->m, s->block, &s->b.in, from, n, NULL, NULL);
}

static void read_stream(struct stream *s, uint32_t head)
{
    s->n = fw_memory_read_probes(s->m, s->block, head, s->probe);
}

static void close_stream(struct stream *s)
{
    free(s->probe);
    free_many(&s->b);
    free(s->block);
    fw_memory_free(s->m);
}

START_TEST(probes_are_of_every_age_and_hold_the_pairs_of_their_numbers)
{
    struct stream s;
    size_t places, octave[12] = { 0 };
    const uint64_t *number;
    const float *k, *v;

    open_stream(&s, "delta", 2, PAIRS);
    learn_stream(&s, 0, PAIRS);
    places = fw_memory_probes(s.m);
    ck_assert_uint_eq(places, 48);
    number = field(s.m, s.block, "probe_number");
    k = field(s.m, s.block, "probe_k");
    v = field(s.m, s.block, "probe_v");
    for (size_t head = 0; head < HEADS; head++)
        for (size_t j = 0; j < places; j++) {
            size_t at = head * places + j, t = (size_t)number[at] - 1;

            if (!number[at])
                continue;
            ck_assert_uint_lt(t, PAIRS);
            ck_assert_mem_eq(k + at * D_K, s.b.data[0] + (t * HEADS + head) * D_K, 4 * D_K);
            ck_assert_mem_eq(v + at * D_V, s.b.data[1] + (t * HEADS + head) * D_V, 4 * D_V);
        }
    for (uint32_t head = 0; head < HEADS; head++) {
        read_stream(&s, head);
        ck_assert_uint_eq(s.probe[0].age, 1);
        for (size_t i = 0; i < s.n; i++) {
            ck_assert(i == 0 || s.probe[i].age > s.probe[i - 1].age);
            ck_assert_uint_le(s.probe[i].age, PAIRS);
            octave[63 - __builtin_clzll(s.probe[i].age)]++;
        }
    }
    for (size_t i = 0; i < 12; i++)
        ck_assert_msg(octave[i] > 0, "no probe is %zu pairs old", (size_t)1 << i);
    close_stream(&s);
}
END_TEST

START_TEST(what_a_probe_says_is_what_its_key_reads)
{
    struct stream s;
    float o[HEADS * D_V];
    struct fw_tensor q;
    struct fw_tensors in = { 1, &q };

    open_stream(&s, "gated_delta", 4, PAIRS);
    learn_stream(&s, 0, PAIRS);
    read_stream(&s, 1);
    ck_assert_uint_gt(s.n, 20);
    q = s.b.item[0];
    snprintf(q.name, sizeof q.name, "queries");
    for (size_t i = 0; i < s.n; i++) {
        size_t t = PAIRS - (size_t)s.probe[i].age;
        const float *v = s.b.data[1] + (t * HEADS + 1) * D_V;
        double vv = 0, oo = 0, ov = 0, ee = 0;

        fw_memory_recall(s.m, s.block, &in, t, 1, o);
        for (size_t j = 0; j < D_V; j++) {
            double x = (double)o[D_V + j], y = (double)v[j];

            vv += y * y;
            oo += x * x;
            ov += x * y;
            ee += (y - x) * (y - x);
        }
        ck_assert_double_eq_tol(s.probe[i].error, sqrt(ee / vv), 1e-6);
        ck_assert_double_eq_tol(s.probe[i].cosine, ov / sqrt(oo * vv), 1e-6);
    }
    close_stream(&s);
}
END_TEST

START_TEST(a_window_recalls_what_is_younger_than_it)
{
    struct fw_memory *m;
    struct setup setup = { NULL,
                           HEADS,
                           D_K,
                           D_V,
                           { { "probes", NULL, 8 },
                             { "window", NULL, 20 },
                             { "bandwidth", NULL, 1e-4 },
                             { "key_norm", "l2", 0 } } };
    struct fw_memory_probe p[192];
    struct many b;
    void *block;
    size_t n, old = 0;

    ck_assert_int_eq(new_memory(&m, &setup, "window", NULL), 0);
    block = new_block(m);
    make_many(&b, m, 500, false, 8);
    fw_memory_learn(m, block, &b.in, 0, 500, NULL, NULL);
    n = fw_memory_read_probes(m, block, 0, p);
    for (size_t i = 0; i < n; i++) {
        if (p[i].age <= 20) {
            ck_assert_double_lt(p[i].error, 1e-3);
            ck_assert_double_gt(p[i].cosine, 0.999);
        } else {
            ck_assert_double_gt(p[i].error, 1e-2);
            old++;
        }
    }
    ck_assert_uint_gt(n - old, 4);
    ck_assert_uint_gt(old, 20);
    free_many(&b);
    free(block);
    fw_memory_free(m);
}
END_TEST

START_TEST(a_key_that_comes_again_or_is_edited_is_probed_no_more)
{
    struct stream s;
    float key[HEADS * D_K], value[HEADS * D_V] = { 0 };
    struct fw_tensor item[2] = { { .name = "edit.key",
                                   .dtype = FW_F32,
                                   .ndim = 2,
                                   .shape = { HEADS, D_K },
                                   .data = key,
                                   .bytes = sizeof key },
                                 { .name = "edit.value",
                                   .dtype = FW_F32,
                                   .ndim = 2,
                                   .shape = { HEADS, D_V },
                                   .data = value,
                                   .bytes = sizeof value } };
    const struct fw_tensors edit = { 2, item };

    open_stream(&s, "delta", 8, 300);
    for (size_t t = 3; t < 300; t++) /* three keys, over and over */
        memcpy(s.b.data[0] + t * HEADS * D_K, s.b.data[0] + (t % 3) * HEADS * D_K, sizeof key);
    learn_stream(&s, 0, 300);
    read_stream(&s, 0);
    ck_assert_uint_eq(s.n, 3);
    ck_assert_uint_eq(s.probe[2].age, 3);
    memcpy(key, s.b.data[0] + (299 % 3) * HEADS * D_K, sizeof key);
    for (size_t i = 0; i < HEADS * D_K; i++) /* a key too short is refused */
        ck_assert(fabsf(key[i]) < 1);
    ck_assert_int_eq(fw_memory_check_edit(s.m, &edit, NULL), 0);
    fw_memory_edit(s.m, s.block, &edit, NULL, NULL);
    read_stream(&s, 0);
    ck_assert_uint_eq(s.n, 2);
    ck_assert_uint_eq(s.probe[0].age, 2);
    ck_assert_int_eq(fw_memory_validate(s.m, s.block, NULL), 0);
    close_stream(&s);
}
END_TEST

START_TEST(a_value_of_zero_has_no_error_and_no_cosine)
{
    struct stream s;

    open_stream(&s, "delta", 1, 1);
    memset(s.b.data[1], 0, HEADS * D_V * sizeof(float));
    learn_stream(&s, 0, 1);
    read_stream(&s, 0);
    ck_assert_uint_eq(s.n, 1);
    ck_assert(isnan(s.probe[0].error) && isnan(s.probe[0].cosine));
    close_stream(&s);
}
END_TEST

START_TEST(the_rule_learns_as_without_probes)
{
    struct stream with, without;

    open_stream(&with, "gated_delta", 3, PAIRS);
    open_stream(&without, "gated_delta", 0, PAIRS);
    learn_stream(&with, 0, PAIRS);
    for (size_t t = 0; t < PAIRS; t++)
        learn_stream(&without, t, 1);
    ck_assert_uint_eq(fw_memory_probes(without.m), 0);
    ck_assert_mem_eq(field(with.m, with.block, "S"), field(without.m, without.block, "S"),
                     HEADS * D_K * D_V * sizeof(float));
    close_stream(&with);
    close_stream(&without);
}
END_TEST

static void ck_foreign(struct stream *s, const char *name)
{
    struct fw_err err = { .msg = "" };

    ck_assert_int_eq(fw_memory_validate(s->m, s->block, &err), -1);
    ck_assert_str_eq(err.param, name);
}

START_TEST(a_foreign_reservoir_is_checked_whole)
{
    struct stream s;
    uint64_t *number, keep;
    float *k, *v;
    size_t taken = 0, empty = 23; /* its places, one an octave */

    open_stream(&s, "delta", 1, 100);
    learn_stream(&s, 0, 100);
    number = field(s.m, s.block, "probe_number");
    k = field(s.m, s.block, "probe_k");
    v = field(s.m, s.block, "probe_v");
    while (!number[taken])
        taken++;
    ck_assert_uint_eq(number[empty], 0);
    keep = number[taken];
    for (uint64_t wrong = 101; wrong < 200; wrong++) { /* pairs to come */
        number[taken] = wrong;
        ck_foreign(&s, "probe_number");
    }
    number[taken] = 0;
    ck_foreign(&s, "probe_k");
    number[taken] = UINT64_MAX;
    ck_foreign(&s, "probe_number");
    number[taken] = keep;
    v[taken * D_V] = 2e6f;
    ck_foreign(&s, "probe_v");
    v[taken * D_V] = 0;
    k[empty * D_K] = 1;
    ck_foreign(&s, "probe_k");
    k[empty * D_K] = 0;
    ck_assert_int_eq(fw_memory_validate(s.m, s.block, NULL), 0);
    number[empty] = 100; /* goes no further than octave 1 */
    ck_foreign(&s, "probe_number");
    close_stream(&s);
}
END_TEST

START_TEST(all_heads_together_have_no_more_places_than_inspect_can_tell)
{
    struct setup most = { NULL, 2730, 1, 1, { { "probes", NULL, 4 } } }, more = most;
    struct fw_memory *m;
    struct fw_err err;

    more.heads++;
    ck_assert_int_eq(new_memory(&m, &most, "delta", &err), 0);
    fw_memory_free(m);
    ck_assert_int_eq(new_memory(&m, &more, "delta", &err), -1);
    ck_assert_str_eq(err.param, "config.probes");
}
END_TEST

int main(void)
{
    Suite *s = suite_create("memory/probe");
    TCase *tc = tcase_create("probe");

    fw_num_init();
    fw_num_thread();
    tcase_add_test(tc, probes_are_of_every_age_and_hold_the_pairs_of_their_numbers);
    tcase_add_test(tc, what_a_probe_says_is_what_its_key_reads);
    tcase_add_test(tc, a_window_recalls_what_is_younger_than_it);
    tcase_add_test(tc, a_key_that_comes_again_or_is_edited_is_probed_no_more);
    tcase_add_test(tc, a_value_of_zero_has_no_error_and_no_cosine);
    tcase_add_test(tc, the_rule_learns_as_without_probes);
    tcase_add_test(tc, a_foreign_reservoir_is_checked_whole);
    tcase_add_test(tc, all_heads_together_have_no_more_places_than_inspect_can_tell);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
