/* golden.h - one golden case on its way: read, made into a body and a session, compared.
 *
 * golden_case.c reads a case and makes a configuration and a body of it, golden_state.c sets
 * and compares states, golden_request.c prints the case as requests to a daemon; golden_check.c
 * does them in this order. Each step says OK, or why not in `why`; one thread. */
#ifndef GOLDEN_H
#define GOLDEN_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include "fastweight/memory.h"
#include "fastweight/safetensors.h"
#include "golden_rules.h"

#define MAX_IN 16

enum verdict { OK, FAIL, UNKNOWN };

struct golden_test {
    const char *name;
    char why[4352]; /* not ok because */
    json_t *json;
    struct fw_safetensors file;
    const struct golden_rule *rule;
    struct fw_memory *memory;
    void *block;
    size_t tokens, heads, d_k, d_v, pairs;
    float *owned[MAX_IN]; /* the body's tensors, laid out anew */
    double error, tolerance;
    struct fw_params config;
    json_t *start; /* {field: elements} set in the first block; NULL: starts empty */
};

enum verdict golden_fail(struct golden_test *t, enum verdict v, const char *why,
                         const char *what);

/* ---- golden_case.c: in this order */
enum verdict golden_load(struct golden_test *t, const char *dir);
enum verdict golden_find_rule(struct golden_test *t);
enum verdict golden_shapes(struct golden_test *t);
/* The inputs, under the body's names; item has room for MAX_IN. */
enum verdict golden_body(struct golden_test *t, struct fw_tensors *body);
enum verdict golden_session(struct golden_test *t); /* memory and an empty block */

const char *golden_find_name(const struct golden_name *names, const char *json);
const json_t *golden_facts(const struct golden_test *t, const char *tensor);
/* The i-th element of F32 or F64, rounded once. */
float golden_element(const struct fw_tensor *t, size_t i);

/* ---- golden_state.c */
enum verdict golden_start(struct golden_test *t); /* the block from the case's first states */
/* The case's outputs and last states with `out` (tokens, heads, d_v) and the block; the largest
 * difference goes to t->error. */
enum verdict golden_compare(struct golden_test *t, const float *out);

/* ---- golden_models.c: whole models and single layers, after golden_load */
bool golden_is_model(const struct golden_test *t);
enum verdict golden_run_model(struct golden_test *t);

/* ---- golden_request.c */
void golden_print_request(const struct golden_test *t, const struct fw_tensors *body);

#endif
