#include "config.h"

#include "fastweight/tokenizer.h"

#include <stdio.h>
#include <unistd.h>

#include "test_main.h"

static const char *const files[] = { "config.json", "tokenizer.json", "rwkv_vocab_v1.txt",
                                     "rwkv_vocab_v2.txt" };
static char dir[32];
static struct fw_tokenizer *t;
static struct fw_buf ids;
static struct fw_err err;

static void make_dir(void)
{
    snprintf(dir, sizeof dir, "/tmp/tokenizer_XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    t = NULL;
    err = (struct fw_err){ 0 };
    fw_buf_init(&ids, 1 << 20);
}

static void remove_dir(void)
{
    char path[64];

    fw_tokenizer_close(t);
    fw_buf_done(&ids);
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", dir, files[i]);
        unlink(path);
    }
    rmdir(dir);
}

static void write_file(const char *name, const char *text)
{
    char path[64];
    FILE *f;

    snprintf(path, sizeof path, "%s/%s", dir, name);
    f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    fputs(text, f);
    fclose(f);
}

static void write_config(const char *text)
{
    write_file("config.json", text);
}

static uint32_t id(size_t i)
{
    uint32_t v;

    memcpy(&v, ids.data + i * sizeof v, sizeof v);
    return v;
}

START_TEST(bytes_are_their_own_ids)
{
    size_t len;

    ck_assert_int_eq(fw_tokenizer_open(&t, dir, "bytes", 300, &err), 0);
    ck_assert_int_eq(fw_tokenizer_encode(t, "a\xff\0", 3, &ids, &err), 0);
    ck_assert_uint_eq(ids.len, 12);
    ck_assert_uint_eq(id(0), 'a');
    ck_assert_uint_eq(id(1), 255);
    ck_assert_uint_eq(id(2), 0);
    ck_assert_uint_eq(*fw_tokenizer_bytes(t, 255, &len), 255);
    ck_assert_uint_eq(len, 1);
    fw_tokenizer_bytes(t, 256, &len);
    ck_assert_uint_eq(len, 0);
    fw_tokenizer_bytes(t, 4000000000u, &len);
    ck_assert_uint_eq(len, 0);
}
END_TEST

START_TEST(chars_are_the_vocabularys_characters_in_order)
{
    size_t len;
    const unsigned char *p;

    write_config("{\"vocabulary\": \"01\\u20ac\\u00e9\"}");
    ck_assert_int_eq(fw_tokenizer_open(&t, dir, "chars", 4, &err), 0);
    ck_assert_int_eq(fw_tokenizer_encode(t,
                                         "\xc3\xa9\xe2\x82\xac"
                                         "1",
                                         6, &ids, &err),
                     0);
    ck_assert_uint_eq(ids.len, 12);
    ck_assert_uint_eq(id(0), 3);
    ck_assert_uint_eq(id(1), 2);
    ck_assert_uint_eq(id(2), 1);
    p = fw_tokenizer_bytes(t, 2, &len);
    ck_assert_uint_eq(len, 3);
    ck_assert_mem_eq(p, "\xe2\x82\xac", 3);
}
END_TEST

START_TEST(a_text_outside_the_vocabulary_is_refused_with_its_place)
{
    write_config("{\"vocabulary\": \"01\"}");
    ck_assert_int_eq(fw_tokenizer_open(&t, dir, "chars", 2, &err), 0);
    ck_assert_int_eq(fw_tokenizer_encode(t, "0102", 4, &ids, &err), -1);
    ck_assert_int_eq(err.code, FW_EINVAL);
    ck_assert_str_eq(err.reason, "text_not_in_vocabulary");
    ck_assert_ptr_nonnull(strstr(err.msg, "byte 3"));
    ck_assert_int_eq(fw_tokenizer_encode(t, "\xf0", 1, &ids, &err), -1);
}
END_TEST

static void refused(const char *kind, uint32_t vocab, const char *what)
{
    ck_assert_int_eq(fw_tokenizer_open(&t, dir, kind, vocab, &err), -1);
    ck_assert_int_eq(err.code, FW_EINVAL);
    ck_assert_msg(strstr(err.msg, what) != NULL, "%s", err.msg);
}

START_TEST(a_bad_vocabulary_is_refused)
{
    refused("chars", 2, "config.json");
    write_config("{}");
    refused("chars", 2, "vocabulary");
    write_config("{\"vocabulary\": \"011\"}");
    refused("chars", 2, "2 characters");
    refused("chars", 4, "4 characters");
    refused("chars", 3, "same bytes");
    refused("words", 3, "words");
}
END_TEST

/* The ids of a text, as "3 1 4". */
static const char *encoded(const char *text, size_t len)
{
    static char list[4096];
    size_t n = 0;

    ids.len = 0;
    ck_assert_msg(fw_tokenizer_encode(t, text, len, &ids, &err) == 0, "%s", err.msg);
    list[0] = 0;
    for (size_t i = 0; i < ids.len / 4; i++)
        n += (size_t)snprintf(list + n, sizeof list - n, "%s%u", i ? " " : "", (unsigned)id(i));
    return list;
}

static void expect(const char *text, const char *list)
{
    ck_assert_str_eq(encoded(text, strlen(text)), list);
}

/* Random bytes, texts among them, come back. */
static void random_bytes_come_back(void)
{
    uint64_t x = 88172645463325252u;

    for (int round = 0; round < 200; round++) {
        unsigned char text[64], back[64];
        size_t len = x % sizeof text, at = 0, n;

        for (size_t i = 0; i < len; i++) {
            x ^= x << 13, x ^= x >> 7, x ^= x << 17;
            text[i] = round % 2 ? (unsigned char)(x >> 32)
                                : (unsigned char)"ab 's1\xc3\xa9"[x >> 32 & 7];
        }
        ids.len = 0;
        ck_assert_int_eq(fw_tokenizer_encode(t, text, len, &ids, &err), 0);
        for (size_t i = 0; i < ids.len / 4; i++, at += n) {
            const unsigned char *p = fw_tokenizer_bytes(t, id(i), &n);

            ck_assert(n > 0 && n <= len - at);
            memcpy(back + at, p, n);
        }
        ck_assert_uint_eq(at, len);
        ck_assert(memcmp(back, text, len) == 0);
    }
}

#define WORLD                                                                                  \
    "1 'a' 1\n2 'ab' 2\n3 'abcd' 4\n4 \"it's\" 4\n5 '\\n' 1\n6 '\xc3\xa9' 2\n"                 \
    "7 b'\\xc3' 1\n8 '\\x80' 2\n9 'b' 1\n10 'c' 1\n11 '\\U0001f600' 4\n12 '\\'\"' 2\n"

/* By hand: the longest token at each place. "abcab": abcd does not match, so ab, c, ab. In text
 * \x80 is the character U+0080, two bytes; in b'' \xc3 is the byte. */
START_TEST(world_takes_the_longest_token_at_each_place)
{
    write_file("rwkv_vocab_v1.txt", WORLD);
    ck_assert_msg(fw_tokenizer_open(&t, dir, "rwkv_world", 65536, &err) == 0, "%s", err.msg);
    expect("abcab", "2 10 2");
    expect("abcda", "3 1");
    expect("it's\n\xc3\xa9\xc3\xc2\x80", "4 5 6 7 8");
    expect("\xf0\x9f\x98\x80'\"", "11 12");
    expect("", "");
    ck_assert_int_eq(fw_tokenizer_encode(t, "ab!", 3, &ids, &err), -1);
    ck_assert_str_eq(err.reason, "text_not_in_vocabulary");
    ck_assert_ptr_nonnull(strstr(err.msg, "byte 2"));
}
END_TEST

START_TEST(a_world_vocabulary_with_all_bytes_brings_any_bytes_back)
{
    char text[8192];
    int n = snprintf(text, sizeof text, "300 'ab' 2\r\n301 '\xc3\xa9' 2\r\n");

    for (int b = 0; b < 256; b++)
        n += snprintf(text + n, sizeof text - (size_t)n, "%d b'\\x%02x' 1\r\n", b + 1, b);
    write_file("rwkv_vocab_v1.txt", text);
    ck_assert_msg(fw_tokenizer_open(&t, dir, "rwkv_world", 302, &err) == 0, "%s", err.msg);
    random_bytes_come_back();
}
END_TEST

START_TEST(a_bad_world_vocabulary_is_refused)
{
    static const struct {
        const char *text, *what;
    } cases[] = {
        { "1 'a' 2\n", "line 1" },
        { "\n1 'a'\n", "line 2" },
        { "x 'a' 1\n", "line 1" },
        { "1 'a 1\n", "literal" },
        { "1 '\\ud800' 3\n", "literal" },
        { "1 '\\x8' 1\n", "literal" },
        { "1 b'\xc3\xa9' 2\n", "literal" },
        { "1 'a'b' 3\n", "literal" },
        { "1 '' 0\n", "0 bytes" },
        { "1 'a' 1\n2 'a' 1\n", "same bytes" },
        { "1 'a' 1\n1 'b' 1\n", "twice" },
        { "99 'a' 1\n", "token 99" },
        { "", "empty" },
        { "1 '\\", "line 1" },
    };

    refused("rwkv_world", 9, "rwkv_vocab*.txt");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        write_file("rwkv_vocab_v1.txt", cases[i].text);
        refused("rwkv_world", 9, cases[i].what);
    }
    write_file("rwkv_vocab_v2.txt", "1 'a' 1\n");
    refused("rwkv_world", 9, "one file");
}
END_TEST

/* Ids 0 to 255 are the bytes in GPT-2's alphabet; merges make 256 and on. G is the space. */
static void write_bpe(const char *pre, const char *model, const char *vocab, const char *merges)
{
    static char text[32768];
    size_t n;
    unsigned other = 256;

    n = (size_t)snprintf(text, sizeof text,
                         "{\"normalizer\":null,\"added_tokens\":[{\"id\":290,\"content\":"
                         "\"<end>\",\"special\":true},{\"id\":291,\"content\":\"<en\","
                         "\"special\":false}],\"pre_tokenizer\":%s,\"model\":{%s\"type\":"
                         "\"BPE\",\"merges\":%s,\"vocab\":{%s",
                         pre, model, merges, vocab);
    for (unsigned b = 0; b < 256; b++) {
        const int own =
            (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || (b >= 174 && b <= 255);

        n += (size_t)snprintf(text + n, sizeof text - n, "%s\"\\u%04x\":%u", b ? "," : "",
                              own ? b : other++, b);
    }
    snprintf(text + n, sizeof text - n, "}}}");
    write_file("tokenizer.json", text);
}

#define PLAIN "{\"type\":\"ByteLevel\",\"add_prefix_space\":false}"
#define VOCAB                                                                                  \
    "\"ab\":256,\"abc\":257,\"bc\":258,\"\\u0120a\":259,"                                      \
    "\"aa\":260,\"\\u0120ab\":261,"
#define MERGES "[\"b c\",\"a b\",\"ab c\",\"a a\",\"\\u0120 a\",\"\\u0120a b\"]"

/* By hand. Ranks: bc 0, ab 1, abc 2, aa 3, Ga 4, Gab 5. "abc": b c first, and no merge of a and
 * bc. " ab": a b first (rank 1 before 4), and none of G and ab. "aaa": the leftmost. "aab": ab
 * before aa. " a": Ga. */
START_TEST(bpe_merges_the_lowest_rank_first_and_of_equals_the_leftmost)
{
    write_bpe(PLAIN, "", VOCAB, MERGES);
    ck_assert_msg(fw_tokenizer_open(&t, dir, "bpe", 300, &err) == 0, "%s", err.msg);
    expect("abc", "97 258");
    expect("aaa", "260 97");
    expect("aab", "97 256");
    expect("ab ab", "256 32 256");
    expect(" a a", "259 259");
    expect("", "");
    random_bytes_come_back();
}
END_TEST

START_TEST(bpe_reads_merges_as_pairs_and_may_ignore_them_for_whole_tokens)
{
    write_bpe(PLAIN, "\"ignore_merges\":true,", VOCAB, "[[\"b\",\"c\"],[\"a\",\"b\"]]");
    ck_assert_msg(fw_tokenizer_open(&t, dir, "bpe", 300, &err) == 0, "%s", err.msg);
    expect("abc", "257");
    expect("abca", "97 258 97");
    expect("xab", "120 256");
}
END_TEST

/* Each merge would join two neighbours, if no cut lay between them: so the ids show the cuts.
 */
START_TEST(bpe_cuts_words_as_gpt2_does)
{
    write_bpe(PLAIN, "",
              "\"'s\":256,\"a'\":257,\"\\u0120a\":258,\"a1\":259,\"1!\":260,"
              "\"\\u0120\\u0120\":261,\"a\\u00c3\":262,\"\\u0120!\":263,\"\\u01201\":264,",
              "[\"a '\",\"' s\",\"\\u0120 \\u0120\",\"\\u0120 a\",\"a 1\",\"1 !\","
              "\"a \\u00c3\",\"\\u0120 !\",\"\\u0120 1\"]");
    ck_assert_msg(fw_tokenizer_open(&t, dir, "bpe", 300, &err) == 0, "%s", err.msg);
    expect("a's", "97 256");           /* a|'s */
    expect("a'z", "97 39 122");        /* a|'|z */
    expect("a1!", "97 49 33");         /* letters | numbers | others */
    expect(" a 1 !", "258 264 263");   /* one space belongs to the word */
    expect("  a", "32 258");           /* of more, the last */
    expect("a  ", "97 261");           /* at the end all are one word */
    expect("a\xc3\xa9", "262 169");    /* a letter of Unicode is a letter */
    expect("a\xc2\xb2", "97 194 178"); /* a superscript two is a number */
    expect("a\xc3", "97 195");         /* no UTF-8: a word of its own */
}
END_TEST

START_TEST(bpe_finds_the_longest_added_token_first_and_special_ones_have_no_text)
{
    size_t n;

    write_bpe(PLAIN, "", VOCAB, MERGES);
    ck_assert_msg(fw_tokenizer_open(&t, dir, "bpe", 300, &err) == 0, "%s", err.msg);
    expect("ab<end>ab<en", "256 290 256 291");
    expect("<e", "60 101");
    fw_tokenizer_bytes(t, 290, &n);
    ck_assert_uint_eq(n, 0);
    ck_assert_mem_eq(fw_tokenizer_bytes(t, 291, &n), "<en", 3);
    ck_assert_uint_eq(n, 3);
}
END_TEST

START_TEST(bpe_splits_by_patterns_in_sequence_and_may_put_a_space_first)
{
    write_bpe("{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\",\"pattern\":"
              "{\"Regex\":\"b(?=c)\"},\"behavior\":\"Isolated\",\"invert\":false},"
              "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":false}]}",
              "", VOCAB, MERGES);
    ck_assert_msg(fw_tokenizer_open(&t, dir, "bpe", 300, &err) == 0, "%s", err.msg);
    expect("abcab", "97 98 99 256");
    fw_tokenizer_close(t);
    write_bpe("{\"type\":\"ByteLevel\",\"add_prefix_space\":true}", "", VOCAB, MERGES);
    ck_assert_msg(fw_tokenizer_open(&t, dir, "bpe", 300, &err) == 0, "%s", err.msg);
    expect("a", "259");
    expect(" a", "259");
    expect("a<end>a", "259 290 259");
}
END_TEST

START_TEST(a_long_word_takes_n_log_n_time)
{
    const size_t len = 1 << 20;
    char *word = malloc(len);

    ck_assert_ptr_nonnull(word);
    fw_buf_done(&ids);
    fw_buf_init(&ids, 8 << 20);
    memset(word, 'a', len);
    write_bpe(PLAIN, "", VOCAB, MERGES);
    ck_assert_msg(fw_tokenizer_open(&t, dir, "bpe", 300, &err) == 0, "%s", err.msg);
    ck_assert_int_eq(fw_tokenizer_encode(t, word, len, &ids, &err), 0);
    ck_assert_uint_eq(ids.len / 4, len / 2);
    free(word);
}
END_TEST

START_TEST(a_tokenizer_json_that_would_give_other_tokens_is_refused)
{
    static const struct {
        const char *pre, *model, *vocab, *merges, *what;
    } cases[] = {
        { PLAIN, "", VOCAB, "[\"a z\"]", "merge 0" },
        { PLAIN, "", VOCAB, "[\"ab\"]", "pair" },
        { PLAIN, "", VOCAB, "3", "merges" },
        { PLAIN, "\"byte_fallback\":true,", "", "[]", "byte_fallback" },
        { PLAIN, "\"dropout\":0.1,", "", "[]", "dropout" },
        { PLAIN, "\"end_of_word_suffix\":\"x\",", "", "[]", "end_of_word" },
        { PLAIN, "", "\"ab\":3,", "[]", "twice" },
        { PLAIN, "", "\"ab\":300,", "[]", "300" },
        { PLAIN, "", "\"ab\":-1,", "[]", "300" },
        { PLAIN, "", "\"\\u20ac\":260,", "[]", "alphabet" },
        { PLAIN, "", "\"<end>\":260,", "[]", "another id" },
        { "null", "", "", "[]", "ByteLevel" },
        { "{\"type\":\"Metaspace\"}", "", "", "[]", "Metaspace" },
        { "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\",\"pattern\":"
          "{\"Regex\":\"(\"},\"behavior\":\"Isolated\"}," PLAIN "]}",
          "", "", "[]", "pattern" },
    };

    refused("bpe", 300, "tokenizer.json");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        write_bpe(cases[i].pre, cases[i].model, cases[i].vocab, cases[i].merges);
        refused("bpe", 300, cases[i].what);
    }
    write_file("tokenizer.json", "{\"normalizer\":{\"type\":\"NFC\"}}");
    refused("bpe", 300, "NFC");
    write_file("tokenizer.json", "[");
    refused("bpe", 300, "tokenizer.json");
    write_file("tokenizer.json", "{}");
    refused("bpe", 300, "BPE");
}
END_TEST

int main(void)
{
    Suite *s = suite_create("model/tokenizer");
    TCase *c = tcase_create("tokenizer");

    tcase_add_checked_fixture(c, make_dir, remove_dir);
    tcase_add_test(c, bytes_are_their_own_ids);
    tcase_add_test(c, chars_are_the_vocabularys_characters_in_order);
    tcase_add_test(c, a_text_outside_the_vocabulary_is_refused_with_its_place);
    tcase_add_test(c, a_bad_vocabulary_is_refused);
    tcase_add_test(c, world_takes_the_longest_token_at_each_place);
    tcase_add_test(c, a_world_vocabulary_with_all_bytes_brings_any_bytes_back);
    tcase_add_test(c, a_bad_world_vocabulary_is_refused);
    tcase_add_test(c, bpe_merges_the_lowest_rank_first_and_of_equals_the_leftmost);
    tcase_add_test(c, bpe_reads_merges_as_pairs_and_may_ignore_them_for_whole_tokens);
    tcase_add_test(c, bpe_cuts_words_as_gpt2_does);
    tcase_add_test(c, bpe_finds_the_longest_added_token_first_and_special_ones_have_no_text);
    tcase_add_test(c, bpe_splits_by_patterns_in_sequence_and_may_put_a_space_first);
    tcase_add_test(c, a_long_word_takes_n_log_n_time);
    tcase_add_test(c, a_tokenizer_json_that_would_give_other_tokens_is_refused);
    suite_add_tcase(s, c);
    return run_suite(s);
}
