/* heat.c - a tensor as a picture.
 *
 * A pixel shows the element of largest magnitude among those it stands for, so that what stands
 * out is still seen when a million rows share 1,024 lines; the scale is symmetric around 0, up
 * to the largest magnitude of all. Colours are a palette of 255 steps and one for what is not
 * finite, so the file stays small. */
#include "config.h"

#include "heat.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <png.h>

enum { STEPS = 255, NOT_FINITE = 255, SMALL = 256 };

struct picture {
    const struct fw_tensor *t;
    uint64_t count, rows, cols; /* of elements */
    uint32_t height, width;     /* of cells */
    uint32_t scale;             /* pixels a cell, each way */
};

static double element(const struct fw_tensor *t, uint64_t i)
{
    switch (t->dtype) {
    case FW_U8:
        return ((const uint8_t *)t->data)[i];
    case FW_I8:
        return ((const int8_t *)t->data)[i];
    case FW_U16:
        return ((const uint16_t *)t->data)[i];
    case FW_I16:
        return ((const int16_t *)t->data)[i];
    case FW_U32:
        return ((const uint32_t *)t->data)[i];
    case FW_I32:
        return ((const int32_t *)t->data)[i];
    case FW_U64:
        return (double)((const uint64_t *)t->data)[i];
    case FW_I64:
        return (double)((const int64_t *)t->data)[i];
    case FW_F32:
        return (double)((const float *)t->data)[i];
    case FW_F64:
        return ((const double *)t->data)[i];
    default:
        return 0;
    }
}

static int measure(struct picture *p, const struct fw_tensor *t, struct fw_err *err)
{
    uint64_t longest;

    *p = (struct picture){ .t = t };
    if (t->dtype == FW_F16 || t->dtype == FW_BF16)
        return fw_fail(err, FW_ENOTSUP, "no_picture", "no picture of %s",
                       fw_dtype_name(t->dtype));
    if (fw_shape_count(t->shape, t->ndim, &p->count, err) < 0)
        return -1;
    if (p->count == 0)
        return fw_fail(err, FW_EINVAL, "empty_tensor", "%s has no elements", t->name);
    if (t->ndim >= 2) {
        p->cols = t->shape[t->ndim - 1];
    } else {
        p->cols = (uint64_t)ceil(sqrt((double)p->count));
    }
    p->rows = (p->count + p->cols - 1) / p->cols;
    p->width = p->cols < HEAT_MAX ? (uint32_t)p->cols : HEAT_MAX;
    p->height = p->rows < HEAT_MAX ? (uint32_t)p->rows : HEAT_MAX;
    longest = p->width > p->height ? p->width : p->height;
    p->scale = longest < SMALL ? (uint32_t)(SMALL / longest) : 1;
    return 0;
}

/* The element of largest magnitude in each cell; NaN where one is not finite. */
static double *pool(const struct picture *p)
{
    double *cell = calloc((size_t)p->width * p->height, sizeof *cell);
    uint64_t i;
    double x, *c;

    for (i = 0; cell && i < p->count; i++) {
        c = &cell[i / p->cols * p->height / p->rows * p->width +
                  i % p->cols * p->width / p->cols];
        x = element(p->t, i);
        if (!isfinite(x))
            *c = (double)NAN;
        else if (fabs(x) > fabs(*c))
            *c = x;
    }
    return cell;
}

static unsigned char *paint(const struct picture *p, const double *cell)
{
    size_t cells = (size_t)p->width * p->height, i, line = (size_t)p->width * p->scale;
    unsigned char *pixel = malloc(cells * p->scale * p->scale), *at = pixel;
    double largest = 0, x;
    uint32_t y;

    if (!pixel)
        return NULL;
    for (i = 0; i < cells; i++)
        largest = fabs(cell[i]) > largest ? fabs(cell[i]) : largest; /* NaN compares false */
    for (y = 0; y < p->height * p->scale; y++) {
        if (y % p->scale) {
            memcpy(at, at - line, line);
        } else {
            for (i = 0; i < line; i++) {
                x = cell[(size_t)(y / p->scale) * p->width + i / p->scale];
                at[i] = !isfinite(x)  ? NOT_FINITE
                        : largest > 0 ? (unsigned char)lround((x / largest + 1) * (STEPS / 2))
                                      : STEPS / 2;
            }
        }
        at += line;
    }
    return pixel;
}

/* White in the middle, blue and red at the ends (RGB). */
static void make_palette(unsigned char palette[256][3])
{
    static const double low[3] = { 33, 102, 172 }, mid[3] = { 247, 247, 247 },
                        high[3] = { 178, 24, 43 };
    const double *end;
    double t;
    int i, c;

    memset(palette, 0, 256 * 3);
    for (i = 0; i < STEPS; i++) {
        t = (double)i / (STEPS / 2) - 1;
        end = t < 0 ? low : high;
        for (c = 0; c < 3; c++)
            palette[i][c] = (unsigned char)lround(mid[c] + (end[c] - mid[c]) * fabs(t));
    }
}

static int encode(const struct picture *p, const unsigned char *pixel, struct fw_buf *out,
                  struct fw_err *err)
{
    unsigned char palette[256][3];
    png_image image = { .version = PNG_IMAGE_VERSION,
                        .width = p->width * p->scale,
                        .height = p->height * p->scale,
                        .format = PNG_FORMAT_RGB_COLORMAP,
                        .colormap_entries = 256 };
    png_alloc_size_t len = PNG_IMAGE_PNG_SIZE_MAX(image);

    make_palette(palette);
    if (fw_buf_reserve(out, len, err) < 0)
        return -1;
    if (!png_image_write_to_memory(&image, out->data + out->len, &len, 0, pixel, 0, palette))
        return fw_fail(err, FW_EINTERNAL, "no_picture", "%s", image.message);
    out->len += len;
    return 0;
}

int heat_png(const struct fw_tensor *t, struct fw_buf *out, struct fw_err *err)
{
    struct picture p;
    double *cell;
    unsigned char *pixel = NULL;
    int rc = -1;

    if (measure(&p, t, err) < 0)
        return -1;
    cell = pool(&p);
    if (cell)
        pixel = paint(&p, cell);
    if (pixel)
        rc = encode(&p, pixel, out, err);
    else
        fw_fail(err, FW_ENOMEM, "out_of_memory", "no memory for a picture");
    free(cell);
    free(pixel);
    return rc;
}
