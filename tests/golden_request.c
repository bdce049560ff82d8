/* golden_request.c - a case as what a client would send, for tests through HTTP. */
#include "config.h"

#include "golden.h"

#include <stdio.h>

/* The tensor's elements from *at on, as nested arrays from axis `dim` on. */
static json_t *nested(const struct fw_tensor *t, uint32_t dim, size_t *at)
{
    json_t *array = json_array();

    if (dim == t->ndim) {
        json_decref(array);
        return json_real(t->dtype == FW_F32 ? (double)((const float *)t->data)[(*at)++]
                                            : ((const double *)t->data)[(*at)++]);
    }
    for (uint64_t i = 0; i < t->shape[dim]; i++)
        json_array_append_new(array, nested(t, dim + 1, at));
    return array;
}

static json_t *nested_floats(const struct fw_tensor *t)
{
    size_t at = 0;

    return nested(t, 0, &at);
}

/* {"name", "config", "body", "out", "tolerance", "start"} on a line: learning the body in a
 * session of this config must reply out; start, if not null, are tensors of its first block. */
void golden_print_request(const struct golden_test *t, const struct fw_tensors *body)
{
    const char *name = t->rule->out ? t->rule->out : "out";
    const struct fw_tensor *out = fw_tensors_find(&t->file.tensors, name);
    json_t *config = json_object(), *tensors = json_object(), *line;

    for (size_t i = 0; i < t->config.count; i++) {
        const struct fw_param *p = &t->config.item[i];

        json_object_set_new(config, p->key,
                            p->type == FW_PARAM_STRING ? json_string(p->string)
                            : p->type == FW_PARAM_BOOL ? json_boolean(p->number != 0)
                                                       : json_real(p->number));
    }
    for (size_t i = 0; i < body->count; i++)
        json_object_set_new(tensors, body->item[i].name, nested_floats(&body->item[i]));
    line = json_pack("{s:s, s:O?, s:o, s:o, s:o, s:f}", "name", t->name, "start", t->start,
                     "config", config, "body", tensors, "out", nested_floats(out), "tolerance",
                     t->tolerance);
    json_dumpf(line, stdout, JSON_REAL_PRECISION(17));
    putchar('\n');
    json_decref(line);
}
