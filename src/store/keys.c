/* keys.c - idempotency keys: rows that are written with a journal row and outlive it.
 *
 * A key's mean surprise is NULL while only the journal row holds the learn; the checkpoint that
 * cuts the row writes it, and the whole key when its row never reached the journal (async). The
 * same checkpoint prunes: a key goes when it is neither among the last 1,000 of its session nor
 * younger than a day; above 100,000 the oldest go at any age. */
#include "config.h"

#include "store_int.h"

#include "fastweight/clock.h"

int fw_keys_add(struct fw_sql *c, struct fw_store_op *op)
{
    return fw_sql_run(c, SQL_KEY_ADD, &op->err, "itihi", op->uid, op->key, (int64_t)op->version,
                      &op->digest, fw_clock_wall_ms());
}

int fw_keys_means(struct fw_sql *c, struct fw_store_op *op)
{
    const struct fw_store_result *r = op->result;
    size_t i;

    for (i = 0; i < op->results; i++) {
        if (fw_sql_run(c, SQL_MEAN, &op->err, "itidhi", op->uid, r[i].key,
                       (int64_t)r[i].version, r[i].mean, &r[i].digest, fw_clock_wall_ms()) < 0)
            return -1;
    }
    return 0;
}

/* The keys of a session grow with its versions, so the span of versions tells most of the time
 * that there is nothing to prune. The wall clock decides here: a day counts across restarts. */
int fw_keys_prune(struct fw_sql *c, int64_t uid, struct fw_err *err)
{
    int64_t span = 0, newest_kept = 0, recent, hard = 0;

    if (fw_sql_int(c, fw_sql_start(c, SQL_KEY_SPAN, err, "i", uid), &span, err) < 0)
        return -1;
    if (span < FW_STORE_KEYS_KEPT)
        return 0;
    recent = INT64_MAX;
    if (fw_sql_int(c, fw_sql_start(c, SQL_KEY_NEWEST, err, "ii", uid, FW_STORE_KEYS_KEPT),
                   &newest_kept, err) < 0 ||
        fw_sql_int(c,
                   fw_sql_start(c, SQL_KEY_RECENT, err, "ii", uid,
                                fw_clock_wall_ms() - FW_STORE_KEYS_MS),
                   &recent, err) < 0)
        return -1;
    if (span >= FW_STORE_KEYS_MAX &&
        fw_sql_int(c, fw_sql_start(c, SQL_KEY_NEWEST, err, "ii", uid, FW_STORE_KEYS_MAX), &hard,
                   err) < 0)
        return -1;
    if (newest_kept >= recent)
        newest_kept = recent - 1;
    return fw_sql_run(c, SQL_KEYS_PRUNE, err, "ii", uid,
                      newest_kept > hard ? newest_kept : hard);
}
