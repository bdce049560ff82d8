#include "config.h"

#include "test_main.h"

#include <math.h>

#include "fastweight/safetensors.h"
#include "rules_testing.h"

static const void *data_of(const struct fw_safetensors *st, const char *name)
{
    const struct fw_tensor *t = fw_tensors_find(&st->tensors, name);

    ck_assert_ptr_nonnull(t);
    return t->data;
}

/* S_T from S_0 and the patch, element (i, j) of a head. */
static double mended(const struct fw_memory *m, const struct fw_safetensors *st, const float *S,
                     size_t head, size_t i, size_t j)
{
    const struct fw_tensor *gamma = fw_tensors_find(&st->tensors, "gamma");
    size_t R = (size_t)fw_tensors_find(&st->tensors, "s")->shape[1];
    const float *U = data_of(st, "U"), *s = data_of(st, "s"), *V = data_of(st, "V");
    size_t at = gamma->ndim == 2 ? head * m->rows + i : head;
    double x = ((const double *)gamma->data)[at] * (double)S[(head * m->rows + i) * m->d_v + j];

    for (size_t r = 0; r < R; r++)
        x += (double)U[(head * m->rows + i) * R + r] * (double)s[head * R + r] *
             (double)V[(head * m->d_v + j) * R + r];
    return x;
}

static void ck_mended(const struct run *r, const void *base, const struct fw_safetensors *st)
{
    const struct fw_memory *m = r->m;
    size_t n = m->heads * m->rows * m->d_v;
    float *S = calloc(2 * n, sizeof *S), *want = S + n;
    double most;

    fw_memory_state(m, base, S);
    fw_memory_state(m, r->block, want);
    most = (double)fw_largest(S, 2 * n);
    for (size_t at = 0; at < n; at++)
        ck_assert_double_eq_tol(
            mended(m, st, S, at / m->d_v / m->rows, at / m->d_v % m->rows, at % m->d_v),
            (double)want[at], 1e-4 * (1 + most));
    free(S);
}

/* Rules that write one rank a pair and decay by a diagonal. */
static bool is_lean(const char *rule)
{
    static const char *const names[] = { "linear", "retention",   "gla", "mamba2",
                                         "delta",  "gated_delta", "kda", "comba" };

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(rule, names[i]) == 0)
            return true;
    return false;
}

START_TEST(a_patch_leads_from_one_state_to_the_other)
{
    struct run r;
    struct fw_buf file;
    struct fw_safetensors st;
    struct fw_err err = { .msg = "" };
    void *base;

    if (!start(&r, _i, true))
        return;
    fw_buf_init(&file, SIZE_MAX);
    base = new_block(r.m);
    learn(&r, 0, 60);
    memcpy(base, r.block, r.bytes);
    learn(&r, 60, 3);
    if (fw_memory_rows(r.m) == 0) {
        ck_assert_int_eq(fw_memory_patch(r.m, base, r.block, &file, &err), -1);
        ck_assert_str_eq(err.reason, "not_supported");
    } else {
        ck_assert_msg(fw_memory_patch(r.m, base, r.block, &file, &err) == 0, "%s", err.msg);
        ck_assert_int_eq(fw_safetensors_read(&st, file.data, file.len, &err), 0);
        ck_mended(&r, base, &st);
        for (size_t head = 0; is_lean(r.m->rule->name) && head < r.m->heads; head++)
            ck_assert_uint_le(((const uint32_t *)data_of(&st, "rank"))[head], 3);
        fw_safetensors_done(&st);
    }
    fw_buf_done(&file);
    free(base);
    stop(&r);
}
END_TEST

START_TEST(between_equal_states_lies_nothing)
{
    struct run r;
    struct fw_buf file;
    struct fw_safetensors st;

    if (!start(&r, _i, true))
        return;
    fw_buf_init(&file, SIZE_MAX);
    learn(&r, 0, 20);
    if (fw_memory_rows(r.m)) {
        ck_assert_int_eq(fw_memory_patch(r.m, r.block, r.block, &file, NULL), 0);
        ck_assert_int_eq(fw_safetensors_read(&st, file.data, file.len, NULL), 0);
        for (size_t head = 0; head < r.m->heads; head++)
            ck_assert_uint_eq(((const uint32_t *)data_of(&st, "rank"))[head], 0);
        fw_safetensors_done(&st);
    }
    fw_buf_done(&file);
    stop(&r);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("memory/patch");
    TCase *tc = tcase_create("patch");
    int all = rule_count() * (int)SETUPS;

    fw_num_init();
    fw_num_thread();
    tcase_set_timeout(tc, 300);
    tcase_add_loop_test(tc, a_patch_leads_from_one_state_to_the_other, 0, all);
    tcase_add_loop_test(tc, between_equal_states_lies_nothing, 0, all);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
