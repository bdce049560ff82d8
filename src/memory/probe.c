/* probe.c - a reservoir of pairs of every age, for `inspect`: recall by age.
 *
 * Each head has 24 octaves of config `probes` places. Every pair enters octave 0 in the place
 * of the oldest there. Of the pairs that leave octave l every second one goes on to octave l +
 * 1, the others are gone: octave l holds pairs about probes 2^l to probes 2^(l+1) old, no pair
 * twice, and a new pair costs two copies on average. Whether pair t (from 1, as the block
 * counts) goes on is a bit of a hash of t and the head: the reservoir follows from the stream
 * alone, catches no period of it, and heads keep different pairs.
 *
 * A pair whose key comes again, equal in every element, or is edited leaves its place: its
 * value is no longer what the key should read. The rule sees nothing of this. */
#include "config.h"

#include "probe.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cache.h"
#include "core.h"
#include "fastweight/fmath.h"
#include "fastweight/num.h"
#include "inside.h"

#define OCTAVES 24
#define MOST    64     /* places of an octave */
#define ABREAST 64     /* reads at a time, at most */
#define IN_ALL  262144 /* places of all heads: `inspect` tells each of them */

struct probes {       /* of one head */
    float *k, *v;     /* (n, rows), (n, d_v) */
    uint64_t *number; /* (n,): which pair, from 1; 0: the place is empty */
    size_t n;
};

static struct probes open_head(const struct fw_memory *m, const void *block, size_t head)
{
    size_t n = OCTAVES * m->probes;

    return (struct probes){ (float *)fw_memory_at(block, m->at_probe_k) + head * n * m->rows,
                            (float *)fw_memory_at(block, m->at_probe_v) + head * n * m->d_v,
                            (uint64_t *)fw_memory_at(block, m->at_probe_number) + head * n, n };
}

/* The last octave that pair `number` reaches. */
static size_t reach(size_t head, uint64_t number)
{
    return (size_t)__builtin_ctzll(fw_mix(number ^ fw_mix(head)) | 1u << (OCTAVES - 1));
}

/* The place of the oldest pair of an octave, or an empty one: 0 is the least number. */
static size_t oldest(const struct fw_memory *m, const struct probes *p, size_t octave)
{
    size_t at = octave * m->probes;

    for (size_t j = at + 1; j < (octave + 1) * m->probes; j++)
        at = p->number[j] < p->number[at] ? j : at;
    return at;
}

static void put(const struct fw_memory *m, const struct probes *p, size_t at, const float *k,
                const float *v, uint64_t number)
{
    memcpy(p->k + at * m->rows, k, m->rows * sizeof *k);
    memcpy(p->v + at * m->d_v, v, m->d_v * sizeof *v);
    p->number[at] = number;
}

/* Moves on what has to leave; returns the place for a new pair. */
static size_t make_room(const struct fw_memory *m, const struct probes *p, size_t head)
{
    size_t place[OCTAVES], n = 0;

    for (;; n++) {
        place[n] = oldest(m, p, n);
        if (!p->number[place[n]] || reach(head, p->number[place[n]]) <= n)
            break; /* at the latest in the last octave, which is as far as any pair reaches */
    }
    for (; n > 0; n--) {
        size_t from = place[n - 1];

        put(m, p, place[n], p->k + from * m->rows, p->v + from * m->d_v, p->number[from]);
    }
    return place[0];
}

static bool same(const float *x, const float *y, size_t n)
{
    size_t i = 0;

    while (i < n && x[i] == y[i])
        i++;
    return i == n;
}

static void drop(const struct fw_memory *m, const struct probes *p, const float *k)
{
    for (size_t j = 0; j < p->n; j++)
        if (p->number[j] && same(p->k + j * m->rows, k, m->rows)) {
            memset(p->k + j * m->rows, 0, m->rows * sizeof *k);
            memset(p->v + j * m->d_v, 0, m->d_v * sizeof *p->v);
            p->number[j] = 0;
        }
}

void fw_probe_note(const struct fw_memory *m, void *block, size_t head, const struct fw_span *s)
{
    struct probes p = open_head(m, block, head);

    for (size_t i = 0; i < s->n * m->pairs; i++) {
        uint64_t number = s->at * m->pairs + i + 1;

        drop(m, &p, fw_row(s->k, i));
        put(m, &p, make_room(m, &p, head), fw_row(s->k, i), fw_row(s->v, i), number);
    }
}

void fw_probe_drop(const struct fw_memory *m, void *block, size_t head, const float *k)
{
    struct probes p = open_head(m, block, head);

    drop(m, &p, k);
}

static uint64_t learned(const struct fw_memory *m, const void *block)
{
    return ((const uint64_t *)fw_memory_at(block, m->at_counters))[FW_COUNT_PAIRS] * m->pairs;
}

int fw_probe_validate(const struct fw_memory *m, const void *block, size_t head,
                      struct fw_err *err)
{
    struct probes p = open_head(m, block, head);

    for (size_t j = 0; j < p.n; j++) {
        uint64_t number = p.number[j];
        float most = number ? FW_ELEMENT_MAX : 0;

        if (number > learned(m, block) || (number && reach(head, number) < j / m->probes))
            return fw_bad_state(err, "probe_number", head, "is no pair of its octave");
        if (!(fw_largest(p.k + j * m->rows, m->rows) <= most))
            return fw_bad_state(err, "probe_k", head, "is out of bounds");
        if (!(fw_largest(p.v + j * m->d_v, m->d_v) <= most))
            return fw_bad_state(err, "probe_v", head, "is out of bounds");
    }
    return 0;
}

/* ---- plans */

int fw_probe_plan(struct fw_memory *m, struct fw_config *c, struct fw_err *err)
{
    uint64_t shape[3] = { m->heads, 0, m->rows };

    if (fw_config_size(c, "probes", 0, MOST, &m->probes, err) < 0)
        return -1;
    if (m->probes == 0) {
        fw_config_forget(c, "probes");
        return 0;
    }
    shape[1] = OCTAVES * m->probes;
    if (m->heads * shape[1] > IN_ALL)
        return fw_fail_param(err, FW_EINVAL, "bad_value", "config.probes",
                             "all heads together may have at most %d places for probes, %d "
                             "times config.probes each",
                             IN_ALL, OCTAVES);
    if (fw_layout_add(&m->layout, "probe_k", FW_F32, 3, shape, &m->at_probe_k, err) < 0)
        return -1;
    shape[2] = m->d_v;
    if (fw_layout_add(&m->layout, "probe_v", FW_F32, 3, shape, &m->at_probe_v, err) < 0)
        return -1;
    return fw_layout_add(&m->layout, "probe_number", FW_U64, 2, shape, &m->at_probe_number,
                         err);
}

/* ---- reading */

size_t fw_memory_probes(const struct fw_memory *m)
{
    return OCTAVES * m->probes;
}

static struct fw_memory_probe compare(const float *o, const float *v, size_t n, uint64_t age)
{
    double vv = fw_sum_squares(v, n), oo = fw_sum_squares(o, n), ov = 0, ee = 0;

    for (size_t i = 0; i < n; i++) {
        double e = (double)v[i] - (double)o[i];

        ov += (double)o[i] * (double)v[i];
        ee += e * e;
    }
    if (!(vv > 0))
        return (struct fw_memory_probe){ age, (double)NAN, (double)NAN };
    return (struct fw_memory_probe){ age, fw_sqrt(ee / vv),
                                     oo > 0 ? ov / (fw_sqrt(oo) * fw_sqrt(vv)) : 0 };
}

static int by_age(const void *a, const void *b)
{
    uint64_t x = ((const struct fw_memory_probe *)a)->age;
    uint64_t y = ((const struct fw_memory_probe *)b)->age;

    return (x > y) - (x < y);
}

/* Empty places are read, too: a read of several rows at a time costs least. */
size_t fw_memory_read_probes(const struct fw_memory *m, const void *block, uint32_t head,
                             struct fw_memory_probe *ret)
{
    struct probes p = open_head(m, block, head);
    size_t most = FW_BUFFER / m->d_v < ABREAST ? FW_BUFFER / m->d_v : ABREAST, n = 0;
    float o[FW_BUFFER];

    for (size_t at = 0; at < p.n; at += most) {
        struct fw_reads r = { .q = p.k + at * m->rows, .q_stride = m->rows };

        r.n = p.n - at < most ? p.n - at : most;
        r.o = o;
        r.o_stride = m->d_v;
        m->rule->read(m, block, head, &r);
        if (m->cache)
            fw_cache_read(m, block, head, &r);
        for (size_t j = at; j < at + r.n; j++)
            if (p.number[j])
                ret[n++] = compare(o + (j - at) * m->d_v, p.v + j * m->d_v, m->d_v,
                                   learned(m, block) - p.number[j] + 1);
    }
    qsort(ret, n, sizeof *ret, by_age);
    return n;
}
