/* node.c - reading and updating binary decisions; compiled once per CPU level.
 *
 * x_i = stretch(map_i[cell_i]), x_(16+i) = 4 (map_i[cell_i] - 1/2), both 0 where the head knows
 * nothing; a guess gives the same two with its own sign; an expert its p. d_k = <W_k[row_k],
 * x>, clipped; s = sum_k V_k d_k; p = 1 / (1 + e^-s), clipped to [2^-16, 1 - 2^-16]. Update, in
 * node order, from what was read before it: V += eta' (y - p) d, W_k[row_k] += eta (y - p_k) x,
 * map += (y - map) / (n + 1.5), cell = next(cell, y). 8 lanes, one multiply and one add each, a
 * fixed sum: the same bits at every level. */
#include "config.h"

#include "core.h"

#include <string.h>

#include "fastweight/fmath.h"

#include "rows.h"
#include "stream_int.h"

#define D_MAX      11.9F
#define P_MIN      (1.0F / 65536)
#define EXPERT_MAX 9.0F

/* ---- one decision */

static inline float squash(float x)
{
    return 1.0F / (1.0F + fw_expf(-x));
}

static inline float clip(float x, float limit)
{
    return x > limit ? limit : x < -limit ? -limit : x;
}

static inline float dot(const float *w, const float *x)
{
    const fw_f8 *a = (const fw_f8 *)w, *b = (const fw_f8 *)x;
    fw_f8 s = (a[0] * b[0] + a[1] * b[1]) + (a[2] * b[2] + a[3] * b[3]);

    return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
}

static inline float linear(uint32_t p22)
{
    return (float)((int32_t)p22 - (1 << (MAP_P_BITS - 1))) * (4.0F / (1 << MAP_P_BITS));
}

static inline uint32_t nibble_cell(uint32_t prefix, int bit)
{
    return bit < 4 ? prefix : (prefix & ((1u << (bit - 4)) - 1)) | 1u << (bit - 4);
}

static inline uint32_t guess_cell(const struct core_guess *g, int bit)
{
    static const uint8_t place[8] = { 0, 1, 1, 2, 2, 3, 3, 3 };

    return g->level * 4 + place[bit];
}

static inline int agrees(const struct core_guess *g, uint32_t prefix, int bit)
{
    return g->symbol >> (8 - bit) == prefix;
}

/* Returns how many heads know something. */
static inline uint32_t read_heads(const struct core *c, const void *block,
                                  const uint8_t *const *bucket, uint32_t cell, float *x)
{
    const uint32_t *map = at(block, c->head_maps);
    const float *stretch = c->tables->stretch;
    uint32_t count = 0;

    for (uint32_t h = 0; h < c->config.heads; h++) {
        uint32_t state = bucket[h][cell], p = map[h * 256 + state] >> 10;
        float known = state ? 1.0F : 0.0F;

        x[h] = stretch[p >> (MAP_P_BITS - STRETCH_BITS)] * known;
        x[16 + h] = linear(p) * known;
        count += state != 0;
    }
    return count;
}

/* Returns the first gate's class. */
static inline uint32_t read_guesses(const struct core *c, const void *block,
                                    const struct core_path *path, uint32_t prefix, int bit,
                                    float *x)
{
    const uint32_t *map = at(block, c->guess_maps);
    uint32_t class = 0;

    for (uint32_t g = 0; g < c->config.runs + c->config.copies; g++) {
        const struct core_guess *guess = &path->guess[g];
        uint32_t i = c->config.heads + g, p;
        float sign;

        if (!agrees(guess, prefix, bit))
            continue;
        p = map[g * 256 + guess_cell(guess, bit)] >> 10;
        sign = guess->symbol >> (7 - bit) & 1 ? 1.0F : -1.0F;
        x[i] = c->tables->stretch[p >> (MAP_P_BITS - STRETCH_BITS)] * sign;
        x[16 + i] = linear(p) * sign;
        class += guess->weight;
    }
    return class;
}

/* stretch(p) and 4 (p - 1/2) of p = its mass below the 1 / its mass below the prefix. */
static inline void read_expert(const struct core *c, const float *tree, uint32_t prefix,
                               float *x)
{
    const uint32_t i = c->config.heads + c->config.runs + c->config.copies;
    const float zero = tree[prefix * 2], one = tree[prefix * 2 + 1];

    x[i] = clip(fw_logf(one / zero), EXPERT_MAX);
    x[16 + i] = 2 * (one - zero) / (one + zero);
}

static inline void read_node(const struct core *c, const void *block,
                             const struct core_path *path, uint32_t prefix, int bit,
                             struct core_node *n)
{
    const float *v = (const float *)at(block, c->final) + prefix * CORE_GATES;
    uint32_t known, class;
    float s = 0;

    memset(n->x, 0, sizeof n->x);
    known = read_heads(c, block, path->bucket[bit >> 2], nibble_cell(prefix, bit), n->x);
    class = read_guesses(c, block, path, prefix, bit, n->x);
    if (path->in->expert)
        read_expert(c, path->in->expert, prefix, n->x);
    n->x[CORE_BIAS] = 0.4F;
    n->prefix = prefix;
    n->row[0] = class * 8 + (uint32_t)bit;
    n->row[1] = known * 8 + (uint32_t)bit;
    n->row[2] = path->in->kind;
    for (int k = 0; k < CORE_GATES; k++) {
        const float *w = (const float *)at(block, c->gate[k]) + n->row[k] * CORE_INPUTS;

        n->d[k] = clip(dot(w, n->x), D_MAX);
        s += v[k] * n->d[k];
    }
    n->s = clip(s, D_MAX);
    s = squash(n->s);
    n->p = s < P_MIN ? P_MIN : s > 1 - P_MIN ? 1 - P_MIN : s;
}

/* ---- a path of eight */

static void prefetch_rows(const struct core *c, const void *block,
                          const struct core_context *in, uint32_t nibble, uint32_t *hash)
{
    const uint8_t *cells = at(block, c->cells);

    for (uint32_t h = 0; h < c->config.heads; h++) {
        hash[h] = row_hash(in->head[h], nibble);
        __builtin_prefetch(cells + line_of(hash[h], c->lines) * CORE_LINE);
    }
}

static void find_rows(const struct core *c, const void *block, const uint32_t *hash,
                      const uint8_t **bucket)
{
    const uint8_t *cells = at(block, c->cells);

    for (uint32_t h = 0; h < c->config.heads; h++)
        bucket[h] =
            row_find(cells + line_of(hash[h], c->lines) * CORE_LINE, row_check(hash[h]));
}

static void find_guesses(const struct core *c, const void *block, const struct core_context *in,
                         struct core_guess *guess)
{
    const struct slot *slots = at(block, c->runs);

    for (uint32_t r = 0; r < c->config.runs; r++) {
        uint32_t hash = row_hash(in->run[r], 0);
        const struct slot *slot =
            slot_find(slots + line_of(hash, c->config.run_lines) * 8, slot_check(hash));

        guess[r] = (struct core_guess){ 0 };
        if (slot && slot->count & 15)
            guess[r] = (struct core_guess){ 256u | slot->symbol, slot->count & 31, 0 };
    }
    memcpy(guess + c->config.runs, in->copy, c->config.copies * sizeof *guess);
}

static double path_read(const struct core *c, const void *block, const struct core_context *in,
                        uint32_t symbol, struct core_path *path)
{
    double product = 1;

    path->in = in;
    prefetch_rows(c, block, in, 0, path->hash[0]);
    prefetch_rows(c, block, in, 16 | symbol >> 4, path->hash[1]);
    find_guesses(c, block, in, path->guess);
    find_rows(c, block, path->hash[0], path->bucket[0]);
    find_rows(c, block, path->hash[1], path->bucket[1]);
    for (int bit = 0; bit < 8; bit++) {
        struct core_node *n = &path->node[bit];

        read_node(c, block, path, (256 | symbol) >> (8 - bit), bit, n);
        product *= symbol >> (7 - bit) & 1 ? (double)n->p : 1 - (double)n->p;
    }
    return product;
}

/* ---- the update */

static inline void map_learn(const struct core *c, uint32_t *entry, int y)
{
    const int32_t top = (1 << MAP_P_BITS) - 1;
    int32_t p = (int32_t)(*entry >> 10);
    uint32_t n = *entry & MAP_N_MAX;

    p += (int32_t)((int64_t)((y ? top : 0) - p) * c->tables->rate[n] >> 16);
    *entry = (uint32_t)p << 10 | (n + (n < c->config.map_limit));
}

static inline void learn_gates(const struct core *c, void *block, const struct core_node *n,
                               float y, float eta)
{
    float *v = (float *)at_mut(block, c->final) + n->prefix * CORE_GATES;
    const fw_f8 *x = (const fw_f8 *)n->x;

    for (int k = 0; k < CORE_GATES; k++) {
        fw_f8 *w = (fw_f8 *)((float *)at_mut(block, c->gate[k]) + n->row[k] * CORE_INPUTS);
        float e = eta * (y - squash(n->d[k]));

        v[k] += c->config.eta_final * (y - n->p) * n->d[k];
        for (int i = 0; i < CORE_INPUTS / 8; i++)
            w[i] += e * x[i];
    }
}

static inline void learn_heads(const struct core *c, void *block, uint8_t *const *bucket,
                               const struct core_node *n, int bit, int y)
{
    uint32_t *map = at_mut(block, c->head_maps);
    const uint32_t cell = nibble_cell(n->prefix, bit);

    for (uint32_t h = 0; h < c->config.heads; h++) {
        uint8_t *state = bucket[h] + cell;

        map_learn(c, map + h * 256 + *state, y);
        *state = c->tables->next[*state][y];
    }
}

static inline void learn_guesses(const struct core *c, void *block,
                                 const struct core_path *path, const struct core_node *n,
                                 int bit, int y)
{
    uint32_t *map = at_mut(block, c->guess_maps);

    for (uint32_t g = 0; g < c->config.runs + c->config.copies; g++) {
        const struct core_guess *guess = &path->guess[g];

        if (agrees(guess, n->prefix, bit))
            map_learn(c, map + g * 256 + guess_cell(guess, bit),
                      (int)(guess->symbol >> (7 - bit) & 1) == y);
    }
}

/* The rows of one nibble, made where the reading missed or another head took them since. */
static void take_rows(const struct core *c, void *block, const struct core_path *path,
                      int nibble, uint8_t **bucket)
{
    uint8_t *cells = at_mut(block, c->cells);

    for (uint32_t h = 0; h < c->config.heads; h++) {
        uint32_t hash = path->hash[nibble][h];
        uint8_t *line = cells + line_of(hash, c->lines) * CORE_LINE, check = row_check(hash);
        const uint8_t *was = path->bucket[nibble][h];

        if (was == empty || was[0] != check)
            bucket[h] = row_insert(c, line, check, h, at_mut(block, c->counters));
        else
            bucket[h] = line + (was - line);
    }
}

static void learn_runs(const struct core *c, void *block, const struct core_context *in,
                       uint32_t symbol)
{
    struct slot *slots = at_mut(block, c->runs);

    for (uint32_t r = 0; r < c->config.runs; r++) {
        uint32_t hash = row_hash(in->run[r], 0);
        struct slot *line = slots + line_of(hash, c->config.run_lines) * 8;
        const struct slot *found = slot_find(line, slot_check(hash));

        slot_learn(found ? line + (found - line)
                         : slot_insert(line, slot_check(hash), c->config.heads + r,
                                       at_mut(block, c->counters)),
                   symbol);
    }
}

static void count_decision(struct core_counters *count, const struct core_node *n, int y)
{
    int place = (int)((n->s + D_MAX) * (CORE_PLACES / (2 * D_MAX + 0.01F)));

    count->decisions[place]++;
    count->miss[place] += y - (double)n->p;
}

static void path_update(const struct core *c, void *block, uint32_t symbol,
                        struct core_path *path)
{
    struct core_counters *count = at_mut(block, c->counters);
    const struct core_config *f = &c->config;
    float eta = f->eta + f->eta_start / (1 + (float)count->symbols / f->eta_warm);
    uint8_t *bucket[CORE_SOURCES];

    for (int bit = 0; bit < 8; bit++) {
        const struct core_node *n = &path->node[bit];
        int y = symbol >> (7 - bit) & 1;

        if (bit % 4 == 0)
            take_rows(c, block, path, bit / 4, bucket);
        learn_gates(c, block, n, (float)y, eta);
        learn_heads(c, block, bucket, n, bit, y);
        learn_guesses(c, block, path, n, bit, y);
        count_decision(count, n, y);
    }
    learn_runs(c, block, path->in, symbol);
    count->symbols++;
}

/* ---- all 255 decisions */

/* product[child] of one node from product[prefix]; the same factors in the same order as read.
 */
static void split(const struct core *c, const void *block, const struct core_path *path,
                  uint32_t prefix, int bit, double *product)
{
    struct core_node n;

    read_node(c, block, path, prefix, bit, &n);
    product[prefix * 2] = product[prefix] * (1 - (double)n.p);
    product[prefix * 2 + 1] = product[prefix] * (double)n.p;
}

static void tree_full(const struct core *c, const void *block, const struct core_context *in,
                      double *p)
{
    struct core_path path = { .in = in };
    uint32_t hash[16][CORE_SOURCES];
    double product[512];

    product[1] = 1;
    prefetch_rows(c, block, in, 0, path.hash[0]);
    for (uint32_t high = 0; high < 16; high++)
        prefetch_rows(c, block, in, 16 | high, hash[high]);
    find_guesses(c, block, in, path.guess);
    find_rows(c, block, path.hash[0], path.bucket[0]);
    for (int bit = 0; bit < 4; bit++)
        for (uint32_t prefix = 1u << bit; prefix < 2u << bit; prefix++)
            split(c, block, &path, prefix, bit, product);
    for (uint32_t high = 0; high < 16; high++) {
        find_rows(c, block, hash[high], path.bucket[1]);
        for (int bit = 4; bit < 8; bit++)
            for (uint32_t low = 0; low < 1u << (bit - 4); low++)
                split(c, block, &path, (16 | high) << (bit - 4) | low, bit, product);
    }
    memcpy(p, product + 256, 256 * sizeof *p);
}

const struct core_fns FW_AT(core_fns) = { path_read, path_update, tree_full };
