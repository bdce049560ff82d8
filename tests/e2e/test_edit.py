#!/usr/bin/python3
"""edit, forget: one association exactly, in order, on the disk, with the same bytes; patches."""
import struct
import sys

sys.dont_write_bytecode = True
import fw  # noqa: E402
import streams as s  # noqa: E402

RULES = {"delta": {}, "gated_delta": {}, "kda": {}, "linear": {}, "retention": {}, "mesa": {},
         "momentum": {}, "longhorn": {}, "delta_l2": {"rule": "delta", "key_norm": "l2"}}
SHAPE = {"heads": 2, "d_k": 8, "d_v": 8}
REPLY = {"version", "durable_version", "before", "after", "change_norm", "disturbed"}
KEY = [[0.5, -0.25, 0, 0.125, 0, 0, 0.25, 0], [0, 0, 0.5, 0, 0.5, -0.125, 0, 0]]
VALUE = [[1, 2, 3, 4, -1, -2, -3, -4], [0.5, 0, -0.5, 0, 8, 0, -8, 0]]
ZERO = [[0] * 8, [0] * 8]


def body(rule, n, seed):
    x = s.pairs(n, seed)
    more = {"kda": ("log_g", [-0.125] * 8), "longhorn": ("dt", [0.25] * 8)}
    out = {"keys": [p["keys"] for p in x], "values": [p["values"] for p in x]}
    if rule in more:
        name, row = more[rule]
        out[name] = [[row] * 2] * n
    return out


class Edit(fw.Case):
    def near(self, a, b, within=1e-5):
        for x, y in zip(sum(a, []), sum(b, [])):
            self.assertAlmostEqual(x, y, delta=within)

    def start(self, rule="delta", id="a"):
        self.c.create(id, "associative", {"rule": rule, **SHAPE, **RULES[rule]})
        self.c.post(id, "learn", body(rule, 30, 1))

    def setUp(self):
        super().setUp()
        self.d = self.daemon()
        self.c = self.d.client()

    def test_every_matrix_rule_reads_what_was_written_and_replays_it_to_the_byte(self):
        for rule in RULES:
            self.start(rule, rule)
            r = self.c.post(rule, "edit", {"key": KEY, "value": VALUE})
            self.assertEqual((set(r), r["version"]), (REPLY, 2))
            self.near(r["after"], VALUE)
            got = self.c.post(rule, "recall", {"queries": [KEY]})["values"][0]
            self.assertEqual(got, r["after"], rule)
            self.c.post(rule, "learn", body(rule, 5, 2))
            f = self.c.post(rule, "forget", {"key": KEY}, durability="async")
            self.near(f["after"], ZERO)
            self.assertGreater(f["change_norm"], 0)
        for id in RULES:
            self.c.ok("POST", f"/v1/sessions/{id}/edit", {"key": KEY, "value": ZERO})
        want = {rule: self.c.hash(rule) for rule in RULES}
        self.d.restart(hard=True)
        self.c = self.d.client()
        for rule in RULES:
            self.assertEqual(self.c.hash(rule), want[rule], rule)
            facts = self.c.facts(rule)
            self.assertEqual((facts["version"], facts["tokens_seen"]), (5, 35))

    def test_probes_tell_what_an_edit_disturbs(self):
        self.start()
        probes = [p["keys"] for p in s.pairs(20, 1)]
        before = self.c.post("a", "recall", {"queries": probes})["values"]
        r = self.c.post("a", "edit", {"key": KEY, "value": VALUE, "probes": probes})
        after = self.c.post("a", "recall", {"queries": probes})["values"]
        moved = [(x - y) ** 2 for p, q in zip(before, after) for a, b in zip(p, q)
                 for x, y in zip(a, b)]
        self.assertAlmostEqual(r["disturbed"], (sum(moved) / len(moved)) ** 0.5, delta=1e-5)

    def test_a_pair_can_be_taken_out_of_sums(self):
        x = s.pairs(20, 3)
        for rule in ("linear", "mesa"):
            for id, skip in (("with", None), ("without", 7)):
                self.c.create(f"{rule}.{id}", "associative", {"rule": rule, **SHAPE})
                kept = [p for i, p in enumerate(x) if i != skip]
                self.c.post(f"{rule}.{id}", "learn", {k: [p[k] for p in kept]
                                                      for k in ("keys", "values")})
            self.c.post(f"{rule}.with", "forget", {"key": x[7]["keys"], "value": x[7]["values"]})
            queries = {"queries": [p["keys"] for p in s.pairs(10, 4)]}
            a, b = (self.c.post(f"{rule}.{id}", "recall", queries)["values"]
                    for id in ("with", "without"))
            for p, q in zip(a, b):
                self.near(p, q, 1e-3)

    def test_an_edit_keeps_its_place_its_key_and_its_etag(self):
        self.start()
        path, x = "/v1/sessions/a/edit", {"key": KEY, "value": VALUE}
        etag = self.c.call("GET", "/v1/sessions/a").headers["ETag"]
        first = self.c.call("POST", path, x, headers={"Idempotency-Key": "k", "If-Match": etag})
        self.assertEqual(first.status, 200)
        want = self.c.hash("a")
        self.refused(self.c.call("POST", path, x, headers={"If-Match": etag}), 412)
        again = self.c.call("POST", path, x, headers={"Idempotency-Key": "k"})
        self.assertEqual((again.status, again.json), (200, {"version": 2}))
        self.assertEqual(again.headers["Idempotent-Replayed"], "true")
        self.assertEqual(self.c.hash("a"), want)
        flat = [v for row in KEY for v in row]
        probes = ("F32", [1, 2, 8], struct.pack("<16f", *flat))
        file = s.st_write({"key": ("F32", [2, 8], struct.pack("<16f", *flat)), "probes": probes,
                           "value": ("F32", [2, 8], struct.pack("<16f", *sum(ZERO, [])))})
        r = self.c.ok("POST", path, file, type="application/vnd.safetensors", hash="true")
        self.near(r["after"], ZERO)
        self.assertEqual(r["hash"], self.c.hash("a"))

    def test_a_patch_leads_from_one_snapshot_to_the_next(self):
        self.c.create("a", "associative", {"rule": "gated_delta", **SHAPE})
        pairs, state = s.pairs(23, 5, gated=True), {}
        for name, part in (("old", pairs[:20]), ("new", pairs[20:])):
            self.c.post("a", "learn", {k: [p[k] for p in part] for k in part[0]})
            self.c.post("a", "snapshots", {"name": name})
            got = self.c.call("GET", "/v1/sessions/a/tensors/S").body
            state[name] = struct.unpack("<128f", s.st_read(got)[0]["S"][2])
        r = self.c.call("GET", "/v1/sessions/a/snapshots/new/patch?base=old")
        self.assertEqual(r.headers["Content-Type"], "application/vnd.safetensors")
        t, meta = s.st_read(r.body)
        self.assertEqual(meta, {"format": "fastweight patch", "rule": "gated_delta"})
        rank, gamma = struct.unpack("<2I", t["rank"][2]), struct.unpack("<2d", t["gamma"][2])
        self.assertEqual(rank, (3, 3))
        u, sigma, v = (struct.unpack(f"<{len(t[n][2]) // 4}f", t[n][2]) for n in "UsV")
        for at, want in enumerate(state["new"]):
            h, i, j = at // 64, at // 8 % 8, at % 8
            got = gamma[h] * state["old"][at] + sum(
                u[(h * 8 + i) * 3 + r] * sigma[h * 3 + r] * v[(h * 8 + j) * 3 + r]
                for r in range(3))
            self.assertAlmostEqual(got, want, delta=1e-5)
        path = "/v1/sessions/a/snapshots/new/patch"
        self.assertEqual(self.refused(self.c.call("GET", path), 422)["param"], "base")
        self.refused(self.c.call("GET", path + "?base=none"), 404)
        self.c.create("b", "bytes", {"state_bytes": s.MIB})
        self.c.post("b", "snapshots", {"name": "x"})
        e = self.refused(self.c.call("GET", "/v1/sessions/b/snapshots/x/patch?base=x"), 422)
        self.assertEqual(e["reason"], "not_associative")

    def test_what_makes_no_sense_is_refused_by_name(self):
        self.start()
        self.c.create("t", "associative", {"rule": "ttt_linear", **SHAPE})
        self.c.create("n", "associative", {"rule": "linear_norm", **SHAPE})
        self.c.create("b", "bytes", {"state_bytes": s.MIB})
        x, short = {"key": KEY, "value": VALUE}, [KEY[0], [1e-4] + [0] * 7]
        wrong = [("t", "edit", x, "not_supported"), ("t", "forget", {"key": KEY}, "not_supported"),
                 ("n", "edit", x, "not_supported"), ("a", "forget", x, "not_supported"),
                 ("b", "edit", x, "wrong_kind"), ("a", "edit", {"key": KEY}, "missing_tensor"),
                 ("a", "edit", {"value": VALUE}, "missing_tensor"),
                 ("a", "edit", {}, "missing_tensor"), ("a", "forget", {}, "missing_tensor"),
                 ("a", "edit", {"key": [KEY], "value": VALUE}, "bad_shape"),
                 ("a", "edit", {"key": short, "value": VALUE}, "key_too_short"),
                 ("a", "edit", dict(x, probes=KEY), "bad_shape"),
                 ("a", "edit", dict(x, keys=KEY), "unknown_field")]
        want = self.c.hash("a")
        for id, verb, sent, reason in wrong:
            e = self.refused(self.c.call("POST", f"/v1/sessions/{id}/{verb}", sent), 422)
            self.assertEqual(e["reason"], reason, (id, verb, sent))
        self.refused(self.c.call("POST", "/v1/sessions/none/edit", x), 404)
        self.assertEqual((self.c.hash("a"), self.c.facts("a")["version"]), (want, 1))


if __name__ == "__main__":
    fw.main()
