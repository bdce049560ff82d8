/* snapshot.c - fwctl snapshot: keeps, lists and removes named copies of a session. */
#include "config.h"

#include "fwctl.h"

int ctl_snapshot(struct ctl *c, int argc, char **argv)
{
    bool drop = ctl_flag(&argc, argv, "--rm");
    char path[512];
    json_t *reply;

    if (ctl_words(argc, argv, drop ? 2 : 1, 2, "snapshot ID [NAME] [--rm]") ||
        (drop ? ctl_snapshot_path(path, sizeof path, argv[0], argv[1], "")
              : ctl_path(path, sizeof path, argv[0], "/snapshots")))
        return 2;
    if (drop)
        return ctl_call(c, "DELETE", path, NULL) ? 1 : 0;
    reply = argc > 1 ? ctl_json(c, "POST", path, json_pack("{s:s}", "name", argv[1]))
                     : ctl_json(c, "GET", path, NULL);
    if (!reply)
        return 1;
    ctl_print(reply);
    json_decref(reply);
    return 0;
}
