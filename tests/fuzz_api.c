/* fuzz_api.c - libFuzzer target: any bytes as the path, query value and body of a request. The
 * first byte picks who reads them. What is accepted must be whole: tensors as long as their
 * shapes say, tokens in range. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "src/api/batch.h"
#include "src/api/in.h"
#include "src/http/path.h"

enum { BYTES, EVENTS, PAIRS, KINDS }; /* of session */
enum { PATH, JSON, FILE_BODY, RAW, READERS };

/* The first byte is KINDS * reader + kind. */
static const struct seed seeds[] = {
    SEED("\0/v1/sessions/a%20b/tensors/S.0"),
    SEED("\3{\"text\":\"a line\\n\"}"),
    SEED("\3{\"tokens\":[0,255]}"),
    SEED("\4{\"tokens\":[999,0,1]}"),
    SEED("\5{\"keys\":[[[1,-2.5],[0,1e-3]]],\"values\":[[[0],[1]]],\"beta\":[[1,0.5]],"
         "\"log_g\":[[0,-1]]}"),
    SEED("\5{\"keys\":[[0,1]],\"values\":[[7]],\"queries\":[[1,1]]}"),
    SEED("\6{\"tokens\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[0,3]}}\0"
         "abc"),
    SEED("\7{\"tokens\":{\"dtype\":\"I64\",\"shape\":[1],\"data_offsets\":[0,8]}}\0"
         "\1\2\0\0\0\0\0\0"),
    SEED("\10{\"keys\":{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[0,8]},"
         "\"values\":{\"dtype\":\"F64\",\"shape\":[1,1],\"data_offsets\":[8,16]}}\0"
         "0123456701234567"),
    SEED("\12\1\2\3\3"),
};

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    return mutate(seeds, sizeof seeds / sizeof seeds[0], data, size, max_size, seed);
}

static void check_tensor(const struct fw_tensor *t, const struct intake *in)
{
    uint64_t count, i;

    require(fw_shape_count(t->shape, t->ndim, &count, NULL) == 0);
    require(t->bytes == count * fw_dtype_bytes(t->dtype));
    for (i = 0; i < count && strcmp(t->name, "tokens") == 0; i++)
        require((in->bytes ? ((const uint8_t *)t->data)[i] : ((const uint16_t *)t->data)[i]) <
                in->vocab);
}

static void check_batch(struct batch *b, const struct intake *in)
{
    struct fw_tensors ts = batch_lend(b);
    size_t i;

    for (i = 0; i < ts.count; i++)
        check_tensor(&ts.item[i], in);
}

static void json_body(const struct intake *in, const uint8_t *data, size_t size)
{
    const char *fields[BATCH_NAMES];
    struct batch b = { 0 };
    struct fw_err err;
    json_t *root;

    if (in_parse(data, size, false, &root, &err) < 0)
        return;
    batch_fields(in, true, fields);
    if (in_only(root, fields, &err) == 0 && batch_json(&b, in, root, &err) == 0)
        check_batch(&b, in);
    batch_done(&b);
    json_decref(root);
}

static void file_body(const struct intake *in, const uint8_t *data, size_t size)
{
    const char *fields[BATCH_NAMES];
    struct batch b = { 0 };
    struct fw_err err;
    size_t len;
    uint8_t *file = assemble(data, size, &len);

    batch_fields(in, true, fields);
    if (batch_file(&b, in, fields, file, len, &err) == 0)
        check_batch(&b, in);
    batch_done(&b);
    free(file);
}

static void raw_body(const struct intake *in, const uint8_t *data, size_t size)
{
    struct batch b = { 0 };
    struct fw_err err;

    if (batch_raw(&b, in, data, size, &err) == 0)
        check_batch(&b, in);
    batch_done(&b);
}

static void path(const uint8_t *data, size_t size)
{
    struct fw_http_text capture[PATH_CAPTURES] = { { NULL, 0 } };
    char *text = malloc(size + 1), id[FW_ID_MAX];
    struct fw_err err;
    struct path p;

    memcpy(text, data, size);
    text[size] = 0;
    if (path_split(&p, text, &err) == 0 &&
        path_match(&p, "/v1/sessions/{id}/tensors/{name}", capture)) {
        require(capture[0].len > 0 && capture[1].len > 0);
        if (in_id(capture[0].data, capture[0].len, "id", id, &err) == 0)
            require(strlen(id) == capture[0].len && !strchr(id, '/'));
    }
    path_done(&p);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct intake kinds[KINDS] = {
        [BYTES] = { .bytes = true, .text = true, .raw = true, .token_bytes = 1, .vocab = 256 },
        [EVENTS] = { .raw = true, .token_bytes = 2, .vocab = 1000 },
        [PAIRS] = { .pairs = true }
    };
    const struct intake *in;
    uint8_t *body;

    if (size == 0)
        return 0;
    in = &kinds[data[0] % KINDS];
    body = malloc(size); /* aligned, as a request's body is */
    memcpy(body, data + 1, size - 1);
    switch (data[0] / KINDS % READERS) {
    case PATH:
        path(body, size - 1);
        break;
    case JSON:
        json_body(in, body, size - 1);
        break;
    case FILE_BODY:
        file_body(in, body, size - 1);
        break;
    default:
        raw_body(in, body, size - 1);
    }
    free(body);
    return 0;
}
