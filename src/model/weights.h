/* weights.h - the tensors of a checkpoint, mapped read-only, and taken by name. */
#ifndef WEIGHTS_H
#define WEIGHTS_H

#include <stdint.h>

#include "fastweight/hash.h"
#include "fastweight/project.h"
#include "fastweight/tensor.h"

struct fw_weights {
    struct fw_part *part; /* owned; the files */
    size_t parts;
    struct fw_weight_row *row; /* owned; by name */
    size_t rows;
    void **copy; /* owned; vectors widened, matrices turned */
    size_t copies;
    uint64_t parameters, bytes; /* of what was taken */
};

/* model.safetensors, or the files that model.safetensors.index.json names. FW_EINVAL
 * "bad_model". The caller ends it with close, also after a failure. */
int fw_weights_open(struct fw_weights *w, const char *dir, struct fw_err *err);
void fw_weights_close(struct fw_weights *w);

/* Lends a tensor without taking it, or NULL. */
const struct fw_tensor *fw_weights_look(const struct fw_weights *w, const char *name);

/* One tensor that a layer has. Dimensions are places in an array of sizes; a size that is 0 is
 * free: the first tensor that has it sets it. */
enum fw_shape {
    FW_VECTOR, /* out elements, however they are cut into axes: const float * */
    FW_MATRIX, /* (out, in): struct fw_matrix */
    FW_TURNED, /* stored (in, out): struct fw_matrix, an own copy (out, in) */
    FW_CONV    /* stored (out, 1, in) or (out, in): const float *, (in, out) */
};

struct fw_want {
    const char *name; /* behind the prefix */
    enum fw_shape shape;
    size_t out, in; /* places of dimensions; a vector's in is 0 */
    size_t at;      /* offset of the result */
    int optional;   /* may be missing: NULL, or a matrix without data */
};

/* Takes prefix + name of each; wants end with a NULL name. FW_EINVAL "bad_model" names what is
 * missing, has another shape or type, or is not finite. */
int fw_weights_take(struct fw_weights *w, const char *prefix, const struct fw_want *wants,
                    size_t *dims, void *into, struct fw_err *err);
/* FW_EINVAL "bad_model" naming a tensor that nobody took, but for names that end like this. */
int fw_weights_all_taken(const struct fw_weights *w, const char *const *ignored,
                         struct fw_err *err);
/* Of what was taken: names, types, shapes, elements; however it lies in files. */
struct fw_hash fw_weights_hash(const struct fw_weights *w);

#endif
