/* directory.c - every session's small facts, all in memory: one array of pointers sorted by id.
 *
 * Found by binary search, listed by walking; an insertion moves pointers (0.8 MB at worst for
 * 100,000 sessions, some 20 us). An entry that is not visible reserves its id: a create of it
 * is a conflict, everything else does not see it. */
#include "config.h"

#include "parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fastweight/clock.h"

int session_missing(const char *id, struct fw_err *err)
{
    return fw_fail_param(err, FW_ENOENT, "session_not_found", "id", "no session '%.128s'", id);
}

int name_check(const char *name, const char *param, struct fw_err *err)
{
    static const char first[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    size_t len = strnlen(name, FW_ID_MAX);

    if (len == 0 || len >= FW_ID_MAX || !strchr(first, name[0]) ||
        strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") < len)
        return fw_fail_param(err, FW_EINVAL, "bad_name", param,
                             "%s must match [A-Za-z0-9][A-Za-z0-9._-]{0,127}", param);
    return 0;
}

/* The first place whose id is not below `id`. */
static size_t place_of(const struct fw_engine *e, const char *id)
{
    size_t low = 0, high = e->dir_count, mid;

    while (low < high) {
        mid = low + (high - low) / 2;
        if (strcmp(e->dir[mid]->id, id) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static struct session *at_place(const struct fw_engine *e, size_t i, const char *id)
{
    return i < e->dir_count && strcmp(e->dir[i]->id, id) == 0 ? e->dir[i] : NULL;
}

struct session *dir_find(struct fw_engine *e, const char *id)
{
    struct session *s = at_place(e, place_of(e, id), id);

    return s && s->visible && !s->deleted ? s : NULL;
}

static int grow(struct fw_engine *e, struct fw_err *err)
{
    size_t cap = e->dir_cap ? 2 * e->dir_cap : 64;
    struct session **dir;

    if (e->dir_count < e->dir_cap)
        return 0;
    dir = realloc(e->dir, cap * sizeof(struct session *));
    if (!dir)
        return out_of_memory(err);
    e->dir = dir;
    e->dir_cap = cap;
    return 0;
}

static void insert(struct fw_engine *e, size_t i, struct session *s)
{
    memmove(&e->dir[i + 1], &e->dir[i], (e->dir_count - i) * sizeof e->dir[0]);
    e->dir[i] = s;
    e->dir_count++;
}

struct session *session_new(struct fw_engine *e, const char *id, int64_t uid)
{
    struct session *s = calloc(1, sizeof *s);

    if (!s)
        return NULL;
    s->id = strdup(id);
    s->e = e;
    s->uid = uid;
    s->task.run = session_run;
    if (!s->id) {
        free(s);
        return NULL;
    }
    return s;
}

void session_free(struct session *s)
{
    if (!s)
        return;
    keys_free(s);
    free(s->corrupt);
    free(s->parent_id);
    free(s->labels);
    free(s->id);
    free(s);
}

/* An id that nobody has: told apart from any other by the session's own number. */
static void invent_id(struct fw_engine *e, int64_t uid, char ret[FW_ID_MAX])
{
    int64_t seed[2] = { uid, fw_clock_wall_ms() };

    do {
        seed[1]++;
        snprintf(ret, FW_ID_MAX, "s-%016llx", (unsigned long long)fw_hash64(seed, sizeof seed));
    } while (at_place(e, place_of(e, ret), ret));
}

static int reserve(struct fw_engine *e, const char *id, int64_t uid, struct session **ret,
                   struct fw_err *err)
{
    char invented[FW_ID_MAX];
    struct session *s;
    size_t i;

    if (!id[0]) {
        invent_id(e, uid, invented);
        id = invented;
    }
    i = place_of(e, id);
    if (at_place(e, i, id))
        return fw_fail_param(err, FW_EEXIST, "session_exists", "id", "session '%s' exists", id);
    if (e->dir_count >= e->c.max_sessions)
        return fw_fail(err, FW_EBUSY, "too_many_sessions", "there are %zu sessions already",
                       e->dir_count);
    if (grow(e, err) < 0)
        return -1;
    s = session_new(e, id, uid);
    if (!s)
        return out_of_memory(err);
    insert(e, i, s);
    *ret = s;
    return 0;
}

int dir_reserve(struct fw_engine *e, const char *id, struct session **ret, struct fw_err *err)
{
    int64_t uid = fw_store_next_uid(e->store);
    int rc;

    if (id[0] && name_check(id, "id", err) < 0)
        return -1;
    pthread_mutex_lock(&e->lock);
    rc = reserve(e, id, uid, ret, err);
    pthread_mutex_unlock(&e->lock);
    return rc;
}

void dir_show(struct fw_engine *e, struct session *s)
{
    s->visible = true;
    e->stats.sessions++;
}

void dir_drop(struct session *s)
{
    struct fw_engine *e = s->e;
    struct recipe *rc = s->recipe;
    size_t i;

    pthread_mutex_lock(&e->lock);
    i = place_of(e, s->id);
    if (!s->passing) {
        memmove(&e->dir[i], &e->dir[i + 1], (e->dir_count - i - 1) * sizeof e->dir[0]);
        e->dir_count--;
    }
    if (s->visible)
        e->stats.sessions--;
    pthread_mutex_unlock(&e->lock);
    session_free(s);
    recipe_unref(e, rc);
}

/* ---- at start */

static int by_id(const void *a, const void *b)
{
    const struct session *const *x = a, *const *y = b;

    return strcmp((*x)->id, (*y)->id);
}

static int take_row(struct fw_engine *e, struct session *s, const struct fw_store_session *row,
                    struct fw_err *err)
{
    s->created_ms = row->created_ms;
    s->labels = strdup(row->labels);
    s->parent_version = row->parent_version;
    s->parent_hash = row->parent_hash;
    if (row->parent_id[0])
        s->parent_id = strdup(row->parent_id);
    if (!s->labels || (row->parent_id[0] && !s->parent_id))
        return out_of_memory(err);
    s->stored = row->version;
    s->version = s->assigned = s->durable = row->version + row->journal_rows;
    s->tokens_seen = row->tokens_seen + row->journal_tokens;
    s->journal_bytes = row->journal_bytes + row->journal_rows * ROW_COST;
    if (recipe_of_row(e, row, &s->recipe, err) < 0)
        return -1;
    if (!s->recipe->learner) {
        s->corrupt = malloc(sizeof *s->corrupt);
        if (!s->corrupt)
            return out_of_memory(err);
        *s->corrupt = s->recipe->err;
    }
    dir_show(e, s);
    return 0;
}

struct loading {
    struct fw_engine *e;
    struct fw_err *err;
};

static int add_row(void *arg, const struct fw_store_session *row)
{
    struct loading *l = arg;
    struct session *s;

    if (grow(l->e, l->err) < 0)
        return -1;
    s = session_new(l->e, row->id, row->uid);
    if (!s)
        return out_of_memory(l->err);
    l->e->dir[l->e->dir_count++] = s;
    return take_row(l->e, s, row, l->err);
}

int dir_load(struct fw_engine *e, struct fw_err *err)
{
    struct fw_err why = { .code = FW_OK };
    struct loading l = { e, &why };

    if (fw_store_sessions(e->store, add_row, &l, &why) < 0 || why.code != FW_OK) {
        if (err)
            *err = why;
        return -1;
    }
    if (e->dir_count)
        qsort(e->dir, e->dir_count, sizeof e->dir[0], by_id);
    return 0;
}

/* ---- facts */

static void copy_params(struct fw_params *ret, const struct fw_params *p)
{
    memcpy(ret, p, offsetof(struct fw_params, item) + p->count * sizeof p->item[0]);
}

void session_facts(const struct session *s, struct fw_facts *ret)
{
    const struct recipe *rc = s->recipe;

    snprintf(ret->id, sizeof ret->id, "%s", s->id);
    snprintf(ret->model, sizeof ret->model, "%s", rc->model);
    snprintf(ret->kind, sizeof ret->kind, "%s", rc->learner ? rc->learner->kind->name : "");
    ret->uid = s->uid;
    copy_params(&ret->config, &rc->config);
    ret->config_hash = rc->config_hash;
    recipe_about(rc, &ret->about);
    ret->state_bytes = block_bytes(s);
    ret->version = s->version;
    ret->durable_version = s->durable;
    ret->tokens_seen = s->tokens_seen;
    ret->created_ms = s->created_ms;
    snprintf(ret->labels, sizeof ret->labels, "%s", s->labels);
    snprintf(ret->parent_id, sizeof ret->parent_id, "%s", s->parent_id ? s->parent_id : "");
    ret->parent_version = s->parent_version;
    ret->parent_hash = s->parent_hash;
    ret->resident = s->block != NULL;
}

int fw_engine_facts(struct fw_engine *e, const char *id, struct fw_facts *ret,
                    struct fw_err *err)
{
    struct session *s;

    pthread_mutex_lock(&e->lock);
    s = dir_find(e, id);
    if (s) {
        session_facts(s, ret);
        ret->has_hash = false;
    }
    pthread_mutex_unlock(&e->lock);
    return s ? 0 : session_missing(id, err);
}

size_t fw_engine_list(struct fw_engine *e, const char *prefix, const char *after, size_t max,
                      struct fw_facts *ret, bool *ret_more)
{
    size_t i, count = 0, len = strlen(prefix);
    bool more = false;
    struct session *s;

    pthread_mutex_lock(&e->lock);
    i = place_of(e, strcmp(after, prefix) > 0 ? after : prefix);
    for (; i < e->dir_count && !more; i++) {
        s = e->dir[i];
        if (strncmp(s->id, prefix, len) != 0)
            break;
        if (!s->visible || s->deleted || strcmp(s->id, after) == 0)
            continue;
        more = count == max;
        if (!more) {
            session_facts(s, &ret[count]);
            ret[count++].has_hash = false;
        }
    }
    pthread_mutex_unlock(&e->lock);
    *ret_more = more;
    return count;
}
