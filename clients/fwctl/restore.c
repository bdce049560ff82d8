/* restore.c - fwctl restore: a session goes back to one of its snapshots. */
#include "config.h"

#include "fwctl.h"

int ctl_restore(struct ctl *c, int argc, char **argv)
{
    char path[512];
    json_t *reply;

    if (ctl_words(argc, argv, 2, 2, "restore ID NAME") ||
        ctl_snapshot_path(path, sizeof path, argv[0], argv[1], "/restore"))
        return 2;
    reply = ctl_json(c, "POST", path, NULL);
    if (!reply)
        return 1;
    ctl_print(reply);
    json_decref(reply);
    return 0;
}
