/* fastweight/report.h - a flat list of named facts that the api turns into JSON objects.
 *
 * A path's dots become nested objects: "bits_per_token.last_1k". Items of one object are added
 * one after the other. Used for inspect. One thread. */
#ifndef FW_REPORT_H
#define FW_REPORT_H

#include <stddef.h>

#include "fastweight/err.h"

enum fw_report_type { FW_REPORT_NUMBER, FW_REPORT_INTEGER, FW_REPORT_STRING };

struct fw_report_item {
    char path[64];
    enum fw_report_type type;
    int is_array;
    size_t count;       /* 1 unless an array */
    double *number;     /* owned; NUMBER and INTEGER; a non-finite number is JSON null */
    char (*string)[64]; /* owned; STRING; longer ones are cut */
};

struct fw_report {
    struct fw_report_item *item; /* owned */
    size_t count, cap;
};

void fw_report_init(struct fw_report *r);
void fw_report_done(struct fw_report *r);
int fw_report_number(struct fw_report *r, const char *path, double v, struct fw_err *err);
int fw_report_integer(struct fw_report *r, const char *path, double v, struct fw_err *err);
int fw_report_string(struct fw_report *r, const char *path, const char *v, struct fw_err *err);
int fw_report_numbers(struct fw_report *r, const char *path, const double *v, size_t n,
                      struct fw_err *err);
int fw_report_integers(struct fw_report *r, const char *path, const double *v, size_t n,
                       struct fw_err *err);
int fw_report_strings(struct fw_report *r, const char *path, const char *const *v, size_t n,
                      struct fw_err *err);

#endif
