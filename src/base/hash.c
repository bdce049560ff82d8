/* hash.c - XXH3 with 64 and 128 bits: the fingerprint of a state, of files and of bodies.
 *
 * It finds damage and tells equal states; it is no protection against a forger, which is why a
 * foreign block is validated as well. The header's inline form is used: the streaming state
 * then lies on the stack in the size this very code knows. Any thread, no state. */
#include "config.h"

#include "fastweight/hash.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

static struct fw_hash from_xxh(XXH128_hash_t h)
{
    return (struct fw_hash){ .hi = h.high64, .lo = h.low64 };
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
    char hi[17];

    if (strspn(hex, "0123456789abcdefABCDEF") != FW_HASH_HEX - 1 || hex[FW_HASH_HEX - 1] != 0)
        return -1;
    memcpy(hi, hex, 16);
    hi[16] = 0;
    *ret = (struct fw_hash){ .hi = strtoull(hi, NULL, 16), .lo = strtoull(hex + 16, NULL, 16) };
    return 0;
}

int fw_hash_equal(struct fw_hash a, struct fw_hash b)
{
    return a.hi == b.hi && a.lo == b.lo;
}
