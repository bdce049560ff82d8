#!/usr/bin/python3
"""The golden numbers through HTTP: a session of the case's config learns the case's body, with
queries, and what it reads after each pair is what other people's code read.

A case that starts from weights or a state gets them by an import: the export of an empty session,
with other tensors and the hashes that go with them. sinks and heavy_hitter, of which nobody
published numbers, are compared with their definition in plain Python on another case's pairs."""
import json
import math
import os
import struct
import subprocess
import sys

sys.dont_write_bytecode = True
import fw  # noqa: E402
from xxh3 import xxh3_128  # noqa: E402

CHECK = os.path.join(fw.BUILD, "tests/golden_check")
CASES = os.path.join(fw.TESTS, "golden")
EVICTING = {"sinks": {"sinks": 4, "window": 12}, "heavy_hitter": {"max_pairs": 16, "recent": 5}}


def flat(x):
    return [z for y in x for z in flat(y)] if isinstance(x, list) else [x]


def part_of(case, part):
    return {name: rows[part] for name, rows in case["body"].items()}


def check(*args):
    return subprocess.run([CHECK, *args], check=True, stdout=subprocess.PIPE,
                          text=True).stdout.splitlines()


def read_file(file):
    """Metadata, {name: slice of the data} and the data: all tensors' bytes."""
    start = 8 + struct.unpack_from("<Q", file)[0]
    header = json.loads(file[8:start])
    meta = header.pop("__metadata__")
    return meta, {name: slice(*t["data_offsets"]) for name, t in header.items()}, file[start:]


def hash_of(client, id, tensors, data):
    """The hash of the block with these tensors (docs/storage.md): each at a multiple of 64."""
    block = b""
    for t in client.get(id, "tensors")["data"]:
        block += bytes(-len(block) % 64) + data[tensors[t["name"]]]
    return xxh3_128(block + bytes(client.facts(id)["state_bytes"] - len(block)))


def with_state(client, id, start):
    """An export of the session with other elements {name: floats} in its tensors."""
    file = client.export(id)
    meta, tensors, data = read_file(file)
    header, data = file[:-len(data)], bytearray(data)
    for name, floats in start.items():
        at = tensors[name]
        data[at] = struct.pack(f"<{(at.stop - at.start) // 4}f", *floats)
    hash = hash_of(client, id, tensors, data)
    header = header.replace(meta["hash"].encode(), hash.encode())
    unsigned = header.replace(meta["file_hash"].encode(), b"0" * 32)
    return header.replace(meta["file_hash"].encode(),
                          xxh3_128(unsigned + data).encode()) + data


def softmax(query, rows, scale):
    logits = [scale * sum(x * y for x, y in zip(query, row)) for row in rows]
    weights = [math.exp(x - max(logits)) for x in logits]
    return [w / sum(weights) for w in weights]


class Evicting:
    """The pairs that one head keeps: the last `recent`, and `places` of those before them."""

    def __init__(self, rule, recent, places):
        self.scored, self.most, self.places = rule == "heavy_hitter", recent, places
        self.recent, self.old, self.score = [], [], {}

    def leave(self, j):
        if len(self.old) < self.places:
            self.old.append(j)
        elif self.scored:
            low = min(self.old, key=self.score.get)
            if self.score[j] > self.score[low]:
                self.old[self.old.index(low)] = j

    def read(self, keys, values, queries, scale):
        """What each query reads after its pair."""
        out = []
        for t, (k, q) in enumerate(zip(keys, queries)):
            if len(self.recent) == self.most:
                self.leave(self.recent.pop(0))
            self.recent.append(t)
            self.score[t] = 0
            kept = self.old + self.recent
            rows = [keys[j] for j in kept]
            for j, w in zip(kept, softmax(k, rows, 1)):
                self.score[j] += w
            weights = softmax(q, rows, scale)
            out.append([sum(w * values[j][i] for j, w in zip(kept, weights))
                        for i in range(len(values[0]))])
        return out


def evicting_case(rule, case):
    """The case's pairs under a rule that evicts, with what it must read."""
    config = {x: case["config"][x] for x in ("heads", "d_k", "d_v", "query_scale", "bandwidth")}
    recent = EVICTING[rule].get("window") or EVICTING[rule]["recent"]
    places = EVICTING[rule].get("sinks") or EVICTING[rule]["max_pairs"] - recent
    heads = [Evicting(rule, recent, places).read(
        *([row[h] for row in case["body"][x]] for x in ("keys", "values", "queries")),
        config["query_scale"]) for h in range(int(config["heads"]))]
    return {"name": rule, "config": {"rule": rule, **config, **EVICTING[rule]}, "start": None,
            "body": case["body"], "out": [list(x) for x in zip(*heads)],
            "tolerance": case["tolerance"]}


class Golden(fw.Case):
    def cases(self):
        if not os.path.exists(CHECK):
            self.skipTest("no golden_check here")
        cases = [json.loads(line) for line in check("--requests", CASES)]
        pairs = next(c for c in cases if c["config"]["rule"] == "softmax" and
                     c["config"]["bandwidth"] == 1 and len(c["out"]) > 32)
        return cases + [evicting_case(rule, pairs) for rule in EVICTING]

    def one_of_each(self):
        """One case of each rule, map, form and variant."""
        chosen = {}
        for case in self.cases():
            key = tuple(case["config"].get(k) for k in ("rule", "feature_map", "form", "solver",
                                                          "variant", "depth"))
            chosen.setdefault(key, case)
        return chosen.values()

    def create(self, client, case):
        """A session of the case's name, in the state that the case starts from."""
        id = case["name"]
        client.create(id, "associative", case["config"])
        if case["start"]:
            client.ok("PUT", f"/v1/sessions/{id}/import",
                      bytes(with_state(client, id, case["start"])),
                      type="application/vnd.safetensors")

    def test_the_hashes_of_an_exported_file_are_those_of_the_specification(self):
        c = self.daemon().client()
        for id, heads, d in (("small", 1, 1), ("large", 4, 64)):
            c.create(id, "associative", {"heads": heads, "d_k": d, "d_v": d})
            c.post(id, "learn", {"keys": [[[1 / d] * d] * heads], "values": [[[2] * d] * heads]})
            file = c.export(id)
            meta, tensors, data = read_file(file)
            self.assertEqual(hash_of(c, id, tensors, data), meta["hash"])
            self.assertEqual(c.hash(id), meta["hash"])
            self.assertEqual(xxh3_128(file.replace(meta["file_hash"].encode(), b"0" * 32)),
                             meta["file_hash"])

    def test_every_rule_has_a_case(self):
        rules = {case["config"]["rule"] for case in self.cases()}
        self.assertEqual(rules, set(check("--rules")))

    def test_every_case_of_every_rule_gives_its_numbers_over_http(self):
        c = self.daemon().client()
        for case in self.cases():
            with self.subTest(case["name"]):
                self.create(c, case)
                n = (len(case["body"]["keys"]) + 1) // 2
                got = []
                for part in (slice(0, n), slice(n, None)):  # two learns, one stream
                    body = part_of(case, part)
                    if body["keys"]:
                        got += flat(c.post(case["name"], "learn", body)["values"])
                want = flat(case["out"])
                self.assertEqual(len(got), len(want))
                worst = max(abs(a - b) for a, b in zip(got, want))
                self.assertLessEqual(worst, case["tolerance"])

    def test_every_rule_keeps_its_bytes_through_cuts_forks_snapshots_exports_and_kill(self):
        d = self.daemon()
        c = d.client()
        cases = list(self.one_of_each())
        for case in cases:
            x = case["name"]
            c.create(x, "associative", case["config"])
            c.post(x, "learn", case["body"])
            c.create(x + ".cut", "associative", case["config"])
            c.post(x + ".cut", "learn", part_of(case, slice(0, 3)))
            c.post(x + ".cut", "snapshots", {"name": "three"})
            c.post(x + ".cut", "learn", part_of(case, slice(3, None)))
            c.post(x + ".cut", "snapshots/three/restore")
            c.post(x + ".cut", "learn", part_of(case, slice(3, 4)))
            c.post(x + ".cut", "fork", {"id": x + ".fork"})
        want = {case["name"]: c.hash(case["name"]) for case in cases}
        d.restart(hard=True)
        c = d.client()
        for case in cases:
            x = case["name"]
            with self.subTest(x):
                self.assertEqual(c.hash(x), want[x])
                file = c.export(x + ".cut")
                c.create(x + ".import", "associative", case["config"])
                c.ok("PUT", f"/v1/sessions/{x}.import/import", file,
                     type="application/vnd.safetensors")
                for copy in (".cut", ".fork", ".import"):
                    c.post(x + copy, "learn", part_of(case, slice(4, None)))
                    self.assertEqual(c.hash(x + copy), want[x], copy)
                c.get(x, "inspect")


if __name__ == "__main__":
    fw.main()
