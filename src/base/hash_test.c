#include "config.h"

#include "test_main.h"

#include <string.h>

#include "fastweight/hash.h"

static void fill(unsigned char *data, size_t len)
{
    uint32_t x = 1;
    size_t i;

    for (i = 0; i < len; i++) {
        x = x * 1664525u + 1013904223u;
        data[i] = (unsigned char)(x >> 24);
    }
}

START_TEST(the_hash_is_xxh3_with_the_canonical_text)
{
    char hex[FW_HASH_HEX];

    fw_hash_hex(fw_hash128("", 0), hex); /* xxhsum -H128 of nothing and of "a" */
    ck_assert_str_eq(hex, "99aa06d3014798d86001c324468d497f");
    fw_hash_hex(fw_hash128("a", 1), hex);
    ck_assert_str_eq(hex, "a96faf705af16834e6c632b61e964e1f");
    ck_assert(fw_hash64("", 0) == UINT64_C(0x2d06800538d394c2));
}
END_TEST

START_TEST(pieces_hash_like_one_piece_wherever_they_are_cut)
{
    static unsigned char data[3000];
    size_t len, cut;
    struct fw_hash whole;

    fill(data, sizeof data);
    for (len = 0; len <= sizeof data; len += len < 300 ? 1 : 271) {
        whole = fw_hash128(data, len);
        for (cut = 0; cut <= len; cut += 37) {
            struct fw_hash_piece piece[3] = { { data, cut },
                                              { NULL, 0 },
                                              { data + cut, len - cut } };
            ck_assert(fw_hash_equal(fw_hash128_pieces(piece, 3), whole));
        }
    }
    ck_assert(fw_hash_equal(fw_hash128_pieces(NULL, 0), fw_hash128(data, 0)));
}
END_TEST

START_TEST(one_changed_bit_changes_the_hash)
{
    unsigned char data[100];
    struct fw_hash before;
    size_t bit;

    fill(data, sizeof data);
    before = fw_hash128(data, sizeof data);
    for (bit = 0; bit < 8 * sizeof data; bit++) {
        data[bit / 8] ^= (unsigned char)(1u << bit % 8);
        ck_assert(!fw_hash_equal(fw_hash128(data, sizeof data), before));
        data[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
    ck_assert(fw_hash_equal(fw_hash128(data, sizeof data), before));
}
END_TEST

START_TEST(hex_and_parse_are_inverse)
{
    struct fw_hash h = { .hi = UINT64_C(0x00000000deadbeef), .lo = 1 }, back;
    char hex[FW_HASH_HEX];

    fw_hash_hex(h, hex);
    ck_assert_str_eq(hex, "00000000deadbeef0000000000000001");
    ck_assert_int_eq(fw_hash_parse(hex, &back), 0);
    ck_assert(fw_hash_equal(h, back));
    ck_assert_int_eq(fw_hash_parse("00000000DEADBEEF0000000000000001", &back), 0);
    ck_assert(fw_hash_equal(h, back));
}
END_TEST

START_TEST(parse_refuses_what_is_not_32_hex_digits_and_leaves_ret_alone)
{
    static const char *const bad[] = { "",
                                       "0",
                                       "00000000deadbeef000000000000000",
                                       "00000000deadbeef00000000000000011",
                                       "00000000deadbeeg0000000000000001",
                                       " 0000000deadbeef0000000000000001",
                                       "0x000000deadbeef0000000000000001" };
    struct fw_hash h = { 7, 8 };
    size_t i;

    for (i = 0; i < sizeof bad / sizeof bad[0]; i++)
        ck_assert_int_eq(fw_hash_parse(bad[i], &h), -1);
    ck_assert(h.hi == 7 && h.lo == 8);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("base/hash");
    TCase *tc = tcase_create("hash");

    tcase_add_test(tc, the_hash_is_xxh3_with_the_canonical_text);
    tcase_add_test(tc, pieces_hash_like_one_piece_wherever_they_are_cut);
    tcase_add_test(tc, one_changed_bit_changes_the_hash);
    tcase_add_test(tc, hex_and_parse_are_inverse);
    tcase_add_test(tc, parse_refuses_what_is_not_32_hex_digits_and_leaves_ret_alone);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
