"""XXH3-128 of more than 240 bytes, the hash of exported files, written from the specification
(https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md): eight lanes take 64 bytes at a
time, each time with the next 8 bytes of a secret, and are scrambled after every 16th. For tests:
about 2 MB a second."""
import struct

P32_1, P32_2, P32_3 = 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D
P64_1, P64_2, P64_3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
P64_4, P64_5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
SECRET = bytes.fromhex(  # the default one
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671f"
    "cb79e64eccc0e578825ad07dccff7221b8084674f743248ee03590e6813a264c"
    "3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364"
    "eac5ac8334d3ebc3c581a0fffa1363eb170ddd51b7f0da49d316552629d4689e"
    "2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e")
ALL = (1 << 64) - 1
STRIPE, STRIPES = 64, (len(SECRET) - 64) // 8  # bytes of one, and how many until a scramble


def _words(data, at):
    return struct.unpack_from("<8Q", data, at)


def _accumulate(acc, data, at, secret_at):
    for i, (x, s) in enumerate(zip(_words(data, at), _words(SECRET, secret_at))):
        key = x ^ s
        acc[i ^ 1] = acc[i ^ 1] + x & ALL
        acc[i] = acc[i] + (key & 0xFFFFFFFF) * (key >> 32) & ALL


def _scramble(acc):
    for i, s in enumerate(_words(SECRET, len(SECRET) - 64)):
        acc[i] = (acc[i] ^ acc[i] >> 47 ^ s) * P32_1 & ALL


def _merge(acc, secret_at, start):
    words, h = _words(SECRET, secret_at), start
    for i in range(0, 8, 2):
        product = (acc[i] ^ words[i]) * (acc[i + 1] ^ words[i + 1])
        h += product & ALL ^ product >> 64
    h &= ALL
    h = (h ^ h >> 37) * 0x165667919E3779F9 & ALL
    return h ^ h >> 32


def xxh3_128(data):
    """32 hexadecimal digits, the high half first."""
    if len(data) <= 240:
        raise ValueError("shorter inputs are hashed in another way")
    acc = [P32_3, P64_1, P64_2, P64_3, P64_4, P32_2, P64_5, P32_1]
    for n in range((len(data) - 1) // STRIPE):
        _accumulate(acc, data, n * STRIPE, n % STRIPES * 8)
        if n % STRIPES == STRIPES - 1:
            _scramble(acc)
    _accumulate(acc, data, len(data) - STRIPE, len(SECRET) - STRIPE - 7)
    low = _merge(acc, 11, len(data) * P64_1 & ALL)
    high = _merge(acc, len(SECRET) - 64 - 11, ~(len(data) * P64_2) & ALL)
    return f"{high:016x}{low:016x}"
