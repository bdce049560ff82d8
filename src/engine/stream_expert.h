/* stream_expert.h - a checkpoint of the catalogue as the expert of a stream of bytes. */
#ifndef STREAM_EXPERT_H
#define STREAM_EXPERT_H

#include "fastweight/models.h"
#include "fastweight/stream.h"

struct stream_expert;
/* *ret: the model that config.expert names, or NULL when it names none or one of the stream's
 * own. *rest: config without `weights`, which must be the model's where it is said. FW_EINVAL
 * naming config.expert when there is no such model, it is broken or does not speak bytes.
 * models: borrowed until close; may be NULL. */
int stream_expert_open(struct stream_expert **ret, const struct fw_models *models,
                       const struct fw_params *config, struct fw_params *rest,
                       struct fw_err *err);
/* Binds the state to the model: sets `weights` in a resolved configuration. */
int stream_expert_resolve(const struct stream_expert *e, struct fw_params *resolved,
                          struct fw_err *err);
void stream_expert_close(struct stream_expert *e); /* NULL is allowed */
/* Lends what fw_stream_new takes; NULL gives NULL. */
const struct fw_expert *stream_expert_of(const struct stream_expert *e);

#endif
