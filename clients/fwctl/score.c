/* score.c - fwctl score: how surprising a file is to a session, which stays as it is.
 *
 * Frozen scoring cannot be cut into pieces (each would start without its past), so the whole
 * file is one body and max_body_bytes is its limit. */
#include "config.h"

#include "fwctl.h"

int ctl_score(struct ctl *c, int argc, char **argv)
{
    struct ctl_feed f = {
        .verb = "score", .query = "", .file = "-", .whole = "application/octet-stream"
    };

    if (ctl_flag(&argc, argv, "--adapt"))
        f.query = "adapt=true&";
    if (ctl_feed_options(&f, &argc, argv) ||
        ctl_words(argc, argv, 1, 2,
                  "score ID [FILE|-] [--adapt] [--lines N] [--json|--safetensors]"))
        return 2;
    f.id = argv[0];
    if (argc > 1)
        f.file = argv[1];
    return ctl_feed(c, &f) ? 1 : 0;
}
