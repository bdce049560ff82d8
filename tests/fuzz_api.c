/* fuzz_api.c - libFuzzer target: any bytes as the path, query value and body of a request. The
 * first byte picks who reads them. What is accepted must be whole: tensors as long as their
 * shapes say, tokens in range, sampling options within their bounds. Bodies of completions and
 * of generate are read against an engine with one session "s"; a short one without `learn` is
 * also run, and its reply must be JSON. */
#include "config.h"

#include <dirent.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fastweight/num.h"
#include "fuzz.h"
#include "src/api/batch.h"
#include "src/api/in.h"
#include "src/api/op.h"
#include "src/http/call.h"

enum { BYTES, EVENTS, PAIRS, KINDS }; /* of session */
enum { PATH, JSON, FILE_BODY, RAW, COMPLETIONS, GENERATE, READERS };

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
    SEED("\14{\"session\":\"s\",\"prompt\":[\"abc\"],\"max_tokens\":4,\"temperature\":0.5,"
         "\"logprobs\":0,\"stop\":[\"q\",\"rs\"],\"stream\":true,"
         "\"stream_options\":{\"include_usage\":true},\"n\":1,\"echo\":false}"),
    SEED("\14{\"model\":\"bytes\",\"prompt\":[[97,98]],\"max_tokens\":2,\"user\":null}"),
    SEED("\17{\"max_tokens\":4,\"prefix\":\"ab\",\"seed\":7,\"top_k\":9,\"top_p\":0.9,"
         "\"min_p\":0.1,\"repetition_penalty\":1.5,\"repetition_window\":8,"
         "\"logit_bias\":{\"97\":-1.5,\"0\":2},\"stop\":\"z\",\"stop_tokens\":[10,0]}"),
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

/* ---- the engine */

enum { RUN_TOKENS = 8 };

static char dir[32];
static struct fw_api api;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static bool is_done;

static void on_done(struct fw_request *r)
{
    (void)r;
    pthread_mutex_lock(&mutex);
    is_done = true;
    pthread_cond_signal(&cond);
    pthread_mutex_unlock(&mutex);
}

static void run(struct fw_request *r)
{
    r->done = on_done;
    is_done = false;
    fw_engine_submit(api.engine, r);
    pthread_mutex_lock(&mutex);
    while (!is_done)
        pthread_cond_wait(&cond, &mutex);
    pthread_mutex_unlock(&mutex);
}

static void clear(void)
{
    struct dirent *entry;
    char name[384];
    DIR *d;

    fw_engine_drain(api.engine);
    require(fw_engine_close(api.engine, NULL) == 0);
    fw_pool_free(api.pool);
    d = opendir(dir);
    while (d && (entry = readdir(d)) != NULL) {
        snprintf(name, sizeof name, "%s/%s", dir, entry->d_name);
        if (entry->d_name[0] != '.')
            unlink(name);
    }
    if (d)
        closedir(d);
    rmdir(dir);
}

static void open_engine(void)
{
    struct fw_engine_config config = { .data_dir = dir };
    struct fw_request create = { .verb = FW_CREATE, .id = "s", .model = "bytes" };

    fw_num_init();
    snprintf(dir, sizeof dir, "/tmp/fuzz_api_XXXXXX");
    require(mkdtemp(dir) != NULL);
    require(fw_pool_new(&api.pool, 1, fw_num_thread, NULL) == 0);
    config.pool = api.pool;
    require(fw_engine_open(&api.engine, &config, NULL) == 0 && atexit(clear) == 0);
    require(fw_params_set_number(&create.config, "state_bytes", 1 << 20, NULL) == 0);
    run(&create);
    require(!create.failed);
    fw_request_done(&create);
}

/* ---- bodies that draw tokens */

static void check_sampling(const struct fw_sampling *s)
{
    size_t i;

    require(s->temperature >= 0 && s->temperature <= 100);
    require(s->top_p > 0 && s->top_p <= 1 && s->min_p >= 0 && s->min_p <= 1);
    require(s->repetition_penalty >= 0.01 && s->repetition_penalty <= 100);
    require(s->window <= FW_SAMPLING_WINDOW_MAX && s->biases <= FW_BIASES_MAX);
    require(s->stops <= FW_STOPS_MAX && s->stop_tokens <= FW_STOP_TOKENS_MAX);
    for (i = 0; i < s->biases; i++)
        require(isfinite(s->bias[i].add));
    for (i = 0; i < s->stops; i++)
        require(s->stop[i].len > 0 && s->stop[i].len <= FW_STOP_BYTES_MAX);
}

/* What the endpoint answers. A stream may end in two events. */
static void check_reply(struct op *op)
{
    struct fw_err err;
    json_t *reply;

    require(op->r.count <= op->r.max_tokens);
    require(op->endpoint->answer(op, &err) == 0);
    reply = json_loadb((const char *)op->out.data, op->out.len,
                       JSON_ALLOW_NUL | (op->events ? JSON_DISABLE_EOF_CHECK : 0), NULL);
    require(json_is_object(reply));
    json_decref(reply);
}

static void draw(const struct endpoint *endpoint, const char *id, const uint8_t *data,
                 size_t size)
{
    struct fw_http_call call = { .media = FW_HTTP_JSON };
    struct op *op = calloc(1, sizeof *op);
    struct fw_err err;

    require(op != NULL);
    fw_buf_init(&call.body, size + 1);
    fw_buf_init(&op->out, OP_REPLY_MAX);
    require(fw_buf_append(&call.body, data, size, NULL) == 0);
    op->api = &api;
    op->call = &call;
    op->endpoint = endpoint;
    op->r.verb = endpoint->verb;
    snprintf(op->r.id, sizeof op->r.id, "%s", id);
    if (endpoint->ask(op, &err) == 0) {
        require(op->r.max_tokens > 0);
        check_sampling(&op->r.sampling);
        check_batch(&op->batch, &op->intake);
        if (op->r.max_tokens <= RUN_TOKENS && op->r.id[0] && !op->r.learn) {
            run(&op->r);
            if (!op->r.failed)
                check_reply(op);
        }
    }
    fw_buf_done(&call.body);
    op_free(op);
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
    if (!dir[0])
        open_engine();
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
    case COMPLETIONS:
        draw(&api_completions, "", body, size - 1);
        break;
    case GENERATE:
        draw(&api_generate, "s", body, size - 1);
        break;
    default:
        raw_body(in, body, size - 1);
    }
    free(body);
    return 0;
}
