/* ls.c - fwctl ls: sessions as a table, page by page. */
#include "config.h"

#include "fwctl.h"

#include <stdio.h>
#include <string.h>

static void print_row(json_t *row)
{
    const char *id = "", *model = "";
    json_int_t bytes = 0, version = 0, tokens = 0;

    json_unpack(row, "{s:s, s:s, s:I, s:I, s:I}", "id", &id, "model", &model, "state_bytes",
                &bytes, "version", &version, "tokens_seen", &tokens);
    printf("%-32s %-12s %12lld %10lld %14lld\n", id, model, (long long)bytes,
           (long long)version, (long long)tokens);
}

int ctl_ls(struct ctl *c, int argc, char **argv)
{
    char path[1024], after[160] = "";
    bool more = true;

    if (ctl_words(argc, argv, 0, 1, "ls [PREFIX]"))
        return 2;
    printf("%-32s %-12s %12s %10s %14s\n", "id", "model", "state_bytes", "version",
           "tokens_seen");
    while (more) {
        char *prefix = curl_easy_escape(NULL, argc ? argv[0] : "", 0);
        json_t *page, *row;
        size_t i;

        snprintf(path, sizeof path, "/v1/sessions?limit=1000&prefix=%s&after=%s", prefix,
                 after);
        curl_free(prefix);
        page = ctl_json(c, "GET", path, NULL);
        if (!page)
            return 1;
        json_array_foreach (json_object_get(page, "data"), i, row)
            print_row(row);
        more = json_is_true(json_object_get(page, "has_more"));
        if (more)
            snprintf(after, sizeof after, "%s",
                     json_string_value(json_object_get(page, "last_id")));
        json_decref(page);
    }
    return 0;
}
