/* inspect_memory.c - what `inspect` says of an associative memory: docs/associative.md has the
 * words.
 *
 * Recall by age comes twice where a session keeps probes: each probe of each head, and one
 * curve of all heads, whose point i is the mean of the probes that are 2^i to 2^(i+1) - 1 pairs
 * old. Probes of a value 0 have no error and no cosine and count in neither mean. */
#include "config.h"

#include "inspect_memory.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- heads */

enum { NORM, BEFORE, AFTER, RANK, LOG_G, CAPACITY, CONDITION, NONFINITE, COLUMNS };

static const char *const column_path[COLUMNS] = {
    [NORM] = "heads.norm",
    [BEFORE] = "heads.residual_before",
    [AFTER] = "heads.residual_after",
    [RANK] = "heads.effective_rank",
    [LOG_G] = "heads.log_g_sum",
    [CAPACITY] = "heads.capacity_used",
    [CONDITION] = "heads.covariance_condition",
    [NONFINITE] = "heads.nonfinite",
};

static int no_memory(struct fw_err *err)
{
    return fw_fail(err, FW_ENOMEM, "out_of_memory", "out of memory");
}

static int report_spectrum(struct fw_report *r, uint32_t head, const double *sigma, size_t n,
                           struct fw_err *err)
{
    char path[64];

    snprintf(path, sizeof path, "heads.spectrum.%u", head);
    return fw_report_numbers(r, path, sigma, n, err);
}

/* One head's value of each column; column (COLUMNS, heads). */
static void note_head(const struct fw_memory_head_stats *s, double *column, size_t heads)
{
    column[NORM * heads] = s->norm;
    column[BEFORE * heads] = s->residual_before;
    column[AFTER * heads] = s->residual_after;
    column[RANK * heads] = s->effective_rank;
    column[LOG_G * heads] = s->log_g_sum;
    column[CAPACITY * heads] = s->capacity_used;
    column[CONDITION * heads] = s->covariance_condition;
    column[NONFINITE * heads] = (double)s->nonfinite;
}

static int report_heads(const struct fw_memory *m, const void *block, struct fw_report *r,
                        struct fw_err *err)
{
    size_t heads = fw_memory_heads(m), rows = fw_memory_rows(m), d_v = fw_memory_d_v(m);
    size_t n = rows < d_v ? rows : d_v;
    double *column = calloc(COLUMNS * heads + n, sizeof *column);
    double *sigma = column ? column + COLUMNS * heads : NULL;
    struct fw_memory_head_stats s;
    int rc = column ? 0 : no_memory(err);

    for (uint32_t h = 0; rc == 0 && h < heads; h++) {
        rc = fw_memory_head_stats(m, block, h, &s, sigma, err);
        if (rc == 0) {
            note_head(&s, column + h, heads);
            rc = report_spectrum(r, h, sigma, n, err);
        }
    }
    for (size_t i = 0; rc == 0 && i < COLUMNS; i++)
        rc = (i == NONFINITE ? fw_report_integers : fw_report_numbers)(
            r, column_path[i], column + i * heads, heads, err);
    free(column);
    return rc;
}

/* ---- recall by age */

#define OCTAVES 64

struct curve { /* sums, then means, over the probes of an octave */
    double count[OCTAVES], known[OCTAVES], error[OCTAVES], cosine[OCTAVES];
};

static void add_to_curve(struct curve *c, const struct fw_memory_probe *p)
{
    size_t i = 63u - (size_t)__builtin_clzll(p->age | 1);

    c->count[i]++;
    if (isnan(p->error))
        return;
    c->known[i]++;
    c->error[i] += p->error;
    c->cosine[i] += p->cosine;
}

static int report_curve(struct fw_report *r, const struct curve *c, struct fw_err *err)
{
    double age[OCTAVES], count[OCTAVES], error[OCTAVES], cosine[OCTAVES];
    size_t n = 0;

    for (size_t i = 0; i < OCTAVES; i++) {
        if (c->count[i] <= 0)
            continue;
        age[n] = (double)((uint64_t)1 << i);
        count[n] = c->count[i];
        error[n] = c->known[i] > 0 ? c->error[i] / c->known[i] : (double)NAN;
        cosine[n] = c->known[i] > 0 ? c->cosine[i] / c->known[i] : (double)NAN;
        n++;
    }
    if (fw_report_integers(r, "recall_by_age.age", age, n, err) < 0 ||
        fw_report_integers(r, "recall_by_age.probes", count, n, err) < 0 ||
        fw_report_numbers(r, "recall_by_age.error", error, n, err) < 0)
        return -1;
    return fw_report_numbers(r, "recall_by_age.cosine", cosine, n, err);
}

/* Field `name` of one head's probes. */
static int report_probes(struct fw_report *r, uint32_t head, const char *name, const double *x,
                         size_t n, struct fw_err *err)
{
    char path[64];

    snprintf(path, sizeof path, "heads.recall.%u.%s", head, name);
    return fw_report_numbers(r, path, x, n, err);
}

static int report_head_probes(struct fw_report *r, uint32_t head,
                              const struct fw_memory_probe *p, size_t n, double *x,
                              struct fw_err *err)
{
    double *error = x + n, *cosine = x + 2 * n;

    for (size_t i = 0; i < n; i++) {
        x[i] = (double)p[i].age;
        error[i] = p[i].error;
        cosine[i] = p[i].cosine;
    }
    if (report_probes(r, head, "age", x, n, err) < 0 ||
        report_probes(r, head, "error", error, n, err) < 0)
        return -1;
    return report_probes(r, head, "cosine", cosine, n, err);
}

static int report_recall(const struct fw_memory *m, const void *block, struct fw_report *r,
                         struct fw_err *err)
{
    size_t places = fw_memory_probes(m), n;
    struct fw_memory_probe *p = malloc((places + 1) * sizeof *p);
    double *x = malloc((3 * places + 1) * sizeof *x);
    struct curve c = { .count = { 0 } };
    int rc = p && x ? 0 : no_memory(err);

    for (uint32_t h = 0; rc == 0 && h < fw_memory_heads(m); h++) {
        n = fw_memory_read_probes(m, block, h, p);
        for (size_t i = 0; i < n; i++)
            add_to_curve(&c, &p[i]);
        rc = report_head_probes(r, h, p, n, x, err);
    }
    if (rc == 0)
        rc = report_curve(r, &c, err);
    free(x);
    free(p);
    return rc;
}

/* ---- the whole */

static int report_rule(const struct fw_memory *m, const void *block, struct fw_report *r,
                       struct fw_err *err)
{
    struct fw_memory_about a;

    fw_memory_about(m, block, &a);
    if (fw_report_string(r, "rule.name", a.rule, err) < 0 ||
        fw_report_string(r, "rule.memory", a.memory, err) < 0 ||
        fw_report_string(r, "rule.objective", a.objective, err) < 0 ||
        fw_report_string(r, "rule.retention", a.retention, err) < 0 ||
        fw_report_string(r, "rule.optimiser", a.optimiser, err) < 0 ||
        fw_report_string(r, "rule.horizon", a.horizon, err) < 0 ||
        fw_report_string(r, "rule.feature_map", a.feature_map, err) < 0 ||
        fw_report_integer(r, "rule.pairs_per_token", a.pairs_per_token, err) < 0 ||
        fw_report_integer(r, "kept_pairs", (double)a.kept_pairs, err) < 0 ||
        fw_report_integer(r, "used_bytes", (double)a.used_bytes, err) < 0)
        return -1;
    return fw_report_integer(r, "saturated", (double)a.saturated, err);
}

int fw_inspect_memory(const struct fw_memory *m, const void *block, struct fw_report *r,
                      struct fw_err *err)
{
    if (report_rule(m, block, r, err) < 0 || report_heads(m, block, r, err) < 0)
        return -1;
    return fw_memory_probes(m) ? report_recall(m, block, r, err) : 0;
}
