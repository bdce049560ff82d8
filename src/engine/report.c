/* report.c - a flat list of named facts. An item owns its values; paths are unique because the
 * one who writes them chooses them so. One thread. */
#include "config.h"

#include "fastweight/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void fw_report_init(struct fw_report *r)
{
    memset(r, 0, sizeof *r);
}

void fw_report_done(struct fw_report *r)
{
    size_t i;

    for (i = 0; i < r->count; i++) {
        free(r->item[i].number);
        free(r->item[i].string);
    }
    free(r->item);
    fw_report_init(r);
}

static int out_of_memory(struct fw_err *err)
{
    return fw_fail(err, FW_ENOMEM, "out_of_memory", "no memory for a report");
}

/* The next item with its path, counted only when its values are there. */
static struct fw_report_item *next_item(struct fw_report *r, const char *path, size_t n)
{
    struct fw_report_item *item;
    size_t cap = r->cap ? 2 * r->cap : 16;

    if (r->count == r->cap) {
        item = realloc(r->item, cap * sizeof *item);
        if (!item)
            return NULL;
        r->item = item;
        r->cap = cap;
    }
    item = &r->item[r->count];
    memset(item, 0, sizeof *item);
    snprintf(item->path, sizeof item->path, "%s", path);
    item->count = n;
    return item;
}

static int add_numbers(struct fw_report *r, const char *path, enum fw_report_type type,
                       int is_array, const double *v, size_t n, struct fw_err *err)
{
    struct fw_report_item *item = next_item(r, path, n);

    if (!item)
        return out_of_memory(err);
    item->type = type;
    item->is_array = is_array;
    item->number = malloc((n ? n : 1) * sizeof *v);
    if (!item->number)
        return out_of_memory(err);
    if (n)
        memcpy(item->number, v, n * sizeof *v);
    r->count++;
    return 0;
}

static int add_strings(struct fw_report *r, const char *path, int is_array,
                       const char *const *v, size_t n, struct fw_err *err)
{
    struct fw_report_item *item = next_item(r, path, n);
    size_t i;

    if (!item)
        return out_of_memory(err);
    item->type = FW_REPORT_STRING;
    item->is_array = is_array;
    item->string = malloc((n ? n : 1) * sizeof *item->string);
    if (!item->string)
        return out_of_memory(err);
    for (i = 0; i < n; i++)
        snprintf(item->string[i], sizeof item->string[i], "%s", v[i]);
    r->count++;
    return 0;
}

int fw_report_number(struct fw_report *r, const char *path, double v, struct fw_err *err)
{
    return add_numbers(r, path, FW_REPORT_NUMBER, 0, &v, 1, err);
}

int fw_report_integer(struct fw_report *r, const char *path, double v, struct fw_err *err)
{
    return add_numbers(r, path, FW_REPORT_INTEGER, 0, &v, 1, err);
}

int fw_report_string(struct fw_report *r, const char *path, const char *v, struct fw_err *err)
{
    return add_strings(r, path, 0, &v, 1, err);
}

int fw_report_numbers(struct fw_report *r, const char *path, const double *v, size_t n,
                      struct fw_err *err)
{
    return add_numbers(r, path, FW_REPORT_NUMBER, 1, v, n, err);
}

int fw_report_integers(struct fw_report *r, const char *path, const double *v, size_t n,
                       struct fw_err *err)
{
    return add_numbers(r, path, FW_REPORT_INTEGER, 1, v, n, err);
}

int fw_report_strings(struct fw_report *r, const char *path, const char *const *v, size_t n,
                      struct fw_err *err)
{
    return add_strings(r, path, 1, v, n, err);
}
