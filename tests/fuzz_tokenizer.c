/* fuzz_tokenizer.c - libFuzzer target: any bytes as tokenizer.json, rwkv_vocab.txt or
 * config.json's characters, and a text through what was accepted. The first byte names the
 * kind; a NUL ends the file, the text follows. What is encoded must come back, but for special
 * tokens and the space that add_prefix_space puts. Build: CC=clang ./configure --enable-fuzz,
 * make; run: tests/fuzz_tokenizer CORPUS_DIR. */
#include "config.h"

#include "fuzz.h"

#include <stdio.h>
#include <unistd.h>

#include "fastweight/tokenizer.h"

#define BPE(pre, more)                                                                         \
    "\2{\"added_tokens\":[{\"id\":9,\"content\":\"<e>\",\"special\":true}],"                   \
    "\"pre_tokenizer\":" pre ",\"model\":{\"type\":\"BPE\"" more ",\"vocab\":{\"a\":0,"        \
    "\"b\":1,\"\xc4\xa0\":2,\"ab\":3,\"\xc4\xa0"                                               \
    "ab\":4,\"<e>\":9},\"merges\":"
#define BYTE_LEVEL "{\"type\":\"ByteLevel\",\"add_prefix_space\":false}"

static const struct seed seeds[] = {
    SEED(BPE(BYTE_LEVEL, "") "[\"a b\",\"\xc4\xa0 ab\"]}}\0"
                             "ab ab<e>ba"),
    SEED(BPE("{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\",\"pattern\":"
             "{\"Regex\":\"\\\\p{L}+|b\"},\"behavior\":\"Isolated\"},"
             "{\"type\":\"Digits\",\"individual_digits\":true},{\"type\":\"ByteLevel\"}]}",
             ",\"ignore_merges\":true") "[[\"a\",\"b\"]]}}\0"
                                        "ab abba"),
    SEED("\1"
         "1 'a' 1\n2 '\\u00e9' 2\n3 b'\\xff' 1\n4 \"it's\" 4\n5 ' \\n' 2\n\0"
         "it'sa\xc3\xa9\xff \n"),
    SEED("\0{\"vocabulary\":\"01\xe2\x82\xac\"}\0"
         "10\xe2\x82\xac"),
};

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    return mutate(seeds, sizeof seeds / sizeof seeds[0], data, size, max_size, seed);
}

/* The directory of this process, made at first and cleared at the end. */
static char dir[32];

static void path_of(char ret[64], const char *name)
{
    snprintf(ret, 64, "%s/%s", dir, name);
}

static void clear(void)
{
    static const char *const names[] = { "config.json", "rwkv_vocab.txt", "tokenizer.json" };
    char path[64];

    for (size_t i = 0; i < 3; i++) {
        path_of(path, names[i]);
        unlink(path);
    }
    rmdir(dir);
}

static void encode(const struct fw_tokenizer *t, const uint8_t *text, size_t len, int exact)
{
    struct fw_buf ids;
    size_t at = 0, n;

    fw_buf_init(&ids, 1 << 24);
    if (fw_tokenizer_encode(t, text, len, &ids, NULL) == 0) {
        for (size_t i = 0; i < ids.len; i += sizeof(uint32_t)) {
            uint32_t id;
            const unsigned char *p;

            memcpy(&id, ids.data + i, sizeof id);
            p = fw_tokenizer_bytes(t, id, &n);
            require(!exact || (n > 0 && n <= len - at && memcmp(p, text + at, n) == 0));
            at += n;
        }
        require(!exact || at == len);
    } else {
        require(ids.len == 0);
    }
    fw_buf_done(&ids);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct {
        const char *kind, *file;
    } kinds[] = { { "chars", "config.json" },
                  { "rwkv_world", "rwkv_vocab.txt" },
                  { "bpe", "tokenizer.json" } };
    const uint8_t *nul = size > 1 ? memchr(data + 1, 0, size - 1) : NULL;
    struct fw_tokenizer *t;
    char path[64];
    unsigned kind;
    FILE *f;

    if (!nul)
        return 0;
    if (!dir[0]) {
        snprintf(dir, sizeof dir, "/tmp/fuzz_tokenizer_XXXXXX");
        require(mkdtemp(dir) != NULL && atexit(clear) == 0);
    }
    kind = data[0] % 3;
    path_of(path, kinds[kind].file);
    f = fopen(path, "wb");
    require(f != NULL);
    require(fwrite(data + 1, 1, (size_t)(nul - data) - 1, f) == (size_t)(nul - data) - 1);
    require(fclose(f) == 0);
    if (fw_tokenizer_open(&t, dir, kinds[kind].kind, kind == 0 ? 3 : 64, NULL) == 0) {
        encode(t, nul + 1, size - (size_t)(nul + 1 - data), kind < 2);
        fw_tokenizer_close(t);
    }
    return 0;
}
