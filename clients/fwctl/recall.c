/* recall.c - fwctl recall: sends a JSON file {"queries": ...}, prints the values. */
#include "config.h"

#include "fwctl.h"

#include <stdio.h>

int ctl_recall(struct ctl *c, int argc, char **argv)
{
    struct ctl_body body = { "application/json", NULL, 0, NULL };
    struct fw_buf file;
    char path[512];
    int status = 1;

    if (ctl_words(argc, argv, 2, 2, "recall ID FILE|-") ||
        ctl_path(path, sizeof path, argv[0], "/recall"))
        return 2;
    if (ctl_read_file(argv[1], &file) == 0) {
        body.data = file.data;
        body.len = file.len;
        if (ctl_call(c, "POST", path, &body) == 0 && ctl_write_reply(c, "-") == 0) {
            putchar('\n');
            status = 0;
        }
    }
    fw_buf_done(&file);
    return status;
}
