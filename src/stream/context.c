/* context.c - the heads' views of a byte stream, and the two copies.
 *
 * A head hashes one view: the last n bytes, the word, the token within the line's shape, ...
 * Copies point into the ring: `match` follows the longest earlier occurrence of the last bytes
 * and goes on after a miss until a longer verified one turns up; `above` is the same field and
 * offset of the previous line. Positions count modulo 2^32 and are masked at every use, so that
 * any value is safe: a stale one costs a wrong guess, never a fault. */
#include "config.h"

#include "context.h"

#include <string.h>

#include "stream_int.h"

#define MATCH_MIN    5
#define MATCH_VERIFY 32
#define MATCH_MISSES 8
#define LEN_MAX      65535u

static const char *const names[] = { "order1", "order2", "order3", "order4",    "word",
                                     "above",  "shape8", "coarse", "order5",    "skip",
                                     "shape",  "field",  "match",  "above_copy" };

static int is_letter(uint8_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c >= 128;
}

static int is_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

static int ends_token(uint8_t c)
{
    switch (c) {
    case ' ':
    case '\t':
    case ',':
    case '\n':
    case ':':
    case '=':
    case '[':
    case ']':
    case '"':
    case '/':
    case '{':
    case '}':
    case '(':
    case ')':
    case ';':
        return 1;
    default:
        return 0;
    }
}

static uint32_t kind(uint8_t c) /* 8 kinds of byte */
{
    if (c >= 'a' && c <= 'z')
        return 1;
    if (c >= 'A' && c <= 'Z')
        return 2;
    if (is_digit(c))
        return 3;
    if (c >= 128)
        return 6;
    return c == ' ' ? 4 : c == '\n' ? 5 : c < 32 ? 0 : 7;
}

static uint8_t ring_at(const struct history *h, uint32_t pos)
{
    return h->ring[pos & h->mask];
}

/* ---- taking in a byte */

static void advance_words(struct regs *r, uint8_t c)
{
    uint32_t lower = c >= 'A' && c <= 'Z' ? c + 32u : c;

    if (is_letter(c)) {
        r->word[0] = mix(r->word[0], lower + 1);
    } else if (r->word[0]) {
        r->word[2] = r->word[1];
        r->word[1] = r->word[0];
        r->word[0] = 0;
    }
}

static void advance_shape(struct regs *r, uint8_t c)
{
    uint32_t masked = is_digit(c) ? '0' : c;

    if (masked != '0' || r->last_masked != '0') {
        r->shape = mix(r->shape, masked);
        r->shape8 = r->shape8 * (0x2F0B4C47u << 5) + (masked + 1) * 0x9E3779B1u;
    }
    r->last_masked = masked;
    r->digits = r->digits << 1 | (uint32_t)is_digit(c);
}

static void start_field(struct regs *r)
{
    if (r->fields < MAX_FIELDS - 1)
        r->start[r->fields++] = r->pos;
}

static void advance_fields(struct regs *r, uint8_t c)
{
    r->token = mix(r->token, c + 1u);
    r->offset++;
    if (ends_token(c)) {
        start_field(r);
        r->field++;
        r->offset = 0;
        r->token = 0;
    }
    if (c != '\n')
        return;
    memcpy(r->start_above, r->start, sizeof r->start);
    r->fields_above = r->fields;
    r->fields = 0;
    start_field(r);
    r->field = 0;
    r->line_start = r->pos;
    r->shape = 0;
}

static void find_above(struct regs *r, const struct history *h)
{
    uint32_t p;

    r->above = 0;
    if (r->field >= r->fields_above)
        return;
    p = r->start_above[r->field] + r->offset;
    if (r->pos - p > r->pos - r->line_start && r->pos - p <= h->mask)
        r->above = p;
}

static uint32_t verified(const struct regs *r, const struct history *h, uint32_t p)
{
    uint32_t n = 0;

    while (n < MATCH_VERIFY && ring_at(h, p - 1 - n) == ring_at(h, r->pos - 1 - n))
        n++;
    return n;
}

static int in_ring(const struct regs *r, const struct history *h, uint32_t p)
{
    return p && r->pos - p < h->mask - MATCH_VERIFY;
}

static void score_copies(struct regs *r, const struct history *h, uint8_t c)
{
    if (r->above)
        r->above_history = r->above_history << 1 | (ring_at(h, r->above) != c);
    if (!r->match)
        return;
    if (ring_at(h, r->match) == c) {
        r->match_len += r->match_len < LEN_MAX;
        if (r->match_len > 15)
            r->match_missed = 0;
    } else {
        r->match_len = 0;
        r->match_missed++;
    }
    r->match++;
}

static void find_match(struct regs *r, const struct history *h, uint32_t slot)
{
    uint32_t p, n;

    if (r->match_len == 0 || r->match_missed) {
        p = h->table[slot];
        if (in_ring(r, h, p) && (n = verified(r, h, p)) >= MATCH_MIN && n > r->match_len) {
            r->match = p;
            r->match_len = n;
            r->match_missed = 0;
        }
    }
    if (!in_ring(r, h, r->match) || (r->match_missed >= MATCH_MISSES && !r->match_len))
        r->match = r->match_len = r->match_missed = 0;
}

void context_init(struct regs *r)
{
    r->pos = r->line_start = 1; /* a position of 0 says none */
    start_field(r);
}

uint32_t context_advance(struct regs *r, const struct history *h)
{
    const uint8_t byte = ring_at(h, r->pos);
    uint32_t slot;

    score_copies(r, h, byte);
    r->pos++;
    r->last8 = r->last8 << 8 | byte;
    advance_words(r, byte);
    advance_shape(r, byte);
    advance_fields(r, byte);
    find_above(r, h);
    slot = mix(21, mix((uint32_t)r->last8, (uint32_t)(r->last8 >> 32) & 0xffff));
    slot &= h->table_mask;
    find_match(r, h, slot);
    return slot;
}

/* ---- what the heads see */

static void read_heads(const struct regs *r, const struct history *h, struct core_context *in)
{
    const uint32_t c4 = (uint32_t)r->last8, c8 = (uint32_t)(r->last8 >> 32), c1 = c4 & 0xff;
    const uint32_t up = r->above ? ring_at(h, r->above) : 0;
    const uint32_t up1 = r->above ? ring_at(h, r->above - 1) : 0;
    const uint32_t letter = (uint32_t)is_letter((uint8_t)c1);
    uint32_t *head = in->head, *run = in->run;

    *head++ = mix(1, c1);
    *head++ = mix(2, c4 & 0xffff);
    *head++ = mix(3, c4 & 0xffffff);
    *head++ = mix(4, c4);
    *head++ = mix(8, mix(r->word[0], c1));
    *head++ = mix(18, mix(up | up1 << 8, c1 | kind((uint8_t)(c4 >> 8)) << 8));
    *head++ = mix(19, r->digits & 0xff ? r->shape8 : 0);
    *head++ = mix(20, mix(c4 & 0xf0f0f0f0u, c8 & 0xf0f0));
    *run++ = mix(5, mix(c4, c8 & 0xff));
    *run++ = mix(10, mix(r->word[0], r->word[2]) + (letter ? 0 : c1));
    *run++ = mix(14, mix(r->shape, r->token));
    *run++ = mix(15, mix(r->field, r->token));
}

static struct core_guess guess_match(const struct regs *r, const struct history *h)
{
    static const uint8_t len_step[33] = { 0,  1,  1,  1,  1,  1,  2,  3,  4,  5,  6,
                                          7,  8,  9,  9,  10, 10, 11, 11, 11, 11, 12,
                                          12, 12, 12, 13, 13, 13, 13, 13, 13, 13, 14 };
    uint32_t n = r->match_len, missed = r->match_missed < 3 ? r->match_missed : 3;
    uint32_t step = n < 33 ? len_step[n] : n < 400 ? 14 : 15;
    uint32_t weight = 1 + (n > 5) + (n > 8) + (n > 12) + (n > 16) + (n > 24) + (n >= 32);

    if (!r->match)
        return (struct core_guess){ 0 };
    return (struct core_guess){ 256u | ring_at(h, r->match), step * 4 + missed, weight * 5 };
}

static struct core_guess guess_above(const struct regs *r, const struct history *h)
{
    if (!r->above)
        return (struct core_guess){ 0 };
    return (struct core_guess){ 256u | ring_at(h, r->above), r->above_history & 15,
                                1 + (r->above_history & 3) };
}

void context_read(const struct regs *r, const struct history *h, struct core_context *ret)
{
    read_heads(r, h, ret);
    ret->copy[0] = guess_match(r, h);
    ret->copy[1] = guess_above(r, h);
    ret->kind = kind((uint8_t)r->last8) | kind((uint8_t)(r->last8 >> 16)) << 3 |
                kind((uint8_t)(r->last8 >> 8)) << 6;
}

size_t context_all_names(const char **name)
{
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        name[i] = names[i];
    return sizeof names / sizeof names[0];
}

/* ---- the smallest block's choice */

static const uint8_t small_head[CONTEXT_SMALL_HEADS] = { 0, 1, 2, 3, 4 };
static const uint8_t small_run[CONTEXT_SMALL_RUNS] = { 0, 2 };

void context_small(struct core_context *in)
{
    for (int i = 0; i < CONTEXT_SMALL_HEADS; i++)
        in->head[i] = in->head[small_head[i]];
    for (int i = 0; i < CONTEXT_SMALL_RUNS; i++)
        in->run[i] = in->run[small_run[i]];
    in->copy[0].weight /= 5;
    in->copy[1].weight = 0;
    in->kind = (in->kind & 7) | (in->kind >> 6) << 3;
}

size_t context_small_names(const char **name)
{
    size_t n = 0;

    for (int i = 0; i < CONTEXT_SMALL_HEADS; i++)
        name[n++] = names[small_head[i]];
    for (int i = 0; i < CONTEXT_SMALL_RUNS; i++)
        name[n++] = names[CONTEXT_HEADS + small_run[i]];
    for (int i = 0; i < CONTEXT_COPIES; i++)
        name[n++] = names[CONTEXT_HEADS + CONTEXT_RUNS + i];
    return n;
}

int context_validate(const struct regs *r, struct fw_err *err)
{
    if (r->fields > MAX_FIELDS || r->fields_above > MAX_FIELDS)
        return fw_fail_param(err, FW_EINVAL, "bad_state", "registers", "too many fields");
    if (r->zero != 0)
        return fw_fail_param(err, FW_EINVAL, "bad_state", "registers", "padding is not zero");
    if (r->match_len > LEN_MAX || r->match_missed > MATCH_MISSES)
        return fw_fail_param(err, FW_EINVAL, "bad_state", "registers", "match is out of range");
    return 0;
}
