/* golden_check - compares rules and models with numbers that other people's code computed.
 *
 *     golden_check DIR
 *     golden_check --requests DIR     the same as requests to a daemon
 *     golden_check --rules            the names of all rules
 *
 * A case is NAME.json and NAME.safetensors in DIR (tests/golden/README.md has the format). The
 * JSON's `rule` alone decides what runs; shapes and q_scale become a configuration, the input
 * tensors a body, and fw_memory_new, check, learn and state do the rest, as in the daemon: no
 * formula stands here. One line a case: NAME rule max_abs_err tolerance ok|FAIL|UNKNOWN. The
 * exit status is 0 only when there was a case and all were ok. */
#include "config.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fastweight/num.h"
#include "golden.h"

static enum verdict learn_and_compare(struct golden_test *t, const struct fw_tensors *body)
{
    size_t n;
    struct fw_err err;
    float *out;
    enum verdict v;

    if (fw_memory_check(t->memory, body, &n, &err) < 0)
        return golden_fail(t, FAIL, "body refused", err.msg);
    out = malloc(n * t->heads * t->d_v * sizeof *out);
    if (!out)
        return golden_fail(t, FAIL, "out of memory", NULL);
    fw_memory_learn(t->memory, t->block, body, 0, n, NULL, out);
    v = golden_compare(t, out);
    free(out);
    if (v == OK && fw_memory_validate(t->memory, t->block, &err) < 0)
        return golden_fail(t, FAIL, "the block is not valid", err.msg);
    if (v == OK && !(t->error <= t->tolerance))
        return golden_fail(t, FAIL, "beyond the tolerance", NULL);
    return v;
}

static enum verdict run(struct golden_test *t, const char *dir, bool requests)
{
    struct fw_tensor item[MAX_IN];
    struct fw_tensors body = { 0, item };
    enum verdict v = golden_load(t, dir);

    if (v == OK && golden_is_model(t))
        return requests ? OK : golden_run_model(t);
    if (v == OK)
        v = golden_find_rule(t);
    if (v == OK)
        v = golden_shapes(t);
    if (v == OK)
        v = golden_body(t, &body);
    if (v == OK)
        v = golden_session(t);
    if (v == OK)
        v = golden_start(t);
    if (v == OK)
        v = learn_and_compare(t, &body);
    if (v == OK && requests)
        golden_print_request(t, &body);
    return v;
}

static int run_and_print(const char *dir, const char *name, bool requests)
{
    static const char *const words[] = { "ok", "FAIL", "UNKNOWN" };
    struct golden_test t = { .name = name };
    enum verdict v = run(&t, dir, requests);
    const char *rule = json_string_value(json_object_get(t.json, "rule"));

    if (!requests)
        printf("%s %s %.3e %.3e %s\n", name, rule ? rule : "-", t.error, t.tolerance, words[v]);
    if (v != OK)
        fprintf(stderr, "golden_check: %s: %s\n", name, t.why);
    for (size_t i = 0; i < MAX_IN; i++)
        free(t.owned[i]);
    free(t.block);
    fw_memory_free(t.memory);
    fw_safetensors_done(&t.file);
    json_decref(t.start);
    json_decref(t.json);
    return v == OK;
}

static int is_json(const struct dirent *d)
{
    size_t len = strlen(d->d_name);

    return len > 5 && strcmp(d->d_name + len - 5, ".json") == 0;
}

int main(int argc, char **argv)
{
    struct dirent **list = NULL;
    bool requests = argc == 3 && strcmp(argv[1], "--requests") == 0;
    const char *dir = argv[argc - 1];
    int n, good = 0;

    if (argc != 2 && !requests) {
        fprintf(stderr, "usage: golden_check [--requests] DIR | --rules\n");
        return 2;
    }
    if (strcmp(dir, "--rules") == 0) {
        for (size_t i = 0; fw_memory_rule(i); i++)
            puts(fw_memory_rule(i));
        return EXIT_SUCCESS;
    }
    fw_num_init();
    fw_num_thread();
    n = scandir(dir, &list, is_json, alphasort);
    for (int i = 0; i < n; i++) {
        list[i]->d_name[strlen(list[i]->d_name) - 5] = 0;
        good += run_and_print(dir, list[i]->d_name, requests);
        free(list[i]);
    }
    free(list);
    if (n <= 0)
        fprintf(stderr, "golden_check: no case in %s\n", dir);
    return n > 0 && good == n ? EXIT_SUCCESS : EXIT_FAILURE;
}
