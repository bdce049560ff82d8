/* fuzz_safetensors.c - libFuzzer target: any bytes into the safetensors reader, and what it
 * accepts through the writer and back. The first byte tells whether the rest is the file or
 * what a file is made of (fuzz.h). Build: CC=clang ./configure --enable-fuzz, make; run:
 * tests/fuzz_safetensors CORPUS_DIR. */
#include "config.h"

#include "fuzz.h"
#include "safetensors_roundtrip.h"

static const struct seed seeds[] = {
    SEED("\1{}"),
    SEED("\1{\"a\":{\"dtype\":\"F32\",\"shape\":[2,1],\"data_offsets\":[0,8]}}\0"
         "12345678"),
    SEED("\1{\"b\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[0,3]},"
         "\"c\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[3,11]},"
         "\"__metadata__\":{\"key\":\"value\",\"l\\u00fc\":\"\"}}\0"
         "abc12345678"),
    SEED("\1{\"F64\":{\"dtype\":\"F64\",\"shape\":[0],\"data_offsets\":[0,0]},"
         "\"d\":{\"dtype\":\"BF16\",\"shape\":[1,1,1,1],\"data_offsets\":[0,2]}}   \0"
         "ab"),
};

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    return mutate(seeds, sizeof seeds / sizeof seeds[0], data, size, max_size, seed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *file;
    size_t len;

    if (size == 0)
        return 0;
    if (data[0] == 0) {
        safetensors_roundtrip(data + 1, size - 1);
        return 0;
    }
    file = assemble(data + 1, size - 1, &len);
    safetensors_roundtrip(file, len);
    free(file);
    return 0;
}
