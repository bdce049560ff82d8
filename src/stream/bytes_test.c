#include "config.h"

#include "stream_testing.h"

static const struct {
    const char *file, *preset;
    size_t state_bytes;
    double bits;
    const char *hash;
} known[] = {
    { "text.txt", "auto", 4 * MIB, 2.15349, "b36f2b17ac160b9e17b640a12060f7d2" },
    { "log.txt", "auto", 4 * MIB, 0.55376, "2e850e57eca50fd8bd319df9fc1ef15e" },
    { "json.txt", "auto", 4 * MIB, 0.26532, "53691ebc16635a3458c42b1ff371df46" },
    { "text.txt", "text", MIB, 2.20859, "d5ebf0fd324751258ace203152953fcb" },
    { "log.txt", "log", MIB, 0.55974, "e3cf5174069f451249605d9b4e044bda" },
    { "json.txt", "auto", MIB, 0.26594, "380b0ad899667a951ea36e92121cba84" },
    { "text.txt", "auto", MIB / 4, 2.40850, "d5ed57f572a273bb0420cfed1d6b56e6" },
    { "log.txt", "log", MIB / 4, 0.67857, "84fd0e2ff9e9d7152f146bad5e21aeed" },
    { "text.txt", "auto", 16 * MIB, 2.11897, "01452ac82525236ccb4a02dce891f407" },
    { "log.txt", "auto", 16 * MIB, 0.54808, "fd2be6ce3a3a87b196a705b046a772ba" },
};

/* The numbers pin the bytes across compilers and CPU levels. */
static void check_known(int i)
{
    struct fw_stream *s = new_bytes(known[i].preset, known[i].state_bytes);
    char hex[FW_HASH_HEX];
    size_t n;
    uint8_t *text = read_sample(known[i].file, &n);
    void *block = new_block(s);
    double bits = learn_bits(s, block, text, n);

    hash_block(s, block, hex);
    ck_assert_double_eq_tol(bits, known[i].bits, 6e-6);
    ck_assert_str_eq(hex, known[i].hash);
    free(block);
    free(text);
    fw_stream_free(s);
}

START_TEST(a_sample_costs_these_bits_and_leaves_these_bytes)
{
    check_known(_i);
}
END_TEST

START_TEST(the_base_level_leaves_the_same_bytes)
{
    ck_assert_int_eq(setenv("FW_CPU_LEVEL", "base", 1), 0);
    fw_num_init();
    ck_assert_int_eq(fw_num_level(), FW_LEVEL_BASE);
    check_known(_i);
}
END_TEST

START_TEST(the_cut_into_calls_leaves_no_trace)
{
    struct fw_stream *s = new_bytes("auto", MIB);
    char whole[FW_HASH_HEX], pieces[FW_HASH_HEX];
    size_t n, from = 0, x = 1;
    uint8_t *text = read_sample("log.txt", &n);
    void *a = new_block(s), *b = new_block(s);

    n = 30000;
    fw_stream_learn(s, a, text, n, NULL);
    for (size_t len; from < n; from += len) {
        x = x * 1103515245 + 12345;
        len = x >> 16 & 1 ? 1 : (x >> 17) % 700;
        if (len > n - from)
            len = n - from;
        fw_stream_learn(s, b, text + from, len, NULL);
    }
    hash_block(s, a, whole);
    hash_block(s, b, pieces);
    ck_assert_str_eq(whole, pieces);
    free(a);
    free(b);
    free(text);
    fw_stream_free(s);
}
END_TEST

/* Any bytes are a stream: the state stays valid, the code length finite. */
static void learn_kind(const struct fw_stream *s, uint8_t (*next)(uint64_t *x), double max_bits)
{
    uint8_t *data = malloc(40000);
    void *block = new_block(s);
    uint64_t x = 1;
    struct fw_err err;
    double bits;

    ck_assert_ptr_nonnull(data);
    for (size_t i = 0; i < 40000; i++)
        data[i] = next(&x);
    bits = learn_bits(s, block, data, 40000);
    ck_assert_double_ge(bits, 0);
    ck_assert_double_lt(bits, max_bits);
    ck_assert_msg(fw_stream_validate(s, block, &err) == 0, "%s", err.msg);
    free(block);
    free(data);
}

static uint8_t zeros(uint64_t *x)
{
    return (uint8_t)(*x = 0);
}

static uint8_t noise(uint64_t *x)
{
    *x = *x * 6364136223846793005u + 1442695040888963407u;
    return (uint8_t)(*x >> 56);
}

static uint8_t newlines(uint64_t *x)
{
    return noise(x) & 1 ? '\n' : ' ';
}

START_TEST(any_bytes_are_a_stream)
{
    struct fw_stream *s = new_bytes("auto", MIB);

    learn_kind(s, zeros, 0.01);
    learn_kind(s, noise, 8.5);
    learn_kind(s, newlines, 1.2);
    fw_stream_free(s);
}
END_TEST

static uint64_t rows_taken(const struct fw_stream_stats *st)
{
    uint64_t sum = 0;

    for (unsigned i = 0; i < 8; i++) /* the heads that share the cells */
        sum += st->used[i] + st->replaced[i];
    return sum;
}

START_TEST(after_ten_tables_of_other_data_the_old_is_still_cheaper_than_new)
{
    struct fw_stream *s = new_bytes("auto", MIB);
    struct fw_stream_stats st;
    size_t n, other_n;
    uint8_t *text = read_sample("text.txt", &n), *other = read_sample("log.txt", &other_n);
    void *block = new_block(s);
    double fresh = learn_bits(s, block, text, n), again;
    uint64_t start;

    fw_stream_stats(s, block, &st);
    start = rows_taken(&st);
    do {
        fw_stream_learn(s, block, other, other_n, NULL);
        fw_stream_stats(s, block, &st);
        for (size_t i = 0; i < other_n; i++) /* another log each time */
            if (other[i] >= '0' && other[i] <= '9')
                other[i] = (uint8_t)('0' + (other[i] - '0' + 3 + i % 4) % 10);
    } while (rows_taken(&st) - start < rounds_of(10, 10) * st.rows[0]);
    again = learn_bits(s, block, text, n);
    ck_assert_double_lt(again, fresh);
    free(block);
    free(text);
    free(other);
    fw_stream_free(s);
}
END_TEST

START_TEST(a_position_past_four_billion_changes_nothing)
{
    struct fw_stream *s = new_bytes("auto", MIB);
    const struct fw_field *regs = fw_layout_find(fw_stream_layout(s), "registers");
    const uint32_t near_end = UINT32_MAX - 20000;
    size_t n;
    uint8_t *text = read_sample("log.txt", &n);
    void *young = new_block(s), *old = new_block(s);
    struct fw_err err;
    double a, b;

    memcpy((char *)old + regs->offset + 8, &near_end, 4);      /* struct regs, pos */
    memcpy((char *)old + regs->offset + 8 + 36, &near_end, 4); /* line_start */
    a = learn_bits(s, young, text, n);
    b = learn_bits(s, old, text, n);
    ck_assert_double_eq_tol(a, b, 0.002 * a);
    ck_assert_msg(fw_stream_validate(s, old, &err) == 0, "%s", err.msg);
    free(young);
    free(old);
    free(text);
    fw_stream_free(s);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("bytes");
    TCase *tc = tcase_create("bytes");
    const int count = (int)rounds_of(sizeof known / sizeof known[0], 6);

    tcase_add_checked_fixture(tc, start_numbers, NULL);
    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, a_sample_costs_these_bits_and_leaves_these_bytes, 0, count);
    tcase_add_loop_test(tc, the_base_level_leaves_the_same_bytes, 0, count);
    tcase_add_test(tc, the_cut_into_calls_leaves_no_trace);
    tcase_add_test(tc, any_bytes_are_a_stream);
    tcase_add_test(tc, after_ten_tables_of_other_data_the_old_is_still_cheaper_than_new);
    tcase_add_test(tc, a_position_past_four_billion_changes_nothing);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
