/* fuzz_api.c - libFuzzer target: any bytes as the path, query value and body of a request. The
 * first byte picks who reads them. What is accepted must be whole: tensors as long as their
 * shapes say, tokens in range. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "src/api/batch.h"
#include "src/api/in.h"
#include "src/http/path.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int truth)
{
    if (!truth)
        abort();
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

static void other_body(const struct intake *in, const uint8_t *data, size_t size, bool file)
{
    const char *fields[BATCH_NAMES];
    struct batch b = { 0 };
    struct fw_err err;
    int rc;

    batch_fields(in, true, fields);
    if (file)
        rc = batch_file(&b, in, fields, data, size, &err);
    else
        rc = batch_raw(&b, in, data, size, &err);
    if (rc == 0)
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
    static const struct intake kinds[] = { { .bytes = true, .vocab = 256 },
                                           { .vocab = 1000 },
                                           { .pairs = true } };
    const struct intake *in;
    uint8_t *body;

    if (size == 0)
        return 0;
    in = &kinds[data[0] % 3];
    body = malloc(size); /* aligned, as a request's body is */
    memcpy(body, data + 1, size - 1);
    if (data[0] / 3 % 4 == 0)
        path(body, size - 1);
    else if (data[0] / 3 % 4 == 1)
        json_body(in, body, size - 1);
    else
        other_body(in, body, size - 1, data[0] / 3 % 4 == 2);
    free(body);
    return 0;
}
