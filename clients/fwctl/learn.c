/* learn.c - fwctl learn: a file, stdin, or a growing log into a session. */
#include "config.h"

#include "fwctl.h"

static const char usage[] =
    "learn ID [FILE|-] [--follow] [--lines N] [--async] [--json|--safetensors]";

int ctl_learn(struct ctl *c, int argc, char **argv)
{
    struct ctl_feed f = { .verb = "learn", .query = "", .file = "-" };

    f.follow = ctl_flag(&argc, argv, "--follow");
    if (ctl_flag(&argc, argv, "--async"))
        f.query = "durability=async&";
    if (ctl_feed_options(&f, &argc, argv) || ctl_words(argc, argv, 1, 2, usage))
        return 2;
    f.id = argv[0];
    if (argc > 1)
        f.file = argv[1];
    return ctl_feed(c, &f) ? 1 : 0;
}
