#include "config.h"

#include "test_main.h"

#include <stdio.h>
#include <string.h>

#include "parts.h"

static float keys[6] = { 1, 2, 3, 4, 5, 6 };
static float beta[3] = { 0.5f, 0.25f, 1 };

static struct fw_tensor tensor(const char *name, const float *data, uint64_t n, uint64_t d)
{
    struct fw_tensor t = {
        .dtype = FW_F32, .ndim = d ? 2 : 1, .shape = { n, d }, .data = data
    };

    snprintf(t.name, sizeof t.name, "%s", name);
    t.bytes = n * (d ? d : 1) * sizeof *data;
    return t;
}

static void *encode(struct fw_tensor *item, size_t count, size_t *len)
{
    struct fw_tensors in = { count, item };
    void *body = NULL;

    ck_assert_int_eq(body_encode(&in, &body, len, NULL), 0);
    return body;
}

START_TEST(what_is_encoded_decodes_to_the_same_aligned_tensors)
{
    struct fw_tensor in[2] = { tensor("keys", keys, 3, 2), tensor("beta", beta, 3, 0) }, out[4];
    struct fw_tensors ts;
    const struct fw_tensor *t;
    size_t len;
    void *body = encode(in, 2, &len);

    ck_assert_int_eq(body_decode(body, len, out, 4, &ts, NULL), 0);
    ck_assert_uint_eq(ts.count, 2);
    t = fw_tensors_find(&ts, "keys");
    ck_assert_ptr_nonnull(t);
    ck_assert_uint_eq(t->ndim, 2);
    ck_assert_uint_eq(t->shape[0], 3);
    ck_assert_uint_eq(t->bytes, sizeof keys);
    ck_assert_uint_eq((uintptr_t)t->data % 64, 0);
    ck_assert_int_eq(memcmp(t->data, keys, sizeof keys), 0);
    t = fw_tensors_find(&ts, "beta");
    ck_assert_ptr_nonnull(t);
    ck_assert_int_eq(memcmp(t->data, beta, sizeof beta), 0);
    free(body);
}
END_TEST

START_TEST(the_order_of_tensors_does_not_change_the_bytes)
{
    struct fw_tensor ab[2] = { tensor("a", keys, 3, 2), tensor("b", beta, 3, 0) };
    struct fw_tensor ba[2] = { ab[1], ab[0] };
    size_t x, y;
    void *first = encode(ab, 2, &x), *second = encode(ba, 2, &y);

    ck_assert_uint_eq(x, y);
    ck_assert_int_eq(memcmp(first, second, x), 0);
    free(first);
    free(second);
}
END_TEST

START_TEST(an_empty_tensor_and_no_tensor_are_kept)
{
    struct fw_tensor in = tensor("keys", keys, 0, 0), out[1];
    struct fw_tensors ts;
    size_t len;
    void *body = encode(&in, 1, &len);

    ck_assert_int_eq(body_decode(body, len, out, 1, &ts, NULL), 0);
    ck_assert_uint_eq(ts.item[0].bytes, 0);
    free(body);
    body = encode(&in, 0, &len);
    ck_assert_int_eq(body_decode(body, len, out, 1, &ts, NULL), 0);
    ck_assert_uint_eq(ts.count, 0);
    free(body);
}
END_TEST

/* Whatever a damaged body says, its tensors lie inside it. */
static void decode_any(const unsigned char *body, size_t len)
{
    struct fw_tensor out[4];
    struct fw_tensors ts;
    struct fw_err err;
    const unsigned char *data;
    size_t i, outside = 0;

    if (body_decode(body, len, out, 4, &ts, &err) < 0) {
        outside = err.code != FW_ECORRUPT;
    } else {
        for (i = 0; i < ts.count; i++) {
            data = ts.item[i].data;
            outside += data < body || data + ts.item[i].bytes > body + len;
        }
    }
    ck_assert_uint_eq(outside, 0);
}

START_TEST(cut_and_flipped_bodies_never_reach_outside)
{
    struct fw_tensor in[2] = { tensor("keys", keys, 3, 2), tensor("beta", beta, 3, 0) };
    size_t len, i;
    unsigned char *body = encode(in, 2, &len), *copy;
    int bit;

    for (i = 0; i < len; i++) {
        copy = aligned_alloc(64, (i + 64) / 64 * 64);
        ck_assert_ptr_nonnull(copy);
        memcpy(copy, body, i);
        decode_any(copy, i);
        free(copy);
        for (bit = 0; bit < 8; bit++) {
            body[i] ^= 1u << bit;
            decode_any(body, len);
            body[i] ^= 1u << bit;
        }
    }
    free(body);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("body");
    TCase *tc = tcase_create("all");

    tcase_add_test(tc, what_is_encoded_decodes_to_the_same_aligned_tensors);
    tcase_add_test(tc, the_order_of_tensors_does_not_change_the_bytes);
    tcase_add_test(tc, an_empty_tensor_and_no_tensor_are_kept);
    tcase_add_test(tc, cut_and_flipped_bodies_never_reach_outside);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
