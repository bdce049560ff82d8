/* main.c - fwctl, the command-line client of fastweightd: finds the verb and runs it.
 *
 * usage: fwctl [--server URL] VERB ...; the server also comes from FASTWEIGHTD_URL. Exit
 * status: 0 done, 1 the server or the network said no, 2 the words were wrong. */
#include "config.h"

#include "fwctl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_SERVER  "http://127.0.0.1:7787"
#define MAX_REPLY_BYTES ((size_t)2 << 30)

#define CTL_ROW(name, usage, help) { #name, ctl_##name, usage, help },
static const struct ctl_verb verbs[] = { CTL_VERBS(CTL_ROW) };

static void usage(FILE *out)
{
    fprintf(out, "usage: fwctl [--server URL] VERB ...   (server: FASTWEIGHTD_URL or %s)\n\n",
            DEFAULT_SERVER);
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
        fprintf(out, "  %s\n      %s\n", verbs[i].usage, verbs[i].help);
}

static const struct ctl_verb *find_verb(const char *name)
{
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
        if (strcmp(verbs[i].name, name) == 0)
            return &verbs[i];
    return NULL;
}

static int run(const struct ctl_verb *verb, const char *server, int argc, char **argv)
{
    struct ctl c = { .server = server };
    int status;

    curl_global_init(CURL_GLOBAL_DEFAULT);
    c.curl = curl_easy_init();
    if (!c.curl) {
        fputs("fwctl: out of memory\n", stderr);
        return 1;
    }
    fw_buf_init(&c.reply, MAX_REPLY_BYTES);
    status = verb->run(&c, argc, argv);
    fw_buf_done(&c.reply);
    curl_easy_cleanup(c.curl);
    curl_global_cleanup();
    return status;
}

int main(int argc, char **argv)
{
    const char *server = getenv("FASTWEIGHTD_URL");
    const struct ctl_verb *verb;

    argc--, argv++;
    if (argc >= 2 && strcmp(argv[0], "--server") == 0) {
        server = argv[1];
        argc -= 2, argv += 2;
    }
    if (argc && (strcmp(argv[0], "--help") == 0 || strcmp(argv[0], "help") == 0)) {
        usage(stdout);
        return 0;
    }
    verb = argc ? find_verb(argv[0]) : NULL;
    if (!verb) {
        usage(stderr);
        return 2;
    }
    return run(verb, server && *server ? server : DEFAULT_SERVER, argc - 1, argv + 1);
}
