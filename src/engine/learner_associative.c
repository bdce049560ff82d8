/* learner_associative.c - the associative memories (fastweight/memory.h) as a learner kind.
 *
 * A token is one pair for all heads; surprise is the residual of each head, never bits. The
 * tensor "S" is shown as S_t, the pending pair folded in; all else as the block has it. */
#include "config.h"

#include "fastweight/learner.h"

#include <stdlib.h>
#include <string.h>

#include "fastweight/memory.h"
#include "inspect_memory.h"

struct associative {
    struct fw_learner base; /* first */
    struct fw_memory *plan;
};

struct associative_view {
    struct fw_view base; /* first */
    const void *block;
};

static const struct fw_memory *plan_of(const struct fw_learner *l)
{
    return ((const struct associative *)l)->plan;
}

static int no_memory(struct fw_err *err)
{
    return fw_fail(err, FW_ENOMEM, "out_of_memory", "out of memory");
}

static int open_memory(struct fw_learner **ret, const struct fw_models *catalogue,
                       const char *model, const struct fw_params *config,
                       struct fw_params *resolved, struct fw_err *err)
{
    struct associative *a = calloc(1, sizeof *a);

    (void)catalogue;
    (void)model;
    if (!a)
        return no_memory(err);
    if (fw_memory_new(&a->plan, config, resolved, err) < 0) {
        free(a);
        return -1;
    }
    a->base.kind = &fw_learner_associative;
    a->base.layout = fw_memory_layout(a->plan);
    a->base.width = fw_memory_heads(a->plan);
    a->base.values[0] = fw_memory_heads(a->plan);
    a->base.values[1] = fw_memory_d_v(a->plan);
    *ret = &a->base;
    return 0;
}

static void close_memory(struct fw_learner *l)
{
    fw_memory_free(((struct associative *)l)->plan);
    free(l);
}

static void init(const struct fw_learner *l, void *block)
{
    fw_memory_init(plan_of(l), block);
}

static int validate(const struct fw_learner *l, const void *block, struct fw_err *err)
{
    return fw_memory_validate(plan_of(l), block, err);
}

static int check(const struct fw_learner *l, enum fw_use use, const struct fw_tensors *in,
                 size_t *ret_tokens, struct fw_err *err)
{
    if (use == FW_USE_PREFIX)
        return fw_fail_param(err, FW_EINVAL, "not_a_token_model", "model",
                             "an associative model predicts no tokens; use recall");
    if (use == FW_USE_EDIT) {
        *ret_tokens = 0;
        return fw_memory_check_edit(plan_of(l), in, err);
    }
    if (use == FW_USE_QUERY)
        return fw_memory_check_queries(plan_of(l), in, ret_tokens, err);
    if (use == FW_USE_SCORE && fw_tensors_find(in, "queries"))
        return fw_fail_param(err, FW_EINVAL, "unknown_tensor", "queries",
                             "score takes no queries; use recall");
    return fw_memory_check(plan_of(l), in, ret_tokens, err);
}

static void learn(const struct fw_learner *l, void *block, const struct fw_tensors *in,
                  size_t from, size_t n, double *surprise, float *values)
{
    fw_memory_learn(plan_of(l), block, in, from, n, surprise, values);
}

static void learn_spread(const struct fw_learner *l, void *block, const struct fw_tensors *in,
                         size_t from, size_t n, double *surprise, float *values)
{
    struct fw_memory_learning what = { in, from, n, surprise, values };

    fw_memory_learn_spread(plan_of(l), block, &what, l->pool);
}

static void edit(const struct fw_learner *l, void *block, const struct fw_tensors *in,
                 const struct fw_tensors *probes, float *values, double *change,
                 double *disturbed)
{
    struct fw_memory_edited did = { .before = values };

    if (!values) {
        fw_memory_edit(plan_of(l), block, in, NULL, NULL);
        return;
    }
    did.after = values + l->values[0] * l->values[1];
    fw_memory_edit(plan_of(l), block, in, fw_tensors_find(probes, "queries"), &did);
    *change = did.change_norm;
    *disturbed = did.disturbed;
}

static int view_new(struct fw_view **ret, const struct fw_learner *l, const void *block,
                    struct fw_err *err)
{
    struct associative_view *v = calloc(1, sizeof *v);

    if (!v)
        return no_memory(err);
    v->base.learner = l;
    v->block = block;
    *ret = &v->base;
    return 0;
}

static void view_free(struct fw_view *v)
{
    free(v);
}

static void score(struct fw_view *v, const struct fw_tensors *in, size_t from, size_t n,
                  double *surprise)
{
    if (surprise)
        fw_memory_score(plan_of(v->learner), ((struct associative_view *)v)->block, in, from, n,
                        surprise);
}

static void recall(struct fw_view *v, const struct fw_tensors *in, size_t from, size_t n,
                   float *values)
{
    fw_memory_recall(plan_of(v->learner), ((struct associative_view *)v)->block, in, from, n,
                     values);
}

static int inspect(const struct fw_learner *l, const void *block, struct fw_report *r,
                   struct fw_err *err)
{
    return fw_inspect_memory(plan_of(l), block, r, err);
}

static int patch(const struct fw_learner *l, const void *base, const void *block,
                 struct fw_buf *out, struct fw_err *err)
{
    return fw_memory_patch(plan_of(l), base, block, out, err);
}

static void show(const struct fw_learner *l, const void *block, const struct fw_field *f,
                 void *out)
{
    if (strcmp(f->name, "S") == 0)
        fw_memory_state(plan_of(l), block, out);
    else
        memcpy(out, (const char *)block + f->offset, f->bytes);
}

static const char *const models[] = { "associative", NULL };

const struct fw_learner_kind fw_learner_associative = {
    .name = "associative",
    .models = models,
    .open = open_memory,
    .close = close_memory,
    .init = init,
    .validate = validate,
    .check = check,
    .learn = learn,
    .learn_spread = learn_spread,
    .edit = edit,
    .view_new = view_new,
    .view_free = view_free,
    .score = score,
    .recall = recall,
    .inspect = inspect,
    .patch = patch,
    .show = show,
};
