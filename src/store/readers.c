/* readers.c - the pool of read-only connections.
 *
 * A caller takes one for the length of one call, with one short transaction on it, and gives it
 * back; an idle one holds no lock and no snapshot of the database. Their page caches are small:
 * a commit empties them, and the kernel has the pages. No mmap: it would make hot loads faster
 * (1 MiB: 50 us against 230), but a bad sector would then be a SIGBUS of the whole daemon. */
#include "config.h"

#include "store_int.h"

#include <stdlib.h>

#define IDLE_MAX 16

static struct fw_reader *open_reader(struct fw_store *s, struct fw_err *err)
{
    struct fw_reader *r = calloc(1, sizeof *r);

    if (!r) {
        fw_fail(err, FW_ENOMEM, "out_of_memory", "no memory for a reader");
        return NULL;
    }
    if (fw_sql_open(&r->sql, s->path, SQLITE_OPEN_READONLY, err) < 0) {
        free(r);
        return NULL;
    }
    if (fw_sql_exec(&r->sql,
                    "PRAGMA query_only = ON; PRAGMA cache_size = -512;"
                    "PRAGMA temp_store = MEMORY; PRAGMA trusted_schema = OFF",
                    err) < 0) {
        fw_sql_close(&r->sql);
        free(r);
        return NULL;
    }
    return r;
}

struct fw_reader *fw_reader_take(struct fw_store *s, struct fw_err *err)
{
    struct fw_reader *r;

    pthread_mutex_lock(&s->mutex);
    r = s->idle;
    if (r) {
        s->idle = r->next;
        s->idle_count--;
    }
    pthread_mutex_unlock(&s->mutex);
    return r ? r : open_reader(s, err);
}

void fw_reader_give(struct fw_store *s, struct fw_reader *r)
{
    int keep;

    pthread_mutex_lock(&s->mutex);
    keep = s->idle_count < IDLE_MAX;
    if (keep) {
        r->next = s->idle;
        s->idle = r;
        s->idle_count++;
    }
    pthread_mutex_unlock(&s->mutex);
    if (!keep) {
        fw_sql_close(&r->sql);
        free(r);
    }
}

void fw_readers_close(struct fw_store *s)
{
    struct fw_reader *r;

    while ((r = s->idle) != NULL) {
        s->idle = r->next;
        fw_sql_close(&r->sql);
        free(r);
    }
}
