/* shards.c - mapping model.safetensors, or the shards of model.safetensors.index.json.
 *
 * The index is {"weight_map": {TENSOR: FILE, ..}, ..}; a file name is a plain name beside it.
 * A file that changes under a mapping is beyond what can be guarded against: checkpoints are
 * replaced by renaming, never written in place. */
#include "config.h"

#include "shards.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include "settings.h"

#define BAD(err, ...) fw_fail(err, FW_EINVAL, "bad_model", __VA_ARGS__)
#define SINGLE        "model.safetensors"
#define INDEX         "model.safetensors.index.json"

enum { MAX_PARTS = 256, MAX_FILE_NAME = 128 };

void fw_part_close(struct fw_part *p)
{
    fw_safetensors_done(&p->file);
    if (p->map)
        munmap(p->map, p->len);
    *p = (struct fw_part){ 0 };
}

static int map_file(struct fw_part *p, const char *path, const char *name, struct fw_err *err)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe must not make us wait */
    void *map = MAP_FAILED;

    if (fd < 0)
        return BAD(err, "%s cannot be opened", name);
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0)
        map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    if (map == MAP_FAILED)
        return BAD(err, "%s cannot be mapped", name);
    p->map = map;
    p->len = (size_t)st.st_size;
    return 0;
}

static int open_part(struct fw_part *p, const char *dir, const char *name, struct fw_err *err)
{
    char path[4096];
    struct fw_err why;

    if (snprintf(path, sizeof path, "%s/%s", dir, name) >= (int)sizeof path)
        return BAD(err, "the path of %s is too long", name);
    if (map_file(p, path, name, err) < 0)
        return -1;
    if (fw_safetensors_lend(&p->file, p->map, p->len, &why) < 0)
        return fw_fail(err, why.code, why.code == FW_EINVAL ? "bad_model" : why.reason,
                       "%s: %.150s", name, why.msg);
    return 0;
}

/* A name without a path, of bytes that a message may show. */
static int is_plain(const char *name)
{
    size_t n = strlen(name);

    for (size_t i = 0; i < n; i++)
        if (name[i] == '/' || name[i] < ' ' || name[i] > '~')
            return 0;
    return n > 0 && n < MAX_FILE_NAME && name[0] != '.';
}

static int find_name(const char *const *names, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(names[i], name) == 0)
            return (int)i;
    return -1;
}

/* The files that the map names, each once; lent by the map. */
static int list_files(json_t *map, const char **names, size_t *ret_n, struct fw_err *err)
{
    const char *tensor;
    json_t *file;
    size_t n = 0;

    if (!json_is_object(map) || json_object_size(map) == 0)
        return BAD(err, INDEX " has no weight_map");
    json_object_foreach (map, tensor, file) {
        const char *name = json_string_value(file);

        if (!name || strlen(name) != json_string_length(file) || !is_plain(name))
            return BAD(err, INDEX ": the file of a tensor is no plain name");
        if (find_name(names, n, name) >= 0)
            continue;
        if (n == MAX_PARTS)
            return BAD(err, INDEX " names more than %d files", MAX_PARTS);
        names[n++] = name;
    }
    *ret_n = n;
    return 0;
}

/* Each tensor of a file is one that the map says is there. Returns how many. */
static int check_part(json_t *map, const struct fw_part *p, const char *name,
                      struct fw_err *err)
{
    for (size_t i = 0; i < p->file.tensors.count; i++) {
        const char *tensor = p->file.tensors.item[i].name;
        const char *said = json_string_value(json_object_get(map, tensor));

        if (!said || strcmp(said, name) != 0)
            return BAD(err, "%s: the index does not say that tensor '%s' is here", name,
                       tensor);
    }
    return 0;
}

static int open_shards(struct fw_part **ret, size_t *ret_count, const char *dir, json_t *map,
                       struct fw_err *err)
{
    const char *names[MAX_PARTS];
    size_t n, found = 0;

    if (list_files(map, names, &n, err) < 0)
        return -1;
    *ret = calloc(n, sizeof **ret);
    if (!*ret)
        return fw_fail(err, FW_ENOMEM, "out_of_memory", "no memory for a checkpoint");
    *ret_count = n;
    for (size_t i = 0; i < n; i++) {
        if (open_part(&(*ret)[i], dir, names[i], err) < 0 ||
            check_part(map, &(*ret)[i], names[i], err) < 0)
            return -1;
        found += (*ret)[i].file.tensors.count;
    }
    if (found != json_object_size(map))
        return BAD(err, INDEX " names %zu tensors, the files hold %zu", json_object_size(map),
                   found);
    return 0;
}

static int has_file(const char *dir, const char *name)
{
    char path[4096];

    return snprintf(path, sizeof path, "%s/%s", dir, name) < (int)sizeof path &&
           access(path, F_OK) == 0;
}

int fw_parts_open(struct fw_part **ret, size_t *ret_count, const char *dir, struct fw_err *err)
{
    struct fw_buf text;
    json_t *index = NULL;
    int rc;

    *ret = NULL;
    *ret_count = 0;
    if (has_file(dir, SINGLE) || !has_file(dir, INDEX)) {
        *ret = calloc(1, sizeof **ret);
        if (!*ret)
            return fw_fail(err, FW_ENOMEM, "out_of_memory", "no memory for a checkpoint");
        *ret_count = 1;
        return open_part(*ret, dir, SINGLE, err);
    }
    fw_buf_init(&text, (size_t)16 << 20);
    rc = fw_model_file(&text, dir, INDEX, err);
    if (rc == 0) {
        index = json_loadb((const char *)text.data, text.len, JSON_REJECT_DUPLICATES, NULL);
        rc = index ? open_shards(ret, ret_count, dir, json_object_get(index, "weight_map"), err)
                   : BAD(err, INDEX " is no JSON without repeated keys");
    }
    json_decref(index);
    fw_buf_done(&text);
    return rc;
}
