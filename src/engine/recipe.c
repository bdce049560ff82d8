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
#include "fastweight/models.h"

static const struct fw_learner_kind *const kinds[] = { &fw_learner_stream,
                                                       &fw_learner_associative };

static const struct fw_learner_kind *built_in(const char *model)
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

static int kind_of(const struct fw_engine *e, const char *model,
                   const struct fw_learner_kind **ret, struct fw_err *err)
{
    const struct fw_model_entry *entry = fw_models_find(e->c.models, model);

    *ret = built_in(model);
    if (*ret)
        return 0;
    if (!entry)
        return fw_fail_param(err, FW_ENOENT, "model_not_found", "model", "no model '%.128s'",
                             model);
    if (!entry->checkpoint)
        return fw_fail_param(err, FW_EINVAL, entry->err.reason, "model", "%s", entry->err.msg);
    *ret = &fw_learner_transformer;
    return 0;
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

/* (locked) The one with that question or that text, whole or broken, counted, or NULL. */
static struct recipe *find(struct fw_engine *e, const char *model, const char *asked,
                           const char *text, bool whole)
{
    struct recipe *rc;

    for (rc = e->recipes; rc; rc = rc->next) {
        if (strcmp(rc->model, model) == 0 && !rc->learner == !whole &&
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

static int recipe_new(const struct fw_engine *e, const char *model,
                      const struct fw_params *asked, struct recipe **ret, struct fw_err *err)
{
    const struct fw_learner_kind *kind;
    struct recipe *rc;

    if (kind_of(e, model, &kind, err) < 0)
        return -1;
    rc = calloc(1, sizeof *rc);
    if (!rc)
        return out_of_memory(err);
    snprintf(rc->model, sizeof rc->model, "%s", model);
    if (fw_params_print(asked, rc->asked, sizeof rc->asked, err) < 0 ||
        kind->open(&rc->learner, e->c.models, model, asked, &rc->config, err) < 0 ||
        set_text(rc, err) < 0) {
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
    other = find(e, rc->model, NULL, rc->text, rc->learner != NULL);
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
    rc = find(e, model, asked, NULL, true);
    pthread_mutex_unlock(&e->lock);
    if (!rc) {
        if (recipe_new(e, model, config, &rc, err) < 0)
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
    rc = find(e, row->model, NULL, row->config, true);
    pthread_mutex_unlock(&e->lock);
    if (rc) {
        *ret = rc;
        return 0;
    }
    if (fw_params_parse(&config, row->config, &why) == 0 &&
        recipe_new(e, row->model, &config, &rc, &why) == 0) {
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

void recipe_about(const struct recipe *rc, struct fw_about *ret)
{
    *ret = (struct fw_about){ .vocab = 0 };
    if (!rc->learner)
        return;
    if (rc->learner->about)
        *ret = *rc->learner->about;
    ret->vocab = rc->learner->vocab;
    ret->token_bytes = (uint32_t)rc->learner->token_bytes;
}

/* ---- the models that are served */

static int serve_built_in(struct fw_engine *e, struct fw_err *err)
{
    const struct fw_params none = { .count = 0 };
    size_t i, j;

    for (i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        for (j = 0; kinds[i]->models[j]; j++) {
            struct served *s = &e->models[e->model_count++];

            s->id = kinds[i]->models[j];
            if (recipe_open(e, s->id, &none, &s->recipe, err) < 0)
                return -1;
        }
    }
    return 0;
}

/* One that cannot be served stops nobody: it is kept with the reason. */
static void serve_checkpoint(struct fw_engine *e, const struct fw_model_entry *entry)
{
    const struct fw_params none = { .count = 0 };
    struct served *s = &e->models[e->model_count++];

    s->id = entry->id;
    if (built_in(entry->id))
        fw_fail_param(&s->err, FW_EINVAL, "name_taken", "model",
                      "'%.128s' is the name of a built-in model", entry->id);
    else
        recipe_open(e, entry->id, &none, &s->recipe, &s->err);
}

int recipes_open(struct fw_engine *e, struct fw_err *err)
{
    size_t i, n = 0, checkpoints = fw_models_count(e->c.models);

    for (i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        for (const char *const *name = kinds[i]->models; *name; name++)
            n++;
    e->models = calloc(n + checkpoints, sizeof *e->models);
    if (!e->models)
        return out_of_memory(err);
    if (serve_built_in(e, err) < 0)
        return -1;
    for (i = 0; i < checkpoints; i++)
        serve_checkpoint(e, fw_models_at(e->c.models, i));
    return 0;
}

void recipes_close(struct fw_engine *e)
{
    while (e->model_count > 0)
        recipe_unref(e, e->models[--e->model_count].recipe);
    free(e->models);
}

static void tell(const struct served *s, struct fw_model_facts *ret)
{
    const struct recipe *rc = s->recipe;

    memset(ret, 0, sizeof *ret);
    snprintf(ret->id, sizeof ret->id, "%s", s->id);
    ret->err = s->err;
    if (!rc) {
        snprintf(ret->kind, sizeof ret->kind, "%s", fw_learner_transformer.name);
        return;
    }
    snprintf(ret->kind, sizeof ret->kind, "%s", rc->learner->kind->name);
    recipe_about(rc, &ret->about);
    ret->state_bytes = rc->learner->layout->block_bytes;
    ret->config = rc->config;
}

size_t fw_engine_models(const struct fw_engine *e, struct fw_model_facts *ret, size_t max)
{
    size_t i;

    for (i = 0; i < e->model_count && i < max; i++)
        tell(&e->models[i], &ret[i]);
    return e->model_count;
}

int fw_engine_model(const struct fw_engine *e, const char *id, struct fw_model_facts *ret,
                    struct fw_err *err)
{
    size_t i;

    for (i = 0; i < e->model_count && strcmp(e->models[i].id, id) != 0; i++)
        ;
    if (i == e->model_count)
        return fw_fail_param(err, FW_ENOENT, "model_not_found", "model", "no model '%.128s'",
                             id);
    tell(&e->models[i], ret);
    return 0;
}

int fw_engine_encode(const struct fw_engine *e, const char *model, const void *text, size_t len,
                     struct fw_buf *ids, struct fw_err *err)
{
    const struct fw_model_entry *entry = fw_models_find(e->c.models, model);

    if (!entry || !entry->tokenizer)
        return fw_fail_param(err, FW_EINVAL, "no_tokenizer", "text",
                             "the model '%.128s' has no tokenizer; send token ids", model);
    return fw_tokenizer_encode(entry->tokenizer, text, len, ids, err);
}

const unsigned char *fw_engine_token(const struct fw_engine *e, const char *model, uint32_t id,
                                     size_t *ret_len)
{
    const struct fw_model_entry *entry = fw_models_find(e->c.models, model);

    *ret_len = 0;
    return entry && entry->tokenizer ? fw_tokenizer_bytes(entry->tokenizer, id, ret_len) : NULL;
}

size_t fw_engine_inputs(const char **ret, size_t max)
{
    return fw_memory_inputs(ret, max);
}
