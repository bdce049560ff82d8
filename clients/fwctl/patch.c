/* patch.c - fwctl patch: what a session learned between two of its snapshots, as a safetensors
 * file. */
#include "config.h"

#include "fwctl.h"

#include <stdio.h>

int ctl_patch(struct ctl *c, int argc, char **argv)
{
    char path[1024], tail[512];
    char *base;
    int n;

    if (ctl_words(argc, argv, 4, 4, "patch ID BASE NAME FILE|-"))
        return 2;
    base = curl_easy_escape(NULL, argv[1], 0);
    n = snprintf(tail, sizeof tail, "/patch?base=%s", base ? base : "");
    curl_free(base);
    if (n >= (int)sizeof tail) {
        fputs("fwctl: this name is too long\n", stderr);
        return 2;
    }
    if (ctl_snapshot_path(path, sizeof path, argv[0], argv[2], tail))
        return 2;
    return ctl_call(c, "GET", path, NULL) || ctl_write_reply(c, argv[3]) ? 1 : 0;
}
