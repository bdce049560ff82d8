/* routes.c - the whole HTTP API as one table.
 *
 * `now` answers in the server's thread, what goes THROUGH an endpoint runs op_run on a worker.
 * The first row that fits is taken, and metrics count by row; docs/api.md tells each. */
#include "config.h"

#include "op.h"

enum {
    JSON = FW_HTTP_JSON,
    TOKENS = FW_HTTP_JSON | FW_HTTP_TEXT | FW_HTTP_OCTETS | FW_HTTP_SAFETENSORS,
    TENSORS = FW_HTTP_JSON | FW_HTTP_SAFETENSORS,
    FILES = FW_HTTP_SAFETENSORS | FW_HTTP_OCTETS
};

#define GET(path, ...)                                                                         \
    {                                                                                          \
        .method = FW_HTTP_GET, .pattern = path, __VA_ARGS__                                    \
    }
#define POST(path, ...)                                                                        \
    {                                                                                          \
        .method = FW_HTTP_POST, .pattern = path, __VA_ARGS__                                   \
    }
#define PUT(path, ...)                                                                         \
    {                                                                                          \
        .method = FW_HTTP_PUT, .pattern = path, __VA_ARGS__                                    \
    }
#define PATCH(path, ...)                                                                       \
    {                                                                                          \
        .method = FW_HTTP_PATCH, .pattern = path, __VA_ARGS__                                  \
    }
#define DEL(path, ...)                                                                         \
    {                                                                                          \
        .method = FW_HTTP_DELETE, .pattern = path, __VA_ARGS__                                 \
    }
#define THROUGH(e) .later = op_run, .arg = &(e)
#define SESSION    "/v1/sessions/{id}"

/* clang-format off */
static const struct fw_http_route routes[] = {
    GET(SESSION, .now = api_facts_now, THROUGH(api_facts)),
    POST(SESSION "/learn", .media = TOKENS, THROUGH(api_learn)),
    POST(SESSION "/edit", .media = TENSORS, THROUGH(api_edit)),
    POST(SESSION "/forget", .media = TENSORS, THROUGH(api_forget)),
    POST(SESSION "/score", .media = TOKENS, THROUGH(api_score)),
    POST(SESSION "/predict", .media = TENSORS, THROUGH(api_predict)),
    POST(SESSION "/recall", .media = TENSORS, THROUGH(api_recall)),
    POST(SESSION "/generate", .media = JSON, THROUGH(api_generate)),
    GET(SESSION "/inspect", THROUGH(api_inspect)),
    GET(SESSION "/tensors", THROUGH(api_tensors)),
    GET(SESSION "/tensors/{name}", THROUGH(api_tensor)),
    POST(SESSION "/checkpoint", THROUGH(api_checkpoint)),
    POST(SESSION "/fork", .media = JSON, THROUGH(api_fork)),
    GET(SESSION "/snapshots", THROUGH(api_snapshots)),
    POST(SESSION "/snapshots", .media = JSON, THROUGH(api_snapshot)),
    GET(SESSION "/snapshots/{name}", THROUGH(api_snapshot_get)),
    GET(SESSION "/snapshots/{name}/patch", THROUGH(api_patch)),
    DEL(SESSION "/snapshots/{name}", THROUGH(api_snapshot_drop)),
    POST(SESSION "/snapshots/{name}/restore", THROUGH(api_restore)),
    GET(SESSION "/export", THROUGH(api_export)),
    PUT(SESSION "/import", .media = FILES, .limit = api_import_limit, THROUGH(api_import)),
    PATCH(SESSION, .media = JSON, THROUGH(api_label)),
    DEL(SESSION, THROUGH(api_delete)),
    GET("/v1/sessions", .later = api_list),
    POST("/v1/sessions", .media = JSON, THROUGH(api_create)),
    POST("/v1/completions", .media = JSON, THROUGH(api_completions)),
    GET("/v1/models", .now = api_models),
    GET("/v1/models/{model}", .now = api_models),
    GET("/healthz", .now = api_healthz, .while_draining = true),
    GET("/readyz", .now = api_readyz, .while_draining = true),
    GET("/version", .now = api_version, .while_draining = true),
    GET("/metrics", .now = api_metrics, .while_draining = true),
};
/* clang-format on */

const struct fw_http_route *fw_api_routes(size_t *ret_count)
{
    *ret_count = sizeof routes / sizeof routes[0];
    return routes;
}
