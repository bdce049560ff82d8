/* sampler.h - one draw after another, as fastweight/sampling.h says. Private to the engine; one
 * thread at a time. */
#ifndef ENGINE_SAMPLER_H
#define ENGINE_SAMPLER_H

#include <stdbool.h>

#include "fastweight/err.h"
#include "fastweight/sampling.h"

struct sampler;

/* Is it only a temperature, which every learner samples at by itself? */
bool sampling_is_plain(const struct fw_sampling *s);
/* FW_EINVAL naming the field that is out of its range. */
int sampling_check(const struct fw_sampling *s, uint32_t vocab, struct fw_err *err);

/* s is borrowed until sampler_free, and was checked. */
int sampler_new(struct sampler **ret, const struct fw_sampling *s, uint32_t vocab,
                struct fw_err *err);
void sampler_free(struct sampler *sm); /* NULL is allowed */
/* A token of the prefix or a sampled one, in order. */
void sampler_saw(struct sampler *sm, uint32_t token);
/* Lends (vocab,) doubles: the caller puts ln p there before each draw. */
double *sampler_logp(struct sampler *sm);
/* *logp (or NULL): the token's ln p as it was put there. */
uint32_t sampler_draw(struct sampler *sm, uint64_t *rng, double *logp);

#endif
