/* create.c - fwctl create: a session from a model, or from another session. */
#include "config.h"

#include "fwctl.h"

#include <stdio.h>
#include <string.h>

static const char usage[] =
    "create ID MODEL [--config JSON] | create ID --from SESSION [--snapshot NAME]";

static json_t *body_for(int argc, char **argv, const char *config, const char *from,
                        const char *snapshot)
{
    json_t *body = json_pack("{s:s}", "id", argv[0]);
    json_error_t error;

    if (argc > 1)
        json_object_set_new(body, "model", json_string(argv[1]));
    if (from)
        json_object_set_new(body, "from",
                            json_pack("{s:s, s:s*}", "session", from, "snapshot", snapshot));
    if (config) {
        json_t *value = json_loads(config, 0, &error);

        if (!value) {
            fprintf(stderr, "fwctl: --config: %s\n", error.text);
            json_decref(body);
            return NULL;
        }
        json_object_set_new(body, "config", value);
    }
    return body;
}

int ctl_create(struct ctl *c, int argc, char **argv)
{
    const char *config = ctl_option(&argc, argv, "--config");
    const char *from = ctl_option(&argc, argv, "--from");
    const char *snapshot = ctl_option(&argc, argv, "--snapshot");
    json_t *body, *reply;

    if (ctl_words(argc, argv, from ? 1 : 2, 2, usage))
        return 2;
    body = body_for(argc, argv, config, from, snapshot);
    if (!body)
        return 2;
    reply = ctl_json(c, "POST", "/v1/sessions", body);
    if (!reply)
        return 1;
    ctl_print(reply);
    json_decref(reply);
    return 0;
}
