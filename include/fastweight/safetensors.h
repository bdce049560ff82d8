/* fastweight/safetensors.h - the safetensors file format, in memory.
 *
 * u64 N (little-endian), N bytes of JSON header ('{' first, space padded), then the tensors
 * without holes or overlaps. Source: huggingface/safetensors; safetensors.c lists the checks.
 * The header is at most 1 MiB here, 4,096 tensors, 64 metadata entries. Any thread. */
#ifndef FW_SAFETENSORS_H
#define FW_SAFETENSORS_H

#include "fastweight/buf.h"
#include "fastweight/tensor.h"

struct fw_meta { /* one entry of __metadata__ */
    char key[FW_NAME_MAX];
    char value[2048];
};

struct fw_safetensors {
    struct fw_tensors tensors; /* views into the file's bytes, or into `copy` */
    struct fw_meta *meta;
    size_t meta_count;
    void *copy; /* owned: the tensor bytes, moved so that each is 64-byte aligned; or NULL */
};

/* Reads a whole file in memory, checking everything; the caller ends it with done. The tensors
 * lie in an own aligned copy, so `file` may go. FW_EINVAL "bad_safetensors" says what is off.
 */
int fw_safetensors_read(struct fw_safetensors *ret, const void *file, size_t len,
                        struct fw_err *err);
/* The same, but the tensors are views into `file`, which must outlive them: for files that are
 * mapped. Only where one is not aligned to its elements all lie in an own copy. */
int fw_safetensors_lend(struct fw_safetensors *ret, const void *file, size_t len,
                        struct fw_err *err);
void fw_safetensors_done(struct fw_safetensors *st);
const char *fw_safetensors_meta(const struct fw_safetensors *st, const char *key); /* or NULL */

/* Appends a file to out: tensors by descending dtype rank, then name (the reference writer's
 * order), header padded to a multiple of 8. Refuses duplicate names. */
int fw_safetensors_write(struct fw_buf *out, const struct fw_tensors *ts,
                         const struct fw_meta *meta, size_t meta_count, struct fw_err *err);

#endif
