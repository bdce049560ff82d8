/* call.c - one HTTP call through libcurl, and what the server says when it refuses.
 *
 * The connection is kept between calls of one run, so a learn in pieces pays for it once. */
#include "config.h"

#include "fwctl.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static size_t take_bytes(char *data, size_t size, size_t count, void *arg)
{
    struct ctl *c = arg;

    if (fw_buf_append(&c->reply, data, size * count, NULL) < 0)
        return 0;
    if (c->more)
        c->more(c);
    return size * count;
}

static void print_refusal(const struct ctl *c)
{
    json_t *root = json_loadb((const char *)c->reply.data, c->reply.len, 0, NULL);
    const char *reason = "", *message = NULL;

    json_unpack(root, "{s:{s:s, s:s}}", "error", "reason", &reason, "message", &message);
    if (message)
        fprintf(stderr, "fwctl: %ld %s: %s\n", c->status, reason, message);
    else
        fprintf(stderr, "fwctl: the server answered %ld\n", c->status);
    json_decref(root);
}

static struct curl_slist *headers_for(const struct ctl_body *body)
{
    struct curl_slist *list = curl_slist_append(NULL, "Expect:");
    char line[160];

    if (body && body->type) {
        snprintf(line, sizeof line, "Content-Type: %s", body->type);
        list = curl_slist_append(list, line);
    }
    if (body && body->accept) {
        snprintf(line, sizeof line, "Accept: %s", body->accept);
        list = curl_slist_append(list, line);
    }
    return list;
}

int ctl_call(struct ctl *c, const char *method, const char *path, const struct ctl_body *body)
{
    struct curl_slist *headers = headers_for(body);
    char url[1024];
    CURLcode code;

    c->reply.len = 0;
    c->status = 0;
    snprintf(url, sizeof url, "%s%s", c->server, path);
    curl_easy_reset(c->curl);
    curl_easy_setopt(c->curl, CURLOPT_URL, url);
    curl_easy_setopt(c->curl, CURLOPT_PATH_AS_IS, 1L); /* ".." stays an id, to be refused */
    curl_easy_setopt(c->curl, CURLOPT_CUSTOMREQUEST, method);
    curl_easy_setopt(c->curl, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(c->curl, CURLOPT_WRITEFUNCTION, take_bytes);
    curl_easy_setopt(c->curl, CURLOPT_WRITEDATA, c);
    if (body && body->data) {
        curl_easy_setopt(c->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body->len);
        curl_easy_setopt(c->curl, CURLOPT_POSTFIELDS, body->data);
    }
    code = curl_easy_perform(c->curl);
    curl_slist_free_all(headers);
    if (code != CURLE_OK) {
        fprintf(stderr, "fwctl: %s: %s\n", c->server, curl_easy_strerror(code));
        return -1;
    }
    curl_easy_getinfo(c->curl, CURLINFO_RESPONSE_CODE, &c->status);
    if (c->status < 400)
        return 0;
    print_refusal(c);
    return -1;
}

json_t *ctl_json(struct ctl *c, const char *method, const char *path, json_t *body)
{
    char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
    struct ctl_body b = { "application/json", text, text ? strlen(text) : 0, NULL };
    json_t *reply = NULL;
    int rc = ctl_call(c, method, path, text ? &b : NULL);

    if (rc == 0) {
        reply = json_loadb((const char *)c->reply.data, c->reply.len, JSON_ALLOW_NUL, NULL);
        if (!reply)
            fputs("fwctl: the reply is not JSON\n", stderr);
    }
    free(text);
    json_decref(body);
    return reply;
}

static int path_too_long(void)
{
    fputs("fwctl: this name is too long\n", stderr);
    return -1;
}

int ctl_path(char *out, size_t size, const char *id, const char *fmt, ...)
{
    char *quoted = curl_easy_escape(NULL, id, 0);
    va_list ap;
    int n;

    n = snprintf(out, size, "/v1/sessions/%s", quoted ? quoted : "");
    curl_free(quoted);
    if (n < 0 || (size_t)n >= size)
        return path_too_long();
    out += n;
    size -= (size_t)n;
    va_start(ap, fmt);
    n = vsnprintf(out, size, fmt, ap);
    va_end(ap);
    return n < 0 || (size_t)n >= size ? path_too_long() : 0;
}

int ctl_snapshot_path(char *out, size_t size, const char *id, const char *name,
                      const char *tail)
{
    char *quoted = curl_easy_escape(NULL, name, 0);
    int rc = ctl_path(out, size, id, "/snapshots/%s%s", quoted ? quoted : "", tail);

    curl_free(quoted);
    return rc;
}

int ctl_post_file(struct ctl *c, const char *id, const char *verb, const char *file)
{
    struct ctl_body body = { "application/json", NULL, 0, NULL };
    struct fw_buf bytes;
    char path[512];
    int status = 1;

    if (ctl_path(path, sizeof path, id, "/%s", verb))
        return 2;
    if (ctl_read_file(file, &bytes) == 0) {
        body.data = bytes.data;
        body.len = bytes.len;
        if (ctl_call(c, "POST", path, &body) == 0 && ctl_write_reply(c, "-") == 0) {
            putchar('\n');
            status = 0;
        }
    }
    fw_buf_done(&bytes);
    return status;
}

void ctl_print(const json_t *value)
{
    json_dumpf(value, stdout, JSON_INDENT(2));
    putchar('\n');
}
