/* recall.c - fwctl recall: sends a JSON file {"queries": ...}, prints the values. */
#include "config.h"

#include "fwctl.h"

int ctl_recall(struct ctl *c, int argc, char **argv)
{
    if (ctl_words(argc, argv, 2, 2, "recall ID FILE|-"))
        return 2;
    return ctl_post_file(c, argv[0], "recall", argv[1]);
}
