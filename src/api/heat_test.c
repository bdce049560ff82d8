/* heat_test.c - pictures, read back with libpng. */
#include "config.h"

#include "heat.h"

#include <math.h>
#include <stdlib.h>

#include <png.h>

#include "test_main.h"

static unsigned char *decode(const struct fw_buf *b, png_image *image)
{
    unsigned char *pixel;

    *image = (png_image){ .version = PNG_IMAGE_VERSION };
    ck_assert(png_image_begin_read_from_memory(image, b->data, b->len));
    image->format = PNG_FORMAT_RGB;
    pixel = malloc(PNG_IMAGE_SIZE(*image));
    ck_assert(png_image_finish_read(image, NULL, pixel, 0, NULL));
    return pixel;
}

START_TEST(signs_are_colours_and_small_tensors_are_enlarged)
{
    const float x[4] = { -2, 0, 2, (float)INFINITY };
    struct fw_tensor t = {
        .dtype = FW_F32, .ndim = 2, .shape = { 2, 2 }, .data = x, .bytes = sizeof x
    };
    static const unsigned char want[4][3] = {
        { 33, 102, 172 }, { 247, 247, 247 }, { 178, 24, 43 }, { 0, 0, 0 }
    };
    struct fw_buf b;
    struct fw_err err;
    png_image image;
    unsigned char *pixel;
    int i;

    fw_buf_init(&b, 1 << 20);
    ck_assert_int_eq(heat_png(&t, &b, &err), 0);
    pixel = decode(&b, &image);
    ck_assert_uint_eq(image.width, 256);
    ck_assert_uint_eq(image.height, 256);
    for (i = 0; i < 4; i++)
        ck_assert_mem_eq(pixel + (((i / 2) * 200 + 20) * 256 + (i % 2) * 200 + 20) * 3, want[i],
                         3);
    free(pixel);
    fw_buf_done(&b);
}
END_TEST

START_TEST(a_large_tensor_is_pooled_to_its_extremes)
{
    size_t n = 3000 * 2000;
    float *x = calloc(n, sizeof *x);
    struct fw_tensor t = {
        .dtype = FW_F32, .ndim = 3, .shape = { 30, 100, 2000 }, .data = x, .bytes = n * 4
    };
    struct fw_buf b;
    struct fw_err err;
    png_image image;
    unsigned char *pixel;

    x[n - 1] = -1;
    fw_buf_init(&b, 8 << 20);
    ck_assert_int_eq(heat_png(&t, &b, &err), 0);
    pixel = decode(&b, &image);
    ck_assert_uint_eq(image.width, 1024);
    ck_assert_uint_eq(image.height, 1024);
    ck_assert_uint_eq(pixel[0], 247);
    ck_assert_uint_eq(pixel[(1024 * 1024 - 1) * 3], 33);
    free(pixel);
    free(x);
    fw_buf_done(&b);
}
END_TEST

START_TEST(odd_shapes_have_pictures_too)
{
    const uint16_t x[7] = { 1, 2, 3, 4, 5, 6, 7 };
    struct fw_tensor t = { .dtype = FW_U16, .ndim = 1, .shape = { 7 }, .data = x, .bytes = 14 };
    struct fw_buf b;
    struct fw_err err;

    fw_buf_init(&b, 1 << 20);
    ck_assert_int_eq(heat_png(&t, &b, &err), 0);
    t.ndim = 0;
    ck_assert_int_eq(heat_png(&t, &b, &err), 0);
    t.ndim = 1;
    t.shape[0] = 0;
    ck_assert_int_eq(heat_png(&t, &b, &err), -1);
    ck_assert_int_eq(err.code, FW_EINVAL);
    t.dtype = FW_BF16;
    ck_assert_int_eq(heat_png(&t, &b, &err), -1);
    ck_assert_int_eq(err.code, FW_ENOTSUP);
    fw_buf_done(&b);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("api/heat");
    TCase *t = tcase_create("heat");

    tcase_add_test(t, signs_are_colours_and_small_tensors_are_enlarged);
    tcase_add_test(t, a_large_tensor_is_pooled_to_its_extremes);
    tcase_add_test(t, odd_shapes_have_pictures_too);
    suite_add_tcase(s, t);
    return run_suite(s);
}
