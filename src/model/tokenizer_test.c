#include "config.h"

#include "fastweight/tokenizer.h"

#include <stdio.h>
#include <unistd.h>

#include "test_main.h"

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
    snprintf(path, sizeof path, "%s/config.json", dir);
    unlink(path);
    rmdir(dir);
}

static void write_config(const char *text)
{
    char path[64];
    FILE *f;

    snprintf(path, sizeof path, "%s/config.json", dir);
    f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    fputs(text, f);
    fclose(f);
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

int main(void)
{
    Suite *s = suite_create("model/tokenizer");
    TCase *c = tcase_create("tokenizer");

    tcase_add_checked_fixture(c, make_dir, remove_dir);
    tcase_add_test(c, bytes_are_their_own_ids);
    tcase_add_test(c, chars_are_the_vocabularys_characters_in_order);
    tcase_add_test(c, a_text_outside_the_vocabulary_is_refused_with_its_place);
    tcase_add_test(c, a_bad_vocabulary_is_refused);
    suite_add_tcase(s, c);
    return run_suite(s);
}
