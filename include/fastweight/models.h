/* fastweight/models.h - the catalogue: every checkpoint directory under the models directories.
 *
 * Opened once at start; immutable afterwards, any thread. A directory that cannot be opened is
 * kept with its reason and stops nobody. */
#ifndef FW_MODELS_H
#define FW_MODELS_H

#include "fastweight/model.h"
#include "fastweight/tokenizer.h"

struct fw_models;
/* dirs: directories separated by ':' ("" or NULL: none); each of their sub-directories whose
 * name is an id is a model. The first of a name wins. FW_ENOMEM, FW_EIO. */
int fw_models_open(struct fw_models **ret, const char *dirs, struct fw_err *err);
void fw_models_close(struct fw_models *ms);

struct fw_model_entry {
    char id[129];
    struct fw_checkpoint *checkpoint; /* lent; NULL when broken */
    struct fw_tokenizer *tokenizer;   /* lent; NULL: token ids only */
    struct fw_err err;                /* why it is broken */
};
size_t fw_models_count(const struct fw_models *ms);
const struct fw_model_entry *fw_models_at(const struct fw_models *ms, size_t i); /* by id */
const struct fw_model_entry *fw_models_find(const struct fw_models *ms, const char *id);

#endif
