/* forget.c - fwctl forget: sends a JSON file {"key": ...}, which makes the key recall zero, and
 * prints what that changed. */
#include "config.h"

#include "fwctl.h"

int ctl_forget(struct ctl *c, int argc, char **argv)
{
    if (ctl_words(argc, argv, 2, 2, "forget ID FILE|-"))
        return 2;
    return ctl_post_file(c, argv[0], "forget", argv[1]);
}
