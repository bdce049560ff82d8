/* fastweight/err.h - how a failure travels: a caller-owned struct of fixed buffers.
 *
 * What can fail returns 0 or -1, takes `struct fw_err *err` last and fills it once, where the
 * cause is known; callers pass it on untouched. NULL is allowed. Any thread; never allocates.
 */
#ifndef FW_ERR_H
#define FW_ERR_H

enum fw_code {
    FW_OK = 0,
    FW_ESYNTAX,   /* cannot be parsed at all                        400 */
    FW_EINVAL,    /* parsed, makes no sense here                    422 */
    FW_EACCES,    /* not for this client                           403 */
    FW_ENOENT,    /* no such session, snapshot, model, tensor       404 */
    FW_EEXIST,    /* the name is taken                              409 */
    FW_EINFLIGHT, /* the same idempotency key is still running      409 + Retry-After */
    FW_EVERSION,  /* If-Match named another version                 412 */
    FW_ETOOBIG,   /* a limit named in msg is exceeded               413 */
    FW_EMEDIA,    /* unsupported content type                       415 */
    FW_EMETHOD,   /* the path has no such method                    405 + Allow */
    FW_EBUSY,     /* queue or quota full                            429 + Retry-After */
    FW_ENOTSUP,   /* not built for this kind                        501 */
    FW_EAGAIN,    /* draining, or all memory pinned                 503 + Retry-After */
    FW_ENOMEM,    /* out of memory                                  503 */
    FW_ENOSPC,    /* storage full or failing                        507 */
    FW_ECORRUPT,  /* this session's stored bytes are damaged        500 state_corrupt */
    FW_EIO,       /* the disk or a socket failed                    500 */
    FW_EINTERNAL, /* our own bug                                    500 */
};

struct fw_err {
    enum fw_code code;
    char reason[40]; /* stable machine word, "session_not_found" */
    char param[64];  /* the offending field, or "" */
    char msg[256];   /* for a person */
};

#if defined(__GNUC__)
#define FW_PRINTF(a, b) __attribute__((format(printf, a, b)))
#else
#define FW_PRINTF(a, b)
#endif

/* Both return -1 always, so that a failure is one `return fw_fail(...)`. */
int fw_fail(struct fw_err *err, enum fw_code code, const char *reason, const char *fmt, ...)
    FW_PRINTF(4, 5);
int fw_fail_param(struct fw_err *err, enum fw_code code, const char *reason, const char *param,
                  const char *fmt, ...) FW_PRINTF(5, 6);

/* Lets the compiler see the -1: without it, what a caller reads only after success looks
 * uninitialised to -Wmaybe-uninitialized. */
static inline int fw_minus_one(int rc)
{
    (void)rc;
    return -1;
}
#define fw_fail(...)       fw_minus_one(fw_fail(__VA_ARGS__))
#define fw_fail_param(...) fw_minus_one(fw_fail_param(__VA_ARGS__))

#endif
