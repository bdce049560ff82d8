/* fastweight/hash.h - XXH3 (libxxhash): the one place that names the hash. Any thread. */
#ifndef FW_HASH_H
#define FW_HASH_H

#include <stddef.h>
#include <stdint.h>

struct fw_hash {
    uint64_t hi, lo;
};

#define FW_HASH_HEX 33 /* 32 digits and the NUL */

struct fw_hash fw_hash128(const void *data, size_t len);
/* Over several pieces, as if they lay in one. */
struct fw_hash_piece {
    const void *data;
    size_t len;
};
struct fw_hash fw_hash128_pieces(const struct fw_hash_piece *piece, size_t count);
uint64_t fw_hash64(const void *data, size_t len);
void fw_hash_hex(struct fw_hash h, char ret[FW_HASH_HEX]); /* hi first, lower case */
int fw_hash_parse(const char *hex, struct fw_hash *ret);   /* -1 unless 32 hex digits */
int fw_hash_equal(struct fw_hash a, struct fw_hash b);

#endif
