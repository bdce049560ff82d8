/* fuzz.h - what the fuzz targets share.
 *
 * JSON is read by a library that libFuzzer sees no branch of, so from nothing it would not find
 * a whole body in hours. So mutation begins at seeds: small whole inputs that each target
 * names. A safetensors file is made of its header's text, a NUL and the data; the length before
 * the header is filled in, or each change of the text would only spoil that. */
#ifndef FUZZ_H
#define FUZZ_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define SEED(text)                                                                             \
    {                                                                                          \
        text, sizeof(text) - 1                                                                 \
    }

struct seed {
    const char *bytes;
    size_t len;
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size); /* libFuzzer's */

static void require(int truth)
{
    if (!truth)
        abort();
}

/* Now and then a seed in place of the input, else one of libFuzzer's own mutations. */
static size_t mutate(const struct seed *seeds, size_t count, uint8_t *data, size_t size,
                     size_t max_size, unsigned random)
{
    const struct seed *s = &seeds[random / 256 % count];

    if ((size > 1 && random % 256 > 0) || s->len > max_size)
        return LLVMFuzzerMutate(data, size, max_size);
    memcpy(data, s->bytes, s->len);
    return s->len;
}

/* A file of header text, NUL and data; the caller frees it. */
static inline uint8_t *assemble(const uint8_t *data, size_t size, size_t *ret_len)
{
    const uint8_t *nul = memchr(data, 0, size);
    const uint64_t header = nul ? (size_t)(nul - data) : size;
    const size_t rest = nul ? size - header - 1 : 0;
    uint8_t *file = malloc(sizeof header + header + rest + 1);

    require(file != NULL);
    memcpy(file, &header, sizeof header);
    memcpy(file + sizeof header, data, header);
    memcpy(file + sizeof header + header, data + size - rest, rest);
    *ret_len = sizeof header + header + rest;
    return file;
}

#endif
