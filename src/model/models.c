/* models.c - the catalogue: looks through the models directories once, at start.
 *
 * Each sub-directory whose name has the grammar of an id is a model; what cannot be opened is
 * kept with the reason. Sorted by id; of two with one name the directory that was named first
 * has it. A directory that does not exist has no models. */
#include "config.h"

#include "fastweight/models.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MODELS_MAX = 1024, PATH_LEN = 4096 };

struct fw_models {
    struct fw_model_entry *entry;
    size_t count, cap;
};

static bool is_id(const char *name)
{
    static const char first[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    size_t len = strlen(name);

    return len > 0 && len <= 128 && strchr(first, name[0]) &&
           strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") ==
               len;
}

static bool is_directory(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* The place of an id, or where it belongs. */
static size_t place_of(const struct fw_models *ms, const char *id)
{
    size_t low = 0, high = ms->count, middle;

    while (low < high) {
        middle = low + (high - low) / 2;
        if (strcmp(ms->entry[middle].id, id) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const struct fw_model_entry *fw_models_find(const struct fw_models *ms, const char *id)
{
    size_t at;

    if (!ms)
        return NULL;
    at = place_of(ms, id);
    return at < ms->count && strcmp(ms->entry[at].id, id) == 0 ? &ms->entry[at] : NULL;
}

static int grow(struct fw_models *ms, struct fw_err *err)
{
    size_t cap = ms->cap ? 2 * ms->cap : 16;
    struct fw_model_entry *entry;

    if (ms->count < ms->cap)
        return 0;
    if (ms->count == MODELS_MAX)
        return fw_fail_param(err, FW_EINVAL, "too_many_models", "models_dir",
                             "there are more than %d models", MODELS_MAX);
    entry = realloc(ms->entry, cap * sizeof *entry);
    if (!entry)
        return fw_fail(err, FW_ENOMEM, "out_of_memory", "no memory for the models");
    ms->entry = entry;
    ms->cap = cap;
    return 0;
}

static void entry_open(struct fw_model_entry *e, const char *path)
{
    const struct fw_model_shape *shape;

    if (fw_checkpoint_open(&e->checkpoint, path, &e->err) < 0)
        return;
    shape = fw_checkpoint_shape(e->checkpoint);
    if (!shape->tokenizer[0] ||
        fw_tokenizer_open(&e->tokenizer, path, shape->tokenizer, shape->vocab, &e->err) == 0)
        return;
    fw_checkpoint_close(e->checkpoint);
    e->checkpoint = NULL;
}

static int add(struct fw_models *ms, const char *path, const char *id, struct fw_err *err)
{
    size_t at = place_of(ms, id);

    if (fw_models_find(ms, id))
        return 0;
    if (grow(ms, err) < 0)
        return -1;
    memmove(&ms->entry[at + 1], &ms->entry[at], (ms->count - at) * sizeof *ms->entry);
    ms->entry[at] = (struct fw_model_entry){ .checkpoint = NULL };
    snprintf(ms->entry[at].id, sizeof ms->entry[at].id, "%s", id);
    ms->count++;
    entry_open(&ms->entry[at], path);
    return 0;
}

static int scan(struct fw_models *ms, const char *dir, struct fw_err *err)
{
    char path[PATH_LEN];
    struct dirent *found;
    int rc = 0;
    DIR *d = opendir(dir);

    if (!d && errno == ENOENT)
        return 0;
    if (!d)
        return fw_fail_param(err, FW_EIO, "no_models_dir", "models_dir",
                             "cannot read %.180s: %s", dir, strerror(errno));
    while (rc == 0 && (found = readdir(d)) != NULL)
        if (is_id(found->d_name) &&
            snprintf(path, sizeof path, "%s/%s", dir, found->d_name) < PATH_LEN &&
            is_directory(path))
            rc = add(ms, path, found->d_name, err);
    closedir(d);
    return rc;
}

int fw_models_open(struct fw_models **ret, const char *dirs, struct fw_err *err)
{
    struct fw_models *ms = calloc(1, sizeof *ms);
    const char *at = dirs ? dirs : "";
    char dir[PATH_LEN];
    int rc = 0;

    if (!ms)
        return fw_fail(err, FW_ENOMEM, "out_of_memory", "no memory for the models");
    for (size_t len; rc == 0 && *at; at += len + (at[len] == ':')) {
        len = strcspn(at, ":");
        if (len >= sizeof dir) {
            rc = fw_fail_param(err, FW_EINVAL, "bad_option", "models_dir",
                               "a path in models_dir is too long");
        } else if (len > 0) {
            memcpy(dir, at, len);
            dir[len] = 0;
            rc = scan(ms, dir, err);
        }
    }
    if (rc < 0) {
        fw_models_close(ms);
        return -1;
    }
    *ret = ms;
    return 0;
}

void fw_models_close(struct fw_models *ms)
{
    if (!ms)
        return;
    for (size_t i = 0; i < ms->count; i++) {
        fw_tokenizer_close(ms->entry[i].tokenizer);
        fw_checkpoint_close(ms->entry[i].checkpoint);
    }
    free(ms->entry);
    free(ms);
}

size_t fw_models_count(const struct fw_models *ms)
{
    return ms ? ms->count : 0;
}

const struct fw_model_entry *fw_models_at(const struct fw_models *ms, size_t i)
{
    return &ms->entry[i];
}
