/* completions.c - POST /v1/completions: generate in the shape that OpenAI's clients speak.
 *
 * `session` names the session that reads the prompt as a prefix; without it the prompt is read
 * by the first state of `model`, and nothing is kept. Fields that would change the answer and
 * are not built are refused, null counts as absent. Beside OpenAI's fields the replies tell the
 * session and its version. */
#include "config.h"

#include "op.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fastweight/clock.h"
#include "fastweight/utf8.h"

#include "events.h"
#include "in.h"
#include "sampling.h"

enum { TOKENS_DEFAULT = 16 };

struct completion {
    char id[32];
    int64_t created_s;
    bool logprobs, usage; /* usage: a stream's last chunk tells it */
    size_t offset;        /* of the next token's text in the whole, in characters */
};

/* ---- the request */

/* The fields that are not null, which must be known. */
static int read_fields(struct op *op, const char *const *known, struct fw_err *err)
{
    const struct fw_buf *body = fw_http_body(op->call);
    const char *key;
    json_t *v;
    void *next;

    if (in_parse(body->data, body->len, false, &op->root, err) < 0)
        return -1;
    json_object_foreach_safe(op->root, next, key, v)
    {
        if (json_is_null(v))
            json_object_del(op->root, key);
    }
    return in_only(op->root, known, err);
}

/* [prompt] is prompt: clients send lists of prompts. */
static int read_prompt(struct op *op, struct fw_err *err)
{
    json_t *v = json_object_get(op->root, "prompt"), *first = json_array_get(v, 0);

    if (!json_is_string(first) && !json_is_array(first))
        return 0;
    if (json_array_size(v) > 1)
        return fw_fail_param(err, FW_EINVAL, "not_supported", "prompt", "one prompt a request");
    json_object_set(op->root, "prompt", first);
    return 0;
}

static int must_be(struct op *op, const char *key, double want, struct fw_err *err)
{
    const json_t *v = json_object_get(op->root, key);

    if (!v || (json_is_number(v) && json_number_value(v) == want) ||
        (json_is_boolean(v) && json_is_true(v) == (want != 0)))
        return 0;
    return fw_fail_param(err, FW_EINVAL, "not_supported", key, "%s can only be %g%s", key, want,
                         json_is_boolean(v) ? " (false)" : "");
}

static int read_usage(struct op *op, struct fw_err *err)
{
    static const char *const known[] = { "include_usage", NULL };
    const json_t *v = json_object_get(op->root, "stream_options");

    if (!v)
        return 0;
    if (!json_is_object(v))
        return fw_fail_param(err, FW_EINVAL, "bad_value", "stream_options",
                             "stream_options must be an object");
    return in_only(v, known, err) < 0
               ? -1
               : in_bool(v, "include_usage", &op->completion->usage, err);
}

static int read_model(struct op *op, struct fw_err *err)
{
    const char *model = NULL;
    struct fw_model_facts *m;
    int rc;

    if (in_string(op->root, "model", &model, err) < 0 ||
        in_id_field(op->root, "session", op->r.id, err) < 0)
        return -1;
    if (op->r.id[0]) {
        if (op_facts(op, err) < 0)
            return -1;
        if (!model || strcmp(model, op->facts.model) == 0)
            return 0;
        return fw_fail_param(err, FW_EINVAL, "wrong_model", "model",
                             "the session's model is '%s'", op->facts.model);
    }
    if (!model)
        return fw_fail_param(err, FW_EINVAL, "missing_field", "model",
                             "name a session, or a model");
    m = malloc(sizeof *m);
    if (!m)
        return fw_fail(err, FW_ENOMEM, "out_of_memory", "no memory for a request");
    rc = fw_engine_model(op->api->engine, model, m, err);
    if (rc == 0) {
        memcpy(op->facts.model, m->id, sizeof m->id);
        memcpy(op->r.model, m->id, sizeof m->id);
        memcpy(op->facts.kind, m->kind, sizeof m->kind);
        op->facts.about = m->about;
        op->intake = intake_of(op->api->engine, &op->facts);
    }
    free(m);
    return rc;
}

static int begin(struct op *op, struct fw_err *err)
{
    struct completion *c = op->completion = calloc(1, sizeof *c);
    uint64_t seed[3] = { (uint64_t)fw_clock_wall_ms(), fw_clock_mono_ns(), (uintptr_t)op };

    if (!c)
        return fw_fail(err, FW_ENOMEM, "out_of_memory", "no memory for a request");
    snprintf(c->id, sizeof c->id, "cmpl-%016llx",
             (unsigned long long)fw_hash64(seed, sizeof seed));
    c->created_s = fw_clock_wall_ms() / 1000;
    return 0;
}

static int ask_completions(struct op *op, struct fw_err *err)
{
    static const char *const known[] = { "model",
                                         "session",
                                         "prompt",
                                         "max_tokens",
                                         "learn",
                                         "stream",
                                         "stream_options",
                                         "logprobs",
                                         "n",
                                         "best_of",
                                         "echo",
                                         "presence_penalty",
                                         "frequency_penalty",
                                         "user",
                                         SAMPLING_FIELDS,
                                         NULL };
    bool stream = false;

    if (begin(op, err) < 0 || read_fields(op, known, err) < 0 || read_model(op, err) < 0 ||
        read_prompt(op, err) < 0 || read_usage(op, err) < 0 ||
        in_bool(op->root, "stream", &stream, err) < 0 || must_be(op, "n", 1, err) < 0 ||
        must_be(op, "best_of", 1, err) < 0 || must_be(op, "echo", 0, err) < 0 ||
        must_be(op, "presence_penalty", 0, err) < 0 ||
        must_be(op, "frequency_penalty", 0, err) < 0 || must_be(op, "logprobs", 0, err) < 0)
        return -1;
    if (!op->intake.text)
        return fw_fail_param(err, FW_EINVAL, "no_text", "model",
                             "this model's tokens have no text");
    op->completion->logprobs = json_is_integer(json_object_get(op->root, "logprobs"));
    op->r.learn_prefix = true;
    if (generate_read(op, "prompt", TOKENS_DEFAULT, err) < 0)
        return -1;
    return stream ? events_new(op, err) : 0;
}

/* ---- the reply */

static void out_head(struct out *o, const struct op *op)
{
    out_open(o, '{');
    out_string(o, "id", op->completion->id);
    out_string(o, "object", "text_completion");
    out_u64(o, "created", (uint64_t)op->completion->created_s);
    out_string(o, "model", op->facts.model);
}

static size_t characters(const struct fw_buf *text)
{
    size_t i = 0, n = 0;
    bool valid;

    for (; i < text->len; n++)
        i += fw_utf8_piece(text->data + i, text->len - i, &valid);
    return n;
}

static void out_token_texts(struct out *o, const struct op *op, size_t from, size_t to,
                            bool offsets)
{
    struct fw_buf text;

    fw_buf_init(&text, OP_REPLY_MAX);
    for (; o->rc == 0 && from < to; from++) {
        text.len = 0;
        o->rc = intake_text(&op->intake, op->r.ids[from], &text, o->err);
        if (!offsets)
            out_text(o, NULL, text.data, text.len);
        else
            out_u64(o, NULL, op->completion->offset);
        if (offsets)
            op->completion->offset += characters(&text);
    }
    fw_buf_done(&text);
}

static void out_logprobs(struct out *o, const struct op *op, size_t from, size_t to)
{
    size_t i;

    if (!op->completion->logprobs) {
        out_null(o, "logprobs");
        return;
    }
    out_key(o, "logprobs");
    out_open(o, '{');
    out_key(o, "tokens");
    out_open(o, '[');
    out_token_texts(o, op, from, to, false);
    out_close(o, ']');
    out_key(o, "token_logprobs");
    out_open(o, '[');
    for (i = from; i < to; i++)
        out_double(o, NULL, op->r.logp[i]);
    out_close(o, ']');
    out_null(o, "top_logprobs");
    out_key(o, "text_offset");
    out_open(o, '[');
    out_token_texts(o, op, from, to, true);
    out_close(o, ']');
    out_close(o, '}');
}

static void out_choice(struct out *o, const struct op *op, size_t from, size_t to,
                       const struct fw_http_text *text, const char *finish)
{
    out_key(o, "choices");
    out_open(o, '[');
    out_open(o, '{');
    out_text(o, "text", text->data, text->len);
    out_u64(o, "index", 0);
    out_logprobs(o, op, from, to);
    if (finish)
        out_string(o, "finish_reason", finish);
    else
        out_null(o, "finish_reason");
    out_close(o, '}');
    out_close(o, ']');
}

static int tell_completions(struct op *op, struct out *o, size_t from, size_t to,
                            const struct fw_http_text *text)
{
    out_head(o, op);
    out_choice(o, op, from, to, text, NULL);
    out_close(o, '}');
    return o->rc;
}

static void out_usage(struct out *o, const struct op *op)
{
    uint64_t prompt = op->r.in.count ? op->r.in.item->shape[0] : 0;

    out_key(o, "usage");
    out_open(o, '{');
    out_u64(o, "prompt_tokens", prompt);
    out_u64(o, "completion_tokens", op->r.count);
    out_u64(o, "total_tokens", prompt + op->r.count);
    out_close(o, '}');
}

static void out_session(struct out *o, const struct op *op)
{
    if (!op->r.id[0])
        return;
    out_string(o, "session", op->r.id);
    out_u64(o, "version", op->r.version);
    if (!op->r.learn)
        return;
    out_u64(o, "durable_version", op->r.facts.durable_version);
    out_u64(o, "tokens_seen", op->r.facts.tokens_seen);
}

/* The texts were told: what is left is how it ended. */
static int answer_stream(struct op *op, const char *finish, struct fw_err *err)
{
    const struct fw_http_text none = { "", 0 };
    struct out o;

    out_begin(&o, &op->out, err);
    out_head(&o, op);
    out_choice(&o, op, 0, 0, &none, finish);
    out_session(&o, op);
    out_close(&o, '}');
    if (!op->completion->usage || o.rc < 0)
        return o.rc;
    if (fw_buf_append(&op->out, "\n\ndata: ", 8, err) < 0)
        return -1;
    out_begin(&o, &op->out, err);
    out_head(&o, op);
    out_key(&o, "choices");
    out_open(&o, '[');
    out_close(&o, ']');
    out_usage(&o, op);
    out_close(&o, '}');
    return o.rc;
}

static int answer_completions(struct op *op, struct fw_err *err)
{
    const char *finish = op->r.finish == FW_FINISH_STOP ? "stop" : "length";
    struct fw_buf text;
    struct out o;
    size_t i;
    int rc = 0;

    if (op->events)
        return answer_stream(op, finish, err);
    if (op->r.id[0])
        op_etag(op, op->r.facts.uid, op->r.version);
    fw_buf_init(&text, OP_REPLY_MAX);
    for (i = 0; rc == 0 && i < op->r.count; i++)
        rc = intake_text(&op->intake, op->r.ids[i], &text, err);
    if (rc == 0 && op->r.bytes.len > 0)
        rc = fw_buf_append(&text, op->r.bytes.data, op->r.bytes.len, err);
    out_begin(&o, &op->out, err);
    o.rc = rc;
    out_head(&o, op);
    out_choice(&o, op, 0, op->r.count,
               &(struct fw_http_text){ (const char *)text.data, text.len }, finish);
    out_usage(&o, op);
    out_session(&o, op);
    out_close(&o, '}');
    fw_buf_done(&text);
    return o.rc;
}

const struct endpoint api_completions = { .verb = FW_GENERATE,
                                          .ask = ask_completions,
                                          .answer = answer_completions,
                                          .tell = tell_completions };
