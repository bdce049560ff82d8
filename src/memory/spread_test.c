#include "config.h"

#include "test_main.h"

#include "fastweight/pool.h"
#include "rules_testing.h"

static const size_t workers[] = { 1, 2, 3, 0 }; /* 0: as many as heads */

static struct fw_pool *new_pool(size_t i, size_t heads)
{
    struct fw_pool *pool;
    size_t n = workers[i] ? workers[i] : heads;

    ck_assert_int_eq(fw_pool_new(&pool, (unsigned)n, fw_num_thread, NULL), 0);
    return pool;
}

static void spread(struct run *r, size_t from, size_t n, struct fw_pool *pool)
{
    struct fw_memory_learning what = { &r->b.in, from, n, r->residual + from * r->m->heads,
                                       r->values + from * r->m->heads * r->m->d_v };

    fw_memory_learn_spread(r->m, r->block, &what, pool);
}

static void ck_same(const struct run *a, const struct run *b)
{
    ck_assert_mem_eq(a->block, b->block, a->bytes);
    ck_assert_mem_eq(a->residual, b->residual, TOKENS * a->m->heads * sizeof(double));
    ck_assert_mem_eq(a->values, b->values, TOKENS * a->m->heads * a->m->d_v * sizeof(float));
}

START_TEST(a_learn_spread_over_any_number_of_workers_gives_the_same_bits)
{
    struct run alone, r;

    if (!start(&alone, _i, true) || !start(&r, _i, true))
        return;
    learn(&alone, 0, TOKENS);
    for (size_t i = 0; i < sizeof workers / sizeof workers[0]; i++) {
        struct fw_pool *pool = new_pool(i, r.m->heads);

        fw_memory_init(r.m, r.block);
        spread(&r, 0, 70, pool);
        spread(&r, 70, 1, pool);
        learn(&r, 71, 9);
        spread(&r, 80, TOKENS - 80, pool);
        ck_same(&alone, &r);
        fw_pool_free(pool);
    }
    stop(&alone);
    stop(&r);
}
END_TEST

static struct fw_memory *memory_of(const char *rule, size_t heads)
{
    const struct setup s = { .heads = heads, .d_k = 6, .d_v = 6 };
    struct fw_memory *m;
    struct fw_err err;

    ck_assert_msg(new_memory(&m, &s, rule, &err) == 0, "%s", err.msg);
    return m;
}

static void learn_heads(const struct fw_memory *m, void *block, const struct many *b,
                        size_t step)
{
    struct fw_memory_learning what = { .in = &b->in, .n = b->n };
    uint64_t cut = 0;

    for (size_t end = m->heads, n; end > 0; end -= n) {
        n = step < end ? step : end;
        cut += fw_memory_learn_heads(m, block, &what, end - n, end);
    }
    fw_memory_learned(m, block, b->n, cut);
}

/* A prime number of heads, more than a learn has parts; across the saturating token. */
START_TEST(heads_learned_in_any_order_and_grouping_give_the_same_block)
{
    struct fw_memory *m = memory_of(fw_rules[_i]->name, 37);
    size_t bytes = fw_memory_layout(m)->block_bytes;
    uint64_t before = FW_SATURATE_EVERY / m->pairs - 20, cut;
    void *alone = new_block(m), *block = new_block(m);
    struct many b;
    struct fw_pool *pool = new_pool(1, 0);
    struct fw_memory_learning what = { .in = &b.in, .n = 50 };

    make_many(&b, m, 50, true, 3);
    for (size_t step = 0; step < 40; step += 13) {
        for (int i = 0; i < 2; i++) { /* tokens whose one trace is to be cut */
            fw_memory_init(m, i ? block : alone);
            memcpy(field(m, i ? block : alone, "counters"), &before, sizeof before);
            if (m->at_S != FW_NOWHERE)
                *(float *)field(m, i ? block : alone, "S") = 1e18f;
        }
        fw_memory_learn(m, alone, &b.in, 0, 50, NULL, NULL);
        if (step)
            learn_heads(m, block, &b, step);
        else
            fw_memory_learn_spread(m, block, &what, pool);
        ck_assert_mem_eq(alone, block, bytes);
        memcpy(&cut, (uint64_t *)field(m, block, "counters") + 1, sizeof cut);
        if (strcmp(m->rule->name, "delta") == 0)
            ck_assert_uint_eq(cut, 1);
    }
    fw_pool_free(pool);
    free_many(&b);
    free(alone);
    free(block);
    fw_memory_free(m);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("memory/spread");
    TCase *tc = tcase_create("spread");

    fw_num_init();
    fw_num_thread();
    tcase_set_timeout(tc, 300);
    add_all(tc, a_learn_spread_over_any_number_of_workers_gives_the_same_bits);
    tcase_add_loop_test(tc, heads_learned_in_any_order_and_grouping_give_the_same_block, 0,
                        rule_count());
    suite_add_tcase(s, tc);
    return run_suite(s);
}
