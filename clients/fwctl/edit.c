/* edit.c - fwctl edit: sends a JSON file {"key": ..., "value": ...}, which makes the key recall
 * the value, and prints what that changed. */
#include "config.h"

#include "fwctl.h"

int ctl_edit(struct ctl *c, int argc, char **argv)
{
    if (ctl_words(argc, argv, 2, 2, "edit ID FILE|-"))
        return 2;
    return ctl_post_file(c, argv[0], "edit", argv[1]);
}
