/* fork.c - fwctl fork: a copy of a session under a new id. */
#include "config.h"

#include "fwctl.h"

int ctl_fork(struct ctl *c, int argc, char **argv)
{
    char path[512];
    json_t *reply;

    if (ctl_words(argc, argv, 1, 2, "fork ID [NEW]") ||
        ctl_path(path, sizeof path, argv[0], "/fork"))
        return 2;
    reply = ctl_json(c, "POST", path, json_pack("{s:s*}", "id", argc > 1 ? argv[1] : NULL));
    if (!reply)
        return 1;
    ctl_print(reply);
    json_decref(reply);
    return 0;
}
