/* fuzz_safetensors.c - libFuzzer target: any bytes into the safetensors reader, and what it
 * accepts through the writer and back. Build: CC=clang ./configure --enable-fuzz, make; run:
 * tests/fuzz_safetensors CORPUS_DIR. */
#include "config.h"

#include "safetensors_roundtrip.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    safetensors_roundtrip(data, size);
    return 0;
}
