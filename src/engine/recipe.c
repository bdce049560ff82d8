/* recipe.c - models with their configurations, opened once and shared by their sessions.
 *
 * A recipe is found by the configuration as it was asked for or by its resolved text, so that
 * a thousand equal sessions open one plan. Counted under the engine lock; the last session's
 * end closes it. Those with default configurations are kept while the engine is open. */
#include "config.h"

#include "parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fastweight/memory.h"

static const struct fw_learner_kind *const kinds[] = { &fw_learner_stream,
                                                       &fw_learner_associative };

static const struct fw_learner_kind *kind_of(const char *model)
{
    size_t i, j;

    for (i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        for (j = 0; kinds[i]->models[j]; j++) {
            if (strcmp(kinds[i]->models[j], model) == 0)
                return kinds[i];
        }
    }
    return NULL;
}

struct recipe *recipe_ref(struct recipe *rc)
{
    rc->refs++;
    return rc;
}

static void recipe_free(struct recipe *rc)
{
    if (rc && rc->learner)
        rc->learner->kind->close(rc->learner);
    free(rc);
}

void recipe_unref(struct fw_engine *e, struct recipe *rc)
{
    struct recipe **at;

    if (!rc)
        return;
    pthread_mutex_lock(&e->lock);
    if (--rc->refs > 0) {
        pthread_mutex_unlock(&e->lock);
        return;
    }
    for (at = &e->recipes; *at != rc; at = &(*at)->next)
        ;
    *at = rc->next;
    pthread_mutex_unlock(&e->lock);
    recipe_free(rc);
}

/* (locked) The one with that question or that text, counted, or NULL. */
static struct recipe *find(struct fw_engine *e, const char *model, const char *asked,
                           const char *text)
{
    struct recipe *rc;

    for (rc = e->recipes; rc; rc = rc->next) {
        if (strcmp(rc->model, model) == 0 &&
            ((asked && strcmp(rc->asked, asked) == 0) || (text && strcmp(rc->text, text) == 0)))
            return recipe_ref(rc);
    }
    return NULL;
}

static int set_text(struct recipe *rc, struct fw_err *err)
{
    if (fw_params_print(&rc->config, rc->text, sizeof rc->text, err) < 0)
        return -1;
    rc->config_hash = fw_hash128(rc->text, strlen(rc->text));
    return 0;
}

static int recipe_new(const char *model, const struct fw_params *asked, struct recipe **ret,
                      struct fw_err *err)
{
    const struct fw_learner_kind *kind = kind_of(model);
    struct recipe *rc;

    if (!kind)
        return fw_fail_param(err, FW_ENOENT, "model_not_found", "model", "no model '%.128s'",
                             model);
    rc = calloc(1, sizeof *rc);
    if (!rc)
        return out_of_memory(err);
    snprintf(rc->model, sizeof rc->model, "%s", model);
    if (fw_params_print(asked, rc->asked, sizeof rc->asked, err) < 0 ||
        kind->open(&rc->learner, model, asked, &rc->config, err) < 0 || set_text(rc, err) < 0) {
        recipe_free(rc);
        return -1;
    }
    *ret = rc;
    return 0;
}

/* (not locked) Adds rc, or frees it and takes the equal one that is there. */
static struct recipe *share(struct fw_engine *e, struct recipe *rc)
{
    struct recipe *other;

    if (rc->learner)
        rc->learner->pool = e->c.pool;
    pthread_mutex_lock(&e->lock);
    other = find(e, rc->model, NULL, rc->text);
    if (!other) {
        rc->refs = 1;
        rc->next = e->recipes;
        e->recipes = rc;
    }
    pthread_mutex_unlock(&e->lock);
    if (!other)
        return rc;
    recipe_free(rc);
    return other;
}

int recipe_open(struct fw_engine *e, const char *model, const struct fw_params *config,
                struct recipe **ret, struct fw_err *err)
{
    char asked[FW_PARAMS_TEXT];
    struct recipe *rc;

    if (fw_params_print(config, asked, sizeof asked, err) < 0)
        return -1;
    pthread_mutex_lock(&e->lock);
    rc = find(e, model, asked, NULL);
    pthread_mutex_unlock(&e->lock);
    if (!rc) {
        if (recipe_new(model, config, &rc, err) < 0)
            return -1;
        rc = share(e, rc);
    }
    *ret = rc;
    return 0;
}

/* A stored session whose recipe cannot be opened keeps its facts and answers state_corrupt. */
static int recipe_broken(const struct fw_store_session *row, const struct fw_err *why,
                         struct recipe **ret, struct fw_err *err)
{
    struct recipe *rc = calloc(1, sizeof *rc);

    if (!rc)
        return out_of_memory(err);
    snprintf(rc->model, sizeof rc->model, "%s", row->model);
    snprintf(rc->text, sizeof rc->text, "%s", row->config);
    fw_fail(&rc->err, FW_ECORRUPT, "state_corrupt", "its model cannot be opened: %s", why->msg);
    *ret = rc;
    return 0;
}

int recipe_of_row(struct fw_engine *e, const struct fw_store_session *row, struct recipe **ret,
                  struct fw_err *err)
{
    struct recipe *rc;
    struct fw_params config;
    struct fw_err why;

    pthread_mutex_lock(&e->lock);
    rc = find(e, row->model, NULL, row->config);
    pthread_mutex_unlock(&e->lock);
    if (rc) {
        *ret = rc;
        return 0;
    }
    if (fw_params_parse(&config, row->config, &why) == 0 &&
        recipe_new(row->model, &config, &rc, &why) == 0) {
        if (strcmp(rc->text, row->config) == 0 &&
            rc->learner->layout->block_bytes == row->block_bytes) {
            *ret = share(e, rc);
            return 0;
        }
        fw_fail(&why, FW_ECORRUPT, "state_corrupt", "another version wrote another layout");
        recipe_free(rc);
    }
    if (recipe_broken(row, &why, &rc, err) < 0)
        return -1;
    *ret = share(e, rc);
    return 0;
}

int recipe_init_hash(struct fw_engine *e, struct recipe *rc, struct fw_err *err)
{
    size_t bytes = rc->learner->layout->block_bytes;
    struct fw_hash hash;
    bool known;
    void *block;

    pthread_mutex_lock(&e->lock);
    known = rc->has_init_hash;
    pthread_mutex_unlock(&e->lock);
    if (known)
        return 0;
    block = aligned_alloc(64, bytes); /* a multiple of 64 */
    if (!block)
        return out_of_memory(err);
    memset(block, 0, bytes);
    rc->learner->kind->init(rc->learner, block);
    hash = fw_hash128(block, bytes);
    free(block);
    pthread_mutex_lock(&e->lock);
    rc->init_hash = hash;
    rc->has_init_hash = true;
    pthread_mutex_unlock(&e->lock);
    return 0;
}

int recipes_open(struct fw_engine *e, struct fw_err *err)
{
    const struct fw_params none = { .count = 0 };
    size_t i, j;

    for (i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        for (j = 0; kinds[i]->models[j]; j++) {
            if (recipe_open(e, kinds[i]->models[j], &none, &e->models[e->model_count], err) < 0)
                return -1;
            e->model_count++;
        }
    }
    return 0;
}

void recipes_close(struct fw_engine *e)
{
    while (e->model_count > 0)
        recipe_unref(e, e->models[--e->model_count]);
}

size_t fw_engine_models(const struct fw_engine *e, struct fw_model_facts *ret, size_t max)
{
    const struct recipe *rc;
    size_t i;

    for (i = 0; i < e->model_count && i < max; i++) {
        rc = e->models[i];
        memset(&ret[i], 0, sizeof ret[i]);
        snprintf(ret[i].id, sizeof ret[i].id, "%s", rc->model);
        snprintf(ret[i].kind, sizeof ret[i].kind, "%s", rc->learner->kind->name);
        ret[i].vocab = rc->learner->vocab;
        ret[i].state_bytes = rc->learner->layout->block_bytes;
        ret[i].config = rc->config;
    }
    return i;
}

size_t fw_engine_inputs(const char **ret, size_t max)
{
    return fw_memory_inputs(ret, max);
}
