/* rm.c - fwctl rm: deletes sessions; goes on after one that fails. */
#include "config.h"

#include "fwctl.h"

int ctl_rm(struct ctl *c, int argc, char **argv)
{
    char path[512];
    int status = 0;

    if (ctl_words(argc, argv, 1, 1 << 20, "rm ID..."))
        return 2;
    for (int i = 0; i < argc; i++)
        if (ctl_path(path, sizeof path, argv[i], "%s", "") || ctl_call(c, "DELETE", path, NULL))
            status = 1;
    return status;
}
