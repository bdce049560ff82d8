/* blocks.c - what every layer does with the rows of a chunk: projections, norms, branches. */
#include "config.h"

#include "inside.h"

#include <assert.h>
#include <string.h>

#include "fastweight/num.h"

const struct fw_row_parts *fw_parts(void)
{
#ifdef HAVE_V3
    if (fw_num_level() == FW_LEVEL_X86_64_V3)
        return &fw_parts_v3;
#endif
    return &fw_parts_base;
}

float *fw_chunk_take(struct fw_chunk *c, size_t rows, size_t width)
{
    float *ret = c->scratch->data + c->used;

    c->used += (rows * width + 15) / 16 * 16;
    assert(c->used <= c->scratch->size);
    return ret;
}

void fw_linear_rows(const struct fw_linear *l, const float *x, size_t rows, float *y)
{
    fw_project(&l->W, x, l->W.in, rows, y, l->W.out);
    for (size_t t = 0; l->bias && t < rows; t++)
        fw_parts()->add(y + t * l->W.out, l->bias, l->W.out);
}

void fw_layer_norm_rows(const struct fw_norm *norm, double eps, const float *x, size_t rows,
                        size_t d, float *y)
{
    for (size_t t = 0; t < rows; t++)
        fw_parts()->layer_norm(x + t * d, d, norm->w, norm->b, eps, y + t * d);
}

void fw_rms_norm_rows(const struct fw_norm *norm, double eps, const float *x, size_t rows,
                      size_t d, float *y)
{
    for (size_t t = 0; t < rows; t++)
        fw_parts()->rms_norm(x + t * d, d, norm->w, eps, y + t * d);
}

void fw_matrix_row(const struct fw_matrix *W, size_t row, float *ret)
{
    const uint16_t *half = (const uint16_t *)W->data + row * W->in;

    if (W->type == FW_WEIGHT_F32) {
        memcpy(ret, (const float *)W->data + row * W->in, W->in * sizeof *ret);
        return;
    }
    for (size_t i = 0; i < W->in; i++)
        ret[i] = W->type == FW_WEIGHT_F16 ? fw_from_f16(half[i]) : fw_from_bf16(half[i]);
}

void fw_residual(const struct fw_linear *l, const float *y, struct fw_chunk *c)
{
    float *sum = fw_chunk_take(c, c->n, l->W.out);

    fw_linear_rows(l, y, c->n, sum);
    fw_parts()->add(c->x, sum, c->n * l->W.out);
}

float *fw_model_kept(const struct fw_model *m, void *block, size_t layer, size_t kept)
{
    return (float *)(void *)((char *)block + layer * m->layer_bytes + m->at_kept[kept]);
}

void fw_model_memory(const struct fw_model *m, size_t layer, const struct fw_chunk *c,
                     float *const *made, float *out)
{
    struct fw_tensor item[FW_MADE];
    struct fw_tensors in = { m->slots, item };
    size_t width = (size_t)m->c->shape.heads * m->c->shape.d_v;

    for (size_t i = 0; i < m->slots; i++) {
        size_t count = c->n;

        item[i] = m->slot[i];
        item[i].shape[0] = c->n;
        for (uint32_t j = 1; j < item[i].ndim; j++)
            count *= (size_t)item[i].shape[j];
        item[i].data = made[m->made[i]];
        item[i].bytes = count * sizeof(float);
        fw_parts()->bound(made[m->made[i]], count, m->limit);
    }
    for (const struct fw_span *s = c->span; s < c->span + c->spans; s++)
        fw_memory_learn(m->memory, (char *)s->block + layer * m->layer_bytes, &in, s->from,
                        s->n, NULL, out + s->from * width);
}
