/* hash.c - XXH3 with 64 and 128 bits: the fingerprint of a state, of files and of bodies.
 *
 * It finds damage and tells equal states; it is no protection against a forger, which is why a
 * foreign block is validated as well. The header's inline form is used: the streaming state
 * then lies on the stack in the size this very code knows. Any thread, no state. */
#include "config.h"

#include "fastweight/hash.h"

#include <stdio.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

static struct fw_hash from_xxh(XXH128_hash_t h)
{
    return (struct fw_hash){ .hi = h.high64, .lo = h.low64 };
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

struct fw_hash fw_hash128(const void *data, size_t len)
{
    return from_xxh(XXH3_128bits(data, len));
}

struct fw_hash fw_hash128_pieces(const struct fw_hash_piece *piece, size_t count)
{
    XXH3_state_t state;
    size_t i;

    XXH3_INITSTATE(&state);
    XXH3_128bits_reset(&state);
    for (i = 0; i < count; i++) {
        if (piece[i].len > 0)
            XXH3_128bits_update(&state, piece[i].data, piece[i].len);
    }
    return from_xxh(XXH3_128bits_digest(&state));
}

uint64_t fw_hash64(const void *data, size_t len)
{
    return XXH3_64bits(data, len);
}

void fw_hash_hex(struct fw_hash h, char ret[FW_HASH_HEX])
{
    snprintf(ret, FW_HASH_HEX, "%016llx%016llx", (unsigned long long)h.hi,
             (unsigned long long)h.lo);
}

int fw_hash_parse(const char *hex, struct fw_hash *ret)
{
    uint64_t half[2] = { 0, 0 };
    int i, digit;

    for (i = 0; i < FW_HASH_HEX - 1; i++) {
        digit = hex_digit(hex[i]);
        if (digit < 0)
            return -1;
        half[i / 16] = half[i / 16] << 4 | (uint64_t)digit;
    }
    if (hex[i] != 0)
        return -1;
    *ret = (struct fw_hash){ .hi = half[0], .lo = half[1] };
    return 0;
}

int fw_hash_equal(struct fw_hash a, struct fw_hash b)
{
    return a.hi == b.hi && a.lo == b.lo;
}
