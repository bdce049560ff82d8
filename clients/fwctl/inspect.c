/* inspect.c - fwctl inspect: a session's health as JSON. */
#include "config.h"

#include "fwctl.h"

int ctl_inspect(struct ctl *c, int argc, char **argv)
{
    char path[512];
    json_t *reply;

    if (ctl_words(argc, argv, 1, 1, "inspect ID") ||
        ctl_path(path, sizeof path, argv[0], "/inspect"))
        return 2;
    reply = ctl_json(c, "GET", path, NULL);
    if (!reply)
        return 1;
    ctl_print(reply);
    json_decref(reply);
    return 0;
}
