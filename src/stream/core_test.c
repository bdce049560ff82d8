#include "config.h"

#include "stream_testing.h"

#include "core.h"

static struct fw_stream *s;
static uint8_t *block;
static uint8_t *text;
static size_t len;

static void setup(void)
{
    start_numbers();
    s = new_bytes("auto", MIB);
    block = new_block(s);
    text = read_sample("log.txt", &len);
    fw_stream_learn(s, block, text, rounds_of(20000, 4), NULL);
}

static void teardown(void)
{
    free(block);
    free(text);
    fw_stream_free(s);
}

static uint8_t *field(const char *name, size_t *ret_bytes)
{
    const struct fw_field *f = fw_layout_find(fw_stream_layout(s), name);

    ck_assert_ptr_nonnull(f);
    if (ret_bytes)
        *ret_bytes = f->bytes;
    return block + f->offset;
}

static int valid(void)
{
    struct fw_err err;

    return fw_stream_validate(s, block, &err) == 0;
}

static void set_float(const char *name, size_t i, float x)
{
    memcpy(field(name, NULL) + 4 * i, &x, sizeof x);
}

START_TEST(honest_blocks_are_valid)
{
    ck_assert(valid());
    memset(block, 0, block_bytes(s));
    fw_stream_init(s, block);
    ck_assert(valid());
}
END_TEST

START_TEST(weights_must_be_finite_and_bounded)
{
    static const float bad[] = { __builtin_nanf(""), __builtin_inff(), -1e7F, 4194305.0F };
    static const char *const name[] = { "gates.0", "gates.1", "gates.2", "final" };

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        for (size_t j = 0; j < 4; j++) {
            set_float(name[j], 17, bad[i]);
            ck_assert(!valid());
            set_float(name[j], 17, 0);
            ck_assert(valid());
        }
}
END_TEST

START_TEST(cells_must_hold_a_state)
{
    size_t bytes;
    uint8_t *cells = field("cells", &bytes);

    cells[bytes - 1] = 255;
    ck_assert(!valid());
    cells[bytes - 1] = 0;
    cells[16] = 255; /* a check: any value is one */
    ck_assert(valid());
}
END_TEST

START_TEST(registers_counters_and_padding_are_checked)
{
    size_t bytes;
    uint8_t *regs = field("registers", &bytes), *tally = field("tally", NULL);
    const double nan = __builtin_nan("");
    double keep;

    regs[bytes - 4] = 1; /* the zero word at the end */
    ck_assert(!valid());
    regs[bytes - 4] = 0;
    memcpy(&keep, tally + 8, sizeof keep);
    memcpy(tally + 8, &nan, sizeof nan);
    ck_assert(!valid());
    memcpy(tally + 8, &keep, sizeof keep);
    regs[bytes] = 1; /* between two fields */
    ck_assert(!valid());
    regs[bytes] = 0;
    ck_assert(valid());
}
END_TEST

static uint64_t noise(uint64_t *x)
{
    *x = *x * 6364136223846793005u + 1442695040888963407u;
    return *x >> 32;
}

/* Flips bytes anywhere; what still validates must learn 10,000 tokens and stay finite. */
START_TEST(a_damaged_block_is_refused_or_learns_on)
{
    void *start = malloc(block_bytes(s));
    double *logp = malloc(10000 * sizeof *logp);
    uint64_t x = (uint64_t)_i + 1;

    ck_assert(start && logp);
    memcpy(start, block, block_bytes(s));
    for (size_t round = 0; round < rounds_of(20, 20); round++) {
        memcpy(block, start, block_bytes(s));
        for (int i = 0; i < 200; i++) {
            size_t at = noise(&x) % (i % 2 ? 3000 : block_bytes(s));

            block[at] ^= (uint8_t)noise(&x);
            if (!valid())
                block[at] = ((uint8_t *)start)[at];
        }
        ck_assert(valid());
        fw_stream_learn(s, block, text + 20000, 10000, logp);
        for (int i = 0; i < 10000; i++)
            ck_assert(logp[i] <= 0 && logp[i] > -100);
        ck_assert(valid());
    }
    free(start);
    free(logp);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("core");
    TCase *tc = tcase_create("core");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 300);
    tcase_add_test(tc, honest_blocks_are_valid);
    tcase_add_test(tc, weights_must_be_finite_and_bounded);
    tcase_add_test(tc, cells_must_hold_a_state);
    tcase_add_test(tc, registers_counters_and_padding_are_checked);
    tcase_add_loop_test(tc, a_damaged_block_is_refused_or_learns_on, 0, 2);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
