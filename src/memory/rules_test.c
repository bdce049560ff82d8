#include "config.h"

#include "test_main.h"

#include <math.h>

#include "rules_testing.h"

/* Every row of the table keeps the promises: a new row is tested by being there. */

static void ck_same(const struct run *a, const struct run *b)
{
    ck_assert_mem_eq(a->block, b->block, a->bytes);
    ck_assert_mem_eq(a->residual, b->residual, TOKENS * a->m->heads * sizeof(double));
    ck_assert_mem_eq(a->values, b->values, TOKENS * a->m->heads * a->m->d_v * sizeof(float));
}

START_TEST(a_row_says_what_it_is)
{
    const struct fw_rule *r = fw_rules[_i];

    ck_assert(r->memory && r->objective && r->retention && r->optimiser && r->horizon);
    ck_assert(r->learn && r->read);
    ck_assert_ptr_eq(fw_rule_find(r->name), r);
    ck_assert_uint_le(r->input_count, FW_MAX_INPUTS);
    for (size_t i = 0; i < r->input_count; i++) {
        const struct fw_input *in = &r->inputs[i];

        ck_assert(in->min <= in->fallback && in->fallback <= in->max);
        ck_assert(in->min >= -FW_ELEMENT_MAX && in->max <= FW_ELEMENT_MAX);
        ck_assert(*in->reason || (in->min == -FW_ELEMENT_MAX && in->max == FW_ELEMENT_MAX));
        for (size_t j = 0; j < i; j++)
            ck_assert_str_ne(in->name, r->inputs[j].name);
    }
}
END_TEST

/* `name` in docs/associative.md, for rules and inputs. */
static void ck_documented(const char *text, const char *name)
{
    char quoted[80];

    snprintf(quoted, sizeof quoted, "`%s`", name);
    ck_assert_msg(strstr(text, quoted) != NULL, "docs/associative.md lacks %s", quoted);
}

START_TEST(a_row_is_documented)
{
    const char *dir = getenv("top_srcdir");
    static char text[262144];
    char path[4096];
    FILE *f;

    snprintf(path, sizeof path, "%s/docs/associative.md", dir ? dir : ".");
    f = fopen(path, "rb");
    ck_assert_msg(f != NULL || !dir, "no %s", path);
    if (!f)
        return; /* not run by make */
    text[fread(text, 1, sizeof text - 1, f)] = 0;
    fclose(f);
    ck_documented(text, fw_rules[_i]->name);
    for (size_t i = 0; i < fw_rules[_i]->input_count; i++)
        ck_documented(text, fw_rules[_i]->inputs[i].name);
}
END_TEST

START_TEST(a_resolved_config_resolves_to_itself_and_unknown_keys_are_named)
{
    struct fw_params p = { 0 }, full, again;
    struct fw_memory *m;
    struct fw_err err;

    fw_params_set_string(&p, "rule", fw_rules[_i]->name, NULL);
    ck_assert_msg(fw_memory_new(&m, &p, &full, &err) == 0, "%s", err.msg);
    fw_memory_free(m);
    ck_assert_int_eq(fw_memory_new(&m, &full, &again, NULL), 0);
    ck_assert_mem_eq(&full, &again, sizeof full);
    fw_memory_free(m);
    fw_params_set_number(&p, "no_such_key", 1, NULL);
    ck_assert_int_eq(fw_memory_new(&m, &p, &full, &err), -1);
    ck_assert_str_eq(err.param, "config.no_such_key");
}
END_TEST

START_TEST(a_stream_cut_and_moved_anywhere_gives_the_same_block)
{
    struct run whole, ones, cut;
    uint64_t seed = 7;

    if (!start(&whole, _i, true) || !start(&ones, _i, true) || !start(&cut, _i, true))
        return;
    learn(&whole, 0, TOKENS);
    ck_honest(&whole, whole.values, TOKENS * whole.m->heads * whole.m->d_v);
    for (size_t t = 0; t < TOKENS; t++)
        learn(&ones, t, 1);
    ck_same(&whole, &ones);
    for (int round = 0; round < 5; round++) {
        fw_memory_init(cut.m, cut.block);
        for (size_t t = 0, n; t < TOKENS; t += n) {
            void *moved = aligned_alloc(64, cut.bytes);

            n = 1 + (size_t)(40 * fabsf(next_float(&seed)));
            n = n < TOKENS - t ? n : TOKENS - t;
            learn(&cut, t, n);
            ck_honest(&cut, NULL, 0);
            memcpy(moved, cut.block, cut.bytes); /* a fork, a snapshot */
            free(cut.block);
            cut.block = moved;
        }
        ck_same(&whole, &cut);
    }
    stop(&whole);
    stop(&ones);
    stop(&cut);
}
END_TEST

START_TEST(cuts_around_the_saturating_token_change_no_bit)
{
    size_t every, n;
    struct fw_memory *m = open_memory(_i);
    struct many b;
    void *whole, *cut;

    if (!m)
        return;
    every = FW_SATURATE_EVERY / m->pairs;
    n = every + 5;
    make_many(&b, m, n, true, 11);
    whole = new_block(m);
    cut = new_block(m);
    fw_memory_learn(m, whole, &b.in, 0, n, NULL, NULL);
    fw_memory_learn(m, cut, &b.in, 0, every - 1, NULL, NULL);
    for (size_t t = every - 1; t < n; t++)
        fw_memory_learn(m, cut, &b.in, t, 1, NULL, NULL);
    ck_assert_mem_eq(whole, cut, fw_memory_layout(m)->block_bytes);
    ck_assert_int_eq(fw_memory_validate(m, whole, NULL), 0);
    ck_assert_uint_eq(((uint64_t *)field(m, whole, "counters"))[0], n);
    free_many(&b);
    free(whole);
    free(cut);
    fw_memory_free(m);
}
END_TEST

START_TEST(both_levels_give_the_same_block)
{
    struct run fast, base;

    if (!start(&fast, _i, true) || !start(&base, _i, true))
        return;
    learn(&fast, 0, TOKENS);
    setenv("FW_CPU_LEVEL", "base", 1);
    fw_num_init();
    learn(&base, 0, TOKENS);
    unsetenv("FW_CPU_LEVEL");
    fw_num_init();
    ck_same(&fast, &base);
    stop(&fast);
    stop(&base);
}
END_TEST

/* The bytes of each rule's block after one stream: the same with every compiler, level and
 * version. A new rule adds its line, which the failing test prints. */
static const struct {
    const char *rule;
    uint64_t hash;
} pinned[] = {
    { "linear", 0x617f12908100a649 },        { "linear_norm", 0x2f9e33905876e1a2 },
    { "retention", 0xc65ce9c2b4ac5f32 },     { "gla", 0x95914a1fb33f928b },
    { "mamba2", 0x80d46ab31239cf7d },        { "delta", 0x54a162498c345a09 },
    { "gated_delta", 0x335f57ebc82eb656 },   { "kda", 0x429a98fc4a98dd92 },
    { "comba", 0x3aa47db64c9a7d6a },         { "longhorn", 0x92be94a355c0a692 },
    { "delta_product", 0xf71ff45a481cd494 }, { "gated_delta_product", 0x2c3e1614f49057d4 },
    { "wkv7", 0xe2ef026da3c300f8 },          { "dplr", 0x58dacae7d5b87f24 },
    { "iplr", 0xf11cbef4cc603807 },          { "omega", 0xea12012589b9fb4e },
    { "omega_muon", 0xbc0318f2011fbcce },    { "momentum", 0xf508dee7770e0246 },
    { "huber", 0xc51ad2caa1897162 },         { "mesa", 0x926adf482c3439d2 },
    { "ttt_linear", 0x3e5513fc2f7cd69c },    { "ttt_mlp", 0x22738d1e61a9f6ea },
    { "titans", 0x283d78b9c4186b21 },        { "log_linear", 0xefbe6a04b4423265 },
    { "softmax", 0xfc77315d72ddc851 },       { "window", 0x261068da30f7de5b },
    { "sinks", 0xbcc56eb6f53b8ef1 },         { "heavy_hitter", 0xabb278af880d0560 },
};

static uint64_t fnv(const unsigned char *x, size_t n)
{
    uint64_t h = 0xcbf29ce484222325u;

    for (size_t i = 0; i < n; i++)
        h = (h ^ x[i]) * 0x100000001b3u;
    return h;
}

START_TEST(the_bytes_are_those_of_other_compilers_and_versions)
{
    struct run r;
    uint64_t want = 0, got;

    ck_assert(start(&r, _i * (int)SETUPS, true));
    learn(&r, 0, TOKENS);
    got = fnv(r.block, r.bytes);
    for (size_t i = 0; i < sizeof pinned / sizeof pinned[0]; i++)
        if (strcmp(pinned[i].rule, r.m->rule->name) == 0)
            want = pinned[i].hash;
    ck_assert_msg(got == want, "{ \"%s\", 0x%016llx },", r.m->rule->name,
                  (unsigned long long)got);
    stop(&r);
}
END_TEST

START_TEST(asking_for_nothing_back_changes_no_bit)
{
    struct run a, b;

    if (!start(&a, _i, true) || !start(&b, _i, true))
        return;
    learn(&a, 0, TOKENS);
    fw_memory_learn(b.m, b.block, &b.b.in, 0, TOKENS, NULL, NULL);
    ck_assert_mem_eq(a.block, b.block, a.bytes);
    stop(&a);
    stop(&b);
}
END_TEST

START_TEST(reads_write_nothing_and_agree_with_learning)
{
    struct run r;
    size_t width;
    double *residual;
    float *values;
    void *before;

    if (!start(&r, _i, false)) /* only what a pair must carry: nothing shapes its own read */
        return;
    width = r.m->heads * r.m->d_v;
    residual = malloc(TOKENS * r.m->heads * sizeof *residual);
    values = malloc(TOKENS * width * sizeof *values);
    before = malloc(r.bytes);
    learn(&r, 0, TOKENS);
    memcpy(before, r.block, r.bytes);
    fw_memory_score(r.m, r.block, &r.b.in, 0, TOKENS, residual);
    fw_memory_recall(r.m, r.block, &r.b.in, 0, TOKENS, values);
    ck_assert_mem_eq(before, r.block, r.bytes);
    ck_assert_mem_eq(values + (TOKENS - 1) * width, r.values + (TOKENS - 1) * width,
                     width * sizeof *values);
    fw_memory_score(r.m, r.block, &r.b.in, 70, 13, r.residual);
    fw_memory_recall(r.m, r.block, &r.b.in, 70, 13, r.values);
    ck_assert_mem_eq(r.residual, residual + 70 * r.m->heads, 13 * r.m->heads * sizeof(double));
    ck_assert_mem_eq(r.values, values + 70 * width, 13 * width * sizeof(float));
    free(before);
    free(values);
    free(residual);
    stop(&r);
}
END_TEST

START_TEST(a_zero_key_is_harmless)
{
    struct run r;

    if (!start(&r, _i, true))
        return;
    memset(r.b.data[0] + 3 * r.m->pairs * r.m->heads * r.m->d_k, 0,
           r.m->pairs * r.m->heads * r.m->d_k * sizeof(float));
    memset(r.b.data[2] + 3 * r.m->heads * r.m->d_k, 0, r.m->heads * r.m->d_k * sizeof(float));
    learn(&r, 0, TOKENS);
    ck_honest(&r, r.values, TOKENS * r.m->heads * r.m->d_v);
    stop(&r);
}
END_TEST

static void ck_refused(struct run *r, const char *name, const char *reason)
{
    struct fw_err err = { .code = FW_OK };
    size_t n;

    ck_assert_msg(fw_memory_check(r->m, &r->b.in, &n, &err) == -1, "%s took a bad %s",
                  r->m->rule->name, name);
    ck_assert_str_eq(err.param, name);
    ck_assert_str_eq(err.reason, reason);
    ck_assert_ptr_nonnull(strstr(err.msg, "pair 2, head 0"));
}

START_TEST(bad_elements_of_every_tensor_are_named_with_pair_and_head)
{
    struct run r;
    struct fw_err err = { .msg = "" };
    size_t n;

    if (!start(&r, _i, true))
        return;
    ck_assert_msg(fw_memory_check(r.m, &r.b.in, &n, &err) == 0, "%s: %s", r.m->rule->name,
                  err.msg);
    ck_assert_uint_eq(n, TOKENS);
    for (size_t i = 0; i < r.b.in.count; i++) {
        const struct fw_input *in = r.b.input[i];
        const char *name = r.b.item[i].name;
        float *x = r.b.data[i] + 2 * (many_count(&r.b, i) / TOKENS), keep = *x;

        *x = NAN;
        ck_refused(&r, name, "non_finite");
        *x = 2e6f;
        ck_refused(&r, name, "too_large");
        if (in && in->min > -FW_ELEMENT_MAX) {
            *x = in->min - 0.5f - 1e-3f * fabsf(in->min);
            ck_refused(&r, name, in->reason);
        }
        if (in && in->max < FW_ELEMENT_MAX) {
            *x = in->max + 0.5f + 1e-3f * fabsf(in->max);
            ck_refused(&r, name, in->reason);
        }
        *x = keep;
    }
    stop(&r);
}
END_TEST

START_TEST(tensors_that_must_be_there_are_missed_by_name)
{
    struct run r;
    size_t n;

    if (!start(&r, _i, true))
        return;
    for (size_t i = 0; i < r.b.in.count; i++) {
        struct fw_tensor last = r.b.item[r.b.in.count - 1], gone = r.b.item[i];
        bool needed = r.b.input[i] ? r.b.input[i]->flags & FW_REQUIRED : i < 2;
        struct fw_err err = { .code = FW_OK };

        r.b.item[i] = last;
        r.b.in.count--;
        if (fw_memory_check(r.m, &r.b.in, &n, &err) < 0) /* a fallback may be too large */
            ck_assert_str_eq(err.reason, needed ? "missing_tensor" : "unstable_step");
        else
            ck_assert(!needed);
        if (needed)
            ck_assert_str_eq(err.param, gone.name);
        r.b.item[i] = gone;
        r.b.item[r.b.in.count++] = last;
    }
    stop(&r);
}
END_TEST

START_TEST(no_field_of_a_foreign_block_may_hold_what_is_no_number)
{
    struct run r;
    const struct fw_layout *l;

    if (!start(&r, _i, true))
        return;
    learn(&r, 0, TOKENS - 1);
    l = fw_memory_layout(r.m);
    for (size_t i = 0; i < l->count; i++) {
        const struct fw_field *f = &l->field[i];
        char *x = (char *)r.block + f->offset + f->bytes - fw_dtype_bytes(f->dtype), keep[8];
        const float nan32 = NAN;
        const double nan64 = NAN;

        if (f->dtype != FW_F32 && f->dtype != FW_F64)
            continue;
        memcpy(keep, x, fw_dtype_bytes(f->dtype));
        memcpy(x, f->dtype == FW_F32 ? (const void *)&nan32 : &nan64, fw_dtype_bytes(f->dtype));
        ck_assert_msg(fw_memory_validate(r.m, r.block, NULL) == -1, "%s: a NaN in %s passed",
                      r.m->rule->name, f->name);
        memcpy(x, keep, fw_dtype_bytes(f->dtype));
    }
    ck_honest(&r, NULL, 0);
    stop(&r);
}
END_TEST

START_TEST(a_head_can_be_inspected)
{
    struct run r;
    struct fw_memory_head_stats st;
    struct fw_memory_about about;
    double spectrum[64];

    if (!start(&r, _i, true))
        return;
    for (int full = 0; full < 2; full++) {
        if (full)
            learn(&r, 0, TOKENS);
        fw_memory_about(r.m, r.block, &about);
        ck_assert_str_eq(about.rule, r.m->rule->name);
        ck_assert_uint_eq(about.saturated, 0);
        ck_assert_int_eq(fw_memory_head_stats(r.m, r.block, 0, &st, spectrum, NULL), 0);
        ck_assert_uint_eq(st.nonfinite, 0);
        ck_assert(st.norm >= 0 && isfinite(st.norm) && isfinite(st.residual_after));
        ck_assert(st.residual_before == (full ? r.residual[(TOKENS - 1) * r.m->heads] : 0));
    }
    stop(&r);
}
END_TEST

/* What programs that know no rule by name go by. */
START_TEST(the_inputs_a_plan_names_are_a_body_it_takes)
{
    struct run r;
    struct fw_memory_input in;
    struct fw_err err = { .msg = "" };
    size_t n, i = 0;

    if (!start(&r, _i, true))
        return;
    for (; fw_memory_input(r.m, i, &in) == 0; i++) {
        const struct fw_tensor *t = fw_tensors_find(&r.b.in, in.name);

        ck_assert_msg(t, "%s", in.name);
        ck_assert_uint_eq(t->ndim, in.ndim);
        ck_assert_uint_eq(in.shape[0], 1);
        for (size_t d = 1; d < in.ndim; d++)
            ck_assert_uint_eq(t->shape[d], in.shape[d]);
    }
    ck_assert_uint_eq(i, r.b.in.count);
    ck_assert_msg(fw_memory_check(r.m, &r.b.in, &n, &err) == 0, "%s", err.msg);
    ck_assert_str_eq(fw_memory_rule((size_t)_i / SETUPS), r.m->rule->name);
    ck_assert_ptr_null(fw_memory_rule((size_t)rule_count()));
    stop(&r);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("memory/rules");
    TCase *tc = tcase_create("rules");
    int rules = rule_count();

    fw_num_init();
    fw_num_thread();
    tcase_set_timeout(tc, 300);
    tcase_add_loop_test(tc, a_row_says_what_it_is, 0, rules);
    tcase_add_loop_test(tc, a_row_is_documented, 0, rules);
    tcase_add_loop_test(tc, a_resolved_config_resolves_to_itself_and_unknown_keys_are_named, 0,
                        rules);
    add_all(tc, a_stream_cut_and_moved_anywhere_gives_the_same_block);
    add_all(tc, cuts_around_the_saturating_token_change_no_bit);
    add_all(tc, both_levels_give_the_same_block);
    tcase_add_loop_test(tc, the_bytes_are_those_of_other_compilers_and_versions, 0, rules);
    add_all(tc, asking_for_nothing_back_changes_no_bit);
    add_all(tc, reads_write_nothing_and_agree_with_learning);
    add_all(tc, a_zero_key_is_harmless);
    add_all(tc, bad_elements_of_every_tensor_are_named_with_pair_and_head);
    add_all(tc, tensors_that_must_be_there_are_missed_by_name);
    add_all(tc, no_field_of_a_foreign_block_may_hold_what_is_no_number);
    add_all(tc, a_head_can_be_inspected);
    add_all(tc, the_inputs_a_plan_names_are_a_body_it_takes);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
