/* export.c - fwctl export: a session's whole state, or a snapshot's, as a safetensors file. */
#include "config.h"

#include "fwctl.h"

int ctl_export(struct ctl *c, int argc, char **argv)
{
    const char *snapshot = ctl_option(&argc, argv, "--snapshot");
    char path[512];

    if (ctl_words(argc, argv, 2, 2, "export ID FILE|- [--snapshot NAME]") ||
        (snapshot ? ctl_snapshot_path(path, sizeof path, argv[0], snapshot, "")
                  : ctl_path(path, sizeof path, argv[0], "/export")))
        return 2;
    return ctl_call(c, "GET", path, NULL) || ctl_write_reply(c, argv[1]) ? 1 : 0;
}
