/* covariance.h - config `covariance`: the second moments of the keys, beside any rule. */
#ifndef COVARIANCE_H
#define COVARIANCE_H

#include "rule.h"

/* Reads the configuration; with a covariance sets m->at_covariance and appends its field. */
int fw_covariance_plan(struct fw_memory *m, struct fw_config *c, struct fw_err *err);
/* After the rule learned a span. */
void fw_covariance_note(const struct fw_memory *m, void *block, size_t head,
                        const struct fw_span *s);
int fw_covariance_validate(const struct fw_memory *m, const void *block, size_t head,
                           struct fw_err *err);
/* x = C^-1 k of one head, (rows,), but for a factor; C with 0.01 of its mean diagonal added; I
 * without a covariance or before the first key. Returns k'x. The same bytes at both levels. */
double fw_covariance_solve(const struct fw_memory *m, const void *block, size_t head,
                           const float *k, double *x);
/* The largest eigenvalue of C of one head over the smallest, at most 1e7; NAN when no C is
 * known. Of mesa, C is what it solves. LAPACK; FW_ENOMEM. */
int fw_covariance_condition(const struct fw_memory *m, const void *block, size_t head,
                            double *ret, struct fw_err *err);

/* Is H (n, n) symmetric, with a diagonal that is not negative? */
bool fw_is_covariance(const float *H, size_t n);

#endif
