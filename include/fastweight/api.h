/* fastweight/api.h - the HTTP API (docs/api.md): the route table, JSON and safetensors to
 * engine requests and back. Handlers run in the threads fastweight/http.h says. */
#ifndef FW_API_H
#define FW_API_H

#include "fastweight/engine.h"
#include "fastweight/http.h"

struct fw_api { /* the `arg` of the HTTP server; all borrowed */
    struct fw_engine *engine;
    struct fw_pool *pool;
    const char *cpu_level;
};

/* Lends the table, for struct fw_http_config. */
const struct fw_http_route *fw_api_routes(size_t *ret_count);
/* Answers a refused request with the error's status and JSON. */
void fw_api_refuse(struct fw_http_call *call, const struct fw_err *err);

#endif
