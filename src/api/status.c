/* status.c - from an error to its HTTP status: the one table, and the JSON around it. */
#include "config.h"

#include "status.h"

#include "out.h"

static const struct status table[] = {
    [FW_OK] = { 500, "internal_error", NULL },
    [FW_ESYNTAX] = { 400, "invalid_request_error", NULL },
    [FW_EINVAL] = { 422, "unprocessable_error", NULL },
    [FW_EACCES] = { 403, "permission_error", NULL },
    [FW_ENOENT] = { 404, "not_found_error", NULL },
    [FW_EEXIST] = { 409, "conflict_error", NULL },
    [FW_EINFLIGHT] = { 409, "conflict_error", "1" },
    [FW_EVERSION] = { 412, "precondition_error", NULL },
    [FW_ETOOBIG] = { 413, "too_large_error", NULL },
    [FW_EMEDIA] = { 415, "media_type_error", NULL },
    [FW_EMETHOD] = { 405, "method_not_allowed_error", NULL },
    [FW_EBUSY] = { 429, "busy_error", "1" },
    [FW_ENOTSUP] = { 501, "not_supported_error", NULL },
    [FW_EAGAIN] = { 503, "unavailable_error", "1" },
    [FW_ENOMEM] = { 503, "unavailable_error", "1" },
    [FW_ENOSPC] = { 507, "storage_error", NULL },
    [FW_ECORRUPT] = { 500, "state_corrupt", NULL },
    [FW_EIO] = { 500, "internal_error", NULL },
    [FW_EINTERNAL] = { 500, "internal_error", NULL },
};

const struct status *status_of(enum fw_code code)
{
    if ((unsigned)code >= sizeof table / sizeof table[0] || !table[code].type)
        return &table[FW_EINTERNAL];
    return &table[code];
}

int status_print(const struct fw_err *e, struct fw_buf *out)
{
    const struct status *s = status_of(e->code);
    struct out o;

    out_begin(&o, out, NULL);
    out_open(&o, '{');
    out_key(&o, "error");
    out_open(&o, '{');
    out_u64(&o, "code", (uint64_t)s->status);
    out_string(&o, "type", s->type);
    out_string(&o, "reason", e->reason);
    out_string(&o, "message", e->msg);
    if (e->param[0])
        out_string(&o, "param", e->param);
    else
        out_null(&o, "param");
    out_close(&o, '}');
    out_close(&o, '}');
    return o.rc;
}
