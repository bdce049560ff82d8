/* fastweight/report.h - what a learner tells of itself: facts of its model, and a flat list of
 * named facts of a state that the api turns into JSON objects.
 *
 * A path's dots become nested objects: "bits_per_token.last_1k". Items of one object are added
 * one after the other. Used for inspect. One thread. */
#ifndef FW_REPORT_H
#define FW_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fastweight/err.h"

struct fw_about { /* a transformer's checkpoint; other kinds: vocab and token_bytes alone */
    char architecture[32], tokenizer[32]; /* tokenizer "": ids only */
    char memory[32];                      /* the rule of its layers */
    bool off_distribution;                /* not the rule that it was trained with */
    uint32_t vocab;                       /* 0: predicts no tokens */
    uint32_t token_bytes;                 /* of an element of "tokens": 1, 2, 4; 0: pairs */
    uint32_t d_model, layers, heads, d_k, d_v;
    uint64_t max_context; /* 0: none */
    uint64_t parameters, weight_bytes;
};

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
