#include "config.h"

#include "project.h"
#include "test_main.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fastweight/fmath.h"
#include "fastweight/num.h"

#define X_GAP 3
#define Y_GAP 5

typedef void project_fn(const struct fw_matrix *W, const float *x, size_t x_stride, size_t rows,
                        float *y, size_t y_stride);

static uint64_t seed = 1;

static float next(void) /* (-1, 1), sometimes tiny, 0, -0 or large */
{
    uint64_t z = seed += 0x9e3779b97f4a7c15u;
    float x;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    x = (float)((int64_t)z >> 40) * 0x1p-23f;
    switch (z & 31) {
    case 0:
        return 0;
    case 1:
        return -0.0f;
    case 2:
        return x * 0x1p-100f;
    case 3:
        return x * 1e4f;
    default:
        return x;
    }
}

struct edge { /* memory that ends where its mapping ends: reading on is a fault */
    void *map;
    size_t map_bytes;
    char *data; /* bytes before the end */
};

static struct edge edge_new(size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE),
           whole = (bytes + page - 1) / page * page + page;
    struct edge e = { mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                           0),
                      whole, NULL };

    ck_assert(e.map != MAP_FAILED);
    ck_assert(mprotect((char *)e.map + whole - page, page, PROT_NONE) == 0);
    e.data = (char *)e.map + whole - page - bytes;
    return e;
}

static void edge_free(struct edge *e)
{
    munmap(e->map, e->map_bytes);
}

static size_t size_of(enum fw_weight type)
{
    return type == FW_WEIGHT_F32 ? 4 : 2;
}

static void put(void *data, enum fw_weight type, size_t at, float x)
{
    uint16_t h = type == FW_WEIGHT_F16 ? fw_to_f16(x) : fw_to_bf16(x);

    if (type == FW_WEIGHT_F32)
        ((float *)data)[at] = x;
    else
        ((uint16_t *)data)[at] = h;
}

struct bench { /* a matrix and its rows, both ending at the edge */
    struct edge weights, inputs;
    struct fw_matrix W;
    const float *x;
    size_t x_stride, y_stride, rows, y_count;
    float *y;
};

static void make(struct bench *b, enum fw_weight type, size_t in, size_t out, size_t rows)
{
    size_t x_count = rows ? (rows - 1) * (in + X_GAP) + in : 0;

    *b = (struct bench){ .weights = edge_new(in * out * size_of(type)),
                         .inputs = edge_new(x_count * sizeof(float)),
                         .x_stride = in + X_GAP,
                         .y_stride = out + Y_GAP,
                         .rows = rows,
                         .y_count = rows * (out + Y_GAP) };
    for (size_t i = 0; i < in * out; i++)
        put(b->weights.data, type, i, next());
    for (size_t i = 0; i < x_count; i++)
        ((float *)(void *)b->inputs.data)[i] = next();
    b->W = (struct fw_matrix){ b->weights.data, type, out, in };
    b->x = (const float *)(const void *)b->inputs.data;
    b->y = calloc(b->y_count + 1, sizeof *b->y);
}

static void done(struct bench *b)
{
    edge_free(&b->weights);
    edge_free(&b->inputs);
    free(b->y);
}

static float *run(const struct bench *b, project_fn *f)
{
    float *y = malloc((b->y_count + 1) * sizeof *y);

    for (size_t i = 0; i < b->y_count; i++)
        y[i] = 7;
    f(&b->W, b->x, b->x_stride, b->rows, y, b->y_stride);
    return y;
}

static void compare(enum fw_weight type, size_t in, size_t out, size_t rows)
{
    struct bench b;
    float *plain, *fast;

    make(&b, type, in, out, rows);
    plain = run(&b, fw_project_base);
    fast = run(&b, fw_project);
    ck_assert_msg(memcmp(plain, fast, b.y_count * sizeof *fast) == 0,
                  "type %d in %zu out %zu rows %zu", (int)type, in, out, rows);
    for (size_t r = 0; r < rows; r++)
        for (size_t o = 0; o < Y_GAP; o++)
            ck_assert(fast[r * b.y_stride + out + o] == 7);
    free(plain);
    free(fast);
    done(&b);
}

START_TEST(the_fast_copy_equals_the_plain_loops_to_the_bit)
{
    static const size_t in[] = { 0, 1, 2, 7, 8, 9, 15, 16, 17, 40, 63, 64, 129 };
    static const size_t out[] = { 1, 2, 3, 4, 5, 6, 7, 11, 12, 13, 24, 29, 30, 40 };
    static const size_t rows[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 31, 33, 67 };

    fw_num_thread();
    for (int type = 0; type < 3; type++)
        for (size_t i = 0; i < sizeof in / sizeof *in; i++)
            for (size_t o = 0; o < sizeof out / sizeof *out; o++)
                for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
                    compare((enum fw_weight)type, in[i], out[o], rows[r]);
}
END_TEST

START_TEST(long_sums_and_large_matrices_equal_the_plain_loops_too)
{
    static const size_t in[] = { 1023, 1024, 1025, 2048, 3001 };

    fw_num_thread();
    for (int type = 0; type < 3; type++) {
        for (size_t i = 0; i < sizeof in / sizeof *in; i++)
            for (size_t rows = 1; rows <= 7; rows += 3)
                compare((enum fw_weight)type, in[i], 26, rows);
        compare((enum fw_weight)type, 300, 1201, 1);
        compare((enum fw_weight)type, 1200, 500, 35);
    }
}
END_TEST

START_TEST(a_sum_runs_in_eight_lanes_that_meet_as_a_tree)
{
    float w[19], x[19], lane[8] = { 0 }, y;
    struct fw_matrix W = { w, FW_WEIGHT_F32, 1, 19 };

    fw_num_thread();
    for (size_t i = 0; i < 19; i++) {
        w[i] = next();
        x[i] = next();
        lane[i % 8] = __builtin_fmaf(w[i], x[i], lane[i % 8]);
    }
    fw_project(&W, x, 19, 1, &y, 1);
    ck_assert(fw_bitsf(y) == fw_bitsf(((lane[0] + lane[4]) + (lane[2] + lane[6])) +
                                      ((lane[1] + lane[5]) + (lane[3] + lane[7]))));
}
END_TEST

START_TEST(a_row_does_not_depend_on_the_rows_beside_it)
{
    struct bench b;
    float *all;

    fw_num_thread();
    for (int type = 0; type < 3; type++) {
        make(&b, (enum fw_weight)type, 1100, 70, 71);
        all = run(&b, fw_project);
        for (size_t r = 0; r < b.rows; r++) {
            fw_project(&b.W, b.x + r * b.x_stride, 1, 1, b.y, 1);
            ck_assert_mem_eq(b.y, all + r * b.y_stride, 70 * sizeof *all);
        }
        free(all);
        done(&b);
    }
}
END_TEST

START_TEST(half_weights_give_what_their_floats_give)
{
    struct bench b;
    struct fw_matrix wide;
    float *w = malloc(77 * 30 * sizeof *w), *half, *full;
    uint16_t h;

    fw_num_thread();
    for (int type = FW_WEIGHT_F16; type <= FW_WEIGHT_BF16; type++) {
        make(&b, (enum fw_weight)type, 77, 30, 9);
        half = run(&b, fw_project);
        for (size_t i = 0; i < 77 * 30; i++) {
            memcpy(&h, b.weights.data + 2 * i, sizeof h);
            w[i] = type == FW_WEIGHT_F16 ? fw_from_f16(h) : fw_from_bf16(h);
        }
        wide = b.W;
        b.W = (struct fw_matrix){ w, FW_WEIGHT_F32, 30, 77 };
        full = run(&b, fw_project);
        b.W = wide;
        ck_assert_mem_eq(half, full, b.y_count * sizeof *half);
        free(half);
        free(full);
        done(&b);
    }
    free(w);
}
END_TEST

START_TEST(an_infinite_weight_reaches_its_output_alone)
{
    float w[2 * 9] = { 0 }, x[9] = { 1, 1, 1, 1, 1, 1, 1, 1, 1 }, y[2];
    struct fw_matrix W = { w, FW_WEIGHT_F32, 2, 9 };

    fw_num_thread();
    w[9 + 8] = __builtin_inff();
    fw_project(&W, x, 9, 1, y, 2);
    ck_assert(y[0] == 0 && y[1] == __builtin_inff());
}
END_TEST

int main(void)
{
    Suite *s = suite_create("num/project");
    TCase *tc = tcase_create("project");

    fw_num_init();
    tcase_set_timeout(tc, 300);
    tcase_add_test(tc, the_fast_copy_equals_the_plain_loops_to_the_bit);
    tcase_add_test(tc, long_sums_and_large_matrices_equal_the_plain_loops_too);
    tcase_add_test(tc, a_sum_runs_in_eight_lanes_that_meet_as_a_tree);
    tcase_add_test(tc, a_row_does_not_depend_on_the_rows_beside_it);
    tcase_add_test(tc, half_weights_give_what_their_floats_give);
    tcase_add_test(tc, an_infinite_weight_reaches_its_output_alone);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
