/* rules_hostile_test.c - 10^5 tokens, with FW_FULL=1 10^6, at the edges of what a check lets
 * through: gates of 1 down to exp(-1e6), keys that repeat, nearly vanish, are as long as may
 * be, are 0, and values, steps and factors at their bounds. A body that is refused whole gives
 * way to a random one. */
#include "config.h"

#include "test_main.h"

#include <math.h>
#include <stdlib.h>

#include "rules_testing.h"

#define BATCH 1000
#define KINDS 4 /* of keys */

static float hostile_element(const struct fw_input *in, uint64_t *seed)
{
    static const float gates[] = { 0, -1e-30f, -87.3f, -88.8f, -1e4f, -1e6f };
    unsigned pick = (unsigned)(3 + 3 * next_float(seed)) % 6;

    if (in->max == 0) /* a gate as a logarithm */
        return gates[pick] >= in->min ? gates[pick] : in->min;
    return pick == 0   ? in->min
           : pick == 1 ? in->max
           : pick == 2 ? (float)in->fallback
                       : many_value(in, seed);
}

/* Keys of one kind, all else at the edges of its range, steps as far as their check
 * allows.
 */
static void hostile(struct many *b, const struct fw_memory *m, int kind, uint64_t *seed)
{
    float top = 0.99e6f / sqrtf((float)(m->d_k > m->d_v ? m->d_k : m->d_v));
    size_t rows = b->n * m->pairs * m->heads;

    for (size_t row = 0; row < rows; row++) {
        float *k = b->data[0] + row * m->d_k, *v = b->data[1] + row * m->d_v;
        float len = kind == 1 ? 1e-3f : kind == 2 ? top : 1, sign = next_float(seed);

        for (size_t i = 0; i < m->d_k; i++)
            k[i] = kind == 0                   ? (i == 0)
                   : kind == 3 && row % 3 == 0 ? 0
                                               : len * next_float(seed);
        for (size_t j = 0; j < m->d_v; j++)
            v[j] = sign > 0 ? top : -top;
    }
    for (size_t i = 0; i < many_count(b, 2); i++)
        b->data[2][i] = next_float(seed) > 0 ? top : -top;
    for (size_t i = 3; i < b->in.count; i++)
        for (size_t j = 0; j < many_count(b, i); j++)
            b->data[i][j] = hostile_element(b->input[i], seed);
}

static void tame_steps(struct many *b, const struct fw_memory *m)
{
    for (size_t i = 3; i < b->in.count; i++)
        for (size_t row = 0;
             strcmp(b->input[i]->name, many_step(m->rule)) == 0 && row < many_count(b, i);
             row++) {
            const float *k = b->data[0] + row * m->d_k;
            float kk = 0, beta;

            for (size_t j = 0; j < m->d_k; j++)
                kk += k[j] * k[j];
            beta = m->l2 ? 1.9f : kk > 0 ? 1.99f / kk : 1e6f;
            b->data[i][row] = beta < b->input[i]->max ? beta : b->input[i]->max;
        }
}

static int round_count(void)
{
    const char *full = getenv("FW_FULL");

    return full && full[0] && full[0] != '0' ? 1000 : (int)rounds_of(100, 20);
}

START_TEST(no_stream_of_hostile_tokens_leaves_a_number_that_is_not_finite)
{
    struct run r;
    size_t n, taken = 0;
    int rounds = round_count();
    uint64_t seed = 5;
    float *values;

    if ((size_t)_i % SETUPS && !setups[(size_t)_i % SETUPS].rule) /* one of every rule's */
        return;
    if (!start(&r, _i, true))
        return;
    free_many(&r.b);
    make_many(&r.b, r.m, BATCH, true, 1);
    values = malloc(BATCH * r.m->heads * r.m->d_v * sizeof *values);
    for (int round = 0; round < rounds; round++) {
        hostile(&r.b, r.m, round * KINDS / rounds, &seed);
        tame_steps(&r.b, r.m);
        if (fw_memory_check(r.m, &r.b.in, &n, NULL) < 0) { /* refused whole: a sane one */
            free_many(&r.b);
            make_many(&r.b, r.m, BATCH, true, seed);
        } else {
            taken++;
        }
        fw_memory_learn(r.m, r.block, &r.b.in, 0, BATCH, NULL, values);
        ck_honest(&r, values, BATCH * r.m->heads * r.m->d_v);
    }
    ck_assert_msg(taken >= (size_t)rounds / KINDS, "%s: only %zu hostile bodies were taken",
                  r.m->rule->name, taken);
    free(values);
    stop(&r);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("memory/rules_hostile");
    TCase *tc = tcase_create("rules");

    fw_num_init();
    fw_num_thread();
    tcase_set_timeout(tc, 600);
    add_all(tc, no_stream_of_hostile_tokens_leaves_a_number_that_is_not_finite);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
