/* exchange.c - a state as a file: safetensors with the block's tensors and what they mean.
 *
 * __metadata__: format "fastweight", format_version "1", model, config (JSON), config_hash,
 * tokens_seen, hash (XXH3-128 of the block), file_hash, cpu_level, created_at. file_hash is the
 * XXH3-128 of the whole file with file_hash's own 32 digits as '0', so no byte can differ
 * unseen. Reading trusts nothing: hashes, metadata, names, dtypes and shapes must be exactly
 * the recipe's, the assembled block must have the recorded hash and pass the learner's own
 * validation. Any thread. */
#include "config.h"

#include "parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fastweight/num.h"
#include "fastweight/safetensors.h"

enum { META_MAX = 16, HEADER_SLACK = 1 << 20 };

/* The store holds 63 bits, and a session must be able to learn on. */
#define TOKENS_MAX (INT64_MAX / 2)

static const char zeros[] = "00000000000000000000000000000000";
static const char hash_mark[] = "\"file_hash\":\"";

struct metas {
    struct fw_meta item[META_MAX];
    size_t count;
};

static char *meta_add(struct metas *m, const char *key)
{
    struct fw_meta *e = &m->item[m->count++];

    snprintf(e->key, sizeof e->key, "%s", key);
    return e->value;
}

/* ---- writing */

static void put_time(char *value, size_t size, int64_t ms)
{
    time_t seconds = (time_t)(ms / 1000);
    struct tm tm;

    gmtime_r(&seconds, &tm);
    strftime(value, size, "%Y-%m-%dT%H:%M:%SZ", &tm);
}

/* A string parameter has no control characters (params.h). */
static int put_string(struct fw_buf *b, const char *v, struct fw_err *err)
{
    int rc = fw_buf_append(b, "\"", 1, err);

    for (; rc == 0 && *v; v++) {
        if (*v == '"' || *v == '\\')
            rc = fw_buf_append(b, "\\", 1, err);
        if (rc == 0)
            rc = fw_buf_append(b, v, 1, err);
    }
    return rc == 0 ? fw_buf_append(b, "\"", 1, err) : -1;
}

static int put_param(struct fw_buf *b, const struct fw_param *p, struct fw_err *err)
{
    if (fw_buf_printf(b, err, "%s\"%s\": ", b->len > 1 ? ", " : "", p->key) < 0)
        return -1;
    switch (p->type) {
    case FW_PARAM_NUMBER:
        return fw_buf_printf(b, err, "%.17g", p->number);
    case FW_PARAM_BOOL:
        return fw_buf_printf(b, err, p->number != 0 ? "true" : "false");
    case FW_PARAM_STRING:
        return put_string(b, p->string, err);
    }
    return -1;
}

/* The configuration as a JSON object's text. */
static int put_config(char *value, size_t size, const struct fw_params *p, struct fw_err *err)
{
    struct fw_buf b;
    size_t i;
    int rc;

    fw_buf_init(&b, size - 1);
    rc = fw_buf_append(&b, "{", 1, err);
    for (i = 0; rc == 0 && i < p->count; i++)
        rc = put_param(&b, &p->item[i], err);
    if (rc == 0)
        rc = fw_buf_append(&b, "}", 1, err);
    if (rc == 0)
        snprintf(value, size, "%.*s", (int)b.len, (const char *)b.data);
    fw_buf_done(&b);
    return rc;
}

static int make_meta(struct metas *m, const struct recipe *rc, const struct fw_hash *hash,
                     uint64_t tokens_seen, int64_t created_ms, struct fw_err *err)
{
    const size_t size = sizeof m->item[0].value;

    m->count = 0;
    snprintf(meta_add(m, "format"), size, "fastweight");
    snprintf(meta_add(m, "format_version"), size, "1");
    snprintf(meta_add(m, "model"), size, "%s", rc->model);
    if (put_config(meta_add(m, "config"), size, &rc->config, err) < 0)
        return -1;
    fw_hash_hex(rc->config_hash, meta_add(m, "config_hash"));
    snprintf(meta_add(m, "tokens_seen"), size, "%" PRIu64, tokens_seen);
    fw_hash_hex(*hash, meta_add(m, "hash"));
    snprintf(meta_add(m, "file_hash"), size, "%s", zeros);
    snprintf(meta_add(m, "cpu_level"), size, "%s", fw_num_cpu_level());
    put_time(meta_add(m, "created_at"), size, created_ms);
    return 0;
}

static uint64_t header_len(const unsigned char *file)
{
    uint64_t n;

    memcpy(&n, file, sizeof n);
    return n;
}

/* Where file_hash's digits are, or NULL. */
static const unsigned char *find_digits(const unsigned char *file, size_t len)
{
    const size_t mark = sizeof hash_mark - 1, digits = sizeof zeros - 1;
    const unsigned char *at, *end;
    uint64_t n;

    if (len < sizeof n || (n = header_len(file)) > len - sizeof n || n < mark + digits)
        return NULL;
    end = file + sizeof n + n - mark - digits;
    for (at = file + sizeof n; at <= end; at++) {
        if (memcmp(at, hash_mark, mark) == 0)
            return at + mark;
    }
    return NULL;
}

static struct fw_hash hash_file(const unsigned char *file, size_t len,
                                const unsigned char *digits)
{
    const size_t n = sizeof zeros - 1;
    const unsigned char *rest = digits + n;
    const struct fw_hash_piece piece[] = {
        { file, (size_t)(digits - file) },
        { zeros, n },
        { rest, len - (size_t)(rest - file) },
    };

    return fw_hash128_pieces(piece, 3);
}

static int sign(struct fw_buf *out, struct fw_err *err)
{
    const unsigned char *digits = find_digits(out->data, out->len);
    char hex[FW_HASH_HEX];

    if (!digits)
        return fw_fail(err, FW_EINTERNAL, "no_file_hash", "the file has no place for its hash");
    fw_hash_hex(hash_file(out->data, out->len, digits), hex);
    memcpy(out->data + (digits - out->data), hex, sizeof hex - 1);
    return 0;
}

int export_write(const struct recipe *rc, const void *block, const struct fw_hash *hash,
                 uint64_t tokens_seen, int64_t created_ms, struct fw_buf *out,
                 struct fw_err *err)
{
    const struct fw_layout *layout = rc->learner->layout;
    struct metas *m = malloc(sizeof *m);
    struct fw_tensor *t = calloc(layout->count + 1, sizeof *t);
    struct fw_tensors ts = { layout->count, t };
    int ok = -1;
    size_t i;

    if (!m || !t) {
        out_of_memory(err);
        goto out;
    }
    for (i = 0; i < layout->count; i++)
        t[i] = fw_layout_view(&layout->field[i], block);
    fw_buf_init(out, layout->block_bytes + HEADER_SLACK);
    if (make_meta(m, rc, hash, tokens_seen, created_ms, err) == 0 &&
        fw_safetensors_write(out, &ts, m->item, m->count, err) == 0)
        ok = sign(out, err);
out:
    free(t);
    free(m);
    return ok;
}

/* ---- reading */

static int refused(struct fw_err *err, const char *param, const char *what)
{
    return fw_fail_param(err, FW_EINVAL, "bad_import", param, "%s", what);
}

static int expect(const struct fw_safetensors *st, const char *key, const char *value,
                  struct fw_err *err)
{
    const char *got = fw_safetensors_meta(st, key);

    if (!got || strcmp(got, value) != 0)
        return fw_fail_param(err, FW_EINVAL, "bad_import", key, "%s is %.60s, not %.60s", key,
                             got ? got : "missing", value);
    return 0;
}

static int check_file_hash(const struct fw_safetensors *st, const unsigned char *file,
                           size_t len, struct fw_err *err)
{
    const unsigned char *digits = find_digits(file, len);
    const char *got = fw_safetensors_meta(st, "file_hash");
    char hex[FW_HASH_HEX];

    if (!digits || !got || strlen(got) != sizeof zeros - 1 ||
        memcmp(got, digits, sizeof zeros - 1) != 0)
        return refused(err, "file_hash", "file_hash is missing");
    fw_hash_hex(hash_file(file, len, digits), hex);
    if (strcmp(hex, got) != 0)
        return refused(err, "file_hash", "the file's bytes do not have their file_hash");
    return 0;
}

static int read_number(const char *text, uint64_t *ret)
{
    uint64_t n = 0;
    const char *at;

    if (!text || !text[0] || (text[0] == '0' && text[1]))
        return -1;
    for (at = text; *at; at++) {
        if (*at < '0' || *at > '9' || n > (INT64_MAX - 9) / 10)
            return -1;
        n = n * 10 + (uint64_t)(*at - '0');
    }
    *ret = n;
    return 0;
}

static int check_meta(const struct fw_safetensors *st, const struct recipe *rc,
                      struct fw_hash *ret_hash, uint64_t *ret_tokens, struct fw_err *err)
{
    char config_hash[FW_HASH_HEX];
    const char *hash = fw_safetensors_meta(st, "hash");

    fw_hash_hex(rc->config_hash, config_hash);
    if (expect(st, "format", "fastweight", err) < 0 ||
        expect(st, "format_version", "1", err) < 0 || expect(st, "model", rc->model, err) < 0 ||
        expect(st, "config_hash", config_hash, err) < 0)
        return -1;
    if (read_number(fw_safetensors_meta(st, "tokens_seen"), ret_tokens) < 0 ||
        *ret_tokens > TOKENS_MAX)
        return refused(err, "tokens_seen", "tokens_seen is no number of tokens");
    if (!hash || fw_hash_parse(hash, ret_hash) < 0)
        return refused(err, "hash", "hash is no hash");
    return 0;
}

static bool fits(const struct fw_field *f, const struct fw_tensor *t)
{
    return t && t->dtype == f->dtype && t->ndim == f->ndim && t->bytes == f->bytes &&
           memcmp(t->shape, f->shape, f->ndim * sizeof f->shape[0]) == 0;
}

/* block: zeroed, so that what lies between the tensors stays zero. */
static int assemble(const struct fw_layout *layout, const struct fw_tensors *ts, void *block,
                    struct fw_err *err)
{
    const struct fw_tensor *t;
    size_t i;

    if (ts->count != layout->count)
        return refused(err, "tensors", "the file's tensors are not this model's");
    for (i = 0; i < layout->count; i++) {
        t = fw_tensors_find(ts, layout->field[i].name);
        if (!fits(&layout->field[i], t))
            return refused(err, layout->field[i].name,
                           "a tensor is missing or has another shape");
        if (t->bytes)
            memcpy((char *)block + layout->field[i].offset, t->data, t->bytes);
    }
    return 0;
}

static int check_block(const struct recipe *rc, const void *block, struct fw_hash hash,
                       struct fw_err *err)
{
    const struct fw_learner *l = rc->learner;

    if (!fw_hash_equal(fw_hash128(block, l->layout->block_bytes), hash))
        return refused(err, "hash", "the tensors do not have their hash");
    if (l->kind->validate(l, block, err) < 0) {
        err->code = FW_EINVAL;
        return -1;
    }
    return 0;
}

/* A state from another kind of CPU is taken; the answer says so. */
static int tell_level(const struct fw_safetensors *st, struct fw_request *r, struct fw_err *err)
{
    const char *level = fw_safetensors_meta(st, "cpu_level");

    if (!level || strcmp(level, fw_num_cpu_level()) == 0)
        return 0;
    return fw_report_string(&r->report, "imported_cpu_level", level, err);
}

int import_read(const struct recipe *rc, struct fw_request *r, void *block,
                struct fw_hash *ret_hash, uint64_t *ret_tokens, struct fw_err *err)
{
    struct fw_safetensors st;
    int ok = -1;

    if (fw_safetensors_read(&st, r->file, r->file_len, err) < 0)
        return -1;
    if (check_file_hash(&st, r->file, r->file_len, err) == 0 &&
        check_meta(&st, rc, ret_hash, ret_tokens, err) == 0 &&
        assemble(rc->learner->layout, &st.tensors, block, err) == 0 &&
        check_block(rc, block, *ret_hash, err) == 0)
        ok = tell_level(&st, r, err);
    fw_safetensors_done(&st);
    return ok;
}
