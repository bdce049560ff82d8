/* import.c - fwctl import: replaces a session's state by an exported one. */
#include "config.h"

#include "fwctl.h"

#include <stdio.h>

int ctl_import(struct ctl *c, int argc, char **argv)
{
    struct ctl_body body = { "application/vnd.safetensors", NULL, 0, NULL };
    struct fw_buf file;
    char path[512];
    int status = 1;

    if (ctl_words(argc, argv, 2, 2, "import ID FILE|-") ||
        ctl_path(path, sizeof path, argv[0], "/import"))
        return 2;
    if (ctl_read_file(argv[1], &file) == 0) {
        body.data = file.data;
        body.len = file.len;
        if (ctl_call(c, "PUT", path, &body) == 0 && ctl_write_reply(c, "-") == 0) {
            putchar('\n');
            status = 0;
        }
    }
    fw_buf_done(&file);
    return status;
}
