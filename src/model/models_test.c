#include "config.h"

#include "fastweight/models.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fastweight/num.h"
#include "test_main.h"

static char top[32];
static struct fw_models *ms;
static struct fw_err err;

static void make_dir(void)
{
    snprintf(top, sizeof top, "/tmp/models_XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(top));
    ms = NULL;
    err = (struct fw_err){ 0 };
}

static void remove_dir(void)
{
    char command[64];

    fw_models_close(ms);
    snprintf(command, sizeof command, "rm -r %s", top);
    ck_assert_int_eq(system(command), 0);
}

static void make(const char *name, const char *config)
{
    char path[128];
    FILE *f;

    snprintf(path, sizeof path, "%s/%s", top, name);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    snprintf(path, sizeof path, "%s/%s/config.json", top, name);
    f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    fputs(config, f);
    fclose(f);
}

START_TEST(no_directories_are_no_models)
{
    ck_assert_int_eq(fw_models_open(&ms, "", &err), 0);
    ck_assert_uint_eq(fw_models_count(ms), 0);
    ck_assert_ptr_null(fw_models_find(ms, "x"));
    fw_models_close(ms);
    ck_assert_int_eq(fw_models_open(&ms, NULL, &err), 0);
    fw_models_close(ms);
    ck_assert_int_eq(fw_models_open(&ms, "/nonexistent:", &err), 0);
    ck_assert_uint_eq(fw_models_count(ms), 0);
    ck_assert_uint_eq(fw_models_count(NULL), 0);
    ck_assert_ptr_null(fw_models_find(NULL, "x"));
}
END_TEST

START_TEST(a_broken_model_is_kept_with_its_reason)
{
    const struct fw_model_entry *e;
    char dirs[128];

    make("b", "{\"architecture\": \"perceptron\", \"num_hidden_layers\": 1}");
    make("a", "{");
    make(".hidden", "{}");
    snprintf(dirs, sizeof dirs, "%s:%s", top, top);
    ck_assert_int_eq(fw_models_open(&ms, dirs, &err), 0);
    ck_assert_uint_eq(fw_models_count(ms), 2);
    e = fw_models_at(ms, 0);
    ck_assert_str_eq(e->id, "a");
    ck_assert_ptr_null(e->checkpoint);
    ck_assert_int_eq(e->err.code, FW_EINVAL);
    ck_assert_ptr_nonnull(strstr(e->err.msg, "config.json"));
    e = fw_models_find(ms, "b");
    ck_assert_ptr_eq(e, fw_models_at(ms, 1));
    ck_assert_ptr_nonnull(strstr(e->err.msg, "architecture"));
}
END_TEST

START_TEST(a_models_directory_that_is_a_file_is_an_error)
{
    char path[128];

    make("a", "{}");
    snprintf(path, sizeof path, "%s/a/config.json", top);
    ck_assert_int_eq(fw_models_open(&ms, path, &err), -1);
    ck_assert_int_eq(err.code, FW_EIO);
    ck_assert_str_eq(err.param, "models_dir");
    ms = NULL;
}
END_TEST

int main(void)
{
    Suite *s = suite_create("model/models");
    TCase *c = tcase_create("models");

    fw_num_init();
    tcase_add_checked_fixture(c, make_dir, remove_dir);
    tcase_add_test(c, no_directories_are_no_models);
    tcase_add_test(c, a_broken_model_is_kept_with_its_reason);
    tcase_add_test(c, a_models_directory_that_is_a_file_is_an_error);
    suite_add_tcase(s, c);
    return run_suite(s);
}
