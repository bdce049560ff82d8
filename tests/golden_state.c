/* golden_state.c - a case's first and last states, and its outputs, beside the block's.
 *
 * A state S is (H, key index, value index) in a block; a case may have it transposed, or its
 * rows before its heads. S is read as the daemon shows it, with the pending pair folded in. */
#include "config.h"

#include "golden.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Is this state stored as (H, value index, key index)? */
static bool is_transposed(const struct golden_test *t, const char *tensor)
{
    const char *layout = json_string_value(json_object_get(golden_facts(t, tensor), "layout"));

    return layout && (strstr(layout, "P,N") || strstr(layout, "S[value index][key index]"));
}

/* Where element i of a block's (H, rows, cols) is in (H, cols, rows). */
static size_t across(size_t i, size_t rows, size_t cols)
{
    size_t head = i / (rows * cols), in = i % (rows * cols);

    return head * rows * cols + in % cols * rows + in / cols;
}

/* One field of the first block, also as numbers for a request. */
static void set_field(struct golden_test *t, const struct fw_field *f,
                      const struct fw_tensor *s)
{
    float *at = (float *)(void *)((char *)t->block + f->offset);
    bool turned = is_transposed(t, s->name);
    json_t *list = json_array();

    for (size_t i = 0; i < f->bytes / sizeof *at; i++) {
        at[i] = golden_element(s, turned ? across(i, fw_memory_rows(t->memory), t->d_v) : i);
        json_array_append_new(list, json_real((double)at[i]));
    }
    if (!t->start)
        t->start = json_object();
    json_object_set_new(t->start, f->name, list);
}

enum verdict golden_start(struct golden_test *t)
{
    for (const struct golden_name *n = t->rule->initial; n->json; n++) {
        const struct fw_tensor *s = fw_tensors_find(&t->file.tensors, n->json);
        const struct fw_field *f = fw_layout_find(fw_memory_layout(t->memory), n->ours);

        if (!s)
            continue;
        if (!f || (s->dtype != FW_F32 && s->dtype != FW_F64) ||
            s->bytes / fw_dtype_bytes(s->dtype) != f->bytes / sizeof(float))
            return golden_fail(t, FAIL, "no such state here", s->name);
        set_field(t, f, s);
    }
    return OK;
}

/* Is it stored as (rows, H, ...), where a block has (H, rows, ...)? */
static bool has_heads_second(const struct golden_test *t, const char *tensor)
{
    const char *layout = json_string_value(json_object_get(golden_facts(t, tensor), "layout"));
    const char *comma = layout ? strchr(layout, ',') : NULL;

    return comma && comma[1] == 'H' && (comma[2] == 0 || strchr(", (", comma[2]));
}

/* Raises t->error to the largest difference. */
static enum verdict compare(struct golden_test *t, const struct fw_tensor *want,
                            const float *got, size_t count)
{
    const double *w = want->data;

    if (want->dtype != FW_F64 || want->bytes != count * sizeof *w)
        return golden_fail(t, FAIL, "another shape", want->name);
    for (size_t i = 0; i < count; i++) {
        double d = fabs((double)got[i] - w[i]);

        if (!(d <= t->error))
            t->error = d;
    }
    return OK;
}

/* A field (H, rows, inner) of the block with a tensor (rows, H, inner). */
static enum verdict compare_turned(struct golden_test *t, const struct fw_tensor *want,
                                   const struct fw_field *f)
{
    const float *x = (const float *)(const void *)((const char *)t->block + f->offset);
    size_t count = f->bytes / sizeof(float), rows = want->ndim ? (size_t)want->shape[0] : 0;
    size_t inner;
    float *turned;
    enum verdict v;

    if (count == 0 || rows == 0 || want->bytes != count * sizeof(double) ||
        count % (rows * t->heads))
        return golden_fail(t, FAIL, "another shape", want->name);
    inner = count / rows / t->heads;
    turned = malloc(count * sizeof *turned);
    if (!turned)
        return golden_fail(t, FAIL, "out of memory", NULL);
    for (size_t row = 0; row < rows; row++)
        for (size_t h = 0; h < t->heads; h++)
            memcpy(turned + (row * t->heads + h) * inner, x + (h * rows + row) * inner,
                   inner * sizeof *x);
    v = compare(t, want, turned, count);
    free(turned);
    return v;
}

/* One field of the block, S with the pending pair folded in, as the daemon shows it. */
static enum verdict compare_state(struct golden_test *t, const struct fw_tensor *want,
                                  const char *name)
{
    const struct fw_field *f = fw_layout_find(fw_memory_layout(t->memory), name);
    size_t rows = fw_memory_rows(t->memory), count = t->heads * rows * t->d_v;
    float *state, *turned;
    enum verdict v;

    if (!f && want->bytes == 0) /* a window of one pair keeps nothing */
        return OK;
    if (f && has_heads_second(t, want->name))
        return compare_turned(t, want, f);
    if (strcmp(name, "S") != 0)
        return f ? compare(t, want, (const float *)(void *)((char *)t->block + f->offset),
                           f->bytes / sizeof(float))
                 : golden_fail(t, UNKNOWN, "no such state here", want->name);
    state = malloc(2 * count * sizeof *state + 1);
    if (!state)
        return golden_fail(t, FAIL, "out of memory", NULL);
    turned = state + count;
    fw_memory_state(t->memory, t->block, state);
    if (is_transposed(t, want->name))
        for (size_t i = 0; i < count; i++)
            turned[i] = state[across(i, t->d_v, rows)];
    v = compare(t, want, is_transposed(t, want->name) ? turned : state, count);
    free(state);
    return v;
}

enum verdict golden_compare(struct golden_test *t, const float *out)
{
    const char *name = t->rule->out ? t->rule->out : "out";
    const struct fw_tensor *want = fw_tensors_find(&t->file.tensors, name);
    enum verdict v = want ? compare(t, want, out, t->tokens * t->heads * t->d_v)
                          : golden_fail(t, FAIL, "the case lacks", name);

    for (size_t i = 0; i < t->file.tensors.count && v == OK; i++) {
        const char *field;

        want = &t->file.tensors.item[i];
        field = golden_find_name(t->rule->final, want->name);
        if (field)
            v = compare_state(t, want, field);
        else if (strncmp(want->name, "final_", 6) == 0)
            v = golden_fail(t, UNKNOWN, "no such state here", want->name);
    }
    return v;
}
