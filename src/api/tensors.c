/* tensors.c - what a state is made of: the list, one tensor, its picture. */
#include "config.h"

#include "op.h"

#include "heat.h"

static int answer_tensors(struct op *op, struct fw_err *err)
{
    const struct fw_field *f;
    struct out o;
    size_t i;
    uint32_t d;

    op_etag(op, op->r.facts.uid, op->r.version);
    out_begin(&o, &op->out, err);
    out_open(&o, '{');
    out_key(&o, "data");
    out_open(&o, '[');
    for (i = 0; i < op->r.count; i++) {
        f = &op->r.field[i];
        out_open(&o, '{');
        out_string(&o, "name", f->name);
        out_string(&o, "dtype", fw_dtype_name(f->dtype));
        out_key(&o, "shape");
        out_open(&o, '[');
        for (d = 0; d < f->ndim; d++)
            out_u64(&o, NULL, f->shape[d]);
        out_close(&o, ']');
        out_u64(&o, "bytes", f->bytes);
        out_close(&o, '}');
    }
    out_close(&o, ']');
    out_close(&o, '}');
    return o.rc;
}

const struct endpoint api_tensors = { .verb = FW_TENSOR, .answer = answer_tensors };

static int answer_tensor(struct op *op, struct fw_err *err)
{
    struct fw_safetensors st;
    int rc;

    if (!fw_http_accepts(op->call, FW_HTTP_PNG))
        return op_file(op);
    if (fw_safetensors_read(&st, op->r.bytes.data, op->r.bytes.len, err) < 0)
        return -1;
    rc = heat_png(&st.tensors.item[0], &op->out, err);
    fw_safetensors_done(&st);
    op->reply.media = FW_HTTP_PNG;
    op_etag(op, op->r.facts.uid, op->r.version);
    return rc;
}

const struct endpoint api_tensor = { .verb = FW_TENSOR, .answer = answer_tensor };
