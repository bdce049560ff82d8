"""Streams to learn, the models that learn them, and safetensors in plain Python.

Everything here is computed from integers, so a hash written down in a test holds everywhere."""
import array
import ctypes
import json
import struct

MIB = 1 << 20


class Lcg:
    """A small generator of our own: the same numbers with every Python."""

    def __init__(self, seed):
        self.x = (seed * 0x9E3779B97F4A7C15 + 1) % 2**64

    def below(self, n):
        self.x = (self.x * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self.x >> 33) % n


_WORDS = ("the state of a session learns from every token it reads and never forgets one that "
          "came before the next because memory is weight and weight is memory").split()


def text(n, seed=1):
    """Prose of a kind: words, commas, lines, some UTF-8 and some raw bytes."""
    r, out = Lcg(seed), bytearray()
    while len(out) < n:
        out += _WORDS[r.below(len(_WORDS))].encode()
        k = r.below(40)
        out += (b"\n" if k == 0 else b", " if k == 1 else " \u00e9\u4e16 ".encode() if k == 2
                else bytes([r.below(256), 32]) if k == 3 else b" ")
    return bytes(out[:n])


def log(n, seed=1):
    """Lines of a log with a clock, a host, a process and a few templates."""
    r, out, clock = Lcg(seed), bytearray(), 0
    while len(out) < n:
        clock += r.below(3)
        what = (f"accepted connection from 10.0.{r.below(4)}.{r.below(250)} port {r.below(60000)}",
                f"request {r.below(100000)} served in {r.below(900)} us",
                f"cache hit ratio 0.{r.below(1000):03d}",
                "checkpoint done")[min(r.below(6), 3)]
        out += (f"2024-03-01T{clock // 3600 % 24:02d}:{clock // 60 % 60:02d}:{clock % 60:02d} "
                f"host{r.below(3)} web[{100 + r.below(5)}]: {what}\n").encode()
    return bytes(out[:n])


def events(n, seed=1, vocab=300):
    """Ids with habits: each is mostly followed by one of two others."""
    r, out, x = Lcg(seed), [], 0
    for _ in range(n):
        x = r.below(vocab) if r.below(8) == 0 else (x * 17 + 3 + r.below(2)) % vocab
        out.append(x)
    return out


def pairs(n, seed=1, heads=2, d_k=8, d_v=8, gated=False):
    """Key-value pairs; every number is a small multiple of 1/64, exact as F32 and in JSON."""
    r, key_most = Lcg(seed), int(30 * min(1.0, 8 / d_k) ** 0.5)

    def vector(d, most):
        return [(r.below(2 * most + 1) - most) / 64 for _ in range(d)]
    out = []
    for _ in range(n):
        p = {"keys": [vector(d_k, key_most) for _ in range(heads)],
             "values": [vector(d_v, 128) for _ in range(heads)],
             "beta": [(r.below(48) + 8) / 64 for _ in range(heads)]}
        if gated:
            p["log_g"] = [-r.below(16) / 64 for _ in range(heads)]
        out.append(p)
    return out


class Model:
    """A recipe to create sessions with, and how a list of its tokens becomes a body."""

    def __init__(self, name, model, config, make):
        self.name, self.model, self.config, self.tokens = name, model, config, make
        self.kind = "associative" if model == "associative" else "stream"

    def create(self, client, id, **more):
        return client.create(id, self.model, self.config, **more)

    def body(self, tokens):
        """(bytes, content type) of a learn or score of these tokens."""
        if self.kind == "associative":
            joined = {k: [p[k] for p in tokens] for k in tokens[0]}
            return json.dumps(joined).encode(), "application/json"
        if self.model == "events":
            return struct.pack(f"<{len(tokens)}H", *tokens), "application/octet-stream"
        return bytes(tokens), "application/octet-stream"

    def packed(self, tokens):
        """The same as safetensors where JSON would be long."""
        if self.kind != "associative":
            return self.body(tokens)
        c, n, out = self.config, len(tokens), {}
        for key in tokens[0]:
            width = [c[{"keys": "d_k", "values": "d_v"}[key]]] if key in ("keys", "values") else []
            flat = [x for p in tokens for head in p[key] for x in (head if width else [head])]
            out[key] = ("F32", [n, c["heads"], *width], floats(flat))
        return st_write(out), "application/vnd.safetensors"

    def learn(self, client, id, tokens, **query):
        body, type = self.body(tokens)
        return client.post(id, "learn", body, type=type, **query)

    def score(self, client, id, tokens, **query):
        body, type = self.body(tokens)
        return client.post(id, "score", body, type=type, **query)

    def read(self, client, id):
        """A short read that computes something from the state."""
        if self.kind == "stream":
            return client.post(id, "predict", {"top_logprobs": 3})
        return client.post(id, "recall", {"queries": [self.tokens(1, 77)[0]["keys"]]})


def associative(rule, heads=2, d_k=8, d_v=8, **more):
    """A matrix memory of some rule and shape."""
    return Model(" ".join([f"{rule} {heads}x{d_k}x{d_v}", *more]), "associative",
                 {"rule": rule, "heads": heads, "d_k": d_k, "d_v": d_v, **more},
                 lambda n, seed=1: pairs(n, seed, heads, d_k, d_v, rule == "gated_delta"))


AUTO = Model("auto", "bytes", {"preset": "auto", "state_bytes": MIB}, text)
TEXT = Model("text", "bytes", {"preset": "text", "state_bytes": MIB}, text)
LOG = Model("log", "bytes", {"preset": "log", "state_bytes": MIB}, log)
EVENTS = Model("events", "events", {"vocab": 300, "state_bytes": MIB}, events)
DELTA = associative("delta")
GATED = associative("gated_delta")
PROBED = associative("delta", probes=2, covariance=True)
MODELS = (AUTO, TEXT, LOG, EVENTS, DELTA, GATED)


def cut(tokens, random, most=60):
    """The same tokens in pieces of random length."""
    at, out = 0, []
    while at < len(tokens):
        n = random.randint(1, most)
        out.append(tokens[at:at + n])
        at += n
    return out


# ---- safetensors

def st_read(data):
    """{name: (dtype, shape, bytes)}, metadata."""
    (n,) = struct.unpack_from("<Q", data)
    head, body = json.loads(data[8:8 + n]), data[8 + n:]
    meta = head.pop("__metadata__", {})
    out = {}
    for name, t in head.items():
        a, b = t["data_offsets"]
        out[name] = (t["dtype"], t["shape"], body[a:b])
    return out, meta


def st_write(tensors, meta=None):
    """tensors: {name: (dtype, shape, bytes)} in the order given."""
    head, at = ({"__metadata__": meta} if meta else {}), 0
    for name, (dtype, shape, data) in tensors.items():
        head[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + b"".join(t[2] for t in tensors.values())


def doubles(data):
    return array.array("d", data)


def floats(values):
    return array.array("f", values).tobytes()


# ---- XXH3-128, from the library that the daemon itself links

class _Xxh128(ctypes.Structure):
    _fields_ = [("lo", ctypes.c_uint64), ("hi", ctypes.c_uint64)]


def xxh128(data):
    """32 hex digits, high half first."""
    lib = ctypes.CDLL("libxxhash.so.0")
    lib.XXH3_128bits.restype = _Xxh128
    lib.XXH3_128bits.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
    h = lib.XXH3_128bits(bytes(data), len(data))
    return f"{h.hi:016x}{h.lo:016x}"


def block_of(tensors, listed, state_bytes):
    """The raw block: the tensors in their listed order, each at the next multiple of 64."""
    out = bytearray()
    for t in listed:
        out += bytes(-len(out) % 64) + tensors[t["name"]][2]
    assert len(out) <= state_bytes, (len(out), state_bytes)
    return bytes(out) + bytes(state_bytes - len(out))


def retell(file, key, value):
    """The export file with another text in its metadata, and its file hash made right again."""
    (n,) = struct.unpack_from("<Q", file)
    head = json.loads(file[8:8 + n])
    head["__metadata__"].update({key: value, "file_hash": "0" * 32})
    text = json.dumps(head, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    out = bytearray(struct.pack("<Q", len(text)) + text + file[8 + n:])
    at = out.index(b'"file_hash":"') + len(b'"file_hash":"')
    out[at:at + 32] = xxh128(out).encode()
    return bytes(out)


def reseal(file, changed, listed, state_bytes):
    """The export file with some tensors' bytes changed and both hashes made right again."""
    tensors, meta = st_read(file)
    (n,) = struct.unpack_from("<Q", file)
    out, head = bytearray(file), json.loads(file[8:8 + n])
    for name, data in changed.items():
        dtype, shape, old = tensors[name]
        assert len(data) == len(old)
        tensors[name] = (dtype, shape, data)
        at = 8 + n + head[name]["data_offsets"][0]
        out[at:at + len(data)] = data
    for key, new in (("hash", xxh128(block_of(tensors, listed, state_bytes))),
                     ("file_hash", "0" * 32)):
        at = out.index(b'"' + meta[key].encode() + b'"', 0, 8 + n) + 1
        out[at:at + 32] = new.encode()
    out[at:at + 32] = xxh128(out).encode()
    return bytes(out)
