/* recall.c - what a memory answers to queries, and which candidate that is nearest to.
 *
 * cosine(values_i, candidate_j) over all heads as one vector, in double. Ranking n queries
 * against m candidates costs n m heads d_v, and n m top when each candidate is nearer than
 * those before it; it runs on the pool a slice at a time, so that a large one does not hold a
 * worker, and has a limit, since a stopping server waits for it. */
#include "config.h"

#include "op.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "in.h"
#include "query.h"

enum { TOP_DEFAULT = 10, TOP_MAX = 1000, SLICE_PRODUCTS = 4 << 20, RANKED_MAX = 4 << 20 };

#define PRODUCTS_MAX ((size_t)1 << 34)

struct ranking {
    const float *candidate; /* (count, width); the batch's */
    size_t count, width, top;
    double *norm;    /* (count) */
    size_t row;      /* queries ranked so far */
    uint32_t *index; /* (queries, top) */
    double *cosine;  /* (queries, top) */
};

void ranking_free(struct ranking *r)
{
    if (!r)
        return;
    free(r->norm);
    free(r->index);
    free(r->cosine);
    free(r);
}

static size_t config_size(const struct op *op, const char *key)
{
    const struct fw_param *p = fw_params_find(&op->facts.config, key);

    return p && p->type == FW_PARAM_NUMBER ? (size_t)p->number : 0;
}

static int check_candidates(const struct op *op, const struct fw_tensor *c, struct fw_err *err)
{
    size_t heads = config_size(op, "heads"), d_v = config_size(op, "d_v");
    const float *x = c->data;
    size_t i;

    if ((!(c->ndim == 3 && c->shape[1] == heads && c->shape[2] == d_v) &&
         !(c->ndim == 2 && heads == 1 && c->shape[1] == d_v)) ||
        c->shape[0] == 0)
        return fw_fail_param(err, FW_EINVAL, "bad_shape", "candidates",
                             "candidates must have the shape [m][%zu][%zu]", heads, d_v);
    for (i = 0; i < c->bytes / sizeof *x; i++) {
        if (!isfinite(x[i]) || fabsf(x[i]) > 1e6f)
            return fw_fail_param(
                err, FW_EINVAL, "not_finite", "candidates",
                "candidates[%zu] holds a number that is not finite or over 1e6",
                i / (heads * d_v));
    }
    return 0;
}

static double norm_of(const float *x, size_t n)
{
    double sum = 0;
    size_t i;

    for (i = 0; i < n; i++)
        sum += (double)x[i] * (double)x[i];
    return sqrt(sum);
}

static int check_size(const struct ranking *r, size_t queries, struct fw_err *err)
{
    if (queries > RANKED_MAX / r->top)
        return fw_fail_param(err, FW_ETOOBIG, "too_many_ranked", "top_candidates",
                             "queries times top_candidates may be %d", RANKED_MAX);
    if (queries > PRODUCTS_MAX / (r->count * (r->width + r->top)))
        return fw_fail_param(err, FW_ETOOBIG, "too_many_products", "candidates",
                             "queries times candidates times (%zu numbers of one + %zu ranked)"
                             " may be %zu",
                             r->width, r->top, PRODUCTS_MAX);
    return 0;
}

/* Room for the ranks of `queries` rows. */
static int prepare(struct op *op, const struct fw_tensor *c, size_t queries, size_t top,
                   struct fw_err *err)
{
    struct ranking *r = op->ranking = calloc(1, sizeof *r);
    size_t i;

    if (r) {
        r->candidate = c->data;
        r->count = c->shape[0];
        r->width = c->bytes / sizeof(float) / r->count;
        r->top = top < r->count ? top : r->count;
        if (check_size(r, queries, err) < 0)
            return -1;
        r->norm = calloc(r->count, sizeof r->norm[0]);
        r->index = calloc(queries * r->top, sizeof r->index[0]);
        r->cosine = calloc(queries * r->top, sizeof r->cosine[0]);
    }
    if (!r || !r->norm || !r->index || !r->cosine)
        return fw_fail(err, FW_ENOMEM, "out_of_memory", "no memory for a ranking");
    for (i = 0; i < r->count; i++)
        r->norm[i] = norm_of(r->candidate + i * r->width, r->width);
    return 0;
}

static int read_body(struct op *op, uint64_t *top, struct fw_err *err)
{
    static const char *const known[] = { "queries", "candidates", "top_candidates", NULL };
    static const char *const names[] = { "queries", "candidates", NULL };
    const struct fw_buf *body = fw_http_body(op->call);
    const json_t *v;
    size_t i;

    if (fw_http_media(op->call) == FW_HTTP_SAFETENSORS)
        return batch_file(&op->batch, &op->intake, names, body->data, body->len, err);
    if (op_json(op, false, known, err) < 0 ||
        in_size(op->root, "top_candidates", 1, TOP_MAX, top, err) < 0)
        return -1;
    for (i = 0; names[i]; i++) {
        v = json_object_get(op->root, names[i]);
        if (v && batch_floats(&op->batch, names[i], v, err) < 0)
            return -1;
    }
    return 0;
}

static int ask_recall(struct op *op, struct fw_err *err)
{
    uint64_t top = 0;
    struct fw_tensors queries, candidates;

    if (op_facts(op, err) < 0 ||
        query_size(op->call, "top_candidates", 1, TOP_MAX, &top, err) < 0)
        return -1;
    if (!op->intake.pairs)
        return fw_fail(err, FW_EINVAL, "wrong_kind",
                       "only associative sessions recall; others predict");
    if (read_body(op, &top, err) < 0)
        return -1;
    queries = batch_lend_one(&op->batch, "queries");
    candidates = batch_lend_one(&op->batch, "candidates");
    if (queries.count == 0)
        return fw_fail_param(err, FW_EINVAL, "missing_field", "queries", "queries are missing");
    if (top > 0 && candidates.count == 0)
        return fw_fail_param(err, FW_EINVAL, "missing_field", "candidates",
                             "top_candidates needs candidates");
    op->r.in = queries;
    if (candidates.count == 0)
        return 0;
    if (check_candidates(op, candidates.item, err) < 0)
        return -1;
    return prepare(op, candidates.item, queries.item->shape[0], top ? top : TOP_DEFAULT, err);
}

/* Query `row` against all candidates, ties by lower index. */
static void rank_row(struct ranking *r, const float *v)
{
    uint32_t *index = r->index + r->row * r->top;
    double *cosine = r->cosine + r->row * r->top, norm = norm_of(v, r->width), dot, c;
    size_t i, j, at, n = 0;

    for (i = 0; i < r->count; i++) {
        for (dot = 0, j = 0; j < r->width; j++)
            dot += (double)v[j] * (double)r->candidate[i * r->width + j];
        c = norm > 0 && r->norm[i] > 0 ? dot / (norm * r->norm[i]) : 0;
        if (n == r->top && !(c > cosine[n - 1]))
            continue;
        for (at = n < r->top ? n : n - 1; at > 0 && c > cosine[at - 1]; at--) {
            cosine[at] = cosine[at - 1];
            index[at] = index[at - 1];
        }
        cosine[at] = c;
        index[at] = (uint32_t)i;
        n += n < r->top;
    }
    r->row++;
}

static bool slice_recall(struct op *op)
{
    struct ranking *r = op->ranking;
    size_t done = 0;

    if (!r)
        return false;
    while (r->row < op->r.values_shape[0] && done < SLICE_PRODUCTS) {
        rank_row(r, op->r.values + r->row * r->width);
        done += r->count * r->width;
    }
    return r->row < op->r.values_shape[0];
}

static void out_ranked(struct out *o, const struct ranking *r)
{
    size_t i, j;

    out_key(o, "ranked");
    out_open(o, '[');
    for (i = 0; i < r->row; i++) {
        out_open(o, '[');
        for (j = 0; j < r->top; j++) {
            out_open(o, '{');
            out_u64(o, "index", r->index[i * r->top + j]);
            out_double(o, "cosine", r->cosine[i * r->top + j]);
            out_close(o, '}');
        }
        out_close(o, ']');
    }
    out_close(o, ']');
}

static int answer_file(struct op *op, struct fw_err *err)
{
    const struct ranking *r = op->ranking;
    struct fw_tensor item[3] = { values_tensor(&op->r) };
    struct fw_tensors ts = { 1, item };
    struct fw_meta meta;

    if (r) {
        item[1] = (struct fw_tensor){ .name = "ranked_index",
                                      .dtype = FW_U32,
                                      .ndim = 2,
                                      .shape = { r->row, r->top },
                                      .data = r->index,
                                      .bytes = r->row * r->top * sizeof r->index[0] };
        item[2] = (struct fw_tensor){ .name = "ranked_cosine",
                                      .dtype = FW_F64,
                                      .ndim = 2,
                                      .shape = { r->row, r->top },
                                      .data = r->cosine,
                                      .bytes = r->row * r->top * sizeof r->cosine[0] };
        ts.count = 3;
    }
    meta_u64(&meta, "version", op->r.version);
    op->reply.media = FW_HTTP_SAFETENSORS;
    return fw_safetensors_write(&op->out, &ts, &meta, 1, err);
}

static int answer_recall(struct op *op, struct fw_err *err)
{
    struct out o;

    op_etag(op, op->r.facts.uid, op->r.version);
    if (op->wants_file)
        return answer_file(op, err);
    out_begin(&o, &op->out, err);
    out_open(&o, '{');
    out_u64(&o, "version", op->r.version);
    out_values(&o, &op->r);
    if (op->ranking)
        out_ranked(&o, op->ranking);
    out_close(&o, '}');
    return o.rc;
}

static const char *const recall_query[] = { "top_candidates", NULL };

const struct endpoint api_recall = { .verb = FW_RECALL,
                                     .query = recall_query,
                                     .ask = ask_recall,
                                     .slice = slice_recall,
                                     .answer = answer_recall };
