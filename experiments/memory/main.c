/* main.c - experiments about memory, one command each.
 *
 *     experiments/memory/lab OUT [NAME...]     all, or those named; tables go to OUT/NAME.tsv
 *     experiments/memory/lab named             numbers that must hold; fails when one is off */
#include "config.h"

#include <string.h>

#include "fastweight/num.h"
#include "lab.h"

static const struct {
    const char *name;
    void (*run)(const struct lab_out *out);
} experiments[] = {
    { "named", lab_named }, { "capacity", lab_capacity }, { "hard", lab_hard },
    { "evict", lab_evict }, { "words", lab_words },       { "four", lab_four },
    { "mqar", lab_mqar },   { "schlag", lab_schlag },     { "heads", lab_heads },
    { "self", lab_self },
};
#define EXPERIMENTS (sizeof experiments / sizeof experiments[0])

static int run(const struct lab_out *out, const char *name)
{
    for (size_t i = 0; i < EXPERIMENTS; i++)
        if (strcmp(experiments[i].name, name) == 0) {
            double start = lab_cpu_s();

            experiments[i].run(out);
            fprintf(stderr, "%s: %.1f s\n", name, lab_cpu_s() - start);
            return 0;
        }
    return -1;
}

int main(int argc, char **argv)
{
    struct lab_out out = { argc > 1 ? argv[1] : NULL };

    fw_num_init();
    fw_num_thread();
    if (argc == 2 && strcmp(argv[1], "named") == 0) {
        lab_named(&(struct lab_out){ NULL });
        return 0;
    }
    if (argc < 2)
        lab_fail("usage", "experiments/memory/lab OUT [NAME...] | named");
    for (int i = 2; i < argc; i++)
        if (run(&out, argv[i]) < 0)
            lab_fail(argv[i], "no such experiment");
    for (size_t i = 0; argc == 2 && i < EXPERIMENTS; i++)
        run(&out, experiments[i].name);
    return 0;
}
