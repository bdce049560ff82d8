#include "config.h"

#include <math.h>
#include <stdbool.h>

#include "fastweight/fmath.h"

#include "events.h"
#include "stream_testing.h"

#define SAMPLE 20000

static uint16_t sample[SAMPLE];

static void load_sample(void)
{
    size_t len;
    uint8_t *bytes = read_sample("events.u16", &len);

    start_numbers();
    ck_assert_uint_eq(len, sizeof sample);
    memcpy(sample, bytes, sizeof sample);
    free(bytes);
}

static struct fw_stream *plan(double vocab, double state_bytes)
{
    struct fw_params config = { 0 }, resolved;
    struct fw_stream *s = NULL;

    ck_assert_int_eq(fw_params_set_number(&config, "vocab", vocab, NULL), 0);
    ck_assert_int_eq(fw_params_set_number(&config, "state_bytes", state_bytes, NULL), 0);
    ck_assert_int_eq(fw_stream_new(&s, "events", &config, NULL, &resolved, NULL), 0);
    ck_assert_uint_eq(resolved.count, 2);
    return s;
}

static struct fw_stream_view *view_of(const struct fw_stream *s, const void *block)
{
    struct fw_stream_view *v = NULL;

    ck_assert_int_eq(fw_stream_view_new(&v, s, block, NULL), 0);
    return v;
}

static double sum_of(const double *logp, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++) {
        ck_assert(logp[i] <= 0 && logp[i] > -60);
        sum += fw_exp(logp[i]);
    }
    return sum;
}

/* A stream that brings everything into play: a few ids that follow each other, repeats of what
 * was long ago, and now and then an id from the whole vocabulary. */
static uint16_t next_id(uint32_t *x, uint32_t i, uint32_t vocab)
{
    *x = *x * 1664525u + 1013904223u;
    if (*x >> 28 == 0)
        return (uint16_t)((*x >> 8) % vocab);
    return (uint16_t)((i % 300 * 7919u + (*x >> 30 == 0)) % vocab);
}

START_TEST(a_stream_cut_anywhere_gives_the_same_block)
{
    struct fw_stream *s = plan(65536, MIB);
    void *whole = new_block(s), *cut = new_block(s);
    char a[FW_HASH_HEX], b[FW_HASH_HEX];

    load_sample();
    fw_stream_learn(s, whole, sample, 6000, NULL);
    for (size_t i = 0, n; i < 6000; i += n) {
        n = i < 500 ? 1 : i * 7919 % 211 + 1;
        n = n < 6000 - i ? n : 6000 - i;
        fw_stream_learn(s, cut, sample + i, n, NULL);
    }
    hash_block(s, whole, a);
    hash_block(s, cut, b);
    ck_assert_str_eq(a, b);
    free(whole);
    free(cut);
    fw_stream_free(s);
}
END_TEST

/* gcc and clang, with and without optimisation, every CPU: these bytes. */
START_TEST(the_sample_ends_in_known_bytes_at_a_known_price)
{
    struct fw_stream *s = plan(20000, 4 * MIB);
    void *block = new_block(s);
    static double logp[SAMPLE];
    double nats = 0;
    char hex[FW_HASH_HEX];

    load_sample();
    fw_stream_learn(s, block, sample, SAMPLE, logp);
    for (int i = 0; i < SAMPLE; i++)
        nats -= logp[i];
    ck_assert_double_le(nats / SAMPLE, 2.5473);
    hash_block(s, block, hex);
    ck_assert_str_eq(hex, "d7dce8dde822563a2a9be0a03cfe6dc7");
    free(block);
    fw_stream_free(s);
}
END_TEST

static void compare_with_full(const struct fw_stream *s, struct fw_stream_view *v, double *full)
{
    const uint32_t vocab = fw_stream_vocab(s);
    static const size_t heads[] = { 1, 10, 64, 65 };
    uint32_t ids[65], best;
    double logp[65];

    fw_stream_view_predict(v, full);
    ck_assert_double_le(fabs(sum_of(full, vocab) - 1), 1e-9);
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
        const size_t k = fw_stream_view_top(v, heads[i], ids, logp);

        ck_assert_uint_eq(k, heads[i] < vocab ? heads[i] : vocab);
        for (size_t j = 0; j < k; j++)
            ck_assert(logp[j] == full[ids[j]]);
        for (size_t j = 1; j < k; j++)
            ck_assert(logp[j - 1] > logp[j] || (logp[j - 1] == logp[j] && ids[j - 1] < ids[j]));
        best = 0; /* how many are likelier than the last, or as likely and lower */
        for (uint32_t id = 0; id < vocab; id++)
            best += full[id] > logp[k - 1] || (full[id] == logp[k - 1] && id < ids[k - 1]);
        ck_assert_uint_eq(best, k - 1);
    }
}

/* Over streams that leave ids unseen, see them all, or hold only two. */
START_TEST(predict_score_top_and_learn_agree_to_the_bit)
{
    static const uint32_t vocab[] = { 2, 3, 40, 700, 65536 };
    struct fw_stream *s = plan(vocab[_i], MIB);
    void *block = new_block(s);
    double *full = malloc(vocab[_i] * sizeof *full), logp[3];
    uint32_t x = 7;
    uint16_t id[3];

    load_sample();
    for (uint32_t i = 0; i < 6000; i++) {
        id[0] = next_id(&x, i, vocab[_i]);
        if (i % 500 == 0 || i < 6) {
            struct fw_stream_view *v = view_of(s, block);

            compare_with_full(s, v, full);
            fw_stream_view_feed(v, id, 1, logp);
            ck_assert(logp[0] == full[id[0]]);
            fw_stream_view_free(v);
            fw_stream_learn(s, block, id, 1, logp);
            ck_assert(logp[0] == full[id[0]]);
        } else {
            fw_stream_learn(s, block, id, 1, NULL);
        }
    }
    ck_assert_int_eq(fw_stream_validate(s, block, NULL), 0);
    free(full);
    free(block);
    fw_stream_free(s);
}
END_TEST

START_TEST(a_frozen_score_equals_predict_after_each_prefix_and_changes_nothing)
{
    struct fw_stream *s = plan(20000, MIB);
    void *block = new_block(s);
    struct fw_stream_view *v, *w;
    double *full = malloc(20000 * sizeof *full), logp[60];
    char before[FW_HASH_HEX], after[FW_HASH_HEX];

    load_sample();
    fw_stream_learn(s, block, sample, 5000, NULL);
    hash_block(s, block, before);
    v = view_of(s, block);
    w = view_of(s, block);
    fw_stream_view_feed(v, sample + 4000, 60, logp);
    for (int i = 0; i < 60; i++) {
        fw_stream_view_predict(w, full);
        ck_assert(logp[i] == full[sample[4000 + i]]);
        fw_stream_view_feed(w, sample + 4000 + i, 1, NULL);
    }
    hash_block(s, block, after);
    ck_assert_str_eq(before, after);
    fw_stream_view_free(v);
    fw_stream_view_free(w);
    free(full);
    free(block);
    fw_stream_free(s);
}
END_TEST

START_TEST(ids_numbered_by_appearance_are_expected_in_that_order)
{
    struct fw_stream *s = plan(65536, MIB);
    void *block = new_block(s);
    double logp[2000], late = 0;
    uint16_t id[2000];

    load_sample();
    for (int i = 0; i < 2000; i++)
        id[i] = (uint16_t)(i % 4 ? i / 40 : i / 4);
    fw_stream_learn(s, block, id, 2000, logp);
    for (int i = 1000; i < 2000; i += 4)
        late -= logp[i];
    ck_assert_double_lt(late / 250, 1);
    free(block);
    fw_stream_free(s);
}
END_TEST

START_TEST(sampling_follows_the_temperature_and_the_request)
{
    struct fw_stream *s = plan(20000, MIB);
    void *block = new_block(s);
    struct fw_stream_view *v;
    uint64_t a = 5, b = 5;
    uint32_t best;
    double p;

    load_sample();
    fw_stream_learn(s, block, sample, 5000, NULL);
    v = view_of(s, block);
    ck_assert_uint_eq(fw_stream_view_top(v, 1, &best, &p), 1);
    ck_assert_uint_eq(fw_stream_view_sample(v, 0, &a), best);
    a = b;
    for (int i = 0; i < 20; i++)
        ck_assert_uint_eq(fw_stream_view_sample(v, 1, &a), fw_stream_view_sample(v, 1, &b));
    fw_stream_view_free(v);
    free(block);
    fw_stream_free(s);
}
END_TEST

START_TEST(a_wrong_configuration_names_its_key)
{
    static const struct {
        const char *key, *param;
        double value;
    } wrong[] = {
        { "vocab", "config.vocab", 1 },   { "vocab", "config.vocab", 65537 },
        { "vocab", "config.vocab", 2.5 }, { "state_bytes", "config.state_bytes", 1000 },
        { "preset", "config.preset", 1 },
    };
    struct fw_params config = { 0 }, resolved;
    struct fw_stream *s = NULL;
    struct fw_err err = { 0 };

    ck_assert_int_eq(fw_params_set_number(&config, wrong[_i].key, wrong[_i].value, NULL), 0);
    ck_assert_int_eq(fw_stream_new(&s, "events", &config, NULL, &resolved, &err), -1);
    ck_assert_int_eq(err.code, FW_EINVAL);
    ck_assert_str_eq(err.param, wrong[_i].param);
    ck_assert_ptr_null(s);
}
END_TEST

START_TEST(inspect_counts_rows_and_sees_surprise_fall)
{
    struct fw_stream *s = plan(20000, MIB);
    void *block = new_block(s);
    struct fw_stream_stats st;

    load_sample();
    fw_stream_learn(s, block, sample, SAMPLE, NULL);
    fw_stream_stats(s, block, &st);
    ck_assert_uint_eq(st.tokens, SAMPLE);
    ck_assert_uint_eq(st.nonfinite, 0);
    ck_assert_uint_eq(st.heads, EVENTS_SOURCES);
    ck_assert_str_eq(st.head_name[0], "x1");
    ck_assert_str_eq(st.head_name[EVENTS_COPY], "copy");
    ck_assert_uint_gt(st.used[0], 1000);
    ck_assert_uint_gt(st.rows[0], st.used[0]);
    ck_assert_double_lt(st.bits_10k, st.bits_all);
    ck_assert(st.calibration_error >= 0 && st.calibration_error < 0.1);
    free(block);
    fw_stream_free(s);
}
END_TEST

static void put(void *block, size_t offset, const void *value, size_t bytes)
{
    memcpy((char *)block + offset, value, bytes);
}

struct damage { /* one value in one field */
    const char *field;
    size_t at;
    uint32_t value;
    size_t bytes;
};

/* Is the block refused with it? The block is afterwards as it was. */
static bool is_refused(const struct fw_stream *s, unsigned char *block, const struct damage *d)
{
    size_t offset = fw_layout_find(fw_stream_layout(s), d->field)->offset + d->at;
    const unsigned char *row = block + offset - d->at;
    struct fw_err err = { 0 };
    unsigned char kept[4];
    bool refused;

    if (strcmp(d->field, "rows") == 0) /* the first row that is not free */
        for (; !row[0] && !row[1]; row += 16)
            offset += 16;
    memcpy(kept, block + offset, d->bytes);
    put(block, offset, &d->value, d->bytes);
    refused = fw_stream_validate(s, block, &err) == -1 && err.code == FW_EINVAL;
    memcpy(block + offset, kept, d->bytes);
    return refused;
}

START_TEST(a_block_no_honest_stream_leaves_is_refused)
{
    static const struct damage wrong[] = {
        { "registers", 8, 65536, 4 },
        { "registers", 12, 1, 4 },

        { "tally", 12, 0x7ff80000, 4 },
        { "unseen", 0, 0x7fc00000, 4 },
        { "unseen", 0, 0x3f800000, 4 },
        { "unseen", 4, 0, 4 },
        { "unseen", 8, 701, 4 },
        { "unseen", 12, 1, 4 },
        { "unseen", 16, 9, 4 },
        { "unseen", 28, 1, 4 },
        { "popularity", 0, 9, 2 },
        { "ring", 20, 700, 2 },
        { "gates", 0, 0x40900000, 4 },
        { "gates", 4, 0x7fc00000, 4 },
        { "worth", 0, 0xbf800000, 4 },
        { "copy_hit", 0, 0x40000000, 4 },
        { "set_weights", 64, 0x7f800000, 4 },
        { "rank_weights", 64, 0x4b000000, 4 },
        { "escape_weights", 0, 0xffc00000, 4 },
        { "rows", 0, 0, 2 },
        { "rows", 4, 700, 2 },
    };
    struct fw_stream *s = plan(700, MIB);
    unsigned char *block = new_block(s);
    uint32_t x = 3;

    for (uint32_t i = 0; i < 3000; i++) {
        uint16_t id = next_id(&x, i, 700);

        fw_stream_learn(s, block, &id, 1, NULL);
    }
    ck_assert_int_eq(fw_stream_validate(s, block, NULL), 0);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        ck_assert_msg(is_refused(s, block, &wrong[i]), "%s at %zu was accepted", wrong[i].field,
                      wrong[i].at);
    ck_assert_int_eq(fw_stream_validate(s, block, NULL), 0);
    free(block);
    fw_stream_free(s);
}
END_TEST

/* Flips bits anywhere, one by one, and takes back what validate refuses. */
static void damage(const struct fw_stream *s, unsigned char *block, uint32_t *x, int flips)
{
    const struct fw_layout *l = fw_stream_layout(s);

    while (flips > 0) {
        const struct fw_field *f;
        unsigned char *byte, bit;

        *x = *x * 1664525u + 1013904223u;
        f = &l->field[(*x >> 8) % l->count];
        bit = (unsigned char)(1u << (*x >> 29));
        *x = *x * 1664525u + 1013904223u;
        byte = block + f->offset + (*x >> 4) % f->bytes;
        *byte ^= bit;
        if (fw_stream_validate(s, block, NULL) == 0)
            flips--;
        else
            *byte ^= bit;
    }
}

START_TEST(whatever_validates_learns_on_in_finite_numbers)
{
    struct fw_stream *s = plan(300, MIB);
    const size_t bytes = block_bytes(s);
    unsigned char *good = new_block(s), *block = new_block(s);
    double full[300], logp[200];
    uint16_t id[200];
    uint32_t x = 11;

    load_sample();
    for (uint32_t i = 0; i < 4000; i++) {
        id[0] = next_id(&x, i, 300);
        fw_stream_learn(s, good, id, 1, NULL);
    }
    for (int round = 0; round < 20; round++) {
        struct fw_stream_view *v;

        memcpy(block, good, bytes);
        damage(s, block, &x, 100);
        v = view_of(s, block);
        fw_stream_view_predict(v, full);
        ck_assert_double_le(fabs(sum_of(full, 300) - 1), 1e-9);
        fw_stream_view_free(v);
        for (int again = 0; again < 10; again++) {
            for (uint32_t i = 0; i < 200; i++)
                id[i] = next_id(&x, i, 300);
            fw_stream_learn(s, block, id, 200, logp);
            for (int i = 0; i < 200; i++)
                ck_assert(logp[i] <= 0 && logp[i] > -60);
        }
        ck_assert_int_eq(fw_stream_validate(s, block, NULL), 0);
    }
    free(good);
    free(block);
    fw_stream_free(s);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("events");
    TCase *t = tcase_create("events");

    tcase_set_timeout(t, 120);
    tcase_add_test(t, a_stream_cut_anywhere_gives_the_same_block);
    tcase_add_test(t, the_sample_ends_in_known_bytes_at_a_known_price);
    tcase_add_loop_test(t, predict_score_top_and_learn_agree_to_the_bit, 0, 5);
    tcase_add_test(t, a_frozen_score_equals_predict_after_each_prefix_and_changes_nothing);
    tcase_add_test(t, ids_numbered_by_appearance_are_expected_in_that_order);
    tcase_add_test(t, sampling_follows_the_temperature_and_the_request);
    tcase_add_loop_test(t, a_wrong_configuration_names_its_key, 0, 5);
    tcase_add_test(t, inspect_counts_rows_and_sees_surprise_fall);
    tcase_add_test(t, a_block_no_honest_stream_leaves_is_refused);
    tcase_add_test(t, whatever_validates_learns_on_in_finite_numbers);
    suite_add_tcase(s, t);
    return run_suite(s);
}
